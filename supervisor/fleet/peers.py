"""How the other nodes of a fleet look from one of them: in which process something lives, who they are, their state,
and what may be ordered of the fleet. Pure but for what the fleet says.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Protocol

import msgspec
from msgspec import Meta

from actors.errors import SupervisorError
from supervisor.fleet.engine import Node
from supervisor.fleet.links.requests import DistantRequest, SentRequest

LIFE_BYTES: Final = 8


class DaemonLife(msgspec.Struct, frozen=True):
    """The process that names are given in; empty outside of a fleet. `is_elsewhere`: another node's process is that.

    `older_keys` seal names that are still good, while a fleet changes its key.
    """

    own: bytes = b""
    is_elsewhere: Callable[[bytes], bool] = lambda life: False
    older_keys: tuple[bytes, ...] = ()

    def make_name(self, size: int) -> str:
        """Return a random name of so many bytes, which says whose it is in a fleet."""
        return base64.urlsafe_b64encode(self.own + secrets.token_bytes(size)).rstrip(b"=").decode()

    def check_here(self, life: bytes | None, error: SupervisorError) -> None:
        """Raise `HeldElsewhere` for what lives at another node, with the error for whoever cannot be sent there."""
        if life and life != self.own and self.is_elsewhere(life):
            raise HeldElsewhere(life.hex(), error)


class HeldElsewhere(Exception):
    """What a request is about is at another node, which has to perform it: nothing was done. `life` is in hex."""

    def __init__(self, life: str, error: SupervisorError) -> None:
        super().__init__(life)
        self.life = life
        self.error = error


def life_in(name: str) -> bytes:
    """Return what life a name may say that it is of, which `make_name` has made."""
    try:
        return base64.urlsafe_b64decode(name[:11].encode() + b"=")[:LIFE_BYTES]
    except ValueError:
        return b""


# The other nodes ------------------------------------------------------------------------------------------------------


class Peers(Protocol):
    """What is in the memory of a process is at one node: `life` names ours, in hex. See `Node.life`."""

    @property
    def life(self) -> str: ...

    @property
    def name(self) -> str:
        """The name of this node."""

    def others(self) -> list[Node]:
        """Return the other nodes that are members."""

    def find(self, life: str) -> Node | None:
        """Return the other node whose life that is; None if it is ours, or of nobody who is a member."""

    def heir(self, session: str) -> Node | None:
        """Return which other node has the session of this digest, whose own node is gone; None if this one has.

        Raises `LeaseEnded`, where that cannot be known.
        """

    async def has_ended(self, session: str) -> bool:
        """Say whether the session of this digest was ended, at whatever node. Raises `EngineAway`."""

    def note_ended(self, session: str, expires_at: float) -> None:
        """The session of this digest is over, whose id would be good until then, in unix seconds."""

    async def flush_sessions(self) -> None:
        """Return when the engine knows which sessions are over, or after a while."""

    def answer_with(self, answer: Callable[[DistantRequest], Awaitable[None]]) -> None:
        """Have requests of clients of other nodes answered here from now on."""

    async def request(self, node: Node, head: bytes, body: bytes) -> SentRequest:
        """Have a request of a client answered there.

        Raises `NodeAway` and `Elsewhere`, where nothing was sent, and `CallTooLarge`.
        """


_Name = Annotated[str, Meta(max_length=200)]


class PublishedConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """What was published for all nodes: the `digest` of the text, when in unix seconds, by whom, at which node."""

    digest: _Name
    at: float
    by: _Name
    node: _Name


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One member. `here`: it is the node that says so. `alike`: it starts the same servers as that one, and alike, so
    it may take over its servers. `weight`: how much is placed on it, compared with others. `published`, `refused`: see
    `Node`.
    """

    name: str
    address: str
    version: str
    weight: int
    alike: bool
    here: bool
    published: str = ""
    refused: str = ""

    @classmethod
    def of(cls, node: Node, own: Node) -> NodeStatus:
        """Return a member as the node `own` sees it."""
        return cls(
            name=node.name,
            address=node.address,
            version=node.version,
            weight=node.weight,
            alike=node.configuration == own.configuration,
            here=node.incarnation == own.incarnation,
            published=node.published,
            refused=node.refused,
        )


class FleetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet as this `node` sees it; without a name the daemon is alone.

    `member`: its lease runs, for `lease_s` seconds from now. `owns` are the servers that run at it, or would, and
    `position` how far it has read the feed. `draining`: it takes no servers any more. `published` is the newest.
    """

    node: str = ""
    member: bool = False
    lease_s: float = 0.0
    owns: tuple[str, ...] = ()
    position: int = 0
    draining: bool = False
    published: PublishedConfiguration | None = None
    nodes: tuple[NodeStatus, ...] = ()


class FleetView(Protocol):
    """What pages know and order of a fleet; and the other nodes, None where the daemon is alone."""

    peers: Peers | None

    def status(self) -> FleetStatus:
        """Return the fleet as this node sees it now."""

    async def drain(self, *, undo: bool = False) -> int:
        """Take no servers any more and give up those that there are, or take some again; return how many moved."""


class _NoFleet:
    """Implements `FleetView` for a daemon that is alone."""

    peers: Peers | None = None

    def status(self) -> FleetStatus:
        return FleetStatus()

    async def drain(self, *, undo: bool = False) -> int:
        del undo
        return 0


NO_FLEET = _NoFleet()
