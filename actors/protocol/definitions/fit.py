"""Entries of lists held against the protocol's schema: one that fits stays as it was written, byte for byte. Pure.

Clients check what they are given, the official TypeScript SDK a list as a whole: one wrong member of one entry takes
all others from it. So what does not fit is put right where there is no doubt what was meant, and left out otherwise:

- `null` is what is not there, and an empty array an empty object (some languages know no other);
- `"true"` and `"12"` are what they spell, as the official Python SDK reads them; a word in other letters is that word;
- one value where several may stand is a list of it, and of several where one must stand it is the one that fits;
- the name of a type where a schema must stand is a schema of that type; a property of any other value may be anything;
- a required member that can only be one thing is that, whatever stands there: arguments are an object in any case.

What is made of a schema allows more than was written, never less: the server has the last word. So a list of schemas
that does not fit is left out as a whole, as it would allow less with an alternative less, and so is a `required` that
is a text. So are the files of a skill, which are all of them. What must be there and cannot be made leaves nothing of
its object. An entry of which nothing is left is `Unfit`.
"""

from __future__ import annotations

import re
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from actors.protocol.agreement.versions import Era
from actors.protocol.definitions.results import compilable
from actors.protocol.definitions.schema import (
    ENTRIES,
    Keywords,
    ListPage,
    Resource,
    ResourceTemplate,
    SimpleType,
    SkillResource,
    is_of_schemas,
)
from actors.protocol.listing import Kind
from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from actors.protocol.wire.jsonrpc import encode

MAX_LEVELS: Final = 32
"""What does not fit deeper than that is left out: to find it, each level is read once more."""
MAX_FAULTS: Final = 4
MAX_SHOWN: Final = 40

_TEXTS: Final = msgspec.json.Decoder(list[str])
_EMPTY: Final = msgspec.Raw(b"{}")
_BOOLEANS: Final = {b"true": _EMPTY, b"false": msgspec.Raw(b'{"not":{}}')}
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_TYPES: Final = {
    word: kind
    for kind, words in {
        "integer": ("int", "int32", "int64", "long"),
        "number": ("float", "double", "decimal"),
        "string": ("str", "text"),
        "boolean": ("bool",),
        "array": ("list", "tuple"),
        "object": ("dict", "map"),
        "null": ("none",),
    }.items()
    for word in words
}
"""What languages call the types of JSON."""
_WHOLE: Final = (SimpleType, SkillResource)
"""Of these a list is left out as a whole: with one less it says something else."""
_NAMED_BY: Final[dict[type, tuple[str, ...]]] = {Resource: ("title", "uri"), ResourceTemplate: ("title", "uriTemplate")}
"""What stands for the name of what has none: it is told from others by its URI."""


class Unfit(ValueError):
    """Why nothing can be made of an entry; the text is for operators."""


class Fitted(msgspec.Struct, frozen=True):
    """What became of an entry. `faults` say what was put right or left out, but for `null` and what was just absent."""

    definition: msgspec.Raw
    faults: tuple[str, ...] = ()


