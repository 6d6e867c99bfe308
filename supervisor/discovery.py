"""One discover, whole: from what a client asked to the page it gets. Pure: the clock is handed in.

The gateway answers `discover_mcp_tools` with it, and the benchmarks measure it: nothing is measured that is not served.
What a client may see, the server it names and the kinds it wants are applied before anything is ranked or limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.catalogue.resolution import Absent, Resolved, Undiscovered
from actors.catalogue.snapshot import Catalogue
from actors.messages import ServerStatus
from actors.search import EVERYTHING, Found
from supervisor.answers import Page
from supervisor.metatools import Discover

_NAMED = re.compile(r"\s*server\s*[:=]\s*(?:\"([^\"]{1,200})\"|'([^']{1,200})'|([^\s\"']{1,200}))", re.IGNORECASE)
"""`server:github issues`, as people write it in searches elsewhere."""
_WHOLE = re.compile(r"\s*(\S{1,200}?)\s*(?:[:/.-]|__)\s*\*?\s*")
"""`github:*`, `github/`: all of one server."""
_MAX_NAME_CHARS = 200

Clock = Callable[[], float]


class DiscoverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How many hits a client may ask for at most, the tokens of an answer, and where a query is cut (characters)."""

    discover_limit_max: int = 50
    discover_token_budget: int = 2000
    max_query_chars: int = 6000


class Searched(msgspec.Struct, frozen=True):
    """A search that is done, and how long it took.

    `query` is as much as was looked at, `servers` are those it names in one way or another.
    """

    query: str
    found: Found
    servers: frozenset[str]
    milliseconds: float


def discovered(
    seen: Catalogue, statuses: Mapping[str, ServerStatus], wanted: Discover, settings: DiscoverySettings, clock: Clock
) -> dict[str, Any]:
    """Return the answer of `discover_mcp_tools` for what a client sees. `clock` is in seconds. Raises nothing."""
    return answered(seen, statuses, searched(seen, cut(wanted, settings), clock), settings)


def cut(wanted: Discover, settings: DiscoverySettings) -> Discover:
    """Return what is asked with as much of the query as the settings allow."""
    return replace(wanted, query=wanted.query[: settings.max_query_chars])


def searched(seen: Catalogue, asked: Discover, clock: Clock) -> Searched:
    """Search. The longer the query, the longer it takes."""
    started = clock()
    found = search(seen, asked)
    return Searched(asked.query, found, _servers_asked_for(seen, asked), (clock() - started) * 1000)


def answered(
    seen: Catalogue, statuses: Mapping[str, ServerStatus], done: Searched, settings: DiscoverySettings
) -> dict[str, Any]:
    """Return the answer to a search. How long that takes is a matter of the `weight` of what was found."""
    page = Page(seen, statuses, settings.discover_token_budget, settings.discover_limit_max)
    listing = not any(hit.score or hit.exact for hit in done.found.hits)  # nothing was ranked
    return page.build(done.query, done.found, done.milliseconds, listing=listing, asked_for=done.servers)


def weight(seen: Catalogue, done: Searched) -> int:
    """Return the bytes of the definitions of the tools that were found."""
    tools = (hit.document for hit in done.found.hits if hit.document.kind == "tool")
    return sum(len(seen.entries[found.server].tools[found.name].definition) for found in tools)


def search(seen: Catalogue, wanted: Discover) -> Found:
    """Return the hits for a query: of one server only if it asks for that, a server's own first if it is its name."""
    visible = seen.visible
    if wanted.servers:
        visible &= frozenset(server_named(name, seen) for name in wanted.servers)
        wanted = replace(wanted, query=wanted.query.strip() or EVERYTHING)
    if seen.find_tool(wanted.query) is None:
        name, rest = _filtered(wanted.query, seen)
        if name:
            return _found(seen, replace(wanted, query=rest), visible & {name})
        name = server_named(wanted.query, seen)
        if name in visible:
            return _server_first(seen, wanted, name, visible)
    return _found(seen, wanted, visible)


def server_named(text: str, seen: Catalogue) -> str:
    """Return the server that a text is the name of; empty if there is none.

    What is literally a configured server's name means that server, though nothing of it can be seen. Else case and
    punctuation do not count, and one that can be seen comes first: a search may be generous, a call may not.
    """
    text = text.strip()
    literal = seen.names.literal(text)
    if literal is not None:
        return literal
    return min(seen.names.fitting(text), key=lambda name: (name not in seen.visible, name), default="")


def _servers_asked_for(seen: Catalogue, wanted: Discover) -> frozenset[str]:
    """Return the servers that a query names in one way or another."""
    named = {server_named(name, seen) for name in wanted.servers}
    named |= {server_named(wanted.query, seen), _filtered(wanted.query, seen)[0]}
    match seen.tool(wanted.query):
        case Resolved(server=server) | Undiscovered(server=server) | Absent(server=server):
            named.add(server)
    return frozenset(named - {""})


def _filtered(query: str, seen: Catalogue) -> tuple[str, str]:
    """Return the server a query restricts itself to and the rest of the query; empty if it does not."""
    match = _NAMED.match(query)
    if match:
        name = server_named(next(filter(None, match.groups())), seen)
        if name:
            return name, query[match.end() :].strip() or EVERYTHING
    match = _WHOLE.fullmatch(query) if len(query) <= _MAX_NAME_CHARS else None
    return (server_named(match[1], seen), EVERYTHING) if match else ("", "")


def _server_first(seen: Catalogue, wanted: Discover, name: str, visible: frozenset[str]) -> Found:
    """Return the tools of a server whose name is the query, then what else fits; a tool of that very name stays in."""
    everywhere = _found(seen, wanted, visible)
    others = [hit for hit in everywhere.hits if hit.document.server != name]
    kept = min(sum(hit.exact for hit in others), wanted.limit // 2)
    own = _found(seen, wanted, frozenset({name}))
    listed = _found(seen, replace(wanted, query=EVERYTHING), frozenset({name}))
    ranked = {hit.document.key for hit in own.hits}
    first = [*own.hits, *(hit for hit in listed.hits if hit.document.key not in ranked)][: wanted.limit - kept]
    best = min((hit.distance for hit in first), default=0.0)
    worst = max((hit.distance for hit in first), default=0.0)
    hits = [replace(hit, distance=max(best, hit.distance) if hit.document.key in ranked else worst) for hit in first]
    hits += [replace(hit, distance=max(worst, hit.distance)) for hit in others[: wanted.limit - len(hits)]]
    elsewhere = everywhere.total - sum(hit.document.server == name for hit in everywhere.hits)
    return Found(hits=tuple(hits), total=max(len(hits), listed.total + max(0, elsewhere)))


def _found(seen: Catalogue, wanted: Discover, servers: frozenset[str]) -> Found:
    return seen.index.search(wanted.query, limit=wanted.limit, kinds=wanted.kinds, servers=servers)
