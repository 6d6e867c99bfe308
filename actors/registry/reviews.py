"""Has what servers list looked at before the registry takes it over: by plugins, which may take their time, and a long
list by a thread, which works out what the pins make of it.

What a server listed waits here with the newest list only, so nothing grows. What is asked about that server meanwhile
(`AwaitShown`) waits behind it. Where no plugin looks at tools, only long lists come here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.offer import LONG_LIST, Offer
from actors.catalogue.snapshot import Entry
from actors.catalogue.tool_rules import NO_CHANGES, ToolChanges
from actors.catalogue.trust import Foreseen
from actors.kit import Address, Ask, Reply, StartSoon
from actors.kit.decoding import decode_in_thread
from actors.launch import server_of
from actors.messages import ServerListed
from actors.registry_inbox import AwaitShown, LaunchesRecalled

AGAIN_S: Final = 60.0
"""After this time it is asked again about tools of which a plugin has not said what becomes of them."""


class ReviewAgain(msgspec.Struct, frozen=True):
    """Plugins may say something else of what a launch listed than they did; of all launches, if none is named."""

    launch: str = ""


class LaunchesReviewed(Ask[None], frozen=True):
    """`LaunchesRecalled`, with what plugins made of it."""

    offers: Mapping[str, tuple[str, Offer]]
    changes: Mapping[str, ToolChanges]


class OfferReviewed(msgspec.Struct, frozen=True, kw_only=True):
    """What plugins made of what a server lists, and what was foreseen of a long list."""

    server: str
    own: Offer
    changes: ToolChanges
    foreseen: Foreseen | None = None


class Reviewer(Protocol):
    """The plugins of a daemon. None of its functions raises."""

    @property
    def active(self) -> bool:
        """Whether any plugin looks at what servers list."""

    async def review(self, server: str, own: Offer) -> ToolChanges:
        """Return what becomes of the tools of a server."""

    async def tell(self, server: str, own: Offer, changes: ToolChanges) -> None:
        """Tell that this has come of them."""


class NoReviewer:
    """Implements `Reviewer` where there are no plugins."""

    active = False

    async def review(self, server: str, own: Offer) -> ToolChanges:
        del server, own
        await trio.lowlevel.checkpoint()
        return NO_CHANGES

    async def tell(self, server: str, own: Offer, changes: ToolChanges) -> None:
        del server, own, changes
        await trio.lowlevel.checkpoint()


NO_REVIEWER: Final = NoReviewer()


class Reviews:
    """Those that are under way. `foresee`: see `Pinning`. `post` is the mailbox of the registry."""

    def __init__(
        self,
        reviewer: Reviewer,
        foresee: Callable[[str, Offer], Callable[[], Foreseen]],
        post: Address[Any],
        start_soon: StartSoon,
    ) -> None:
        self._reviewer = reviewer
        self._foresee = foresee
        self._post = post
        self._start_soon = start_soon
        self._wanted: dict[str, tuple[Offer, bool]] = {}
        self._asked: dict[str, list[tuple[AwaitShown, Reply[None]]]] = {}
        self._failed: set[str] = set()

    def take(self, message: ServerListed | LaunchesRecalled | AwaitShown, reply: Reply[Any] | None) -> bool:
        """Take what is to be looked at first, or what waits for that: it comes back. False for anything else."""
        match message:
            case AwaitShown(server=server) if server in self._wanted and reply is not None:
                self._asked.setdefault(server, []).append((message, reply))
            case ServerListed(server=launch, offer=own) if self._looks_at(own) or launch in self._wanted:
                self._want(launch, own, listed=True)
            case LaunchesRecalled() if self._reviewer.active and reply is not None:
                self._start_soon(self._review_all, message, reply)
            case _:
                return False
        return True

    def _looks_at(self, own: Offer) -> bool:
        return self._reviewer.active or len(own.tools) > LONG_LIST

    def want_again(self, message: ReviewAgain, entries: Mapping[str, Entry]) -> None:
        """Have the newest list of a launch, or of all, looked at again: also one that is being looked at."""
        for launch, entry in entries.items():
            if message.launch in ("", launch):
                newest = self._wanted.get(launch)
                self._want(launch, entry.own if newest is None else replace(newest[0]), listed=False)

    def settle(self, message: OfferReviewed) -> bool | None:
        """Say whether what was looked at is news of the server, or only of plugins; None if it is not the newest.

        Told by the registry, so that nothing which it was told before can come behind.
        """
        launch, wanted = message.server, self._wanted.get(message.server)
        if wanted is None:
            return None
        if wanted[0] is not message.own:
            self._start_soon(self._review, launch)
            return None
        self.forget(launch)
        if self._reviewer.active:
            self._start_soon(self._follow, message)
        return wanted[1]

    def forget(self, launch: str) -> None:
        self._wanted.pop(launch, None)
        for message, reply in self._asked.pop(launch, ()):
            self._post.forward(message, reply)

    def _want(self, launch: str, own: Offer, *, listed: bool) -> None:
        """Have the newest list of a launch looked at; `OfferReviewed` says what came of it."""
        before = self._wanted.get(launch)
        self._wanted[launch] = own, listed or (before is not None and before[1])
        if before is None:
            self._start_soon(self._review, launch)

    async def _review(self, launch: str) -> None:
        if (wanted := self._wanted.get(launch)) is not None:
            own, listed = wanted
            changes = await self._reviewer.review(server_of(launch), own) if self._reviewer.active else NO_CHANGES
            long = listed and len(own.tools) > LONG_LIST
            foreseen = await decode_in_thread(self._foresee(launch, own)) if long else None
            await self._post.tell(OfferReviewed(server=launch, own=own, changes=changes, foreseen=foreseen))

    async def _follow(self, message: OfferReviewed) -> None:
        await self._reviewer.tell(server_of(message.server), message.own, message.changes)
        launch = message.server
        if message.changes.failed and launch not in self._failed:
            self._failed.add(launch)
            await trio.sleep(AGAIN_S)
            self._failed.discard(launch)
            await self._post.tell(ReviewAgain(launch))

    async def _review_all(self, message: LaunchesRecalled, reply: Reply[None]) -> None:
        changes = {}
        for launch, (_, own) in message.offers.items():
            changes[launch] = await self._reviewer.review(server_of(launch), own)
        self._post.forward(LaunchesReviewed(message.offers, changes), reply)
