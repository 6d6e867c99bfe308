"""Texts and numbers that a schema accepts, made up, always the same."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_PATTERN_CHARS = 2000
MAX_CHARS = 10_000

_FORMATS: Mapping[str, str] = {
    "date-time": "2025-01-15T09:30:00Z",
    "date": "2025-01-15",
    "time": "09:30:00Z",
    "duration": "P1D",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/text",
    "url": "https://example.com/text",
    "uri-reference": "https://example.com/text",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "json": "{}",
    "json-pointer": "/text",
    "regex": "text",
}
_LIKELY = ("text", "TEXT", "1", *_FORMATS.values(), "text.png", "TEXT-1", "#336699", "+12025550123")


def text_for(node: Mapping[str, Any], place: int = 0) -> str:
    """Return a text by the format, the pattern and the lengths of a schema; `place` tells equal ones apart."""
    fewest, most = _length(node, "minLength", 0), _length(node, "maxLength", MAX_CHARS)
    pattern = node.get("pattern")
    if isinstance(pattern, str) and len(pattern) <= MAX_PATTERN_CHARS:
        return _by_pattern(pattern, node, fewest, most)
    form = node.get("format")
    if isinstance(form, str) and form in _FORMATS:
        return _FORMATS[form]
    text = f"text{place + 1}" if place else "text"
    return (text * (1 + fewest // len(text)))[: max(fewest, min(len(text), most))]


def _length(node: Mapping[str, Any], key: str, otherwise: int) -> int:
    value = node.get(key)
    return min(int(value), MAX_CHARS) if isinstance(value, int | float) else otherwise


def _by_pattern(pattern: str, node: Mapping[str, Any], fewest: int, most: int) -> str:
    """Return the first text that a pattern and the lengths accept; "text" if there is none."""
    try:
        accepts = re.compile(pattern)
    except re.error:
        return "text"
    own = [value for value in (node.get("default"), *(node.get("examples") or ())) if isinstance(value, str)]
    likely = (*own, _FORMATS.get(str(node.get("format")), "text"), *_LIKELY, *_samples(pattern))
    return next((text for text in likely if fewest <= len(text) <= most and accepts.search(text)), "text")


def _samples(pattern: str) -> Iterator[str]:
    """Return texts by the parts of a pattern: what repeats as rarely as it may, then once, then a few times more."""
    parser: Any = importlib.import_module("re._parser")  # the only part of Python that takes a pattern apart
    parsed = parser.parse(pattern)
    for times in (0, 1, 4, 16):
        yield "".join(_sampled(parsed, times))


def _sampled(parsed: Any, times: int) -> Iterator[str]:
    for code, value in parsed:
        match str(code):
            case "LITERAL":
                yield chr(value)
            case "NOT_LITERAL":
                yield "a" if value != ord("a") else "b"
            case "ANY":
                yield "a"
            case "IN":
                yield _member(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                fewest, most, inner = value
                for _ in range(min(max(int(fewest), times), int(most))):
                    yield from _sampled(inner, times)
            case "SUBPATTERN":
                yield from _sampled(value[-1], times)
            case "ATOMIC_GROUP":
                yield from _sampled(value, times)
            case "BRANCH":
                yield from _sampled(value[1][0], times)


def _member(parts: Any) -> str:
    """Return a character of a set."""
    code, value = parts[0]
    match str(code):
        case "LITERAL":
            return chr(value)
        case "RANGE":
            return chr(value[0])
        case "CATEGORY":
            return {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_NOT_WORD": "-"}.get(str(value), "a")
    # Everything but some characters.
    return next((char for char in "a1-_ " if not any(_holds(part, char) for part in parts[1:])), "~")


def _holds(part: Any, char: str) -> bool:
    code, value = part
    match str(code):
        case "LITERAL":
            return chr(value) == char
        case "RANGE":
            return bool(value[0] <= ord(char) <= value[1])
    kinds = {"CATEGORY_DIGIT": char.isdigit(), "CATEGORY_SPACE": char.isspace(), "CATEGORY_WORD": char.isalnum()}
    return kinds.get(str(value), True)


def number_for(node: Mapping[str, Any], place: int = 0, *, whole: bool = True) -> int | float:
    """Return a number within the limits of a schema, 1 where that is one; `place` tells equal ones apart."""
    low, above = _limit(node, "minimum", -math.inf), _limit(node, "exclusiveMinimum", -math.inf)
    high, below = _limit(node, "maximum", math.inf), _limit(node, "exclusiveMaximum", math.inf)
    step = _limit(node, "multipleOf", 1) or 1

    def accepted(number: float) -> bool:
        times = number / step if whole or "multipleOf" in node else 0.0
        within = low <= number <= high and above < number < below
        return within and abs(times - round(times)) < 1e-9 and (not whole or float(number).is_integer())

    starts = [1.0, 0.0, *_ends(max(low, above), min(high, below), step)]
    number = next(filter(accepted, starts), 1.0)
    moved = (number + place * step, number - place * step)
    number = next(filter(accepted, moved), number)
    return int(number) if float(number).is_integer() else number


def _ends(least: float, most: float, step: float) -> Iterator[float]:
    """Return multiples of a step near the ends of a range, and its middle."""
    if math.isfinite(least):
        yield from (step * math.ceil(least / step), step * (math.floor(least / step) + 1))
    if math.isfinite(most):
        yield from (step * math.floor(most / step), step * (math.ceil(most / step) - 1))
    if math.isfinite(least + most):
        yield (least + most) / 2


def _limit(node: Mapping[str, Any], key: str, otherwise: float) -> float:
    value = node.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise
