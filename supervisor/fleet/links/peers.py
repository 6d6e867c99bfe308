"""The other nodes of a fleet, as whoever has a client's request needs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from supervisor.fleet.links.requests import DistantRequest, SentRequest
from supervisor.fleet.records import Node


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
