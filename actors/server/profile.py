"""What a server's actor is made of: what is known of that server, and what it shares with all others."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.kit import Starts
from actors.life.policy import RestartLog
from actors.protocol.agreement.era import Identity
from actors.protocol.agreement.versions import Era
from actors.server.lists.subscribers import OnlyUpdates, Subscribers
from actors.server.operators.journal import Journal
from actors.server.settings import ServerSettings
from actors.transport.base import Transport


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One configured server. `known` is what the catalogue already has of it, `era` what it spoke before.

    `hide` takes secrets out of what the server says of itself. `journal` is what is kept of it for its operator.
    """

    name: str
    transport: Transport
    settings: ServerSettings
    restarts: RestartLog
    journal: Journal
    known: Offer | None = None
    era: Era | None = None
    hide: Callable[[str], str] = str


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What all servers of a daemon share. `starts` bounds how many start at once, `identity` is who we say we are.

    `clock` gives unix time in seconds; deadlines run by the trio clock. `desk` is where large pages of lists are read.
    `subscribers` are who is told of changes of resources.
    """

    starts: Starts
    clock: Callable[[], float]
    identity: Identity
    subscribers: Subscribers
    desk: trio.CapacityLimiter | None = None

    def beside(self) -> Shared:
        """Return what an actor gets that works beside the one of its server: clients miss nothing when it ends."""
        return replace(self, subscribers=OnlyUpdates(self.subscribers))
