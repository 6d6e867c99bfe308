"""What a later version says is borne; what is no frame at all is not."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from supervisor.fleet.links.frames import (
    HEAD_BYTES,
    BadFrame,
    OrderDone,
    PartTaken,
    UnknownFrame,
    read_answering,
    read_asking,
    write,
)

encode = msgspec.msgpack.encode
Read = Callable[[bytes], object]
BOTH = pytest.mark.parametrize("read", [read_asking, read_answering])


def body(frame: PartTaken) -> bytes:
    return write(frame)[HEAD_BYTES:]


def test_what_a_later_version_adds_to_a_frame_is_left_out() -> None:
    tag, *members = msgspec.msgpack.decode(body(PartTaken(7, 10)))
    assert read_asking(encode([tag, *members, {"more": 1}])) == PartTaken(7, 10)


@BOTH
@pytest.mark.parametrize("members", [[], [1], [1, {"a": [2]}, b"x"]])
def test_a_frame_that_only_a_later_version_has_means_nothing(read: Read, members: list[object]) -> None:
    assert read(encode([500, *members])) == UnknownFrame(0)


@BOTH
@pytest.mark.parametrize(
    "said",
    [
        [],
        ["x"],
        [-1, 1],
        [True, 1],
        {"a": 1},
        7,
        [PartTaken.__struct_config__.tag],
        [OrderDone.__struct_config__.tag, "x"],
    ],
)
def test_what_is_no_frame_is_refused(read: Read, said: object) -> None:
    for each in (encode(said), encode(said)[:-1], b"\xc1"):
        with pytest.raises(BadFrame):
            read(each)
