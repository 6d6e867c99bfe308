"""What is wrong with a value that has another shape than was expected: where, and what belongs there. Pure.

msgspec says it in the words of its types, and sometimes with the value, which may be a secret. Here it is said as to
whoever wrote the value.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

Place = tuple[str | int, ...]

_PLACE: Final = re.compile(r" - at `(key in )?\$(.*)`$", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_TYPE: Final = re.compile(r"Expected `(.+?)`(?:, got `.*`)?(.*)", re.DOTALL)
_FIELD: Final = re.compile(r"Object (missing required|contains unknown) field `(.+)`", re.DOTALL)
_BOUND: Final = re.compile(r" (?:of length )?(>=|<=|>|<) (\S+)")
_WORDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_COUNTED: Final = {"str": " characters", "array": " items", "object": " members"}
_BOUNDS: Final = {">=": "at least", "<=": "at most", ">": "over", "<": "under"}


def fault(error: msgspec.ValidationError) -> tuple[Place, str]:
    """Return the place that an error names, from the value inwards, and what is wrong there, never what was found."""
    text = str(error)
    place: list[str | int] = []
    if (named := _PLACE.search(text)) is not None:
        text = text[: named.start()]
        place += [int(at) if at else key for key, at in _STEP.findall(named[2])]
    if (typed := _TYPE.fullmatch(text)) is not None:
        return tuple(place), f"must be {_expected(typed[1], typed[2])}"
    if (field := _FIELD.fullmatch(text)) is not None:
        if field[1] == "contains unknown":
            return (*place, field[2]), "unknown key"
        return tuple(place), f'the key "{field[2]}" is missing'
    if text.startswith("Invalid "):
        return tuple(place), "is none of the values that it can have"
    return tuple(place), text


def sentence(error: msgspec.ValidationError) -> str:
    """Return `fault` as one text: `rules[0].tools: must be a list`."""
    place, said = fault(error)
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    return f"{where}: {said}" if where else said


def _expected(types: str, rest: str) -> str:
    words = " or ".join(_WORDS.get(each, each) for each in types.split(" | "))
    if (bound := _BOUND.fullmatch(rest)) is None:
        return words + rest
    counted = _COUNTED.get(types, "")
    return f"{words}{' of' if counted else ','} {_BOUNDS[bound[1]]} {bound[2]}{counted}"
