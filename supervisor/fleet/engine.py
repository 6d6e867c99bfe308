"""What a fleet needs of an engine: a few operations, each of them atomic. Calls of tools never go through it.

`ValkeyEngine` implements it, and in memory the engine of the simulations (`tests/fleet/memory_engine.py`). Both pass
the same tests (`tests/supervisor/fleet/test_engines.py`).

Time is the engine's own: a lease ends when the engine says so. A node counts from before it sent the renewal, so for
itself it ends earlier; see `lease`.

An engine that forgot is one that was started anew, however it forgot: it was restarted, flushed, replaced by an empty
one or by one with an older copy, or lost a part. It knows no member any more, and for the length of a lease from when
that is seen it *settles*: members join again with what they own, and nothing new is granted. By then whoever has not
come back has stopped by its own clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from supervisor.fleet.records import FeedPage, Joined, LaunchGrant, Node, Offers, Place

KEPT_S: Final = 30 * 86_400.0
"""How long it is known what a launch offers that nobody owns."""


class Engine(Protocol):
    """Everything raises `EngineAway` where it cannot be done now; then it may have been done."""

    async def join(self, node: Node, held: Mapping[str, int] | None) -> Joined:
        """Make a node a member. None: it was none. Else it is one still: it owns what it `held`, by launch the fence.

        What another one owns it does not keep. An earlier incarnation of the same name and place ends by that.
        Raises `NameTaken`.
        """

    async def renew(self, incarnation: str, node: Node | None = None) -> int:
        """Begin the lease of a member anew, and return the position of the feed's last entry.

        `node` is what it says of itself now, if that is new. Raises `LeaseEnded`.
        """

    async def leave(self, incarnation: str) -> None:
        """End a lease at once, and with it all grants. Nothing happens if it has ended."""

    async def claim(self, launch: str, incarnation: str) -> Place:
        """Return who owns a launch: from now on this member, if nobody else does whose lease runs.

        It is a new grant in any case if it is of this member: a release of an earlier one that is still on its way ends
        nothing then. Launches that nobody owns, and that were not claimed for `KEPT_S`, are forgotten with what they
        offer, a few each time. Raises `LeaseEnded`, and `EngineSettling` where nobody owns it and nothing new is
        granted yet.
        """

    async def find(self, launch: str) -> Place | None:
        """Return who owns a launch; None if nobody does whose lease runs."""

    async def release(self, grants: Sequence[LaunchGrant]) -> None:
        """Own launches no longer. Those that are owned with another fence stay as they are."""

    async def publish(self, grant: LaunchGrant, digest: str, offer: bytes) -> bool:
        """Say what a launch offers. False if an owner with a higher fence has said something already."""

    async def offers(self) -> Offers:
        """Return what all launches offer, at some position of the feed."""

    async def read_offers(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the texts of these digests, as far as there are any."""

    async def end_sessions(self, left: Mapping[str, float]) -> None:
        """Remember that sessions are over, by their digests, each for so many seconds: while its id would be good."""

    async def has_ended(self, session: str) -> bool:
        """Say whether the session of this digest is over."""

    async def put(self, key: str, value: bytes) -> None:
        """Keep a record, in the place of one of that key, and put it into the feed."""

    async def records(self) -> Mapping[str, bytes]:
        """Return all records, by their keys."""

    async def read(self, position: int, wait_s: float) -> FeedPage:
        """Return what follows a position of the feed, waiting for the first entry so long. Raises `FeedLost`."""
