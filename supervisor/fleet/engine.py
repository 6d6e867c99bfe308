"""The contract with the engine of a fleet: what it keeps, the lease, a few operations, each of them atomic; and what
goes wrong, with it and between nodes. Calls of tools never go through it. Pure.

`ValkeyEngine` implements it, and in memory the engine of the simulations (`tests/fleet/memory_engine.py`). Both pass
the same tests (`tests/supervisor/fleet/test_engines.py`).

A *node* is one daemon. It has a *lease* on being a member, renewed every few seconds, and each *launch* has at most one
owner at a time: the incarnation of a node whose lease runs, with a fencing number that only grows (Kleppmann, "How to
do distributed locking", 2016; Gray and Cheriton, "Leases", 1989).

Time is the engine's own: a lease ends when the engine says so. It counts from when it took the renewal, the node from
before it sent it. So if both clocks run alike, the lease ends at the node before it ends at the engine; `DRIFT` is by
how much they may run unlike. The clock of a node is one that goes on while the process, or the machine, is stopped
(`CLOCK_BOOTTIME`): a daemon that was frozen has to see how long.

An engine that forgot is one that was started anew, however it forgot: it was restarted, flushed, replaced by an empty
one or by one with an older copy, or lost a part. It knows no member any more, and for the length of a lease from when
that is seen it *settles*: members join again with what they own, and nothing new is granted. By then whoever has not
come back has stopped by its own clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from actors.errors import SupervisorError

NOT_YET: Final = "none"
"""In place of a digest."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One daemon, as the others know it. An `incarnation` is made each time that it joins anew, and means it alone.

    `place`: its data directory; a node of the same name and place is the same daemon, started again. `address`: where
    other nodes reach it, `certificate`: the SHA-256 of the one that it shows there, in hex. `configuration`: the digest
    of what it starts. `weight`: how much is placed on it, compared with others; 0 takes nothing new. `life`: names its
    process, in hex: what lives in its memory is there as long as that runs, whatever becomes of its leases.
    `published`: the digest of what it uses of what was published for the fleet, `NOT_YET` as long as there is none,
    empty at a node that takes nothing of that. `refused`: the digest of what it cannot use.
    """

    name: str
    incarnation: str
    place: str = ""
    address: str = ""
    certificate: str = ""
    version: str = ""
    configuration: str = ""
    weight: int = 100
    life: str = ""
    published: str = ""
    refused: str = ""


class LaunchGrant(msgspec.Struct, frozen=True, kw_only=True):
    """Which incarnation of a node owns a launch. `fence`: larger than that of every earlier grant of any launch."""

    launch: str
    incarnation: str
    fence: int


class Place(msgspec.Struct, frozen=True):
    """Where a launch is: the node that owns it by the grant of this fence; with 0 that has to claim it first."""

    launch: str
    node: Node
    fence: int


class NodeSeen(msgspec.Struct, frozen=True, tag="node"):
    """A node has joined, or says something else of itself."""

    node: Node


class NodeGone(msgspec.Struct, frozen=True, tag="gone"):
    """A node has left, or its lease has ended."""

    incarnation: str


class OfferPublished(msgspec.Struct, frozen=True, tag="offer"):
    """The owner of a launch says what it offers: the digest of a text that the engine keeps."""

    launch: str
    digest: str
    fence: int


class RecordPut(msgspec.Struct, frozen=True, tag="record"):
    """All nodes have this record from now on. What it says is under a seal that the engine does not know."""

    key: str
    value: bytes


Entry = NodeSeen | NodeGone | OfferPublished | RecordPut
"""What the feed of a fleet has: every node reads all of it, in one order."""


class FeedPage(msgspec.Struct, frozen=True):
    """Entries of the feed, each with its position. `position` is that of the last one, or what was asked for."""

    position: int
    entries: tuple[tuple[int, Entry], ...] = ()


class Joined(msgspec.Struct, frozen=True):
    """A node is a member now. `nodes` are all members at the `position` of the feed, `kept` is what it still owns."""

    position: int
    nodes: tuple[Node, ...]
    kept: frozenset[str] = frozenset()


class Offers(msgspec.Struct, frozen=True):
    """What launches offer at the `position` of the feed: digests by launch."""

    position: int
    digests: Mapping[str, str] = {}


# The lease ------------------------------------------------------------------------------------------------------------


DRIFT: Final = 0.05
"""The part of a lease by which a clock may go wrong during it: a thousand times what clocks of computers do."""


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What is set for leases, in seconds. `stop_s`: how long the processes of launches are given to end."""

    lease_s: float = 20.0
    stop_s: float = 6.0

    @property
    def renew_s(self) -> float:
        """The time between two renewals: a third of a lease, at most five seconds."""
        return min(5.0, self.lease_s / 3)


