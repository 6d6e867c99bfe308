"""A list of one server from what is known of it: the definitions as it gave them, page by page. Pure.

A cursor is ours if it begins as no server's does by chance; it says with which entry to go on.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import Final

import msgspec

from actors.catalogue.offer import Offer
from actors.errors import InvalidArguments
from actors.protocol.definitions import Unfit
from actors.protocol.listing import CAPABILITIES, MEMBERS, Kind, capability_names
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.answers.native_lists import cursor_of
from supervisor.service.fitting.tool_definitions import fit

OURS: Final = "mcpvisor:known:"
_OURS: Final = re.compile(rf"{OURS}([0-9]{{1,8}})")
PAGE_SIZE: Final = 500
MAX_BYTES: Final = 512 * 1024
"""A page ends with the entry that exceeds it: some clients take no message of a MiB."""


def position_of(params: msgspec.Raw) -> int | None:
    """Return with which entry a page begins; None if only the server knows, or may say what is wrong."""
    try:
        cursor = cursor_of(params)
    except InvalidArguments:
        return None
    if cursor is None:
        return 0
    ours = _OURS.fullmatch(cursor)
    return int(ours[1]) if ours is not None else None


def is_whole(offer: Offer, kind: Kind) -> bool:
    """Say whether everything that the server listed is known, as it gave it: what was left out is a problem."""
    return not offer.problems and not offer.partial and CAPABILITIES[kind] in capability_names(offer.capabilities)


def weight(offer: Offer, kind: Kind, position: int) -> int:
    """Return about how many bytes a page is made from; no entry is read for that."""
    size = 0
    for entry in islice(getattr(offer, kind), position, position + PAGE_SIZE):
        size += len(entry.definition)
        if size > MAX_BYTES:
            break
    return size


def page(offer: Offer, kind: Kind, position: int, version: str) -> bytes:
    """Return one page of a list for clients of a revision: the JSON text of a result, without what their era adds."""
    entries = getattr(offer, kind)
    parts: list[bytes] = []
    size = 0
    following = position
    for entry in islice(entries, position, position + PAGE_SIZE):
        following += 1
        with suppress(Unfit):
            parts.append(bytes(fit(entry.definition, kind, version)))
            size += len(parts[-1])
        if size > MAX_BYTES:
            break
    more = b',"nextCursor":' + encode(f"{OURS}{following}") if following < len(entries) else b""
    return b'{"' + MEMBERS[kind].encode() + b'":[' + b",".join(parts) + b"]" + more + b"}"
