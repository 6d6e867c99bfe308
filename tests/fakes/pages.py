"""Pages of lists as they come from a server, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from actors.catalogue.lists import Draft, ListPage, ListRoom, read_page
from actors.catalogue.offer import Offer
from actors.protocol.agreement.era import Agreement
from actors.protocol.listing import MEMBERS, METHODS, Kind, Listed, ListLimits, PageArrived

AGREEMENT = Agreement(era="legacy", version="2025-11-25", instructions="read me")
ID = b'"s1-1"'
LIMITS = ListLimits()
ROOM = ListRoom(10_000, 32 * 1024 * 1024)


def line(kind: Kind, entries: Iterable[bytes], more: bytes = b"") -> bytes:
    """Return an answer with these entries, each as JSON text; `more` are further members of the result."""
    member = MEMBERS[kind].encode()
    return b'{"jsonrpc":"2.0","id":%b,"result":{"%b":[%b]%b}}' % (ID, member, b",".join(entries), more)


def page(
    *entries: Any, kind: Kind = "tools", room: ListRoom = ROOM, more: bytes = b"", draft: Draft | None = None
) -> ListPage:
    """Read a page of these entries, each bytes or a value to be encoded."""
    texts = [entry if isinstance(entry, bytes) else json.dumps(entry).encode() for entry in entries]
    arrived = PageArrived(kind, line(kind, texts, more), ID)
    return read_page(arrived, room, (draft or Draft(LIMITS, None)).known)


def offer_of(
    *tools: Any, known: Offer | None = None, listed: Listed | None = None, limits: ListLimits = LIMITS, **lists: Any
) -> Offer:
    """Return what a server offers that lists these."""
    draft = Draft(limits, known)
    for kind in METHODS:
        entries = tools if kind == "tools" else lists.get(kind, ())
        draft.add(kind, page(*entries, kind=kind, room=draft.room(kind), draft=draft))
    return draft.offer(AGREEMENT, listed or Listed())
