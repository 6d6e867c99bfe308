"""Arguments that miss a tool's schema by a slip that a model often makes, set right or named. Pure.

- the arguments once more inside `arguments`, `params` or the like, where the tool has no such parameter
- an array, an object, a number or a boolean as a string that holds it, where the schema wants no string
- `null` for an optional parameter that may not be null

Only where the schema says plainly what it wants, and where schema and arguments are of a size that can be looked at;
everything else goes to the server as it came, byte for byte.

A call that lacks a required argument fails anyway. Where exactly one is missing, exactly one unknown one is there, its
value is what the schema wants, and the two names are alike as no other pair is, it is given its right name. Words that
only mean the same are enough for a tool that is declared to change nothing; for any other the names must be spellings
of one. Everything else is refused, and named: a value under a wrong name is worse than a call that fails. So names that
only share letters (`mode` and `model`, `content` and `context`) are not alike, and what is not in `slips.toml` is no
synonym.

Where nothing is missing, a name that the schema does not have is refused if the schema says that it takes no others.
Else it is sent, for the server may take it, and named if the call fails, if it is like one that the schema has, or if
the tool changes something and its schema does not say that it takes others: most servers pass over what they do not
know, and then a call with `dry_run` was no dry run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from rapidfuzz.distance import OSA

from actors.catalogue import inference
from actors.catalogue.offer import Tool
from actors.kit.tables import table_of
from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from actors.protocol.wire.repeated_keys import check_keys
from actors.search.text import squash
from supervisor.metatools.lenient_json import NotAnObject, Object, members, plain
from supervisor.metatools.texts import clean

MAX_NAME_CHARS = 100
_SAME, _SPELLED, _SYNONYM, _PART, OTHER = 4, 3, 2, 1, 0
"""How alike two names are: but for case and separators; two spellings of a name; two words for a thing; the other
says more of the same (`deploymentId`, `targetDeploymentId`); not at all."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MIN_MISSPELT = 5
"""Letters of a name that may have one too many, one too few, or two that changed places; others become other names."""


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `slips.toml` has, and says."""

    first: frozenset[str]
    last: frozenset[str]
    perhaps_first: frozenset[str]
    synonyms: tuple[str, ...]
    short: dict[str, str]


_WORDS: Final = table_of(__package__, "slips", _Words)
_SYNONYMS: Final = tuple(frozenset(names.split()) for names in _WORDS.synonyms)
_PLURAL_FROM = 3


def likeness(one: str, other: str, context: Collection[str] = ()) -> int:
    """Return how alike two names of arguments are: `_SAME`, `_SPELLED`, `_SYNONYM`, `_PART` or `OTHER`.

    `context` are the words of the tool's name: they add nothing in front of a name (`issue_title` of `create_issue`).
    """
    one, other = one[:MAX_NAME_CHARS], other[:MAX_NAME_CHARS]
    if not squash(one) or not squash(other):
        return OTHER
    if squash(one) == squash(other):
        return _SAME
    a, b = words(one), words(other)
    front = _WORDS.first.union(context)
    if a == b or _longer(a, b, front) or _longer(b, a, front) or _misspelt(squash(one), squash(other)):
        return _SPELLED
    pair = {"".join(a), "".join(b)}
    perhaps = _longer(a, b, _WORDS.perhaps_first) or _longer(b, a, _WORDS.perhaps_first)
    if perhaps or any(pair <= names for names in _SYNONYMS):
        return _SYNONYM
    return _PART if len(a) < len(b) and b[-len(a) :] == a else OTHER


def words(name: str) -> list[str]:
    """Return the words of a name in lower case, abbreviations written out, plurals without their end."""
    singulars = (_singular(word.lower()) for word in _WORD.findall(name))
    return [part for word in singulars for part in _WORDS.short.get(word, word).split()]


def _singular(word: str) -> str:
    plural = len(word) > _PLURAL_FROM and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


def _longer(long: list[str], short: list[str], front: Collection[str]) -> bool:
    """Say whether one is the other with a word more that adds nothing."""
    if len(long) != len(short) + 1:
        return False
    return (long[1:] == short and long[0] in front) or (long[:-1] == short and long[-1] in _WORDS.last)


def _misspelt(one: str, other: str) -> bool:
    """Say whether a letter is too many, or two changed places; another letter makes another word of many."""
    if min(len(one), len(other)) < _MIN_MISSPELT or OSA.distance(one, other, score_cutoff=1) != 1:
        return False
    return len(one) != len(other) or sorted(one) == sorted(other)


_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_OPENS = {"array": b"[", "object": b"{"}
_BOOLEANS = {"true": b"true", "false": b"false"}

_MAX_KNOWN_BYTES = 4 * 1024
_MAX_KNOWN = 128
"""So many schemas of that size are kept taken apart, 5 MiB at the very most: those of the tools that are called."""
_MAX_NAMED = 20
_MAX_COMPARED = 100
"""Properties that an unknown name is compared with; a tool with more is not guessed about."""
_BEGINS = {
    "string": b'"',
    "array": b"[",
    "object": b"{",
    "boolean": b"tf",
    "integer": b"-0123456789",
    "number": b"-0123456789",
}


def coerce_arguments(tool: Tool, given: Object, wrappers: Collection[str]) -> Object:
    """Return the arguments of a call, set right where that is plain; the very same where nothing is to be done."""
    properties, members = _properties_of(tool), given.members
    if not properties or members is None:
        return given
    unwrapped = _inside(members, properties, wrappers) if len(members) == 1 else members
    needed, changed = frozenset(tool.required), dict[str, msgspec.Raw | None]()
    for name, raw in unwrapped.items():
        fitted = _coerce(raw, properties.get(name), needed=name in needed)
        if fitted is not raw:
            changed[name] = fitted
    if unwrapped is members and not changed:
        return given
    right = {name: raw for name, raw in {**unwrapped, **changed}.items() if raw is not None}
    return Object(msgspec.Raw(msgspec.json.encode(right)), right)


def _properties_of(tool: Tool) -> Mapping[str, Any]:
    """Return what a tool's schema says of its properties, nothing if it does not say it in the usual way."""
    schema = bytes(tool.input_schema)
    return _known_properties(schema) if len(schema) <= _MAX_KNOWN_BYTES else _properties(schema)


