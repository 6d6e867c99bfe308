"""What `discover_mcp_tools` answers: one page of hits, as JSON, within a budget of tokens. Pure.

A tool asked for by its exact path comes with its complete schema, whatever that costs. Then, in the order of what
matters most: a line for each of the first ten hits (description, signature, required parameters), the schema of the
best, lines for the rest, and the schemas of the next hits while the page is not yet as large as it should be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.catalogue.entries import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.lifecycle import State
from actors.messages import ServerStatus
from actors.protocol.jsonrpc import encode
from actors.search import EVERYTHING, Found, Hit
from supervisor.rows import Row, other_row, tool_row
from supervisor.service.availability import MAX_SERVERS_NAMED, coming, standings
from supervisor.shown import clean, estimate_tokens, fitted

QUERY = (200, 60)
NO_SERVERS = "No server is configured."
RETRY_RESPAWNING_MS = 1000
RETRY_FAILED_MS = 60_000
LINES = 10
"""That many hits have a line before the best one gets its schema: a large schema must not hide another tool."""
_FRAME_TOKENS = 60
"""The members around the hits; query and notice are counted apart."""
_AIM = 0.8
"""The share of the budget up to which schemas of further hits are added: most answers need only the first."""


class Page:
    """Builds the answer of `discover_mcp_tools` within a budget of tokens."""

    def __init__(
        self, catalogue: Catalogue, statuses: Mapping[str, ServerStatus], budget_tokens: int, limit_max: int = 50
    ) -> None:
        self._catalogue = catalogue
        self._statuses = statuses
        self._budget = budget_tokens
        self._limit_max = limit_max

    def build(
        self,
        query: str,
        found: Found,
        milliseconds: float,
        *,
        listing: bool = False,
        asked_for: frozenset[str] = frozenset(),
    ) -> dict[str, Any]:
        """Return the answer's object. It is over the budget only for an exact path, or for its first line.

        `listing`: the hits are in the order of their paths, none is better than another. `asked_for`: the servers that
        the query names.
        """
        listing = listing or query.strip() == EVERYTHING
        shown = fitted(query, *QUERY)
        answer: dict[str, Any] = {
            "tools": [],
            "total_found": found.total,
            "search_time_ms": round(milliseconds, 2),
            "query": shown,
            "catalog_revision": self._catalogue.revision,
        }
        missing = self._missing(asked_for)
        help_ = self._help(query) if not found.hits else ""
        notice = " ".join(filter(None, (missing, help_)))
        left = self._budget - _FRAME_TOKENS - estimate_tokens(encode(shown).decode()) - estimate_tokens(notice)
        rows = self._fill(query, found, left, listing=listing)
        answer["tools"] = [row.value for row in rows]
        notice = " ".join(filter(None, (missing, help_ or self._notice(found, len(rows), listing=listing))))
        if notice:
            answer["notice"] = notice
        return answer

    def _missing(self, asked_for: frozenset[str]) -> str:
        """Say what is not here because its server is not: those asked for, and those that are still coming."""
        hidden = asked_for - self._catalogue.visible
        on_the_way = coming(self._catalogue, self._statuses)
        told = standings(hidden - on_the_way, self._statuses)
        names = [clean(name)[:64] for name in sorted(on_the_way)]
        more = f" and {len(names) - MAX_SERVERS_NAMED} more" if len(names) > MAX_SERVERS_NAMED else ""
        still = f"Still being discovered, ask again: {', '.join(names[:MAX_SERVERS_NAMED])}{more}." if names else ""
        return " ".join(filter(None, (f"{told}." if told else "", still)))

    def _fill(self, query: str, found: Found, left: int, *, listing: bool) -> list[Row]:
        """Choose rows and what they show, in the order of what matters most."""
        named = self._catalogue.find_tool(query)
        rows = [self._row(hit, named, first=not place) for place, hit in enumerate(found.hits[:LINES])]
        for row in rows:
            if row.exact:
                row.complete()
        aim = left - self._budget * (1 - _AIM)
        left = _drop(rows, left - sum(row.tokens for row in rows))
        if rows and not listing:
            left = _complete_first(rows, left)
        for hit in found.hits[LINES:]:
            row = self._row(hit, named, first=False)
            if row.tokens > left or len(rows) < LINES:
                break
            left -= row.tokens
            rows.append(row)
        spare = min(left, int(aim) - sum(row.tokens for row in rows))
        for row in rows:
            spare -= row.complete_within(spare)
        return rows

    def _help(self, query: str) -> str:
        servers = sorted(self._catalogue.visible)
        if not servers:
            return self._no_tools()
        if len(query.strip()) < 2:
            return "Say in a few words what you want to do, or use '*' to list everything."
        named = ", ".join(clean(server)[:40] for server in servers[:MAX_SERVERS_NAMED])
        more = ", ..." if len(servers) > MAX_SERVERS_NAMED else ""
        return f"Nothing fits. Servers: {named}{more}. Say what you want to do, name a server, or use '*' to list."

    def _no_tools(self) -> str:
        """Say why there is no tool at all, but for servers that are still coming: those are told of anyway."""
        configured = self._catalogue.names.servers
        if not configured:
            return NO_SERVERS
        told = standings(configured - coming(self._catalogue, self._statuses), self._statuses)
        return f"No tool can be used: {told}." if told else ""

    def _notice(self, found: Found, shown: int, *, listing: bool) -> str:
        if not shown or shown >= found.total or (shown == len(found.hits) and not listing):
            return ""
        if shown < len(found.hits):
            return f"{shown} of {found.total} shown, to save tokens; say more precisely what you want to do."
        more = f", or raise 'limit' (at most {self._limit_max})" if shown < self._limit_max else ""
        return f"{shown} of {found.total} shown; say what you want to do{more}."

    def _row(self, hit: Hit, named: tuple[Entry, Tool] | None, *, first: bool) -> Row:
        document = hit.document
        if document.kind != "tool":
            return Row(other_row(hit, self._catalogue.prompt_name))
        entry = self._catalogue.entries[document.server]
        tool = entry.tools[document.name]
        value = tool_row(entry, tool, hit, first=first)
        self._add_availability(entry, value)
        exact = named is not None and named[0].server == entry.server and named[1] is tool
        return Row(value, tool, exact=exact)

    def _add_availability(self, entry: Entry, row: dict[str, Any]) -> None:
        status = self._statuses.get(entry.server)
        if status is not None and status.state in (State.RESPAWNING, State.FAILED):
            row["available"] = False
            row["retry_after_ms"] = RETRY_RESPAWNING_MS if status.state is State.RESPAWNING else RETRY_FAILED_MS


def _drop(rows: list[Row], left: int) -> int:
    """Make lines terse, the last first, and drop them if need be, until no token is missing; return what is left."""
    for row in reversed(rows[1:]):
        if left >= 0:
            break
        left += row.shrink()
    while left < 0 and len(rows) > 1:
        left += rows.pop().tokens
    return left


def _complete_first(rows: Sequence[Row], left: int) -> int:
    """Give the best hit its complete schema, if need be at the cost of the other lines; return what is left."""
    cost = rows[0].complete_within(left)
    if cost:
        return left - cost
    possible = left + sum(max(0, row.spare) for row in rows[1:])
    cost = rows[0].complete_within(possible)
    left -= cost
    for row in reversed(rows[1:]):
        if left >= 0:
            break
        left += row.shrink()
    return left
