"""How sure a hit is, fitted to judged queries: `python -m benchmarks.fit_scores CATALOG QUERIES [CATALOG QUERIES ...]`.

The files are those of `benchmarks.search`. Give queries that had no part in making rules, synonyms or weights: else the
curve is too sure. A query counts as served if a tool that would do is among the first five; as not served if it has no
such tool, or if all servers that have one are taken away (of these a third, and with little weight: what is left may
do, too). Kinds of queries count alike, however many queries they have; to refuse what is served counts `WRONG_REFUSAL`
times as much as to offer what does not serve.

Printed are the shares of served queries refused and of unserved ones recognised - each judged by a curve that was
fitted without the queries of its server (or, where it has none, without a fifth of them) - the share of first hits that
are right by distance, and the weights for `actors/search/certainty.py`, which were fitted to all.
`--rerank neural` fits the curve for the case that meanings are compared, too; `--phrases` fits it to tools with the
sentences of the phrase book beside the same ones without.
"""

from __future__ import annotations

import argparse
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from actors.catalogue.documents import no_phrases
from actors.search.certainty import MEANINGS, NO_NEARNESS, WORDS, Nearness
from actors.search.index import Index
from actors.search.scoring import score
from actors.search.search import query_vector
from benchmarks import meanings
from benchmarks.search import Query, Tool, build
from supervisor.metatools.servers import FITS
from supervisor.phrases.phrase_book import read_book

WRONG_REFUSAL = 6.0
"""How many weak offers are as bad as one refusal of what is there."""
TAKEN_AWAY = 0.2
"""The weight of the queries whose servers were taken away, among all that nothing serves."""
_NAMED = "exact_name qualified_name typo_rawname case_variant server abbreviation morphology partial_name prefix"
NAMED = frozenset(f"{_NAMED} reorder server_words synonym typo1 typo2 unicode_noise".split())
"""Kinds that say a tool's name or words of it: nobody doubts these."""
NOISE = frozenset({"garbage", "empty", "huge", "multilingual"})
AWAY = "taken away"
AMONG = 5
FOLDS = 5
ROUNDS = 40
RIDGE = 1e-5
SETTLED = 1e-3

Matrix = npt.NDArray[np.float64]


class Case(msgspec.Struct, frozen=True):
    """One query: `readings` has a row of evidence each; `served` says whether something serves it."""

    kind: str
    fold: int
    served: bool
    right: bool
    readings: list[tuple[float, ...]]


