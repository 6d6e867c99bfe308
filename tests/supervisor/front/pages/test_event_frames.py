"""Events on their way from one node of a fleet to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec
import pytest
import trio

from supervisor.fleet.links.requests import SentRequest
from supervisor.front.pages import events as module
from supervisor.front.pages.events import EventFrame, read_lines

FRAME = EventFrame("1-2", "kind", b'{"id":"1-2","type":"kind","data":{"a":"\\n"}}')


class Sent:
    """An answer that comes in parts."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = [*parts]

    async def next(self) -> bytes | None:
        await trio.lowlevel.checkpoint()
        return self._parts.pop(0) if self._parts else None


async def read(*parts: bytes) -> list[EventFrame]:
    told: list[EventFrame] = []

    async def take(frames: Sequence[EventFrame]) -> None:
        await trio.lowlevel.checkpoint()
        told.extend(frames)

    await read_lines(cast("SentRequest", Sent(*parts)), take)
    return told


async def test_however_the_lines_are_cut_the_events_are_the_same() -> None:
    text = b"\n" + FRAME.data + b"\n\n" + FRAME.data + b"\n"
    for cut in range(len(text)):
        assert await read(text[:cut], text[cut:]) == [FRAME, FRAME]


@pytest.mark.parametrize("line", [b"x", b"[]", b'{"id":1,"type":"kind"}', b'{"type":"kind"}', b'{"id":"1"}', b"\xff"])
async def test_what_is_no_event_is_said_to_be_none(line: bytes) -> None:
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        await read(line + b"\n")


async def test_a_line_without_an_end_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_LINE_BYTES", 10)
    with pytest.raises(ValueError, match="too large"):
        await read(b"123456", b"78901")


def test_an_event_of_a_fleet_has_the_id_of_that_and_all_that_it_had() -> None:
    told = FRAME.at_node("a", "a=1-2,b=7-1", nodes=["a", "b"])
    assert (told.id, told.name) == ("a=1-2,b=7-1", "kind")
    assert msgspec.json.decode(told.data) == {
        "id": "a=1-2,b=7-1",
        "type": "kind",
        "node": "a",
        "data": {"a": "\n"},
        "nodes": ["a", "b"],
    }
