"""Searches for tools, measured; none holds up the loop that takes longer than a few milliseconds."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest
from actors.messages import ServerStatus
from actors.principal import Principal
from supervisor.host.loop.workbench import SMALL_BYTES, Workbench
from supervisor.metatools.answers import unmet
from supervisor.metatools.answers.caution import likely_server
from supervisor.metatools.arguments import tools
from supervisor.metatools.discovery import Searched, needs_of, search
from supervisor.metrics.meters import Meters
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Client
from supervisor.store import ToolUsage
from supervisor.tracing.port import RequestTrace
from supervisor.usage.merits import preference

SEARCH_COST: Final = 8
"""A character of a query costs as much as so many bytes that a model wrote."""
AT_ONCE, MAX_WAITING = 2, 256
"""Of searches by meaning: most of one is arithmetic in C, on one processor."""

UsedBy = Callable[[Principal], Mapping[tuple[str, str], ToolUsage]]
"""What one has used, by server and tool."""

Ahead = Callable[[Client, str, ServerStatus], None]
"""Told that a client will probably call a server next, as far as a search says."""

Sample = Callable[[Exchange, Catalogue], Awaitable[None]]
"""Asks the client of a search, which sees this, for what others are to find by later on. Never raises."""


class Searches:
    """Searches at `bench`, and where queries are compared by meaning at a bench of its own.

    `used_by` is asked only where the order of equals depends on it.
    """

    def __init__(
        self, bench: Workbench, deployment: Latest[Deployment], meters: Meters, used_by: UsedBy = lambda principal: {}
    ) -> None:
        self._bench = bench
        self._by_meaning = Workbench(MAX_WAITING, AT_ONCE)
        self._deployment = deployment
        self._meters = meters
        self._used_by = used_by
        self.ahead: Ahead = lambda client, server, status: None
        self.sample: Sample | None = None

    def look_ahead(self, done: Sequence[Searched], client: Client, statuses: Mapping[str, ServerStatus]) -> None:
        """Tell `ahead` which servers are probably called next, and how they are doing. At once."""
        for server in dict.fromkeys(likely_server(each.ranking) for each in done):
            if (status := statuses.get(server)) is not None:
                self.ahead(client, server, status)

    async def search(
        self, seen: Catalogue, wanted: tools.Discover, principal: Principal, trace: RequestTrace | None
    ) -> list[Searched]:
        """Search for each need, one after another: it takes its turn among others who search.

        Never on the loop where a query is embedded first, or there are several needs.
        """
        beside = bool(wanted.further)
        return [await self._measured(seen, need, principal, trace, beside=beside) for need in needs_of(wanted)]

    async def _measured(
        self, seen: Catalogue, wanted: tools.Discover, principal: Principal, trace: RequestTrace | None, *, beside: bool
    ) -> Searched:
        end = trace.begin_search() if trace is not None else None
        started, hits = time.perf_counter(), 0
        try:
            done = await self._search(seen, wanted, principal, beside=beside)
            hits = len(done.ranking.hits) or int(done.tool is not None)
        finally:
            if end is not None:
                end(hits)
        self._meters.on_search(time.perf_counter() - started, hits=bool(hits))
        return done

    async def _search(self, seen: Catalogue, wanted: tools.Discover, principal: Principal, *, beside: bool) -> Searched:
        deployment, cost = self._deployment.value, SEARCH_COST * len(wanted.query)
        prefer = preference(seen, self._used_by(principal)) if deployment.settings.rank_by_use else None
        given = seen, wanted, time.perf_counter, deployment.described, prefer
        cost += SMALL_BYTES + 1 if beside or unmet.needs(wanted.query) else 0
        if seen.index.embedder is None:
            return await self._bench.run(cost, search, *given)
        return await self._by_meaning.run(cost + SMALL_BYTES + 1, search, *given)
