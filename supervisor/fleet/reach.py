"""How something is sent to a launch, wherever it is, once: to the node that owns it, or to which it is placed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from supervisor.fleet.errors import Elsewhere, NodeAway
from supervisor.fleet.ownership import Ownership
from supervisor.fleet.records import Place

R = TypeVar("R")

MAX_STEPS: Final = 4
"""Nodes that are asked for one launch. Each one that does not own it says who does, by the engine."""


async def reach(
    ownership: Ownership,
    launch: str,
    here: Callable[[int], Awaitable[R]],
    there: Callable[[Place], Awaitable[R]],
) -> R:
    """Send something to a launch: `here`, with our fence, or to another node.

    Both raise `Elsewhere` where nothing was done as the launch is not there, or is moved from there now; `there` raises
    `NodeAway` where nothing was sent. Raises `NodeAway`, `EngineAway`, `LeaseEnded`.
    """
    avoid: set[str] = set()
    place = await ownership.find(launch)
    for _ in range(MAX_STEPS):
        if ownership.is_here(place) and not ownership.fence(launch):  # another node has it from the engine
            place = await ownership.claim(launch)
        try:
            return await (here(place.fence) if ownership.is_here(place) else there(place))
        except Elsewhere as error:
            if error.place is None:
                ownership.forget(launch, place.fence)
                avoid.add(place.node.incarnation)
            place = error.place or await ownership.find(launch, avoid)
            ownership.learn(place)
        except NodeAway as error:
            if error.outcome != "not_sent":
                raise
            ownership.forget(launch, place.fence)
            avoid.add(place.node.incarnation)
            away, place = place, await ownership.find(launch, avoid)
            if place.node.incarnation == away.node.incarnation:  # it owns it until its lease ends
                raise
    raise NodeAway(f"{launch} moves from node to node; retry shortly", retry_after_s=1.0)
