"""What attacks on the ranking achieve: `python -m benchmarks.adversaries [--catalogue CATALOG.jsonl]`.

For each family of attacks the honest tools and the poisoned ones are indexed together, and the queries are asked for
which one honest tool is an exact answer: its name, its path, its name in words, these and its server, a sentence that
only its description has. `--catalogue` has a tool a line, `{server, name, description, input_schema[, title]}`.

A share of a page is how much of the first ten the server holds that holds most of it, among the poisoned ones. The
costs of hostile queries are divided by those of ordinary ones in the same run.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from actors.catalogue.snapshot import Catalogue
from actors.search.index import Index
from actors.search.search import find
from actors.search.text import squash
from benchmarks.honest import honest
from benchmarks.poison import FAMILIES, in_words, poisoned, text_of
from benchmarks.search import Tool, ToolPath, answering, build
from benchmarks.table import percentile

TARGETS = 100
PAGE = 10
_SENTENCE = re.compile(r"[^.!?\n]{20,200}[.!?]?")

HOSTILE: Mapping[str, str] = {
    "empty": "",
    "one character": "a",
    "control characters": "\x00\x1b[31m\x07\u202e\u200b" * 200,
    "one word of 100,000": "a" * 100_000,
    "100,000 accents": "e\u0301" * 50_000,
    "100,000 of punctuation": "!?" * 50_000,
    "half a mail address, often": "a@" * 50_000,
    "quotes": '"' * 100_000,
    "slashes": "/" * 100_000,
    "camels": "aB" * 50_000,
    "ideographs": "\u56fe" * 100_000,
    "ligatures": "\ufdfa" * 10_000,
    "lone surrogates": "\ud800" * 1000,
    "a sentence, often": "create an invoice. " * 5300,
    "unknown words": " ".join(f"qqzv{n}hjk" for n in range(9000)),
    "known verbs": "create list get update delete search export " * 2200,
}


class Query(msgspec.Struct, frozen=True):
    """One question, what kind it is, and the only right answer."""

    kind: str
    text: str
    target: ToolPath


class Outcome(msgspec.Struct, frozen=True):
    """What one family achieves. Counts are of queries; `share` is 0 to 1, the most and the mean of all pages."""

    tools: int
    first: Counter[str]
    in_three: Counter[str]
    asked: Counter[str]
    shares: Sequence[float]

    def per_cent(self, counted: Counter[str], kind: str | None = None) -> float:
        """Return the share of queries, of one kind or all, in per cent."""
        kinds = [kind] if kind is not None else list(self.asked)
        return 100 * sum(counted[k] for k in kinds) / max(1, sum(self.asked[k] for k in kinds))


def targets_of(tools: Sequence[Tool], count: int, seed: int = 1) -> list[Tool]:
    """Return tools that can be asked for without doubt: no other honest one has that name, or that path squashed."""
    names = Counter(squash(tool.name) for tool in tools)
    paths = Counter(squash(tool.server + tool.name) for tool in tools)
    clear = [
        tool
        for tool in tools
        if names[squash(tool.name)] == 1 and paths[squash(tool.server + tool.name)] == 1 and len(squash(tool.name)) > 3
    ]
    return random.Random(seed).sample(clear, min(count, len(clear)))


def queries_for(targets: Sequence[Tool], tools: Sequence[Tool]) -> list[Query]:
    """Return the queries for these targets; a sentence only where there is one that no other tool has."""
    said = Counter(sentence for tool in tools for sentence in set(_sentences(tool)))
    out: list[Query] = []
    for tool in targets:
        path = (tool.server, tool.name)
        spoken = in_words(tool)
        out += [
            Query("name", tool.name, path),
            Query("path", f"{tool.server}:{tool.name}", path),
            Query("words", spoken, path),
            Query("words and server", f"{spoken} {tool.server}", path),
        ]
        own = [sentence for sentence in _sentences(tool) if said[sentence] == 1]
        if own:
            out.append(Query("sentence", max(own, key=len), path))
    return out


def _sentences(tool: Tool) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE.findall(text_of(tool))]


def measured(catalogue: Catalogue, queries: Sequence[Query], bad: frozenset[str], tools: int) -> Outcome:
    """Ask all queries; `bad` are the servers of the poisoned tools."""
    answer = answering(catalogue, PAGE)
    first: Counter[str] = Counter()
    in_three: Counter[str] = Counter()
    shares: list[float] = []
    for query in queries:
        paths = answer(query.text)
        first[query.kind] += query.target in paths[:1]
        in_three[query.kind] += query.target in paths[:3]
        held = Counter(server for server, _ in paths if server in bad)
        shares.append(max(held.values(), default=0) / max(1, len(paths)))
    return Outcome(tools, first, in_three, Counter(query.kind for query in queries), shares)


def outcomes(tools: Sequence[Tool], targets: Sequence[Tool], seed: int = 1) -> Iterable[tuple[str, Outcome]]:
    """Measure without attacks, each family alone, and all of them together."""
    queries = queries_for(targets, tools)
    trusted = build(tools)
    yield "none", measured(trusted, queries, frozenset(), 0)
    every: list[Tool] = []
    for family in FAMILIES:
        made = poisoned(family, targets, seed)
        every += made
        yield family, _against(trusted, made, queries)
    yield "all together", _against(trusted, every, queries)


def _against(trusted: Catalogue, made: Sequence[Tool], queries: Sequence[Query]) -> Outcome:
    made = [tool for tool in made if tool.server not in trusted.entries]  # the operator gives the names of servers
    return measured(build(made, trusted), queries, frozenset(tool.server for tool in made), len(made))


def costs(index: Index, ordinary: Sequence[str], rounds: int = 5) -> tuple[float, float, dict[str, float]]:
    """Return p50 and p99 of ordinary queries, and the least time of each hostile one, all in ms."""
    usual = [_took_ms(index, text) for text in ordinary for _ in range(2)]
    worst = {name: min(_took_ms(index, text) for _ in range(rounds)) for name, text in HOSTILE.items()}
    return percentile(usual, 0.5), percentile(usual, 0.99), worst


def _took_ms(index: Index, text: str) -> float:
    begun = time.perf_counter()
    find(index, text)
    return (time.perf_counter() - begun) * 1000


def print_outcome(family: str, outcome: Outcome) -> None:
    """Print a line of the table: in the first three / first, by kind of query."""
    kinds = "  ".join(
        f"{outcome.per_cent(outcome.in_three, kind):5.1f}/{outcome.per_cent(outcome.first, kind):5.1f}"
        for kind in outcome.asked
    )
    total = f"{outcome.per_cent(outcome.in_three):5.1f}/{outcome.per_cent(outcome.first):5.1f}"
    mean = sum(outcome.shares) / max(1, len(outcome.shares))
    print(f"{family:26} {outcome.tools:5}  {total}  {kinds}  {max(outcome.shares):4.2f}/{mean:4.2f}", flush=True)


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adversaries", description=__doc__)
    parser.add_argument("--catalogue", type=Path, metavar="CATALOG.jsonl", help="honest tools instead of made-up ones")
    parser.add_argument("--targets", type=int, default=TARGETS, help=f"tools asked for (default {TARGETS})")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.catalogue is not None:
        tools = msgspec.json.Decoder(Tool).decode_lines(options.catalogue.read_bytes())
    else:
        tools = honest(options.seed)
    targets = targets_of(tools, options.targets, options.seed)
    queries = queries_for(targets, tools)
    kinds = list(Counter(query.kind for query in queries))
    print(f"{len(tools)} honest tools of {len({tool.server for tool in tools})} servers, {len(queries)} queries;")
    print("per cent in the first three / first, then most / mean share of a page held by one poisoned server")
    print(f"{'family':26} tools  {'all':11}  {'  '.join(f'{kind[:11]:11}' for kind in kinds)}  page")
    for family, outcome in outcomes(tools, targets, options.seed):
        print_outcome(family, outcome)
    p50, p99, worst = costs(build(tools).index, [query.text for query in queries])
    print("\nhostile queries: time as a multiple of the p50 / p99 of the queries above")
    for name, took in sorted(worst.items(), key=lambda pair: -pair[1]):
        print(f"{name:26} {took / p50:7.2f} {took / p99:7.2f}")


if __name__ == "__main__":
    main()