def _properties(schema: bytes) -> Mapping[str, Any]:
    value = plain(msgspec.Raw(schema))
    properties = value.get("properties") if isinstance(value, dict) else None
    return properties if isinstance(properties, dict) else {}


_known_properties = lru_cache(maxsize=_MAX_KNOWN)(_properties)


def _inside(given: Members, properties: Mapping[str, Any], wrappers: Collection[str]) -> Members:
    (name,) = given
    if name not in wrappers or name in properties:
        return given
    try:
        return members(given[name])
    except NotAnObject:
        return given


def _coerce(raw: msgspec.Raw, schema: Any, *, needed: bool) -> msgspec.Raw | None:
    """Return one argument as it is to be sent; None if it is to be left out."""
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return raw
    wanted = schema.get("type")
    if not isinstance(wanted, str) or wanted == "null":
        return raw
    data = bytes(raw).strip()
    if data == b"null":
        return raw if needed or schema.get("nullable") or schema.get("default", 0) is None else None
    return _out_of_text(raw, wanted) if data[:1] == b'"' and (wanted in _KINDS or wanted in _OPENS) else raw


def _out_of_text(raw: msgspec.Raw, wanted: str) -> msgspec.Raw:
    """Return the value that a string holds, if it is of the kind wanted. Raises `RepeatedKey`."""
    text = str(plain(raw)).strip()
    if wanted in _OPENS:
        data = text.encode(errors="replace")
        if data[:1] != _OPENS[wanted] or not json.is_json(data):
            return raw
        check_keys(data)
        return msgspec.Raw(data)
    data = _BOOLEANS.get(text.lower(), text.encode(errors="replace"))
    value = plain(msgspec.Raw(data))
    right = isinstance(value, _KINDS[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
    return msgspec.Raw(data) if right else raw


class Slip(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the names of some arguments. `meant` has the missing name for an unknown one.

    `mended` are the arguments set right, the text of an object; None where that is not certain.
    """

    missing: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    meant: Mapping[str, str] = {}
    mended: msgspec.Raw | None = None

    @property
    def sentence(self) -> str:
        """Return it in words: `missing rows; unknown: values (did you mean rows?)`."""
        guesses = (f" (did you mean {self.meant[name]}?)" if name in self.meant else "" for name in self.unknown)
        unknown = ", ".join(name + guess for name, guess in zip(self.unknown, guesses, strict=True))
        missing = ", ".join(self.missing)
        return "; ".join(filter(None, (missing and f"missing {missing}", unknown and f"unknown: {unknown}")))


def slip_of(tool: Tool, arguments: Object, missing: Sequence[str] = ()) -> Slip:
    """Return what is wrong with the names of the arguments of a call, which lacks those that are `missing`."""
    lacking = tuple(map(_show, missing[:_MAX_NAMED]))
    properties, given = _properties_of(tool), arguments.members or {}
    if not properties or given.keys() <= properties.keys():
        return Slip(missing=lacking)
    unknown = [name for name in given if name not in properties]
    meant = _meant(tool, given, unknown[:_MAX_NAMED], missing, properties)
    told = {_show(name): _show(right) for name, right in meant.items()}
    mended = _mend(tool, given, unknown, missing, properties) if meant else None
    return Slip(missing=lacking, unknown=tuple(map(_show, unknown[:_MAX_NAMED])), meant=told, mended=mended)


def takes_no_others(tool: Tool) -> bool:
    """Say whether a schema says that an object has none but its properties (JSON Schema `additionalProperties`)."""
    schema = json.members(tool.input_schema)
    return bytes(json.at(schema.get("additionalProperties"))).strip() == b"false" and "patternProperties" not in schema


def takes_any(tool: Tool) -> bool:
    """Say whether a schema says itself that an object may have others than its properties."""
    schema = json.members(tool.input_schema)
    others = bytes(json.at(schema.get("additionalProperties"))).strip()
    return others not in (b"", b"false") or "patternProperties" in schema


def _show(name: str) -> str:
    return clean(name)[:MAX_NAME_CHARS]


def _meant(
    tool: Tool, given: Members, unknown: Sequence[str], missing: Sequence[str], properties: Mapping[str, Any]
) -> dict[str, str]:
    """Return which property that is not given an unknown name stands for, where one is likelier than all others."""
    free = [name for name in properties if name not in given]
    if len(free) > _MAX_COMPARED:
        return {}
    context = words(tool.name[:MAX_NAME_CHARS])
    meant = {}
    for name in unknown:
        fitting = [other for other in free if _fits(given[name], properties[other]) is not False]
        ranks = {other: likeness(name, other, context) for other in fitting}
        best = max(ranks.values(), default=OTHER)
        likely = [other for other, rank in ranks.items() if rank == best != OTHER]
        needed = [other for other in likely if other in missing]
        if len(likely) == 1 or len(needed) == 1:
            meant[name] = (needed or likely)[0]
    return meant


def _mend(
    tool: Tool, given: Members, unknown: Sequence[str], missing: Sequence[str], properties: Mapping[str, Any]
) -> msgspec.Raw | None:
    """Return the arguments with the only unknown one under the only missing name, if nothing else can be meant."""
    if len(unknown) != 1 or len(missing) != 1:
        return None
    (wrong,), (right,) = unknown, missing
    if not _fits(given[wrong], properties.get(right)):
        return None
    context = words(tool.name[:MAX_NAME_CHARS])
    own = likeness(wrong, right, context)
    others = (name for name in properties if name not in given and name != right)
    if own < (_SYNONYM if is_read_only(tool) else _SPELLED):
        return None
    if any(likeness(wrong, name, context) >= own for name in others):
        return None
    renamed = {right if name == wrong else name: value for name, value in given.items()}
    return msgspec.Raw(msgspec.json.encode(renamed))


def is_read_only(tool: Tool) -> bool:
    return bytes(json.at(tool.annotations, "readOnlyHint")) == b"true"


def changes_something(tool: Tool) -> bool:
    """Say whether a tool is declared to change something, or its words say so; one declared to read only does not."""
    if is_read_only(tool):
        return False
    declared = bytes(json.at(tool.annotations, "destructiveHint")) == b"true"
    return declared or inference.effects(tool.name, tool.description).read_only is False


def _fits(raw: msgspec.Raw, schema: Any) -> bool | None:
    """Say whether a value is what a schema wants; None where the schema does not say it plainly."""
    if not isinstance(schema, dict):
        return None
    if isinstance(schema.get("enum"), list):
        return plain(raw) in schema["enum"]
    wanted = schema.get("type")
    if not isinstance(wanted, str) or wanted not in _BEGINS or "const" in schema:
        return None
    data = bytes(raw).strip()
    right = data[:1] in [bytes([byte]) for byte in _BEGINS[wanted]]
    return right and not (wanted == "integer" and any(sign in data for sign in b".eE"))
