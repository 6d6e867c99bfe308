"""Searches for tools, measured; none holds up the loop that takes longer than a few milliseconds."""

from __future__ import annotations

import time
from typing import Final

from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest
from supervisor.host.loop.workbench import SMALL_BYTES, Workbench
from supervisor.metatools.answers import unmet
from supervisor.metatools.arguments import tools
from supervisor.metatools.discovery import Searched, search
from supervisor.metrics.meters import Meters
from supervisor.servers.deployment import Deployment
from supervisor.tracing.port import RequestTrace

SEARCH_COST: Final = 8
"""A character of a query costs as much as so many bytes that a model wrote."""
AT_ONCE, MAX_WAITING = 2, 256
"""Of searches by meaning: most of one is arithmetic in C, on one processor."""


class Searches:
    """Searches at `bench`, and where queries are compared by meaning at a bench of its own."""

    def __init__(self, bench: Workbench, deployment: Latest[Deployment], meters: Meters) -> None:
        self._bench = bench
        self._by_meaning = Workbench(MAX_WAITING, AT_ONCE)
        self._deployment = deployment
        self._meters = meters

    async def search(self, seen: Catalogue, wanted: tools.Discover, trace: RequestTrace | None) -> Searched:
        """Search; never on the loop where a query is embedded first, or has several needs: each is searched for."""
        end = trace.begin_search() if trace is not None else None
        started, hits = time.perf_counter(), 0
        try:
            done = await self._search(seen, wanted)
            hits = len(done.ranking.hits) or int(done.tool is not None)
        finally:
            if end is not None:
                end(hits)
        self._meters.on_search(time.perf_counter() - started, hits=bool(hits))
        return done

    async def _search(self, seen: Catalogue, wanted: tools.Discover) -> Searched:
        cost, described = SEARCH_COST * len(wanted.query), self._deployment.value.described
        cost += SMALL_BYTES + 1 if unmet.needs(wanted.query) else 0
        if seen.index.embedder is None:
            return await self._bench.run(cost, search, seen, wanted, time.perf_counter, described)
        return await self._by_meaning.run(cost + SMALL_BYTES + 1, search, seen, wanted, time.perf_counter, described)
