"""The events of all nodes of a fleet as one stream, which can be taken up again at any of them.

Each node numbers its own events. The id of one in the stream has the place in those of each node: `a=ID,b=ID`. So
whoever comes back with it, to whichever node, gets from each what followed. Where a node has come or gone there may
have been events that nobody can tell any more: then `reset` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol
from urllib.parse import urlencode

import msgspec
import trio

from actors.errors import SupervisorError
from actors.kit import Pauses
from supervisor.events.event import one_line
from supervisor.fleet.records import Node
from supervisor.fleet.status import Peers
from supervisor.front.edge.request import HttpRequest
from supervisor.front.http.elsewhere import head_of
from supervisor.front.pages.event_frames import EventFrame, SendFrames, read_lines

HELLO_S: Final = 2.0
"""For so long a stream waits at its beginning for nodes that do not answer."""
LOOK_S: Final = 0.5
"""How soon it is seen that a node has come or gone."""
MAX_NODES: Final = 32
"""Whose events are in one stream; of a larger fleet each reader hears so many nodes."""
HELLO: Final = "hello"
_ACCEPT: Final = [(b"accept", b"text/event-stream")]
_OF_NODE: Final = "="
_NEXT: Final = ","


class OwnEvents(Protocol):
    """The stream of this node alone."""

    async def begin(self, after: str) -> None:
        """Note that it tells what follows an event, or what happens from now on if `after` is empty."""

    async def run(self, send: SendFrames) -> None:
        """Tell for ever, a `hello` first."""


class FleetEvents:
    """Implements `OwnEvents` for a whole fleet. `request` is whose stream it is, at the address `path`."""

    def __init__(self, peers: Peers, request: HttpRequest, path: str, own: OwnEvents, *, brief: bool) -> None:
        self._peers = peers
        self._request = request
        self._path = path
        self._own = own
        self._brief = brief
        self._places: dict[str, str] = {}
        self._reading: dict[str, trio.CancelScope] = {}
        self._lives: dict[str, str] = {}
        self._greeted = trio.Event()
        self._turn = trio.Lock()
        self._incomplete = False
        self._send: SendFrames
        self._nursery: trio.Nursery

    async def begin(self, after: str) -> None:
        name = self._peers.name
        self._places = _read(after) if _OF_NODE in after else {name: after} if after else {}
        self._incomplete = bool(after) and self._places.keys() != {name, *self._others()}
        for gone in self._places.keys() - {name, *self._others()}:
            del self._places[gone]
        await self._own.begin(self._places.get(name, ""))

    async def run(self, send: SendFrames) -> None:
        self._send = send
        async with trio.open_nursery() as self._nursery:
            begun = [self._follow(node) for node in self._others().values()]
            with trio.move_on_after(HELLO_S):
                for each in begun:
                    await each.wait()
            self._nursery.start_soon(self._look_for_nodes)
            await self._own.run(self._tell_own)

    def _others(self) -> dict[str, Node]:
        """Return the other nodes by their names."""
        nodes = sorted(self._peers.others(), key=lambda node: node.name)
        return {node.name: node for node in nodes[: MAX_NODES - 1]}

    def _follow(self, node: Node) -> trio.Event:
        """Begin to read what another node tells; return what is set when it has answered."""
        begun, scope = trio.Event(), trio.CancelScope()
        self._reading[node.name], self._lives[node.name] = scope, node.life
        self._nursery.start_soon(self._read_for_ever, node, scope, begun)
        return begun

    async def _look_for_nodes(self) -> None:
        while True:
            await trio.sleep(LOOK_S)
            others = self._others()
            for name in [name for name, life in self._lives.items() if name not in others or others[name].life != life]:
                self._reading.pop(name).cancel()
                del self._lives[name]
            gone = self._places.keys() - {self._peers.name, *others}
            for name in gone:
                del self._places[name]
            fresh = others.keys() - self._places.keys() - self._lives.keys()
            begun = [self._follow(node) for name, node in others.items() if name not in self._lives]
            with trio.move_on_after(HELLO_S):
                for each in begun:
                    await each.wait()
            if gone or fresh:  # one that was started again says so itself
                await self._say_incomplete()

    async def _read_for_ever(self, node: Node, scope: trio.CancelScope, begun: trio.Event) -> None:
        pauses = Pauses()
        with scope:
            while True:
                with suppress(SupervisorError, ValueError, msgspec.MsgspecError):
                    await self._read(node, begun)
                    pauses.reset()
                await trio.sleep(pauses.next())

    async def _read(self, node: Node, begun: trio.Event) -> None:
        query = {"after": self._places.get(node.name, ""), "brief": "true" if self._brief else "false"}
        head = head_of(self._request, f"{self._path}?{urlencode(query)}".encode(), _ACCEPT)
        sent = await self._peers.request(node, head, b"")
        try:
            if (await sent.read_head()).status == 200:
                await read_lines(sent, partial(self._tell_theirs, node.name, begun))
        finally:
            sent.leave()

    # What is told ----------------------------------------------------------------------------------------------------

    async def _tell_own(self, frames: Sequence[EventFrame]) -> None:
        if not frames:
            await self._send([])
            return
        await self._tell(self._peers.name, frames)
        if not self._greeted.is_set():
            self._greeted.set()
            if self._incomplete:
                await self._say_incomplete()

    async def _tell_theirs(self, name: str, begun: trio.Event, frames: Sequence[EventFrame]) -> None:
        for frame in frames:
            if frame.name == HELLO:
                self._places.setdefault(name, frame.id)
                begun.set()
        await self._greeted.wait()  # it is said first which nodes are told of
        await self._tell(name, [frame for frame in frames if frame.name != HELLO])

    async def _tell(self, name: str, frames: Sequence[EventFrame]) -> None:
        """Send events of one node. Whoever has the last of them has all that were sent before."""
        async with self._turn:
            told = []
            for frame in frames:
                self._places[name] = frame.id
                more = {"nodes": sorted(self._places)} if frame.name == HELLO else {}
                told.append(frame.at_node(name, self._id(), **more))
            if told:
                await self._send(told)

    async def _say_incomplete(self) -> None:
        async with self._turn:
            id_ = self._id()
            await self._send([EventFrame(id_, "reset", one_line({"id": id_, "type": "reset"}))])

    def _id(self) -> str:
        return _NEXT.join(f"{name}{_OF_NODE}{place}" for name, place in sorted(self._places.items()))


def _read(id_: str) -> dict[str, str]:
    """Return the places by the names of nodes."""
    pairs = (part.partition(_OF_NODE) for part in id_.split(_NEXT)[:MAX_NODES])
    return {name: place for name, _, place in pairs}
