"""A source of events that tells what a test says, and those who read its topics."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from actors.principal import LOCAL, Principal
from supervisor.service.events.journal import Journal
from supervisor.service.events.sources import EventType, Origin, Told, Viewpoint
from supervisor.service.events.topics import Topics
from supervisor.service.lookup.visible import Visible

NAME = "desk:tick"
NOW = 1_796_000_000.0
"""The time of the wall, in unix seconds, before the clock of a test has moved."""


def occurrence(id_: str, **more: Any) -> msgspec.Raw:
    said = {"eventId": id_, "name": "tick", "timestamp": "2026-11-30T00:00:00Z", "data": {}, **more}
    return msgspec.Raw(json.dumps(said).encode())


def at(principal: str = LOCAL) -> Viewpoint:
    return Viewpoint(Principal(principal), cast("Visible", None))  # a source looks at it, and ours does not


@dataclass
class Followed:
    """One time that a topic was followed: from which cursor on, and who is told."""

    origin: Origin
    cursor: str | None
    told: Told
    raises: list[Exception] = field(default_factory=list)
    over: trio.Event = field(default_factory=trio.Event)

    def fail(self, error: Exception) -> None:
        self.raises.append(error)
        self.over.set()


@dataclass
class FakeSource:
    """Implements `Source`: the type `NAME`, for all but those it is `hidden` from."""

    confirms: bool = True
    hidden: set[str] = field(default_factory=set)
    followed: list[Followed] = field(default_factory=list)
    following: int = 0
    launch: str = "desk"

    def types(self, at: Viewpoint) -> Iterator[EventType]:
        if at.principal not in self.hidden:
            yield EventType(NAME, msgspec.Raw(b'{"name":"tick","delivery":["push"],"inputSchema":{"type":"object"}}'))

    def find(self, at: Viewpoint, name: str, arguments: bytes) -> Origin | None:
        known = name == NAME and at.principal not in self.hidden
        return Origin(name, self.launch, "tick", arguments, 20.0) if known else None

    async def follow(self, origin: Origin, cursor: str | None, told: Told) -> None:
        this = Followed(origin, cursor, told)
        self.followed.append(this)
        self.following += 1
        try:
            if self.confirms:
                told.active(cursor or "0", truncated=False)
            await this.over.wait()
            raise this.raises[0]
        finally:
            self.following -= 1

    @property
    def told(self) -> Told:
        return self.followed[-1].told

    async def tell(self, *ids: str) -> None:
        """Tell of events; the cursor behind each is its id."""
        for id_ in ids:
            self.told.event(occurrence(id_), id_)
        await wait_all_tasks_blocked()


@asynccontextmanager
async def topics_of(source: FakeSource, journal: Journal | None = None) -> AsyncIterator[Topics]:
    """Topics that run."""
    topics = Topics((source,), journal or Journal(lambda: NOW + trio.current_time()))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(topics.run, trio.Event())
        yield topics
        nursery.cancel_scope.cancel()
