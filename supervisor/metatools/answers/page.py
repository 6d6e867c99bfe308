"""What `discover_mcp_tools` answers to a search: one page of hits, as JSON, within a budget of tokens. Pure.

A tool asked for by its exact path comes alone and with its complete schema, whatever that costs. Else a page ends where
the fit ends, after five rows at the earliest; where all is doubtful these are short. In the order of what
matters most it has a line for each of the first ten hits (description, signature), the schema of the best if that fits
what was asked, lines for the rest, and the schemas of the next that fit while the page is small. What cannot be used,
and that nothing fits, is said before the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from actors.catalogue.names.resolution import Resolved
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue
from actors.messages import ServerStatus
from actors.protocol.wire.jsonrpc import encode
from actors.search.document import Found, Hit
from supervisor.metatools.answers.others import MAX_TOKENS, SHARE, other_tools
from supervisor.metatools.answers.rows import Row, other_row, tool_row
from supervisor.metatools.answers.skills import tools_of
from supervisor.metatools.answers.sources import sources_of_ids
from supervisor.metatools.servers.availability import availability_of, is_off, newcomers, standings
from supervisor.metatools.servers.purposes import list_names
from supervisor.metatools.servers.unavailable import FITS, MOST, NOTHING
from supervisor.metatools.texts import estimate_tokens, shorten_to_tokens

QUERY = (200, 60)
NO_SERVERS = "No server is configured."
LINES = 10
"""That many hits have a line before the best one gets its schema: a large schema must not hide another tool."""
KEPT = 5
"""So many rows stay though they hardly fit: the first is not always the right one."""
NEAR = 0.95
"""Further rows stay if the chance that they are meant is this share of the first one's."""
NAMES_TOKENS = 150
"""For the names of servers that are still being discovered."""
FRAME_TOKENS = 60
"""The members around the hits; query and notice are counted apart."""
LONG_CHARS, LONG_TOKENS = 100, 60
"""Of a path, and for saying that its schema is too long for the page."""
AIM = 0.35
"""The share of the budget up to which schemas of further hits are added: most answers need only the first."""
ASK = "Ask for what a tool should do (a verb and its object, such as 'send email'), one need a query"


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer is made from: what the client sees, how servers are doing, and how many tokens there are.

    `now` is a moment of the trio clock. `servers` gives the servers with what they are for, a line within a budget of
    its own. `confirms` says of a server's tool, by its own name, whether it runs only after the user has said yes,
    `reads` whether `execute_read_only_mcp_tool` runs it.
    """

    seen: Catalogue
    statuses: Mapping[str, ServerStatus]
    budget: int
    now: float
    servers: Callable[[], str] = str
    confirms: Callable[[str, str], bool] = lambda server, tool: False
    reads: Callable[[str, str], bool] = lambda server, tool: False

    def unusable(self, about: frozenset[str], perhaps: frozenset[str] = frozenset()) -> str:
        """Say why servers that were asked about cannot be used, and which are still coming.

        `perhaps` are those of them that another one stands for as well: a model need not stop for these.
        """
        on_the_way = newcomers(self.seen, self.statuses)
        down = about - self.seen.visible - on_the_way
        if not on_the_way and not down:
            return ""
        told = standings(down - perhaps, self.statuses)
        maybe = standings(down & perhaps, self.statuses)
        names = list_names(sorted(on_the_way), NAMES_TOKENS)
        still = f"Still being discovered, ask again: {names}." if names else ""
        also = f"{maybe}; if that is what is meant, tell the user." if maybe else ""
        return sentences(f"{told}; tell the user." if told else "", also, still)

    def others_down(self, about: frozenset[str]) -> str:
        """Say which other servers failed, a few of them: what is missing may be theirs.

        What the operator switched off is left out: that is no failure, and nothing a model should undo.
        """
        down = self.seen.names.servers - self.seen.visible - about - newcomers(self.seen, self.statuses)
        failed = [name for name in down if not is_off(self.statuses.get(name))]
        told = standings(failed, self.statuses, MOST)
        return f"Not usable now: {told}." if told else ""

    def no_tools(self, about: frozenset[str] = frozenset()) -> str:
        """Say why there is no tool at all, but for `about` and servers that are still coming, told of by `unusable`."""
        configured = self.seen.names.servers
        if not configured:
            return NO_SERVERS
        down = configured - newcomers(self.seen, self.statuses)
        told = standings(down - about, self.statuses)
        if told:
            return f"No tool can be used: {told}; tell the user."
        return "No tool can be used." if down else ""

    def availability(self, server: str, tool: str = "") -> dict[str, Any]:
        """Return what a row says of a tool, by its own name, that cannot be called now."""
        status = self.statuses.get(server)
        return {} if status is None else availability_of(status, tool, self.now)

    def treatment(self, server: str, tool: Tool) -> dict[str, Any]:
        """Return the members of a row that say how the tool is called, and what becomes of that but its result."""
        own = (tool.own or tool).name
        said = {"read_only": self.reads(server, own), "requires_confirmation": self.confirms(server, own)}
        return {name: True for name, holds in said.items() if holds} | self.availability(server, own)

    def other_row(self, hit: Hit) -> dict[str, Any]:
        """Return the line of what is no tool; that of a skill says how the tools are that it names."""
        row = other_row(hit, self.seen.prompt_name)
        if hit.document.kind != "skill":
            return row
        tools = tools_of(self.seen, hit.document, self.availability)
        return {**row, "tools": tools} if tools else row

    def frame(self, query: str, total: int, milliseconds: float, notice: str) -> dict[str, Any]:
        """Return an answer without its rows. What is to be noticed comes first, as a model reads from the top."""
        return {
            **({"notice": notice} if notice else {}),
            "tools": [],
            "total_found": total,
            "search_time_ms": round(milliseconds, 2),
            "query": shorten_to_tokens(query, *QUERY),
            "catalog_revision": self.seen.revision,
        }

    def row_budget(self, frame: Mapping[str, Any]) -> int:
        """Return the tokens that an answer, of a search or a list, has for its rows."""
        shown = f"{encode(frame.get('query', '')).decode()}{frame.get('notice', '')}"
        return self.budget - FRAME_TOKENS - estimate_tokens(shown)


def sentences(*parts: str) -> str:
    return " ".join(filter(None, parts))


def build_page(
    context: Context,
    query: str,
    ranking: Found,
    milliseconds: float,
    *,
    tool: Resolved | None = None,
    about: frozenset[str] = frozenset(),
    remark: str = "",
    ends: bool = True,
    named: bool = False,
    likely: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the answer's object. It is over the budget only for an exact path, or for its first line.

    `tool` is the one that the query means as a path. `about`: the servers of which it has to say something,
    `likely` those of them that it does not name; `remark` is said of the query. `ends`: the page may end where the
    fit ends. `named`: it asks for what a server has, so that all of it fits.
    """
    hits = fitting_hits(ranking.hits) if ends and not named else ranking.hits
    weak = _weak(context, query, hits, about) if not (named and hits) else ""
    perhaps = likely if hits and hits[0].distance < FITS else frozenset()
    notice = sentences(context.unusable(about, perhaps), remark, weak)
    answer = context.frame(query, ranking.total, milliseconds, notice)
    left = context.row_budget(answer)
    rows = _fill(context, hits, tool, left)
    answer["tools"] = [row.value for row in rows]
    shown = {row.value.get("tool_path", "") for row in rows}
    beside = min(context.budget // SHARE, MAX_TOKENS, left - sum(row.tokens for row in rows)) if tool is None else 0
    if beside > 0 and (names := other_tools(context.seen, ranking.hits, shown, beside)):
        answer["other_tools"] = names
    more = _more(hits, len(rows)) if not notice else ""
    told = sentences(notice, more, _long_schema(hits, rows))
    return {"notice": told, **answer} if told else answer


def _weak(context: Context, query: str, hits: Sequence[Hit], about: frozenset[str]) -> str:
    """Say that nothing fits for sure, what there is, and how to ask; empty if something does."""
    if hits and hits[0].distance < FITS:
        return ""
    if not context.seen.visible:
        return context.no_tools(about)
    if len(query.strip()) < 2:
        return "Say in a few words what a tool should do, or use '*' to list everything."
    if about and not hits:
        return ""
    if hits and hits[0].distance < NOTHING:
        return sentences("Not sure that anything fits; nearest first.", context.others_down(about), f"{ASK}.")
    near = list_names(dict.fromkeys(hit.document.server for hit in hits), NAMES_TOKENS)
    weak = f"No description matches well; nearest servers: {near}." if near else "No description matches."
    there = context.servers()
    told = f"Servers: {there}." if there else ""
    return sentences(weak, told, context.others_down(about), f"{ASK}; or '*' lists all.")


def _fill(context: Context, hits: Sequence[Hit], named: Resolved | None, left: int) -> list[Row]:
    """Choose rows and what they show, in the order of what matters most."""
    rows = [row_of(context, hit, named, first=not place) for place, hit in enumerate(hits[:LINES])]
    for hit, row in zip(hits[KEPT:], rows[KEPT:], strict=False):
        if hit.distance >= FITS:
            row.shrink()
    for row in rows if hits and hits[0].distance >= NOTHING else ():
        row.name()
    for row in rows:
        if row.exact:
            row.complete()
    aim = left - context.budget * (1 - AIM)
    left = _drop(rows, left - sum(row.tokens for row in rows))
    if rows and hits[0].distance < FITS:
        left = _complete_first(rows, left)
        if rows[0].is_signature:
            left = _drop(rows, left - LONG_TOKENS)
    for hit in hits[LINES:]:
        row = row_of(context, hit, named, first=False)
        if row.tokens > left or len(rows) < LINES:
            break
        left -= row.tokens
        rows.append(row)
    spare = min(left, int(aim) - sum(row.tokens for row in rows))
    for hit, row in zip(hits, rows, strict=False):
        if hit.distance < FITS:
            spare -= row.complete_within(spare)
    return rows


def _more(hits: Sequence[Hit], shown: int) -> str:
    if not 0 < shown < len(hits):
        return ""
    return f"{shown} of {len(hits)} shown, to save tokens; say more precisely what a tool should do."


def row_of(context: Context, hit: Hit, named: Resolved | None, *, first: bool) -> Row:
    document = hit.document
    if document.kind != "tool":
        return Row(context.other_row(hit))
    entry = context.seen.entries[document.server]
    tool = entry.tools[document.name]
    exact = named == Resolved(document.server, document.name)
    value = tool_row(context.seen, tool, hit, first=first, exact=exact) | context.treatment(entry.server, tool)
    if (exact or hit.distance < FITS) and (sources := sources_of_ids(entry, tool)):
        value["ids_from"] = sources
    return Row(value, tool, exact=exact)


def fitting_hits(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the hits up to where the fit ends; five of them stay in any case, and no more where nothing fits.

    If the best fits, those of other servers stay of the rest as long as one server fills more than half: a shorter page
    must not be more of one server's than the ranking made it.
    """
    if hits and hits[0].distance >= NOTHING and not hits[0].exact:
        return hits[:KEPT]
    border = min(FITS, 1 - NEAR * (1 - hits[0].distance)) if hits else FITS
    ends = max(sum(hit.distance < border for hit in hits), KEPT)
    kept, rest = list(hits[:ends]), hits[ends:]
    if not rest or hits[0].distance >= FITS:
        return kept
    server, most = Counter(hit.document.server for hit in kept).most_common(1)[0]
    others = [hit for hit in rest if hit.document.server != server]
    return kept + others[: max(0, 2 * most - len(kept))]


def _long_schema(hits: Sequence[Hit], rows: Sequence[Row]) -> str:
    if not rows or not rows[0].is_signature or hits[0].distance >= FITS:
        return ""
    path = rows[0].value["tool_path"]
    named = (
        f"{path} has a long inputSchema: that path" if len(path) <= LONG_CHARS else "Long inputSchema: the first path"
    )
    return f"{named} as query gives it."


def _drop(rows: list[Row], left: int) -> int:
    """Make lines terse, the last first, and drop them if need be, until no token is missing; return what is left.

    At last the first one is made short, unless it is what was asked for by its path.
    """
    left = _shrink_last(rows, left)
    while left < 0 and len(rows) > 1:
        left += rows.pop().tokens
    if left < 0 and rows and not rows[0].exact:
        before = rows[0].tokens
        rows[0].shrink()
        rows[0].fit(left + before)
        left += before - rows[0].tokens
    return left


def _complete_first(rows: Sequence[Row], left: int) -> int:
    """Give the best hit its complete schema, if need be at the cost of the other lines; return what is left."""
    cost = rows[0].complete_within(left)
    if cost:
        return left - cost
    possible = left + sum(max(0, row.spare) for row in rows[1:])
    cost = rows[0].complete_within(possible)
    return _shrink_last(rows, left - cost)


def _shrink_last(rows: Sequence[Row], left: int) -> int:
    for row in reversed(rows[1:]):
        if left >= 0:
            break
        left += row.shrink()
    return left
