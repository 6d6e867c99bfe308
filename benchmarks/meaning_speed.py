"""What comparing meanings costs over 10,000 tools: used by `search_speed --rerank neural`.

The vectors of the tools are made up, as only their number matters for a query. Texts are embedded as the daemon does;
and how late the loop is, is measured while the model works in threads beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import trio

from actors.registry.indexing import BATCH
from actors.search.index import Index
from actors.search.meanings import Embedder, Levels, text_of
from actors.search.search import find
from actors.search.words.tables import WORLD
from benchmarks.meanings import load_embedder, memory_mb
from benchmarks.stall import Ticker
from benchmarks.table import Aim, Row, percentile
from supervisor.host.pauses import SWITCH_INTERVAL_S
from supervisor.host.workbench import SMALL_BYTES, Workbench
from supervisor.service.calls.meta_calls import AT_ONCE as SEARCHES_AT_ONCE
from supervisor.service.calls.meta_calls import MAX_WAITING

AT_ONCE = 16
EMBEDDED = 60
LIMIT = 10


def rows(index: Index, queries: Sequence[str], folder: Path) -> list[Row]:
    """Return the rows of an index of made-up tools and of queries, all different."""
    lexical, before = index, memory_mb()
    embedder = load_embedder(folder)
    index = with_random_vectors(index, embedder)
    alone = sorted(_took_ms(index, query) for query in queries)
    again = sorted(_took_ms(index, query) for query in queries[-100:])
    words = sorted(_took_ms(lexical, query) for query in queries)
    resident = memory_mb() - before
    name = f"query over {len(index):,} with meanings"
    out = [
        Row(
            what=f"{name}, p{part * 100:g}",
            measured=f"{percentile(alone, part):.2f} ms",
            compared=f"words alone: {percentile(words, part):.2f} ms",
            ratio=f"{percentile(alone, part) / percentile(words, part):.1f}",
            aim=Aim("<=", 15) if part == 0.99 else None,
            value=percentile(alone, part),
        )
        for part in (0.5, 0.99)
    ]
    out.append(Row(what=f"{name}, asked before, p50", measured=f"{percentile(again, 0.5):.2f} ms"))
    out.append(Row(what="memory of model and vectors", measured=f"{resident:.0f} MB"))
    return out + trio.run(_beside_the_loop, index, embedder, queries)


def with_random_vectors(index: Index, embedder: Embedder) -> Index:
    """Return the index with vectors that mean nothing."""
    chance = np.random.default_rng(1)

    def vectors(texts: int) -> Levels:
        return chance.integers(-127, 128, (texts, embedder.dimensions)).astype(np.int8)

    made = {segment.server: vectors(len(segment)) for segment in index.segments}
    return index.with_meanings(embedder, made, vectors(len(WORLD)))


def _took_ms(index: Index, query: str) -> float:
    begun = time.perf_counter()
    find(index, query, limit=LIMIT)
    return (time.perf_counter() - begun) * 1000


async def _beside_the_loop(index: Index, embedder: Embedder, queries: Sequence[str]) -> list[Row]:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    ticker = Ticker()
    bench = Workbench(MAX_WAITING, SEARCHES_AT_ONCE)
    waited: list[float] = []
    texts = [text_of(document) for segment in index.segments for document in segment.documents][:EMBEDDED]

    async def ask(query: str) -> None:
        begun = trio.current_time()
        await bench.run(SMALL_BYTES + 1, lambda: find(index, query, limit=LIMIT))
        waited.append((trio.current_time() - begun) * 1000)

    async def embed() -> None:
        for first in range(0, len(texts), BATCH):
            await trio.to_thread.run_sync(embedder.embed, texts[first : first + BATCH])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ticker.run)
        with ticker.phase("idle"):
            await trio.sleep(1.0)
        with ticker.phase("queries"):
            fresh = [f"{query} ({number})" for number, query in enumerate(queries[: 5 * AT_ONCE])]
            for first in range(0, len(fresh), AT_ONCE):
                await _all(ask, fresh[first : first + AT_ONCE])
        begun = trio.current_time()
        with ticker.phase("embedding"):
            await embed()
        each_ms = (trio.current_time() - begun) * 1000 / len(texts)
        nursery.cancel_scope.cancel()
    late = {phase: max(times) for phase, times in ticker.late_ms.items()}
    return [
        Row(what=f"{AT_ONCE} queries at once, p50 / the last", measured=_half_and_last(waited)),
        Row(what="a tool embedded, without the rests", measured=f"{each_ms:.1f} ms"),
        *(
            Row(
                what=f"longest pause of the loop: {what}",
                measured=f"{late[phase]:.1f} ms",
                aim=None if phase == "idle" else Aim("<=", 20),
                value=late[phase],
            )
            for phase, what in (
                ("idle", "idle, with the model"),
                ("queries", f"{AT_ONCE} queries at once"),
                ("embedding", "tools are embedded"),
            )
        ),
    ]


def _half_and_last(times: Sequence[float]) -> str:
    return f"{percentile(sorted(times), 0.5):.0f} / {max(times):.0f} ms"


async def _all(work: Callable[[str], Awaitable[None]], queries: Sequence[str]) -> None:
    async with trio.open_nursery() as nursery:
        for query in queries:
            nursery.start_soon(work, query)
