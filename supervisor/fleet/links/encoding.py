"""Frames as they are sent: a length in four bytes, and a MessagePack array that begins with the tag of the frame. Pure.

What a later version adds at the end of a frame is left out here, and a frame that it has and we have not means nothing:
so nodes of two versions work together while a fleet is updated.
"""

from __future__ import annotations

from typing import Final, get_args

import msgspec

from supervisor.fleet.links.frames import Answering, AnyFrame, Asking, UnknownFrame

HEAD_BYTES: Final = 4
_TAGS: Final = frozenset(frame.__struct_config__.tag for frame in get_args(AnyFrame))
_encoder = msgspec.msgpack.Encoder()
_raws: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_asking: msgspec.msgpack.Decoder[Asking] = msgspec.msgpack.Decoder(Asking)
_answering: msgspec.msgpack.Decoder[Answering] = msgspec.msgpack.Decoder(Answering)


class BadFrame(ValueError):
    """What arrived is no frame of ours."""


def write(frame: AnyFrame) -> bytes:
    """Return a frame as it is sent: its length in four bytes, and MessagePack."""
    body = _encoder.encode(frame)
    return len(body).to_bytes(HEAD_BYTES, "big") + body


def read_asking(body: bytes) -> Asking:
    """Return what whoever asks has said. Raises `BadFrame`."""
    try:
        return _asking.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        return _later_frame(body, error)


def read_answering(body: bytes) -> Answering:
    """Return what whoever is asked has said. Raises `BadFrame`."""
    try:
        return _answering.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        return _later_frame(body, error)


def _later_frame(body: bytes, error: Exception) -> UnknownFrame:
    """Return a frame for one that has a tag which this version does not know. Raises `BadFrame` for every other."""
    try:
        tag = msgspec.msgpack.decode(_raws.decode(body)[0], type=int)
    except (ValueError, IndexError):
        raise BadFrame(str(error)) from None
    if tag in _TAGS or tag < 0:
        raise BadFrame(str(error)) from None
    return UnknownFrame(0)
