"""Everything there is, in the order of servers, kinds and names, from any place on. Pure.

A cursor says after which one to go on. It means the same after a change of the catalogue: what is still there and was
not shown yet is shown, each once. It is opaque to clients and bounded.
"""

from __future__ import annotations

import base64
import heapq
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

import msgspec

from actors.catalogue import offer as offers
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
Thing = offers.Item


class Position(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=True):
    """After this thing: its server, the place of its kind among `KINDS`, and its key."""

    server: str
    kind: int
    key: str


class Item(msgspec.Struct, frozen=True):
    """One thing that a server offers, and where it stands."""

    at: Position
    thing: Thing


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What to list: of which servers, which kinds, from where on, what of it (None: all), and how many at most."""

    servers: frozenset[str]
    kinds: frozenset[str]
    after: Position | None = None
    wanted: Callable[[Thing], bool] | None = None
    limit: int = MAX_ITEMS

    def items(self, seen: Catalogue) -> Iterator[Item]:
        """Yield what there is, in order, of each server and kind the first 500 at most."""
        after = self.after
        for server, number, things in self._lists(seen):
            if after is not None and (server, number) < (after.server, after.kind):
                continue
            keyed = (Item(Position(server, number, key_of(thing)), thing) for thing in things)
            rest = keyed if after is None else (item for item in keyed if item.at > after)
            yield from heapq.nsmallest(MAX_ITEMS + 1, rest, key=lambda item: item.at)

    def total(self, seen: Catalogue) -> int:
        return sum(len(things) for *_, things in self._lists(seen))

    def count_shown(self, seen: Catalogue) -> int:
        """Return how many come before the place to go on from, and at it: those that were shown there."""
        after, count = self.after, 0
        for server, number, things in self._lists(seen):
            if after is not None and (server, number) < (after.server, after.kind):
                count += len(things)
            elif after is not None and (server, number) == (after.server, after.kind):
                count += sum(key_of(thing) <= after.key for thing in things)
        return count

    def _lists(self, seen: Catalogue) -> Iterator[tuple[str, int, Sequence[Thing]]]:
        """Yield each list, in order, after its server and the place of its kind among `KINDS`."""
        for server in sorted(self.servers & seen.entries.keys()):
            for number, kind in enumerate(KINDS):
                if kind in self.kinds:
                    things: Sequence[Thing] = getattr(seen.entries[server].offer, f"{kind}s")
                    yield server, number, things if self.wanted is None else [*filter(self.wanted, things)]


def key_of(thing: Thing) -> str:
    """Return by what a thing is ordered and told apart on its server, at most 330 characters."""
    name = offers.key_of(thing)
    if len(name) <= _KEY_CHARS:
        return name
    return f"{name[:_KEY_CHARS]}\uffff{sha256(name.encode(errors='replace')).hexdigest()}"


def encode_cursor(at: msgspec.Struct) -> str:
    return base64.urlsafe_b64encode(encode(at)).decode().rstrip("=")


def read_cursor(text: str, shape: type[T]) -> T | None:
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
