"""Which node a launch is placed on: weighted rendezvous hashing. Pure.

Each node has a score for each launch, made of both names and its weight; the highest wins. So every node comes to the
same answer without being told; a node that comes or goes moves only what it wins or had; and shares are as the weights
are (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998; Schindelhauer and Schomaker,
"Weighted distributed hash tables", 2005).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from heapq import nlargest
from typing import Final

from supervisor.fleet.records import Node

_SCALE: Final = 1.0 / (1 << 64)
_MASK: Final = (1 << 64) - 1


def rank(launch: str, nodes: Iterable[Node], most: int = 3) -> list[Node]:
    """Return the nodes that a launch is placed on, best first: at most so many, and none that takes nothing new."""
    seed = _hash(launch)
    scored = [(_score(seed ^ _hash(node.name), node.weight), node.name, node) for node in nodes if node.weight > 0]
    return [node for _, _, node in nlargest(most, scored, key=lambda each: each[:2])]


def heir_of(session: str, nodes: Iterable[Node]) -> Node | None:
    """Return which node has a session whose own is gone: by names alone, so that it stays the same for long."""
    seed = _hash(session)
    return max(nodes, key=lambda node: (_score(seed ^ _hash(node.name), 1), node.incarnation), default=None)


def weight_of(free_bytes: int, calls: int) -> int:
    """Return the weight of a node with so much free memory and so many calls under way.

    In steps of a quarter, so that it changes seldom: a change of a weight is told to every node.
    """
    gib = max(free_bytes / 2**30, 1 / 64)
    return max(1, round(100 * 2 ** (round(4 * math.log2(gib / (1 + calls / 16))) / 4)))


def _score(mixed: int, weight: int) -> float:
    """Return the score of one node: exponentially distributed over launches, with the weight as its mean."""
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK  # the finalizer of SplitMix64, so that bits are spread
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
    return -weight / math.log((mixed ^ (mixed >> 31)) * _SCALE or _SCALE)


@lru_cache(4096)
def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")
