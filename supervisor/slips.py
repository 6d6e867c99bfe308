"""Arguments under a wrong name: what is missing, what is unknown, and which one is the other. Pure.

A call that lacks a required argument fails anyway. Where exactly one is missing, exactly one unknown one is there, its
value is what the schema wants and nothing else can be meant, it is given its right name; else both are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rapidfuzz import fuzz

from actors.catalogue.entries import Tool
from actors.search.text import squash
from supervisor.fitting import properties_of
from supervisor.loose import Members, NotAnObject, plain, taken_apart
from supervisor.shown import clean

MAX_NAMED = 20
MAX_NAME_CHARS = 100
_ALIKE = 60
"""Of 100: names that share so much of their characters are spellings of one word."""
_BEGINS = {
    "string": b'"',
    "array": b"[",
    "object": b"{",
    "boolean": b"tf",
    "integer": b"-0123456789",
    "number": b"-0123456789",
}


class Slip(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the names of some arguments. `meant` has the missing name for an unknown one.

    `mended` are the arguments set right, the text of an object; None where that is not certain.
    """

    missing: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    meant: Mapping[str, str] = {}
    mended: msgspec.Raw | None = None

    @property
    def told(self) -> str:
        """Return it in words: `missing rows; unknown: values (did you mean rows?)`."""
        text = f"missing {', '.join(self.missing)}"
        if not self.unknown:
            return text
        guesses = (f" (did you mean {self.meant[name]}?)" if name in self.meant else "" for name in self.unknown)
        return f"{text}; unknown: {', '.join(name + guess for name, guess in zip(self.unknown, guesses, strict=True))}"


def slip_of(tool: Tool, arguments: msgspec.Raw, missing: Sequence[str]) -> Slip:
    """Return what became of the `missing` arguments of a call; `arguments` is the text of an object."""
    lacking = tuple(_shown(name) for name in missing[:MAX_NAMED])
    properties = properties_of(tool)
    try:
        given = taken_apart(arguments)
    except NotAnObject:
        return Slip(missing=lacking)
    unknown = [name for name in given if name not in properties]
    if not properties or not unknown:
        return Slip(missing=lacking)
    meant = _meant(given, unknown[:MAX_NAMED], missing[:MAX_NAMED], properties)
    told = {_shown(name): _shown(right) for name, right in meant.items()}
    mended = _mended(given, unknown, missing, properties) if meant else None
    return Slip(missing=lacking, unknown=tuple(map(_shown, unknown[:MAX_NAMED])), meant=told, mended=mended)


def _shown(name: str) -> str:
    return clean(name)[:MAX_NAME_CHARS]


def _meant(
    given: Members, unknown: Sequence[str], missing: Sequence[str], properties: Mapping[str, Any]
) -> dict[str, str]:
    """Return which missing name an unknown one stands for: the only one, or the one that is spelled like it."""
    if len(unknown) == len(missing) == 1:
        fits = _fits(given[unknown[0]], properties.get(missing[0])) is not False
        return {unknown[0]: missing[0]} if fits else {}
    likely = {name: max((_likeness(name, right), right) for right in missing) for name in unknown}
    return {name: right for name, (likeness, right) in likely.items() if likeness >= _ALIKE}


def _mended(
    given: Members, unknown: Sequence[str], missing: Sequence[str], properties: Mapping[str, Any]
) -> msgspec.Raw | None:
    """Return the arguments with the only unknown one under the only missing name, if nothing else can be meant."""
    if len(unknown) != 1 or len(missing) != 1:
        return None
    (wrong,), (right,) = unknown, missing
    if not _fits(given[wrong], properties.get(right)):
        return None
    others = [name for name, schema in properties.items() if name not in given and name != right]
    others = [name for name in others if _fits(given[wrong], properties[name]) is not False]
    own = _likeness(wrong, right)
    if others and (own < _ALIKE or max(_likeness(wrong, name) for name in others) >= own):
        return None
    renamed = {right if name == wrong else name: value for name, value in given.items()}
    return msgspec.Raw(msgspec.json.encode(renamed))


def _likeness(one: str, other: str) -> float:
    """Return how alike two names are, of 100; one that is part of the other is an abbreviation of it."""
    a, b = squash(one[:MAX_NAME_CHARS]), squash(other[:MAX_NAME_CHARS])
    if min(len(a), len(b)) >= 3 and (a in b or b in a):
        return 100.0
    return float(fuzz.ratio(a, b))


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