class Lease(msgspec.Struct, frozen=True):
    """A lease that was renewed by a message sent at `sent`, a moment of the node's clock."""

    sent: float
    times: LeaseTimes

    @property
    def serves_until(self) -> float:
        """From this moment on the launches of the node are stopped, and nothing is sent to them."""
        return self.ends - self.times.stop_s

    @property
    def ends(self) -> float:
        """From this moment on another node may own them."""
        return self.sent + self.times.lease_s * (1 - DRIFT)


# What goes wrong, as clients meet it ----------------------------------------------------------------------------------


class EngineAway(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """The engine of the fleet does not answer, or answers by an error, so it is not known which node has the server.
    Nothing was done.
    """

    def __init__(self, message: str = "the engine of the fleet does not answer; retry shortly", **more: Any) -> None:
        super().__init__(message, **{"retry_after_s": 1.0, **more})


class LeaseEnded(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """The node is no member of its fleet now, so it may start nothing. Nothing was done."""


class NodeAway(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """The node of the fleet that has the server cannot be reached, or was lost meanwhile: `outcome` says whether the
    call may have run."""


_MEANINGS: Final = {
    "OOM": "its memory is full",
    "MISCONF": "it cannot write its disk",
    "READONLY": "it is a replica, which takes nothing",
    "NOAUTH": "it wants a password",
    "WRONGPASS": "the password or the user is wrong",
    "NOPERM": "its user may not do that",
}
_CODE: Final = re.compile(r"\b[A-Z]{2,}\b")


def refused(said: str) -> EngineAway:
    """Return the error for what an engine has answered by one of its own, whose first word is a code (RESP, "Simple
    errors"). Its other words are for operators: they may name keys and addresses.
    """
    code = next((each for each in _CODE.findall(said) if each in _MEANINGS), "ERR")
    why = _MEANINGS.get(code, "mcpvisor status says more")
    return EngineAway(f"the engine of the fleet refuses what this node asks: {why} ({code}); its operator has to look")


def detail_of(error: SupervisorError) -> str:
    """Return why, for operators: addresses and the words of an engine are not for clients."""
    return str(error.__cause__ or error.message)[:200]


# What goes wrong between nodes, and between a node and the engine -----------------------------------------------------


class EngineSettling(EngineAway):
    """The engine began anew a moment ago: it grants nothing new before all leases of its earlier life have ended."""

    def __init__(self, **more: Any) -> None:
        super().__init__("the engine of the fleet has begun anew, and gives no server away yet; retry then", **more)


class NameTaken(SupervisorError, kind="config"):
    """Another daemon has the name of this node, and its lease runs."""


class FeedLost(SupervisorError):
    """The feed does not go back to the position that was asked for: everything has to be read anew."""


class Elsewhere(SupervisorError):
    """A node was asked for a launch that it does not own, or no longer; nothing was done. `place` is where it is, None
    where nobody owns it now."""

    def __init__(self, place: Place | None) -> None:
        super().__init__("the launch is at another node")
        self.place = place


# Operations -----------------------------------------------------------------------------------------------------------


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
