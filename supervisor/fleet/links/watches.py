"""Resources of launches that are here, to which clients of another node are subscribed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import trio

from supervisor.fleet.links.frames import FrameStream, LaunchMoved, ResourceChanged


class Watchers(Protocol):
    """Who hears of changes of resources: by launch, and the URI that its server has for it."""

    def add(self, launch: str, uri: str, tell: Callable[[], None], node: object) -> None:
        """Have a node told of changes. Raises `TooManyCalls`."""

    def remove(self, launch: str, uri: str, tell: Callable[[], None]) -> bool:
        """Have it told no longer; return whether nobody is any more."""

    def hear(self, launch: str, uri: str) -> None:
        """A resource has changed at another node."""

    def hear_move(self, launch: str) -> None:
        """A launch is at another node now, or at none: whoever is subscribed there has to be again."""

    def hear_break(self) -> None:
        """The connection to another node broke: the same for all its launches."""


class LinkWatches:
    """Those of one other node, as long as it is connected. What changes often is told once, when there is room."""

    def __init__(self, stream: FrameStream, watchers: Watchers) -> None:
        self._stream = stream
        self._watchers = watchers
        self._tells: dict[tuple[str, str], Callable[[], None]] = {}
        self._due: dict[tuple[str, str], None] = {}
        self._bell = trio.lowlevel.ParkingLot()

    async def run(self) -> None:
        """Tell of changes, until it is cancelled."""
        while True:
            while not self._due:
                await self._bell.park()
            while self._stream.crowded:
                await self._stream.wait_room()
            for launch, uri in [*self._due][:1]:  # none, if nobody wanted to know any more
                del self._due[launch, uri]
                self._stream.send(ResourceChanged(0, launch, uri))
            await trio.lowlevel.checkpoint()

    def add(self, launch: str, uri: str) -> None:
        """Tell of changes from now on. Raises `TooManyCalls`."""
        if (launch, uri) not in self._tells:
            tell = partial(self._tell, launch, uri)
            self._watchers.add(launch, uri, tell, self)
            self._tells[launch, uri] = tell

    def remove(self, launch: str, uri: str) -> bool:
        """Tell of them no longer; return whether it did, and nobody is told any more."""
        self._due.pop((launch, uri), None)
        tell = self._tells.pop((launch, uri), None)
        return tell is not None and self._watchers.remove(launch, uri, tell)

    def move(self, launch: str) -> None:
        """The launch is not here any more."""
        gone = [key for key in self._tells if key[0] == launch]
        for key in gone:
            self.remove(*key)
        if gone and not self._stream.gone:
            self._stream.send(LaunchMoved(0, launch))

    def clear(self) -> None:
        for key in [*self._tells]:
            self.remove(*key)

    def _tell(self, launch: str, uri: str) -> None:
        self._due[launch, uri] = None
        self._bell.unpark_all()
