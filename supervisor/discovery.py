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

from actors.catalogue.snapshot import Catalogue
from actors.messages import ServerStatus
from actors.search import EVERYTHING, Found
from supervisor.answers import Page
from supervisor.loose import size
from supervisor.metatools import Discover

_NAMED = re.compile(r"\s*server\s*[:=]\s*(?:\"([^\"]{1,200})\"|'([^']{1,200})'|([^\s\"']{1,200}))", re.IGNORECASE)
"""`server:github issues`, as people write it in searches elsewhere."""
_WHOLE = re.compile(r"\s*(\S{1,200}?)\s*(?:[:/.-]|__)\s*\*?\s*")
"""`github:*`, `github/`: all of one server."""
_NOT_NAME = re.compile(r"[\W_]+")
_MAX_NAME_CHARS = 200

Clock = Callable[[], float]


class DiscoverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How many hits a client may ask for at most, the tokens of an answer, and where a query is cut (characters)."""

    discover_limit_max: int = 50
    discover_token_budget: int = 2000
    max_query_chars: int = 6000


class Searched(msgspec.Struct, frozen=True):
    """A search that is done, and how long it took; `query` is as much as was looked at."""

    query: str
    found: Found
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
    return Searched(asked.query, found, (clock() - started) * 1000)


def answered(
    seen: Catalogue, statuses: Mapping[str, ServerStatus], done: Searched, settings: DiscoverySettings
) -> dict[str, Any]:
    """Return the answer to a search. How long that takes is a matter of the `weight` of what was found."""
    page = Page(seen, statuses, settings.discover_token_budget, settings.discover_limit_max)
    listing = not any(hit.score or hit.exact for hit in done.found.hits)  # nothing was ranked
    return page.build(done.query, done.found, done.milliseconds, listing=listing)


def weight(seen: Catalogue, done: Searched) -> int:
    """Return the bytes of the definitions of the tools that were found."""
    tools = (hit.document for hit in done.found.hits if hit.document.kind == "tool")
    return sum(size(seen.entries[found.server].tools[found.name].definition) for found in tools)


class Servers:
    """The servers that somebody may see, by the names people write for them."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self._by_letters: dict[str, str] | None = None

    def named(self, text: str) -> str:
        """Return the server a text is the name of, case and punctuation aside if need be; empty if there is none."""
        text = text.strip()
        if text in self.names or len(text) > _MAX_NAME_CHARS:
            return text if text in self.names else ""
        if self._by_letters is None:  # of two that are alike the first one counts
            alike = ((_letters(name), name) for name in sorted(self.names, reverse=True))
            self._by_letters = {letters: name for letters, name in alike if name[:1].casefold() == letters[:1]}
        return self._by_letters.get(_letters(text), "")


def _letters(name: str) -> str:
    return _NOT_NAME.sub("", name.casefold())


def search(seen: Catalogue, wanted: Discover) -> Found:
    """Return the hits for a query: of one server only if it asks for that, a server's own first if it is its name."""
    servers = Servers(seen.visible)
    visible = servers.names
    if wanted.servers:
        visible = frozenset(filter(None, map(servers.named, wanted.servers)))
        servers = Servers(visible)
        wanted = replace(wanted, query=wanted.query.strip() or EVERYTHING)
    if seen.find_tool(wanted.query) is None:
        name, rest = _filtered(wanted.query, servers)
        if name:
            return _found(seen, replace(wanted, query=rest), frozenset({name}))
        name = servers.named(wanted.query)
        if name:
            return _server_first(seen, wanted, name, visible)
    return _found(seen, wanted, visible)


def _filtered(query: str, servers: Servers) -> tuple[str, str]:
    """Return the server a query restricts itself to and the rest of the query; empty if it does not."""
    match = _NAMED.match(query)
    if match:
        name = servers.named(next(filter(None, match.groups())))
        if name:
            return name, query[match.end() :].strip() or EVERYTHING
    match = _WHOLE.fullmatch(query) if len(query) <= _MAX_NAME_CHARS else None
    return (servers.named(match[1]), EVERYTHING) if match else ("", "")


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
