"""JSON that others wrote, read by the decoders of msgspec, with one error for whatever is wrong with it. Pure.

A decoder raises an error of its own for what is no JSON or of another shape, `UnicodeDecodeError` for a text that is
not UTF-8, and `RecursionError` for what is nested too deeply: whoever forgets one lets a peer end a task of ours.
What is passed on is not decoded: its values stay `msgspec.Raw`, the bytes they arrived as.

What is wrong with a value of another shape msgspec says in the words of its types, and sometimes with the value, which
may be a secret. `fault` and `sentence` say it as to whoever wrote the value: where, and what belongs there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

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
T = TypeVar("T")
D = TypeVar("D")
Text = bytes | str | msgspec.Raw
Members = dict[str, msgspec.Raw]
NO_RAW: Final = msgspec.Raw(b"")
"""What stands for a member that is not there."""
MEMBERS: Final = msgspec.json.Decoder(Members)
"""An object, each of its members as it was written."""
ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
OBJECTS: Final = msgspec.json.Decoder(list[Members])
STRING: Final = msgspec.json.Decoder(str)
VALUE: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()
"""Anything, as values of Python."""
ANY: Final = msgspec.json.Decoder(msgspec.Raw)
"""Anything, without making values of it."""
MAX_INT_DIGITS: Final = 4300
"""What Python reads by default (`sys.get_int_max_str_digits`)."""
LARGE_BYTES: Final = 65_536
MAX_QUOTES: Final = 4096
_DIGITS: Final = b"0123456789"
_RUN: Final = re.compile(rb"[0-9]*")


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


class UnreadableJson(ValueError):
    """It is no JSON, not of the shape that was expected, not UTF-8, or nested too deeply; the text says which."""


class OtherShape(UnreadableJson):
    """It is JSON, but not of the shape that was expected."""


def read(decoder: msgspec.json.Decoder[T], text: Text) -> T:
    """Raises `UnreadableJson`, `OtherShape`."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise OtherShape(sentence(error)) from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UnreadableJson(str(error)) from None


def read_or(decoder: msgspec.json.Decoder[T], text: Text, otherwise: D) -> T | D:
    """Return what is there, or `otherwise` where it is unreadable."""
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return otherwise


def members(text: Text | None) -> Members:
    """Return the members of an object, each as it was written; none of what is no object, or is not there."""
    return {} if text is None else read_or(MEMBERS, text, {})


def at(text: bytes | msgspec.Raw | None, *path: str) -> msgspec.Raw:
    """Return what stands at the end of a path of names, as it was written; `NO_RAW` if nothing does, or `null`."""
    for name in path:
        text = members(text).get(name)
    if text is None or (len(text) == len(b"null") and bytes(text) == b"null"):  # to compare more would copy it
        return NO_RAW
    return msgspec.Raw(text)


def text_at(text: bytes | msgspec.Raw | None, *path: str) -> str:
    """Return the string at the end of a path, see `at`; empty if there is none."""
    return read_or(STRING, at(text, *path), "")


def with_meta(said: bytes, name: str, value: bytes) -> bytes:
    """Return params or a result with another value (JSON text) of a member of its `_meta`; empty: without that."""
    if not holds(said, (b'"%b"' % name.encode(),)):
        return said
    try:
        whole = read(MEMBERS, said)
        meta = read(MEMBERS, whole["_meta"])
    except (UnreadableJson, KeyError):
        return said
    if meta.pop(name, None) is None:
        return said
    if value:
        meta[name] = msgspec.Raw(value)
    whole["_meta"] = msgspec.Raw(msgspec.json.encode(meta))
    if not meta:
        del whole["_meta"]
    return msgspec.json.encode(whole)


def quoted(text: str) -> msgspec.Raw:
    """Return a text as JSON has it."""
    return msgspec.Raw(msgspec.json.encode(text))


def is_json(text: Text) -> bool:
    return read_or(ANY, text, None) is not None


def holds(text: bytes, marks: tuple[bytes, ...]) -> bool:
    """Say whether a text has one of some marks; each begins with a quote."""
    place = _last_quote(text, lambda quote: text.startswith(marks, quote))
    return place is None or any(text.find(mark, place) >= 0 for mark in marks)


def may_hold(text: bytes, member: re.Pattern[bytes], word: bytes) -> bool:
    """Say whether a text may have a member, written as `member` has it, from a quote on; False if it surely has not.

    `word` is in each of them.
    """
    place = _last_quote(text, lambda quote: member.match(text, quote) is not None)
    return place is None or text.find(word, place) >= 0


def _last_quote(text: bytes, found: Callable[[int], bool]) -> int | None:
    """Return a place before which none of the quotes of a text is what is looked for; None if one is.

    A large text is mostly one string with few quotes: to go from one to the next is much faster than to search it.
    """
    place = 0
    if len(text) > LARGE_BYTES:
        for _ in range(MAX_QUOTES):
            quote = text.find(b'"', place)
            if quote < 0:
                return len(text)
            if found(quote):
                return None
            place = quote + 1
    return place


def has_endless_integer(data: bytes) -> bool:
    """Say whether JSON has an integer of more than 4,300 digits, which many readers refuse, Python's among them.

    So many digits in a row cover one place of any 4,300, so a few places are enough to look at. In one pass: whether a
    place is inside a string is counted on from the one before.
    """
    if len(data) <= MAX_INT_DIGITS:
        return False
    end = counted = 0
    quoted = False
    for place in range(0, len(data), MAX_INT_DIGITS):
        if place < end or data[place] not in _DIGITS:
            continue
        start, end = _digits_around(data, place)
        whole = data[end : end + 1] not in b".eE" and data[start - 1 : start] not in b".eE+"
        if end - start > MAX_INT_DIGITS and whole:
            quoted ^= _ends_other_than_it_began(data[counted:start])
            counted = start
            if not quoted:
                return True
    return False


def _digits_around(data: bytes, place: int) -> tuple[int, int]:
    """Return where the digits around a place begin and end; of very many some may be left out at the beginning."""
    before = data[max(0, place - MAX_INT_DIGITS) : place]
    run = _RUN.match(data, place)
    assert run is not None, "it matches the empty text"
    return place - (len(before) - len(before.rstrip(_DIGITS))), run.end()


def _ends_other_than_it_began(part: bytes) -> bool:
    """Say whether a string begins or ends in a part of valid JSON: after an odd number of quotes not escaped."""
    if b"\\" in part:
        part = part.replace(b"\\\\", b"").replace(b'\\"', b"")
    return part.count(b'"') % 2 == 1
