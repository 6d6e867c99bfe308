"""What targets have in common: a target takes any bytes, gives them to readers, and raises for what must not be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from actors.errors import ProtocolViolation
from actors.protocol.wire import jsonrpc

CORPUS = Path(__file__).with_name("corpus")
"""A folder for each target: what it is meant to read (`sample-`), and each input that broke something once."""
Target = Callable[[bytes], None]
MAX_BYTES = 64 * 1024
"""Longer inputs are cut: what is longer is read in a thread, and bounded by its size."""


def inputs_of(name: str) -> list[bytes]:
    """Return the inputs of the corpus for the target of this name."""
    return [file.read_bytes() for file in sorted((CORPUS / name).iterdir())]


def parts_of(data: bytes, count: int) -> list[bytes]:
    """Return an input in so many parts: what stands between lines that are `--`; the last ones may be empty."""
    parts = data.split(b"\n--\n", count - 1)
    return [*parts, *[b""] * (count - len(parts))]


def carried(data: bytes) -> msgspec.Raw | None:
    """Return an input as it comes out of a message that carries it; None if no message can."""
    try:
        params = jsonrpc.decode(b'{"jsonrpc":"2.0","method":"m","params":%b}' % data).params
    except ProtocolViolation:
        return None
    return params or None


def text_of(data: bytes) -> str:
    """Return bytes as text, whatever they are: what is no UTF-8 becomes U+FFFD."""
    return data.decode(errors="replace")


def same(one: Any, other: Any) -> None:
    """Raise unless both are equal."""
    assert one == other, f"{one!r:.500} is not {other!r:.500}"


def holds(condition: object) -> None:
    """Raise unless it is true."""
    assert condition
