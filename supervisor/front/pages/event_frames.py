"""Events as they are sent: to clients as server-sent events, from one node of a fleet to another in lines of JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from supervisor.events.event import one_line
from supervisor.fleet.links.requests import SentRequest
from supervisor.front.edge.request import HttpRequest

LINES: Final = ((b"content-type", b"application/x-ndjson"),)
MAX_LINE_BYTES: Final = 16_777_216
"""Of one event of another node."""
_LINE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT: Final = msgspec.json.Decoder(str)


class EventFrame(NamedTuple):
    """One event as it is sent: `data` is a JSON object in one line, which has its `id` and its type, the `name`."""

    id: str
    name: str
    data: bytes

    @property
    def lines(self) -> bytes:
        """It as a server-sent event."""
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (self.id.encode(), self.name.encode(), self.data)

    def at_node(self, node: str, id_: str, **members: object) -> EventFrame:
        """Return it as an event of a fleet, with an id of that, and more members."""
        own = {name: value for name, value in _LINE.decode(self.data).items() if name not in ("id", "type")}
        return EventFrame(id_, self.name, one_line({"id": id_, "type": self.name, "node": node, **own, **members}))


SendFrames = Callable[[Sequence[EventFrame]], Awaitable[None]]
"""Sends some; none says that we are there. A checkpoint."""


async def send_lines(request: HttpRequest, frames: Sequence[EventFrame]) -> None:
    """Send events to the node that asks for them. A line without any says that we are there."""
    await request.send(b"".join([frame.data + b"\n" for frame in frames]) or b"\n")


async def read_lines(sent: SentRequest, take: SendFrames) -> None:
    """Hand over the events of another node until there are no more of them.

    Raises what `SentRequest` raises, and `ValueError` or `MsgspecError` for what are no events.
    """
    rest = b""
    while (part := await sent.next()) is not None:
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise ValueError("an event of another node is too large")
        if frames := [_frame_of(line) for line in lines if line]:
            await take(frames)


def _frame_of(line: bytes) -> EventFrame:
    told = _LINE.decode(line)
    try:
        return EventFrame(_TEXT.decode(told["id"]), _TEXT.decode(told["type"]), line)
    except KeyError:
        raise ValueError("an event of another node has no id") from None
