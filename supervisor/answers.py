"""What `discover_mcp_tools` answers: one page of hits, as JSON, within a budget of tokens. Pure.

A tool asked for by its exact path comes with its complete schema, whatever that costs. Then the best hit's schema, then
a line for each other hit (description, signature, required parameters), then more schemas as far as the budget goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from actors.catalogue.entries import Tool
from actors.catalogue.naming import tool_path
from actors.catalogue.snapshot import Catalogue, Entry
from actors.lifecycle import State
from actors.messages import ServerStatus
from actors.protocol.jsonrpc import encode
from actors.search import EVERYTHING, Found, Hit
from supervisor.listings import shown_meta
from supervisor.schemas import complete, signature
from supervisor.shown import clean, estimate_tokens, fitted

LONG_DESCRIPTION = (400, 130)
"""Characters and estimated tokens; the second counts where the text is not plain prose."""
SHORT_DESCRIPTION = (160, 55)
QUERY = (200, 60)
MAX_SERVERS_NAMED = 20
MAX_SCHEMA_BYTES = 65_536
"""A larger schema never fits a page; only an exact path brings it."""
RETRY_RESPAWNING_MS = 1000
RETRY_FAILED_MS = 60_000
SMALL_META_BYTES = 300
"""What a `_meta` may have without the UI resource that a client needs."""
_FRAME_TOKENS = 60
"""The members around the hits; query and notice are counted apart."""
_RESERVED_FOR_LINES = 0.25
"""The share of the budget that the best hit's schema leaves to the lines of the others."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class _Row:
    """One hit on its way into the page. `schema` is what would make it complete."""

    def __init__(self, value: dict[str, Any], tool: Tool | None, *, exact: bool) -> None:
        self.value = value
        self.exact = exact
        self._tool = tool
        self.tokens = estimate_tokens(encode(value).decode())

    def completed(self) -> dict[str, Any] | None:
        """Return the row with the complete schema in the place of the signature; None where there is none to show."""
        if self._tool is None or (len(bytes(self._tool.input_schema)) > MAX_SCHEMA_BYTES and not self.exact):
            return None
        value = {key: item for key, item in self.value.items() if key not in ("signature", "required")}
        return {**value, "inputSchema": complete(self._tool)}

    def complete_within(self, tokens: int) -> bool:
        """Make the row complete if that costs at most so many tokens more."""
        value = self.completed()
        if value is None:
            return False
        size = estimate_tokens(encode(value).decode())
        if size - self.tokens > tokens and not self.exact:
            return False
        self.value, self.tokens, self._tool = value, size, None
        return True


