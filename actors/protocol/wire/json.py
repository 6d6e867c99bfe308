"""JSON that others wrote, read by the decoders of msgspec, with one error for whatever is wrong with it. Pure.

A decoder raises an error of its own for what is no JSON or of another shape, `UnicodeDecodeError` for a text that is
not UTF-8, and `RecursionError` for what is nested too deeply: whoever forgets one lets a peer end a task of ours.
What is passed on is not decoded: its values stay `msgspec.Raw`, the bytes they arrived as.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")
D = TypeVar("D")
Text = bytes | str | msgspec.Raw
Members = dict[str, msgspec.Raw]

MEMBERS: Final = msgspec.json.Decoder(Members)
"""An object, each of its members as it was written."""
ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
OBJECTS: Final = msgspec.json.Decoder(list[Members])
STRING: Final = msgspec.json.Decoder(str)
VALUE: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()
"""Anything, as values of Python."""
ANY: Final = msgspec.json.Decoder(msgspec.Raw)
"""Anything, without making values of it."""


class UnreadableJson(ValueError):
    """It is no JSON, not of the shape that was expected, not UTF-8, or nested too deeply; the text says which."""


class OtherShape(UnreadableJson):
    """It is JSON, but not of the shape that was expected."""


def read(decoder: msgspec.json.Decoder[T], text: Text) -> T:
    """Raises `UnreadableJson`, `OtherShape`."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise OtherShape(str(error)) from None
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
