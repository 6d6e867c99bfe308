"""A configuration as it is published for the nodes of a fleet: its text, compressed for a record. Pure."""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

from supervisor.config.syntax.file import MAX_FILE_BYTES, digest_of
from supervisor.fleet.status import PublishedConfiguration


class PackedConfiguration(msgspec.Struct, frozen=True, array_like=True):
    """`packed` is the text as UTF-8, compressed by zlib."""

    about: PublishedConfiguration
    packed: bytes

    def text(self) -> str:
        """Return the text. Raises `ValueError` for what is none, is too large, or is not what it is said to be."""
        unpacking = zlib.decompressobj()
        try:
            text = unpacking.decompress(self.packed, MAX_FILE_BYTES).decode()
        except zlib.error as error:
            raise ValueError(str(error)) from None
        if not unpacking.eof or digest_of(text) != self.about.digest:
            raise ValueError("it is too large, or has been cut off")
        return text


_PACKED: Final = msgspec.msgpack.Decoder(PackedConfiguration)


def pack(text: str, *, at: float, by: str, node: str) -> PackedConfiguration:
    """Return a text as it is published, at a moment in unix seconds."""
    about = PublishedConfiguration(digest=digest_of(text), at=at, by=by, node=node)
    return PackedConfiguration(about, zlib.compress(text.encode(), 9))


def encode(packed: PackedConfiguration) -> bytes:
    return msgspec.msgpack.encode(packed)


def decode(payload: bytes) -> PackedConfiguration:
    """Raises `MsgspecError` for what is none. Its text is looked at where it is used."""
    return _PACKED.decode(payload)