def cases(catalog: Path, queries: Path, options: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases of a catalogue and its queries."""
    tools = msgspec.json.Decoder(Tool).decode_lines(catalog.read_bytes())
    asked = msgspec.json.Decoder(Query).decode_lines(queries.read_bytes())
    for phrases, stem in (
        (no_phrases, queries.stem),
        *(((read_book().said, f"{queries.stem} +said"),) if options.phrases else ()),
    ):
        yield from _of_index(meanings.with_meanings(build(tools, phrases=phrases).index, options), asked, stem)


def _of_index(index: Index, asked: Sequence[Query], stem: str) -> Iterator[Case]:
    without: dict[frozenset[str], Index] = {}
    for number, query in enumerate(asked):
        if query.kind in NAMED | NOISE:
            continue
        yield from _case(index, query, f"{stem} {query.kind}", served=bool(query.groups))
        servers = frozenset(server for group in query.groups for server, _ in group)
        if servers and not number % 3:
            if servers not in without:
                without[servers] = _without(index, servers)
            yield from _case(without[servers], query, AWAY, served=False)


def _without(index: Index, servers: frozenset[str]) -> Index:
    for server in servers:
        index = index.remove(server)
    return index


def _case(index: Index, query: Query, kind: str, *, served: bool) -> Iterator[Case]:
    """Yield the case of a query, or nothing: what is served but not found teaches nothing."""
    scores = score(index, query.query, None)
    if scores is None or not scores.values.any():
        return
    first = [int(number) for number in np.argsort(-scores.values, kind="stable")[:AMONG]]
    found = [(index.documents[number].server, index.documents[number].name) for number in first]
    wanted = {path for group in query.groups for path in group}
    if served and wanted.isdisjoint(found):
        return
    near = _nearness(index, query.query)
    server = query.groups[0][0][0] if query.groups and kind != AWAY else query.query
    fold = zlib.crc32(server.encode()) % FOLDS
    yield Case(kind, fold, served, found[0] in wanted, [evidence.of(first[0], near) for evidence in scores.evidence])


def _nearness(index: Index, query: str) -> Nearness:
    """Return how near the meaning of a query is to others; zeros without meanings."""
    if index.embedder is None:
        return NO_NEARNESS
    asked = query_vector(index, index.embedder, query)
    return Nearness(float(index.meanings.cosines(asked).max()), *(index.world.nearness(asked) or (0.0, 0.0)))


def fitted(given: Sequence[Case], start: Matrix) -> Matrix:
    """Return the weights of the logistic function that tells served queries from others (Newton's method)."""
    weights, cost = start, costs(given)
    served = np.array([case.served for case in given], float)

    def loss(at: Matrix) -> float:
        wrong = np.array([np.dot(surest(case, at), at) for case in given]) * (1 - 2 * served)
        return float(cost @ np.logaddexp(0, wrong)) + RIDGE * float(at @ at) / 2

    for _ in range(ROUNDS):
        rows = np.array([surest(case, weights) for case in given])
        chance = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (cost * (chance - served)) + RIDGE * weights
        bend = (rows * (cost * chance * (1 - chance))[:, None]).T @ rows + RIDGE * np.eye(len(weights))
        step, before = np.linalg.solve(bend, slope), loss(weights)
        while loss(weights - step) > before and np.abs(step).max() > SETTLED:
            step /= 2
        weights = weights - step
        if np.abs(step).max() < SETTLED:
            break
    return weights


def costs(given: Sequence[Case]) -> Matrix:
    """Return how much each case counts: kinds alike; what is served `WRONG_REFUSAL` times as much as the rest."""
    held: dict[tuple[str, bool], int] = defaultdict(int)
    for case in given:
        held[case.kind, case.served] += 1
    kinds = sum(served for _, served in held)
    unserved = sum(number for (kind, served), number in held.items() if not served and kind != AWAY)

    def cost(case: Case) -> float:
        number = held[case.kind, case.served]
        if case.served:
            return WRONG_REFUSAL / kinds / number
        return TAKEN_AWAY / number if case.kind == AWAY else (1 - TAKEN_AWAY) / unserved

    return np.array([cost(case) for case in given])


def surest(case: Case, weights: Matrix) -> tuple[float, ...]:
    """Return the evidence of the reading of a query that is the surest by these weights."""
    return max(case.readings, key=lambda row: float(np.dot(row, weights)))


def chance(case: Case, weights: Matrix) -> float:
    """Return the chance (0..1) that something serves the query."""
    return float(1 / (1 + np.exp(-np.dot(surest(case, weights), weights))))


def report(given: Sequence[Case], chances: Sequence[float]) -> None:
    """Print, by kind, which share of the served is refused, and which share of the others recognised."""
    kinds: dict[tuple[bool, str], list[bool]] = defaultdict(list)
    for case, sure in zip(given, chances, strict=True):
        kinds[not case.served, case.kind].append(1 - sure >= FITS)
    for (unserved, kind), refused in sorted(kinds.items()):
        what = "recognised" if unserved else "wrongly refused"
        print(f"{kind:44} n={len(refused):<5} {what} {100 * sum(refused) / len(refused):5.1f} %")


def table(given: Sequence[Case], chances: Sequence[float]) -> None:
    """Print which share of first hits is right, by their distance."""
    tenths: dict[int, list[bool]] = defaultdict(list)
    for case, sure in zip(given, chances, strict=True):
        if case.served:
            tenths[min(9, int(10 * (1 - sure)))].append(case.right)
    for tenth, right in sorted(tenths.items()):
        share = sum(right) / len(right)
        print(f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}  n={len(right):<5} right {share:4.0%}")


def main() -> None:
    """Read the arguments, fit, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_scores", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="CATALOG QUERIES")
    parser.add_argument("--phrases", action="store_true", help="tools have the sentences of the phrase book")
    meanings.add_options(parser)
    options = parser.parse_args()
    pairs = zip(options.files[::2], options.files[1::2], strict=True)
    given = [case for catalog, queries in pairs for case in cases(catalog, queries, options)]
    start = np.array(WORDS if options.rerank == "off" else MEANINGS)
    print("The curve in use:")
    report(given, [chance(case, start) for case in given])
    parts = [fitted([case for case in given if case.fold != fold], start) for fold in range(FOLDS)]
    held_out = [chance(case, parts[case.fold]) for case in given]
    print("\nFitted, each query by a curve that did not see its server:")
    report(given, held_out)
    table(given, held_out)
    values = zip(WORDS._fields, fitted(given, start), strict=True)
    print(", ".join(f"{name}={value:.2f}" for name, value in values if value))


if __name__ == "__main__":
    main()
