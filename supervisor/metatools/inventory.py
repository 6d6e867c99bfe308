"""Everything there is, in the order of servers, kinds and names, from any place on. Pure.

A cursor says after which one to go on. It means the same after a change of the catalogue: what is still there and was
not shown yet is shown, each once. It is opaque to clients and bounded.
"""

from __future__ import annotations

import base64
import heapq
from collections.abc import Callable, Collection, Iterator
from hashlib import sha256
from typing import TypeVar

import msgspec

from actors.catalogue.offer import Offer, Prompt, Resource, Tool
from actors.catalogue.snapshot import Catalogue
from actors.errors import InvalidArguments
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.definitions import KINDS

MAX_CURSOR_CHARS = 4096
MAX_ITEMS = 500
"""On one page, whatever its budget."""
_KEY_CHARS = 256
"""A longer URI is told apart by its digest: it would make the cursor as long."""

T = TypeVar("T")
Thing = Tool | Resource | Prompt


class Position(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=True):
    """After this thing: its server, the place of its kind among `KINDS`, and its key."""

    server: str
    kind: int
    key: str


class Item(msgspec.Struct, frozen=True):
    """One thing that a server offers, and where it stands."""

    at: Position
    thing: Thing


def items(
    seen: Catalogue,
    servers: Collection[str],
    kinds: Collection[str],
    after: Position | None = None,
    wanted: Callable[[Thing], bool] | None = None,
) -> Iterator[Item]:
    """Yield what these servers offer of these kinds, in order, of each server and kind the first 500 at most."""
    for server in sorted(servers):
        if server not in seen.entries or (after is not None and server < after.server):
            continue
        for number, kind in enumerate(KINDS):
            if kind not in kinds or (after is not None and (server, number) < (after.server, after.kind)):
                continue
            here = after.key if after is not None and (server, number) == (after.server, after.kind) else None
            keyed = ((key_of(thing), thing) for thing in _offers_of(seen.entries[server].offer, kind))
            rest = (pair for pair in keyed if (here is None or pair[0] > here) and (wanted is None or wanted(pair[1])))
            first = heapq.nsmallest(MAX_ITEMS + 1, rest, key=lambda pair: pair[0])
            yield from (Item(Position(server, number, key), thing) for key, thing in first)


def total(
    seen: Catalogue,
    servers: Collection[str],
    kinds: Collection[str],
    wanted: Callable[[Thing], bool] | None = None,
) -> int:
    lists = (
        _offers_of(seen.entries[server].offer, kind) for server in servers if server in seen.entries for kind in kinds
    )
    return sum(len(things) if wanted is None else sum(map(wanted, things)) for things in lists)


def count_shown(
    seen: Catalogue,
    servers: Collection[str],
    kinds: Collection[str],
    after: Position | None,
    wanted: Callable[[Thing], bool] | None = None,
) -> int:
    """Return how many of these things come before a place, and at it: those that a list has shown there."""
    if after is None:
        return 0
    count = total(seen, {server for server in servers if server < after.server}, kinds, wanted)
    if after.server not in servers or after.server not in seen.entries:
        return count
    count += total(seen, {after.server}, [kind for kind in KINDS[: after.kind] if kind in kinds], wanted)
    if KINDS[after.kind] not in kinds:
        return count
    here = _offers_of(seen.entries[after.server].offer, KINDS[after.kind])
    return count + sum(key_of(thing) <= after.key and (wanted is None or wanted(thing)) for thing in here)


def _offers_of(offer: Offer, kind: str) -> tuple[Thing, ...]:
    things: tuple[Thing, ...] = getattr(offer, f"{kind}s")
    return things


def key_of(thing: Thing) -> str:
    """Return by what a thing is ordered and told apart on its server, at most 330 characters."""
    name = thing.uri if isinstance(thing, Resource) else thing.name
    if len(name) <= _KEY_CHARS:
        return name
    return f"{name[:_KEY_CHARS]}\uffff{sha256(name.encode(errors='replace')).hexdigest()}"


def encode_cursor(at: msgspec.Struct) -> str:
    return base64.urlsafe_b64encode(encode(at)).decode().rstrip("=")


def read_cursor(text: str, shape: type[T]) -> T | None:
    """Return what `encode_cursor` made a text of; None for any other text."""
    if len(text) > MAX_CURSOR_CHARS:
        return None
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None
    return json.read_or(msgspec.json.Decoder(shape), data, None)


def decode_cursor(text: str) -> Position:
    """Return the position of a cursor. Raises `InvalidArguments` for one that is not ours."""
    position = read_cursor(text, Position)
    if position is not None and 0 <= position.kind < len(KINDS):
        return position
    raise InvalidArguments("'cursor' is not one that a list gave: repeat the next_cursor of the last answer as it is")
