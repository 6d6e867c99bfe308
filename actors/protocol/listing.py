"""Walking the lists of a server page by page, without I/O.

Bounds, so that no server can keep us walking: pages, entries and bytes; and the walk of one kind ends when a page
brings nothing new. Conclusions are never drawn from the cursors themselves (the specification forbids it); an empty
string is a valid cursor.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from actors.protocol import jsonrpc

Kind = Literal["tools", "resources", "templates", "prompts"]

METHODS: dict[Kind, str] = {
    "tools": "tools/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
    "prompts": "prompts/list",
}
MEMBERS: dict[Kind, str] = {
    "tools": "tools",
    "resources": "resources",
    "templates": "resourceTemplates",
    "prompts": "prompts",
}
CAPABILITIES: dict[Kind, str] = {
    "tools": "tools",
    "resources": "resources",
    "templates": "resources",
    "prompts": "prompts",
}


class ListLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one walk over all lists of a server may cost."""

    max_pages: int = 100
    max_entries: int = 10_000
    max_bytes: int = 32 * 1024 * 1024


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was listed, as the server wrote it. `missing`: kinds whose list could not be had to its end.

    `failed` and `truncated` are texts for operators.
    """

    tools: tuple[msgspec.Raw, ...] = ()
    resources: tuple[msgspec.Raw, ...] = ()
    templates: tuple[msgspec.Raw, ...] = ()
    prompts: tuple[msgspec.Raw, ...] = ()
    missing: frozenset[Kind] = frozenset()
    failed: tuple[str, ...] = ()
    truncated: tuple[str, ...] = ()


class Listing:
    """One walk over every list that the server's capabilities announce."""

    def __init__(self, capabilities: msgspec.Raw, limits: ListLimits) -> None:
        declared = _keys(capabilities)
        self._limits = limits
        self._open: set[Kind] = {kind for kind in METHODS if CAPABILITIES[kind] in declared}
        self._entries: dict[Kind, list[msgspec.Raw]] = {kind: [] for kind in METHODS}
        self._seen: set[tuple[Kind, bytes]] = set()
        self._missing: set[Kind] = set()
        self._failed: list[str] = []
        self._truncated: list[str] = []
        self._pages = 0
        self._count = 0
        self._bytes = 0
        self._full = False

    @property
    def done(self) -> bool:
        """True once nothing more will be asked."""
        return not self._open

    def first(self) -> list[tuple[Kind, bytes | None]]:
        """Return the first requests as (kind, params); all may be sent at once."""
        return [(kind, None) for kind in METHODS if kind in self._open]

    def on_page(self, kind: Kind, result: msgspec.Raw) -> tuple[Kind, bytes] | None:
        """Take one page; return the next request of that kind, if any."""
        try:
            page: dict[str, msgspec.Raw] = msgspec.json.decode(result, type=dict[str, msgspec.Raw])
            entries = msgspec.json.decode(page.get(MEMBERS[kind], msgspec.Raw(b"[]")), type=list[msgspec.Raw])
            cursor: Any = msgspec.json.decode(page.get("nextCursor", msgspec.Raw(b"null")))
        except (msgspec.MsgspecError, RecursionError):
            self.on_failure(kind, "the page is malformed")
            return None
        fresh = self._add(kind, entries)
        more = isinstance(cursor, str) and fresh
        if self._over(kind, more=more) or not more:
            self._open.discard(kind)
            return None
        return kind, jsonrpc.encode({"cursor": cursor})

    def on_failure(self, kind: Kind, reason: str) -> None:
        """The list of that kind could not be had; what came before is kept."""
        self._open.discard(kind)
        self._missing.add(kind)
        if kind != "templates":  # many servers declare resources and have no templates/list
            self._failed.append(f"{METHODS[kind]}: {reason}")

    def result(self) -> Listed:
        """Return what was found."""
        return Listed(
            tools=tuple(self._entries["tools"]),
            resources=tuple(self._entries["resources"]),
            templates=tuple(self._entries["templates"]),
            prompts=tuple(self._entries["prompts"]),
            missing=frozenset(self._missing),
            failed=tuple(self._failed),
            truncated=tuple(self._truncated),
        )

    def _add(self, kind: Kind, entries: list[msgspec.Raw]) -> bool:
        """Keep what is new and within the limits; return whether anything was new."""
        fresh = False
        for entry in entries:
            data = bytes(entry)
            if (kind, data) in self._seen:
                continue
            fresh = True
            if self._count >= self._limits.max_entries or self._bytes + len(data) > self._limits.max_bytes:
                self._full = True
                break
            self._seen.add((kind, data))
            self._entries[kind].append(msgspec.Raw(data))
            self._count += 1
            self._bytes += len(data)
        self._pages += 1
        return fresh

    def _over(self, kind: Kind, *, more: bool) -> bool:
        """Return whether the walk must end here although there is more; notes it for the operator."""
        cut = self._full or (more and self._pages >= self._limits.max_pages)
        if cut:
            so_far = f"{self._pages} pages, {self._count} entries, {self._bytes} bytes"
            self._truncated.append(f"{METHODS[kind]}: cut after {so_far}")
        return cut


def _keys(capabilities: msgspec.Raw) -> set[str]:
    """The capabilities that are declared, whatever their value (`{}` counts, `null` does not)."""
    try:
        found = msgspec.json.decode(capabilities)
    except (msgspec.MsgspecError, RecursionError):
        return set()
    return {key for key, value in found.items() if value is not None} if isinstance(found, dict) else set()
