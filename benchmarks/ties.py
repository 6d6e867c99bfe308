"""What use does to the order of equal tools: `python -m benchmarks.ties CATALOG.jsonl QUERIES.jsonl`.

The files are those of `benchmarks.search`. Every query is asked with `rank_by_use` off, and on after use of six kinds.
One row each: hit@1, recall@5, MRR (per cent, over queries that have an answer), and how many queries got another page.

- `random`: each tool was called up to 50 times, and failed in any share of them;
- `right`: the tools that are right for these queries were called, and succeeded: the most that use can give;
- `one loved`: the wrong tool that is shown most often was called a million times, and always succeeded;
- `one broken`: the right tool that is shown most often always failed;
- `all broken`: all right tools always failed;
- `worst`: for each query all that is wrong was called a million times, and all that is right always failed.

The last line compares the time of a search with the setting off and on, in turns, by somebody who has used every tool.
With `--twice` each server is there twice, as EAST and as WEST: the right tools are those of WEST alone.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue
from actors.principal import LOCAL
from benchmarks.search import NOT_AVERAGED, Query, Tool, ToolPath, asking, build, judged, mean, paths_of
from benchmarks.table import percentile
from supervisor.store import ToolUsage
from supervisor.usage.merits import preference

LOVED = 1_000_000
SOME = 3
MOST = 50
Used = dict[ToolPath, ToolUsage]
Pages = list[list[ToolPath]]


def calls(paths: Iterable[ToolPath], count: int, failures: int = 0) -> Used:
    """Return so many calls of each of these tools."""
    return {
        (server, tool): ToolUsage(
            principal=LOCAL, server=server, tool=tool, calls=count, failures=failures, total_ms=float(count)
        )
        for server, tool in paths
    }


def at_random(paths: Iterable[ToolPath], seed: int = 1) -> Used:
    """Return calls of each of these tools that say nothing about it."""
    chance, out = random.Random(seed), Used()
    for path in paths:
        count = chance.randint(0, MOST)
        out |= calls([path], count, chance.randint(0, count))
    return out


def right(query: Query) -> set[ToolPath]:
    """Return the tools that would do for a query."""
    return {path for group in query.groups for path in group}


def pages_of(seen: Catalogue, queries: Sequence[Query], use: Callable[[Query], Used], top: int = 10) -> Pages:
    """Return the page that each query gets after this use."""
    return [paths_of(asking(seen, top, prefer=preference(seen, use(query)))(query.query)) for query in queries]


def uses(paths: Sequence[ToolPath], queries: Sequence[Query], plain: Pages) -> dict[str, Callable[[Query], Used]]:
    """Return the kinds of use; `plain` are the pages without any."""
    wrong: Counter[ToolPath] = Counter()
    met: Counter[ToolPath] = Counter()
    for query, page in zip(queries, plain, strict=True):
        for path in page:
            (met if path in right(query) else wrong)[path] += 1
    every = set().union(*map(right, queries))
    loved, broken = ([path for path, _ in shown.most_common(1)] for shown in (wrong, met))
    failed = calls(every, LOVED, LOVED)
    fixed = {
        "random": at_random(paths),
        "right": calls(every, SOME),
        "one loved": calls(loved, LOVED),
        "one broken": calls(broken, LOVED, LOVED),
        "all broken": failed,
    }
    everything = calls(paths, LOVED)
    worst = {"worst": lambda query: everything | calls(right(query), LOVED, LOVED)}
    return {name: (lambda query, used=used: used) for name, used in fixed.items()} | worst


def twice(tools: Sequence[Tool], queries: Sequence[Query]) -> tuple[list[Tool], list[Query]]:
    """Return the tools with each server there twice, and the queries for the second one of each."""
    both = [replace(tool, server=f"{tool.server}-{which}") for which in ("east", "west") for tool in tools]
    asked = [
        replace(query, groups=[[(f"{server}-west", tool) for server, tool in group] for group in query.groups])
        for query in queries
    ]
    return both, asked


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ties", description=__doc__)
    parser.add_argument("catalog", type=Path, metavar="CATALOG.jsonl")
    parser.add_argument("queries", type=Path, metavar="QUERIES.jsonl")
    parser.add_argument("--twice", action="store_true", help="each server is there twice")
    options = parser.parse_args()
    tools: Sequence[Tool] = msgspec.json.Decoder(Tool).decode_lines(options.catalog.read_bytes())
    queries: Sequence[Query] = msgspec.json.Decoder(Query).decode_lines(options.queries.read_bytes())
    queries = [query for query in queries if query.groups and query.kind not in NOT_AVERAGED]
    if options.twice:
        tools, queries = twice(tools, queries)
    seen = build(tools)
    plain = pages_of(seen, queries, lambda query: {})
    paths = [(document.server, document.name) for document in seen.index.documents]
    print_row("off", queries, plain, plain)
    for name, use in uses(paths, queries, plain).items():
        print_row(name, queries, pages_of(seen, queries, use), plain)
    off, on = (percentile(times, 0.5) for times in took_ms(seen, queries, at_random(paths)))
    print(f"search: p50 {off:.2f} ms off, {on:.2f} ms on, ratio {on / off:.2f}")


def took_ms(seen: Catalogue, queries: Sequence[Query], used: Used, top: int = 10) -> tuple[list[float], list[float]]:
    """Return the times of searches without and with this use, in turns; a query that was just read is read faster."""
    ways = [asking(seen, top, prefer=prefer) for prefer in (None, preference(seen, used))]
    times: tuple[list[float], list[float]] = [], []
    for query in queries:
        ways[0](query.query)
        for ask, taken in zip(ways, times, strict=True):
            taken.append(ask(query.query)["search_time_ms"])
    return times


def print_row(name: str, queries: Sequence[Query], pages: Pages, plain: Pages) -> None:
    """Print the metrics of some pages, and how many of them are not as without use."""
    figures = mean([judged(query, page) for query, page in zip(queries, pages, strict=True)])
    told = "  ".join(f"{metric} {100 * figures[metric]:5.1f}" for metric in ("hit@1", "recall@5", "mrr"))
    moved = sum(page != before for page, before in zip(pages, plain, strict=True))
    print(f"{name:11} n={len(pages)}  {told}  other pages {moved}")


if __name__ == "__main__":
    main()
