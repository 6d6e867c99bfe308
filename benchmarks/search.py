"""How well and how fast tools are found: `python -m benchmarks.search CATALOG.jsonl QUERIES.jsonl [--top 10]`.

CATALOG has a tool a line: `{server, name, description, input_schema[, title][, said]}`; `said` are sentences by which
people ask for it. QUERIES has a query a line: `{id,
query, kind, groups}`, where `groups` lists the separate needs of the query, each as the `[server, name]` pairs that
would do; no groups means that nothing should be found. `--ranks FILE` writes what was found, `{"id", "paths",
"scores"}` a line. A row fits if its score (0 is best) is below 0.5: `fits` is the share of queries with such a row.
A query goes the whole way of `discover_mcp_tools`, and what counts is what its answer shows: the catalogue is made of
the tools as the registry makes it, and read by the function that the gateway calls.
`--phrases` finds tools also by the sentences of the phrase book. `said_queries.jsonl` has queries for tools of servers
in it; their catalogue is not part of this repository: it is made of what these servers answer to `tools/list`, and
`server` is what the book calls them.
`--rerank neural` compares meanings, too, with the sentence model; `--vectors` is a directory where its weights and the
vectors of tools are kept, so that a second run need not make them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.catalogue import lists, offer
from actors.catalogue.documents import Phrases, Said, documents, no_phrases
from actors.catalogue.snapshot import Catalogue, Entry
from actors.protocol.wire.jsonrpc import encode
from actors.search.index import Index
from actors.search.page import Prefer
from actors.search.segment import analyse
from benchmarks import meanings
from benchmarks.discovery import discover_at_once
from supervisor.metatools.arguments import discover
from supervisor.metatools.discovery import DiscoverySettings
from supervisor.metatools.servers import FITS
from supervisor.phrases.phrase_book import read_book

ToolPath = tuple[str, str]
Answer = Callable[[str], list[ToolPath]]
CUTS = (1, 5, 10)
NOT_AVERAGED = frozenset({"garbage", "empty", "huge", "ood", "no_match", "multilingual"})


class Tool(msgspec.Struct, frozen=True):
    """A line of the catalogue."""

    server: str
    name: str
    description: str | None = None
    title: str | None = None
    input_schema: object = None
    said: tuple[str, ...] = ()


class Query(msgspec.Struct, frozen=True):
    """A line of the queries."""

    id: str | int
    query: str
    kind: str = "all"
    groups: list[list[ToolPath]] = []


class Ranks(msgspec.Struct, frozen=True):
    """A line of the ranks file."""

    id: str | int
    paths: list[ToolPath]
    scores: list[float] = []


def build(tools: Iterable[Tool], beside: Catalogue | None = None, phrases: Phrases = no_phrases) -> Catalogue:
    """Return the catalogue of these tools, made as the registry makes it; print which are left out as malformed.

    `beside` has the tools of other servers, which are in it, too. `phrases` has sentences by which people ask for those
    that have none of their own.
    """
    said: dict[ToolPath, Said] = {}
    by_server: dict[str, dict[str, offer.Tool]] = defaultdict(dict)
    for tool in tools:
        try:
            checked = lists.tool(msgspec.Raw(msgspec.json.encode(definition(tool))))
        except lists.Unusable as reason:
            print(f"{tool.server}: {tool.name!r} left out: {reason}")
        else:
            by_server[tool.server].setdefault(checked.name, checked)
            if tool.said:
                said.setdefault((tool.server, checked.name), Said(tool.said, "file"))
    offers = {server: offer.Offer(tools=tuple(tools_of.values())) for server, tools_of in sorted(by_server.items())}

    def known(server: str, tool: offer.Tool) -> Said:
        return said.get((server, tool.name)) or phrases(server, tool)

    segments = [analyse(server, documents(server, offered, phrases=known)) for server, offered in offers.items()]
    made = {server: Entry.make(server, "stdio", offered) for server, offered in offers.items()}
    if beside is not None:
        segments += beside.index.segments
        made = dict(sorted({**beside.entries, **made}.items()))
    return Catalogue(revision=1, entries=made, index=Index.empty().rebuild(segments), indexed=True)


def definition(tool: Tool) -> dict[str, object]:
    """Return a tool as its server would list it (MCP 2025-11-25 server/tools)."""
    members: dict[str, object] = {"name": tool.name, "inputSchema": tool.input_schema or {}}
    return members | {key: text for key in ("title", "description") if (text := getattr(tool, key)) is not None}


def asking(
    catalogue: Catalogue, top: int, settings: DiscoverySettings | None = None, prefer: Prefer | None = None
) -> Callable[[str], Any]:
    """Return the function that answers a query as `discover_mcp_tools` does."""
    bounds = settings or DiscoverySettings()

    def ask(query: str) -> Any:
        arguments = msgspec.Raw(msgspec.json.encode({"query": query, "limit": top}))
        wanted = discover(arguments, bounds.discover_limit_max)
        return discover_at_once(catalogue, {}, wanted, bounds, time.perf_counter, prefer)

    return ask


def answering(catalogue: Catalogue, top: int) -> Answer:
    """Return the function that answers a query with the paths found, best first. All measuring goes through it."""
    ask = asking(catalogue, top)
    return lambda query: paths_of(ask(query))


def paths_of(answer: Any) -> list[ToolPath]:
    """Return the paths that an answer shows."""
    split = (row["tool_path"].partition(":") for row in answer["tools"])
    return [(server, name) for server, _, name in split]


def scores_of(answer: Any) -> list[float]:
    """Return how far the rows of an answer are from what was meant, 0..1."""
    return [row["relevance_score"] for row in answer["tools"]]


def judged(query: Query, paths: Sequence[ToolPath], scores: Sequence[float] = ()) -> dict[str, float]:
    """Return the metrics of one answer. A need is met by the first of its tools; each place can meet one need."""
    fits = {"fits": float(any(score < FITS for score in scores))}
    if not query.groups:
        return {"returned": float(bool(paths)), **fits}
    needs = [set(group) for group in query.groups]
    ranks: dict[int, int] = {}
    gain = 0.0
    for rank, path in enumerate(paths[: max(CUTS)], start=1):
        met = next((need for need, paths in enumerate(needs) if need not in ranks and path in paths), None)
        if met is not None:
            ranks[met] = rank
            gain += 1 / math.log2(rank + 1)
    first = min(ranks.values(), default=0)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(needs), max(CUTS)) + 1))
    out = {f"recall@{cut}": sum(rank <= cut for rank in ranks.values()) / len(needs) for cut in CUTS}
    out |= {"hit@1": float(first == 1), "mrr": 1 / first if first else 0.0}
    return out | {"ndcg@10": gain / ideal, "nothing": float(not paths), **fits}


def mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each metric."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def calibration(queries: Sequence[Query], ranks: Sequence[Ranks]) -> str:
    """Return what a cut at the border keeps of the right rows, and takes of the rows to unanswerable queries."""
    right: list[bool] = []
    beside: list[bool] = []
    for query, hits in zip(queries, ranks, strict=True):
        wanted = {path for group in query.groups for path in group}
        for path, score in zip(hits.paths, hits.scores, strict=True):
            if not query.groups:
                beside.append(score >= FITS)
            elif path in wanted:
                right.append(score < FITS)
    kept = f"{100 * sum(right) / len(right):.1f} % of {len(right)} right rows kept" if right else "no right rows"
    gone = (
        f"{100 * sum(beside) / len(beside):.1f} % of {len(beside)} rows to unanswerable queries gone" if beside else ""
    )
    return f"cut at {FITS}: {', '.join(filter(None, (kept, gone)))}"


def report(queries: Sequence[Query], ranks: Sequence[Ranks]) -> None:
    """Print the metrics by kind of query, in per cent, and over all queries that have an answer (micro)."""
    kinds: dict[str, list[dict[str, float]]] = defaultdict(list)
    for query, hits in zip(queries, ranks, strict=True):
        kind = query.kind if query.groups else f"{query.kind} (no answer)"
        kinds[kind].append(judged(query, hits.paths, hits.scores))
    for kind, rows in sorted(kinds.items()):
        print_row(kind, rows)
    every = [row for kind, rows in kinds.items() if kind not in NOT_AVERAGED for row in rows if "mrr" in row]
    if every:
        print_row("micro", every)
    print(calibration(queries, ranks))


def print_row(kind: str, rows: Sequence[dict[str, float]]) -> None:
    """Print the mean of some rows on one line."""
    figures = "  ".join(f"{name} {100 * value:5.1f}" for name, value in mean(rows).items())
    print(f"{kind:28} n={len(rows):<5} {figures}")


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("catalog", type=Path, metavar="CATALOG.jsonl")
    parser.add_argument("queries", type=Path, metavar="QUERIES.jsonl")
    parser.add_argument("--top", type=int, default=10, help="hits per query (default 10)")
    parser.add_argument("--ranks", type=Path, metavar="FILE", help="write the paths found, a query a line")
    parser.add_argument("--phrases", action="store_true", help="find tools also by the sentences of the phrase book")
    meanings.add_options(parser)
    options = parser.parse_args()
    tools = msgspec.json.Decoder(Tool).decode_lines(options.catalog.read_bytes())
    queries = msgspec.json.Decoder(Query).decode_lines(options.queries.read_bytes())
    phrases = read_book().said if options.phrases else no_phrases
    begun = time.perf_counter()
    catalogue = build(tools, phrases=phrases)
    print(f"{len(catalogue.index)} tools indexed in {time.perf_counter() - begun:.2f} s")
    catalogue = replace(catalogue, index=meanings.with_meanings(catalogue.index, options))
    ask = asking(catalogue, options.top)
    ranks: list[Ranks] = []
    search_ms: list[float] = []
    whole_ms: list[float] = []
    for query in queries:
        begun = time.perf_counter()
        answer = ask(query.query)
        encode(answer)
        whole_ms.append((time.perf_counter() - begun) * 1000)
        search_ms.append(answer["search_time_ms"])
        ranks.append(Ranks(query.id, paths_of(answer), scores_of(answer)))
    report(queries, ranks)
    print_latency("search alone", search_ms)
    print_latency("whole answer", whole_ms)
    if options.ranks:
        options.ranks.write_bytes(msgspec.json.Encoder().encode_lines(ranks))


def print_latency(what: str, took_ms: Iterable[float]) -> None:
    """Print the median, the 99th percentile and the maximum of some times."""
    times = sorted(took_ms)
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(f"{what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {times[-1]:.2f} ms")


if __name__ == "__main__":
    main()