class Page:
    """Builds the answer of `discover_mcp_tools` within a budget of tokens."""

    def __init__(
        self, catalogue: Catalogue, statuses: Mapping[str, ServerStatus], budget_tokens: int, limit_max: int = 50
    ) -> None:
        self._catalogue = catalogue
        self._statuses = statuses
        self._budget = budget_tokens
        self._limit_max = limit_max

    def build(self, query: str, found: Found, milliseconds: float) -> dict[str, Any]:
        """Return the answer's object. It is over the budget only for an exact path, or for its first line."""
        shown = fitted(query, *QUERY)
        answer: dict[str, Any] = {
            "tools": [],
            "total_found": found.total,
            "search_time_ms": round(milliseconds, 2),
            "query": shown,
            "catalog_revision": self._catalogue.revision,
        }
        notice = self._help(query) if not found.hits else ""
        left = self._budget - _FRAME_TOKENS - estimate_tokens(encode(shown).decode()) - estimate_tokens(notice)
        rows = self._fill(query, found, left)
        answer["tools"] = [row.value for row in rows]
        notice = notice or self._notice(query, found, len(rows))
        if notice:
            answer["notice"] = notice
        return answer

    def _fill(self, query: str, found: Found, left: int) -> list[_Row]:
        """Choose rows and what they show, in the order of what matters most."""
        rows: list[_Row] = []
        named = self._catalogue.find_tool(query)
        listing = query.strip() == EVERYTHING
        for hit in found.hits:
            row = self._row(hit, named, first=not rows)
            if rows and row.tokens > left:
                break
            if row.exact:
                row.complete_within(0)
            elif not rows and not listing:
                row.complete_within(int(left * (1 - _RESERVED_FOR_LINES)) - row.tokens)
            left -= row.tokens
            rows.append(row)
        for row in rows:
            before = row.tokens
            if left > 0 and row.complete_within(left):
                left -= row.tokens - before
        return rows

    def _help(self, query: str) -> str:
        servers = sorted(self._catalogue.visible)
        if not servers:
            return "No server is configured or ready yet."
        if len(query.strip()) < 2:
            return "Say in a few words what you want to do, or use '*' to list everything."
        named = ", ".join(clean(server)[:40] for server in servers[:MAX_SERVERS_NAMED])
        more = ", ..." if len(servers) > MAX_SERVERS_NAMED else ""
        return f"Nothing fits. Servers: {named}{more}. Say what you want to do, name a server, or use '*' to list."

    def _notice(self, query: str, found: Found, shown: int) -> str:
        if not shown or shown >= found.total or (shown == len(found.hits) and query.strip() != EVERYTHING):
            return ""
        if shown < len(found.hits):
            return f"{shown} of {found.total} shown, to save tokens; say more precisely what you want to do."
        more = f", or raise 'limit' (at most {self._limit_max})" if shown < self._limit_max else ""
        return f"{shown} of {found.total} shown; say what you want to do{more}."

    def _row(self, hit: Hit, named: tuple[Entry, Tool] | None, *, first: bool) -> _Row:
        document = hit.document
        entry = self._catalogue.entries[document.server]
        if document.kind == "tool":
            tool = entry.tools[document.name]
            exact = named is not None and named[0].server == entry.server and named[1] is tool
            return _Row(self._tool_row(entry, tool, hit, first=first), tool, exact=exact)
        row: dict[str, Any] = {"kind": document.kind, "server_name": document.server, "name": clean(document.name)}
        row["prompt" if document.kind == "prompt" else "uri"] = clean(document.key.removesuffix("#prompt"))
        row["description"] = fitted(document.description or document.title, *SHORT_DESCRIPTION)
        row["relevance_score"] = round(hit.distance, 3)
        return _Row(row, None, exact=False)

    def _tool_row(self, entry: Entry, tool: Tool, hit: Hit, *, first: bool) -> dict[str, Any]:
        row: dict[str, Any] = {
            "tool_path": clean(tool_path(entry.server, tool.name)),
            "description": fitted(tool.description or tool.title, *(LONG_DESCRIPTION if first else SHORT_DESCRIPTION)),
            "server_name": entry.server,
            "transport": entry.transport,
            "relevance_score": round(hit.distance, 3),
            "signature": signature(tool),
            "required": [clean(name)[:60] for name in tool.required[:20]],
        }
        hints = declared_hints(tool)
        if hints:
            row["annotations"] = hints
        meta = shown_meta(entry.server, tool.meta)
        if meta is not None and (len(bytes(tool.meta)) <= SMALL_META_BYTES or b"resourceUri" in bytes(tool.meta)):
            row["_meta"] = meta
        self._add_availability(entry, row)
        return row

    def _add_availability(self, entry: Entry, row: dict[str, Any]) -> None:
        status = self._statuses.get(entry.server)
        if status is not None and status.state in (State.RESPAWNING, State.FAILED):
            row["available"] = False
            row["retry_after_ms"] = RETRY_RESPAWNING_MS if status.state is State.RESPAWNING else RETRY_FAILED_MS


def declared_hints(tool: Tool) -> dict[str, bool]:
    """Return the hints a tool declares (MCP 2025-03-26 server/tools), nothing else: the rest could say anything."""
    if not bytes(tool.annotations):
        return {}
    try:
        found = msgspec.json.decode(tool.annotations)
    except (msgspec.MsgspecError, RecursionError):
        return {}
    given = found if isinstance(found, dict) else {}
    return {name: given[name] for name in _HINTS if isinstance(given.get(name), bool)}
