"""JSON as models write it: an object inside a string, in a fence of Markdown, or as Python prints it. Pure.

What is an object stays the bytes it was. Values of any shape may come in; nothing but `NotAnObject` is raised.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

EMPTY = msgspec.Raw(b"{}")
MAX_NESTING = 3
"""How often an object may be wrapped in a string, or in another object."""
_MAX_LITERAL_CHARS = 20_000
_BEGINS = ("{", "[", '"', "`")
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_NOT_JSON = (msgspec.MsgspecError, RecursionError)

Members = dict[str, msgspec.Raw]
_members = msgspec.json.Decoder(Members)


class NotAnObject(Exception):
    """What was given cannot be read as a JSON object."""


def members(raw: msgspec.Raw) -> Members:
    """Return the members of an object, each as it was written. Raises `NotAnObject`."""
    return _members.decode(object_text(raw))


def object_text(raw: msgspec.Raw) -> msgspec.Raw:
    """Return the JSON text of an object: as it is, or out of the strings it was wrapped in.

    Nothing, `null`, an empty string and an empty list are an empty object. Raises `NotAnObject` for the rest.
    """
    data = bytes(raw).strip()
    text = raw
    try:
        for _ in range(MAX_NESTING):
            if data[:1] != b'"':
                break
            data = _unfenced(msgspec.json.decode(data, type=str).strip()).encode()
            text = msgspec.Raw(data)
        if data[:1] == b"{":
            return _object(data, text)
        if data in (b"", b"null") or (data[:1] == b"[" and msgspec.json.decode(data) == []):
            return EMPTY
    except (*_NOT_JSON, UnicodeEncodeError):
        pass
    raise NotAnObject


def _unfenced(text: str) -> str:
    """Return what a fence of Markdown holds."""
    match = _FENCE.fullmatch(text) if text.startswith("```") else None
    return match[1].strip() if match else text


def _object(data: bytes, text: msgspec.Raw) -> msgspec.Raw:
    """Return an object as it is, or as Python writes one. Raises `msgspec.MsgspecError`."""
    try:
        _members.decode(data)
    except msgspec.MsgspecError:
        value = _literal(data)
        if value is None:
            raise
        return msgspec.Raw(msgspec.json.encode(value))
    return text


def _literal(data: bytes) -> dict[str, Any] | None:
    """Return what Python reads as a dict with texts for keys, single quotes and all; None if it is none."""
    if len(data) > _MAX_LITERAL_CHARS:
        return None
    try:
        value = ast.literal_eval(data.decode())
    except (ValueError, SyntaxError, MemoryError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_json(value) else None


def _is_json(value: Any) -> bool:
    """Say whether a literal has nothing that JSON lacks: no sets, no bytes, no keys but texts."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float | bool)


def is_prose(raw: msgspec.Raw) -> bool:
    """Say whether this is a text that is not meant to be JSON."""
    text = plain(raw)
    return isinstance(text, str) and bool(text.strip()) and text.lstrip()[:1] not in _BEGINS


def first(found: Members, keys: Sequence[str]) -> Any:
    """Return the first of these that is there, as a plain value."""
    return next((value for key in keys if (value := plain(found.get(key))) is not None), None)


def without(found: Members, key: str) -> Members:
    """Return the other members."""
    return {name: value for name, value in found.items() if name != key}


def texts(value: Any) -> list[str]:
    """Return a text, or the texts of a list, as a list; nothing for anything else."""
    found = value if isinstance(value, list) else [value]
    return found if all(isinstance(text, str) for text in found) else []


def number(value: Any) -> float:
    """Return a number, also out of a text; infinite where it is too large for a float, NaN where it is none."""
    if isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def unwrapped(raw: msgspec.Raw | None) -> Any:
    """Return a plain value; that of a string is what the string holds if it is JSON."""
    value = plain(raw)
    return plain(msgspec.Raw(value.strip().encode(errors="replace"))) if isinstance(value, str) else value


def plain(raw: msgspec.Raw | None) -> Any:
    """Return a plain value; None for what is not there, or not JSON that Python can hold."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except _NOT_JSON:
        return None
