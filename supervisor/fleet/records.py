"""What nodes of a fleet say of themselves and of what they own: the values that an engine keeps. Pure.

A *node* is one daemon. It has a *lease* on being a member, renewed every few seconds, and each *launch* has at most one
owner at a time: the incarnation of a node whose lease runs, with a fencing number that only grows (Kleppmann, "How to
do distributed locking", 2016; Gray and Cheriton, "Leases", 1989).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

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