def fit(definition: msgspec.Raw, kind: Kind, era: Era) -> Fitted:
    """Return an entry as clients of an era can take it, the same object if it is right. Raises `Unfit`."""
    faults: list[str] = []
    fitted = _Fitter(faults).make(ENTRIES[era][kind], definition, "", 0)
    if fitted is None:
        raise Unfit(faults[-1] if faults else f"it is {_shown(definition)}, no object")
    if kind == "tools" and b'"outputSchema"' in bytes(fitted):
        fitted = _with_compilable_results(fitted, faults)
    more = [f"and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
    return Fitted(fitted, (*faults[:MAX_FAULTS], *more))


def fit_page(page: bytes) -> bytes:
    """Return the result of a list with members that are as the protocol has them, but for its entries; see `fit`."""
    written = msgspec.Raw(page)
    fitted = _Fitter([]).make(ListPage, written, "", 0)
    return page if fitted is None or fitted is written else bytes(fitted)


def _with_compilable_results(definition: msgspec.Raw, faults: list[str]) -> msgspec.Raw:
    members = json.read(json.MEMBERS, definition)
    schema = members.get("outputSchema")
    if schema is None or (made := compilable(schema, faults)) is schema:
        return definition
    return msgspec.Raw(encode({**members, "outputSchema": made}))


class _Fitter:
    """Fits one entry. `make` returns what is written if it fits, the same object; None if nothing can be made of it."""

    def __init__(self, faults: list[str]) -> None:
        self._faults = faults

    def make(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        if json.read_or(_decoder(kind), raw, None) is not None:
            return raw
        if level > MAX_LEVELS:
            return None
        origin, of = get_origin(kind), get_args(kind)
        if origin is Annotated:
            made = self.make(of[0], raw, path, level)
            return made if made is not None and json.read_or(_decoder(kind), made, None) is not None else None
        if origin in (Union, UnionType):
            return self._one_of(of, raw, path, level)
        if origin is list:
            return self._list(of[0], raw, path, level)
        if origin is dict:
            return self._named(of[1], raw, path, level)
        if origin is Literal:
            return _word(of, raw)
        return self._object(kind, raw, path, level) if _is_struct(kind) else _spelled(kind, raw)

    def _noted(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        """Make what stands at a path, and note if that is another value than is written."""
        known = len(self._faults)
        made = self.make(kind, raw, path, level + 1)
        if made is None or _sign(made) != _sign(raw) or _sign(raw) not in "{[":
            del self._faults[known:]
            if made is not raw:
                self._faults.append(f"{path}: {_shown(raw)} {'left out' if made is None else 'put right'}")
        return made

    def _one_of(self, kinds: tuple[Any, ...], raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        lists = [kind for kind in kinds if _is_list(kind)]
        others = [kind for kind in kinds if kind is not msgspec.UnsetType and not _is_list(kind)]
        for kind in lists if lists and _sign(raw) == "[" else (*others, *lists):
            if (made := self.make(kind, raw, path, level)) is not None:
                return made
        return None

    def _list(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        elements = json.read_or(json.ELEMENTS, raw, None) if _sign(raw) == "[" else None
        if elements is None:
            one = None if _sign(raw) == "{" else self.make(kind, raw, path, level)
            return None if one is None else msgspec.Raw(encode([one]))
        made = [self._noted(kind, element, f"{path}[{at}]", level) for at, element in enumerate(elements)]
        if None in made and (kind in _WHOLE or is_of_schemas(kind)):
            return None
        return msgspec.Raw(encode([one for one in made if one is not None]))

    def _named(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        members = json.read_or(json.MEMBERS, _object_for(raw), None)
        if members is None:
            return None
        made = {name: self._noted(kind, value, _below(path, name), level) for name, value in members.items()}
        otherwise = _EMPTY if is_of_schemas(kind) else None
        kept = {name: otherwise if value is None else value for name, value in made.items()}
        return msgspec.Raw(encode({name: value for name, value in kept.items() if value is not None}))

    def _object(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        if _sign(raw) in "-0123456789n":
            return None
        is_schema = issubclass(kind, Keywords)
        members = json.read_or(json.MEMBERS, _schema_for(raw) if is_schema else _object_for(raw), None)
        if members is None:
            return None
        written = _without_draft_4(members) if is_schema else members
        known, needed = _fields(kind)
        made: Members = {}
        for name, value in written.items():
            if name not in known:
                made[name] = value
            elif _sign(value) == "n":
                self._faults += [f"{_below(path, name)}: null left out"] if is_schema and name not in needed else []
            elif is_schema and _sign(value) != "[" and _can_only_be_list(known[name]):
                self._faults.append(f"{_below(path, name)}: {_shown(value)} left out")
            elif (fitted := self._noted(known[name], value, _below(path, name), level)) is not None:
                made[name] = fitted
        for name in needed:
            if name in made:
                continue
            absent = name not in written or _sign(written[name]) == "n"
            other = _only(known[name]) if absent or get_origin(known[name]) is Literal else None
            if name == "name":
                other = next((made[other] for other in _NAMED_BY.get(kind, ()) if other in made), None)
            if other is None:
                self._faults.append(
                    f"{_below(path, name)} is {_shown(written[name]) if name in written else 'missing'}"
                )
                return None
            made[name] = other
        return msgspec.Raw(encode(made))


@cache
def _only(kind: Any) -> msgspec.Raw | None:
    """Return the one value that there is of a kind where nothing is written; None if there are others, or none."""
    of = get_args(kind)
    if get_origin(kind) is Literal and len(of) == 1:
        return msgspec.Raw(encode(of[0]))
    return _Fitter([]).make(kind, _EMPTY, "", 0) if _is_struct(kind) else None


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


# Lists are read in threads, and two that make msgspec look into the same struct for the first time end the process (a
# segmentation fault, msgspec 0.22): it is complete as soon as one has. So that is here, where there is one.
for _kind in (ListPage, *(kind for entries in ENTRIES.values() for kind in entries.values())):
    _decoder(_kind)


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the types of the members of an object, by the names that they have in JSON, and which must be there."""
    fields = msgspec.structs.fields(kind)
    needed = tuple(field.encode_name for field in fields if field.required)
    return {field.encode_name: field.type for field in fields}, needed


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_list(kind: Any) -> bool:
    of = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(of) is list


@cache
def _can_only_be_list(kind: Any) -> bool:
    return all(_is_list(each) for each in get_args(kind) if each is not msgspec.UnsetType)


def _word(words: tuple[str, ...], raw: msgspec.Raw) -> msgspec.Raw | None:
    """Return the word that is meant: in other letters, as other languages name a type, or the one of several."""
    several = json.read_or(_TEXTS, raw, None) if _sign(raw) == "[" else None
    if several is not None:
        known = [word for word in several if word in words]
        return msgspec.Raw(encode(known[0])) if len(known) == 1 else None
    written = json.read_or(json.STRING, raw, "")[:MAX_SHOWN].strip().lower()
    meant = written if written in words else _TYPES.get(written)
    return msgspec.Raw(encode(meant)) if meant in words else None


def _spelled(kind: type, raw: msgspec.Raw) -> msgspec.Raw | None:
    text = json.read_or(json.STRING, raw, "").strip() if _sign(raw) == '"' else ""
    if kind is bool and text.lower() in ("true", "false"):
        return msgspec.Raw(text.lower().encode())
    return msgspec.Raw(text.encode()) if kind is float and _NUMBER.fullmatch(text) else None


def _sign(raw: msgspec.Raw) -> str:
    """Return the first character of a value, which says what it is; without a copy of it, as it may be long."""
    return chr(memoryview(raw)[0]) if len(raw) else "\0"


def _object_for(raw: msgspec.Raw) -> msgspec.Raw:
    return _EMPTY if _sign(raw) == "[" and json.read_or(json.ELEMENTS, raw, None) == [] else raw


def _schema_for(raw: msgspec.Raw) -> msgspec.Raw:
    if _sign(raw) in "tf":
        return _BOOLEANS[bytes(raw)]
    named = _word(get_args(SimpleType), raw) if _sign(raw) == '"' else None
    return _object_for(raw) if named is None else msgspec.Raw(encode({"type": named}))


def _without_draft_4(members: Members) -> Members:
    """Return a schema with limits as they are since draft 6: before, `true` said that a limit itself is left out."""
    made = dict(members)
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if (written := bytes(members.get(exclusive, b""))) not in _BOOLEANS:
            continue
        del made[exclusive]
        if written == b"true" and limit in made:
            made[exclusive] = made.pop(limit)
    if made != members and b"draft-0" in bytes(made.get("$schema", b"")):
        del made["$schema"]
    return made


def _below(path: str, name: str) -> str:
    shown = ascii(name[:MAX_SHOWN])[1:-1]
    return f"{path}.{shown}" if path else shown


def _shown(raw: msgspec.Raw) -> str:
    """Return the beginning of what is written, in printable ASCII."""
    shown = ascii(bytes(raw)[: MAX_SHOWN + 1].decode(errors="replace"))[1:-1]
    return shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 3]}..."
