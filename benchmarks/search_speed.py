"""How fast the search is, and what it costs: `python -m benchmarks.search_speed [--python PYTHON] [--rerank neural]`.

Over 100, 1,000 and 10,000 made-up tools: the time of a query, and of the same query with rapidfuzz's `token_set_ratio`
over all tools and with bm25s, in the same run. bm25s is taken from `--python`, a Python that has it, or installed once
into the cache directory; what cannot be had is skipped. Then the index: time, replacing one server, memory, the worst
hostile query; and how long the loop stands still (see `stall`). With `--rerank neural`: what meanings cost, instead.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace
from rapidfuzz import fuzz, process

from actors.catalogue import lists
from actors.catalogue.documents import parameters_of
from actors.search.document import Document
from actors.search.index import Index
from actors.search.search import find
from actors.search.segment import analyse
from actors.search.text import stem, words
from benchmarks import meaning_speed, meanings, peers, stall
from benchmarks.adversaries import HOSTILE
from benchmarks.honest import honest
from benchmarks.machine import taken_bytes
from benchmarks.search import Query, Tool, definition
from benchmarks.table import Aim, Row, markdown, percentile
from supervisor.phrases.phrase_book import FOLDER, Page

SIZES = (100, 1000, 10_000)
QUERIES = 300
LIMIT = 10
PEER_S = 600.0
SCRIPT = Path(__file__).with_name("bm25_peer.py")
AIMS_MS = {1000: (0.8, 3.0), 10_000: (1.0, 5.0)}
"""Size -> what p50 and p99 may be, in ms."""
Documents = dict[str, list[Document]]
"""By server."""
PER_SERVER = 50
SENTENCES = 6
ASKED = Path(__file__).with_name("said_queries.jsonl")


class Peer(msgspec.Struct, frozen=True):
    """What the script of bm25s answers."""

    index_s: float
    query_ms: list[float]


def made(size: int) -> Documents:
    """Return so many made-up documents."""
    return documents_of(honest(tools=size))


def documents_of(tools: Sequence[Tool]) -> Documents:
    """Return the tools as documents of servers with fifty each."""
    out: Documents = {}
    for number, tool in enumerate(tools):
        server = f"server{number // PER_SERVER}"
        document = Document(
            key=f"{server}:{tool.name}",
            kind="tool",
            server=server,
            name=tool.name,
            described=tool.description or "",
            parameters=parameters_of(lists.tool(msgspec.Raw(msgspec.json.encode(definition(tool))))),
        )
        out.setdefault(server, []).append(document)
    return out


def built(documents: Documents) -> Index:
    """Return the index of all servers."""
    return Index.empty().rebuild(analyse(server, texts) for server, texts in documents.items())


def queries_over(tools: Sequence[Tool], count: int = QUERIES, seed: int = 1) -> list[str]:
    """Return questions as they are asked: names, sentences, long ones, misspelt ones, in equal parts."""
    chance = random.Random(seed)
    out: list[str] = []
    for number, tool in enumerate(chance.choices(tools, k=count)):
        said = " ".join(words(tool.name))
        broken = said.replace("e", "", 1) + "x"
        long = f"Hi, I have been at this all morning. Could you please {said} for me? Use {tool.server}. Thanks a lot!"
        out.append((tool.name, f"I need to {said} in {tool.server}", long, broken)[number % 4])
    return out


def took_ms(index: Index, queries: Sequence[str]) -> list[float]:
    """Return the time of each query, after a first round that is not counted."""
    for query in queries[:20]:
        find(index, query, limit=LIMIT)
    times: list[float] = []
    for query in queries:
        begun = time.perf_counter()
        find(index, query, limit=LIMIT)
        times.append((time.perf_counter() - begun) * 1000)
    return times


def fuzzy_ms(texts: Sequence[str], queries: Sequence[str]) -> list[float]:
    """Return the time of each query with rapidfuzz over all texts."""
    times: list[float] = []
    for query in queries:
        begun = time.perf_counter()
        process.extract(query, texts, scorer=fuzz.token_set_ratio, limit=LIMIT)
        times.append((time.perf_counter() - begun) * 1000)
    return times


def peer_of(python: Path | None, texts: Sequence[str], queries: Sequence[str]) -> Peer | None:
    """Return what bm25s needs, in its own Python; None if it cannot be had."""
    if python is None or not peers.has(python, "bm25s"):
        return None
    asked = msgspec.json.encode({"texts": texts, "queries": queries, "limit": LIMIT})
    ran = subprocess.run([python, SCRIPT], input=asked, capture_output=True, timeout=PEER_S, check=True)
    return msgspec.json.decode(ran.stdout, type=Peer)


def compared_at(size: int, python: Path | None) -> list[Row]:
    """Return the rows of queries over so many tools."""
    tools = honest(tools=size)
    texts = [f"{tool.name} {tool.description}" for tool in tools]
    queries = queries_over(tools)
    ours = took_ms(built(documents_of(tools)), queries)
    rows = [_row(size, part, ours, AIMS_MS.get(size)) for part in (0.5, 0.99)]
    few = queries if size < SIZES[-1] else queries[:60]
    rows.append(_against("token_set_ratio of rapidfuzz", size, ours[: len(few)], fuzzy_ms(texts, few)))
    peer = peer_of(python, texts, queries)
    if peer is None:
        return [*rows, Row(what=f"query over {size:,}, p50", measured="", compared="bm25s", ratio="skipped")]
    return [*rows, _against("bm25s", size, ours, peer.query_ms)]


def _row(size: int, part: float, times: Sequence[float], aims: tuple[float, float] | None) -> Row:
    value = percentile(times, part)
    aim = Aim("<=", aims[0 if part == 0.5 else 1]) if aims is not None else None
    return Row(what=f"query over {size:,}, p{part * 100:g}", measured=f"{value:.2f} ms", aim=aim, value=value)


def _against(name: str, size: int, ours: Sequence[float], theirs: Sequence[float]) -> Row:
    mine, other = percentile(ours, 0.5), percentile(theirs, 0.5)
    return Row(
        what=f"query over {size:,}, p50",
        measured=f"{mine:.2f} ms",
        compared=f"{name}: {other:.2f} ms",
        ratio=f"{mine / other:.2f}",
    )


def index_rows(size: int = SIZES[-1]) -> list[Row]:
    """Return the rows of the index itself."""
    documents = made(size)
    begun = time.perf_counter()
    index = built(documents)
    index_s = time.perf_counter() - begun
    again: list[float] = []
    for server in list(documents)[:20]:
        begun = time.perf_counter()
        index = index.replace(analyse(server, documents[server][::-1]))
        again.append((time.perf_counter() - begun) * 1000)
    usual = percentile(took_ms(index, queries_over(honest(tools=size))), 0.99)
    worst = {name: min(took_ms(index, [text] * 3)) for name, text in HOSTILE.items()}
    name = max(worst, key=worst.__getitem__)
    replaced = percentile(again, 0.5)
    kilobytes = memory_bytes(partial(made, size)) / size / 1000
    return [
        _figure(f"index of {size:,}", f"{index_s:.2f} s", 2.5, index_s),
        _figure("one server of 50 replaced", f"{replaced:.1f} ms", 50, replaced),
        _figure("memory per tool, documents included", f"{kilobytes:.1f} kB", 8, kilobytes),
        Row(
            what=f"worst hostile query ({name})",
            measured=f"{worst[name]:.1f} ms",
            compared=f"p99 of ordinary ones: {usual:.1f} ms",
            ratio=f"{worst[name] / usual:.2f}",
            aim=Aim("<=", 100),
            value=worst[name],
        ),
    ]


def _figure(what: str, measured: str, aim: float, value: float) -> Row:
    return Row(what=what, measured=measured, aim=Aim("<=", aim), value=value)


def memory_bytes(make: Callable[[], Documents]) -> int:
    """Return what documents take with their index."""

    def kept() -> Index:
        index = built(make())
        stem.cache_clear()
        return index

    stem.cache_clear()
    return taken_bytes(kept)


def said_rows(size: int = SIZES[-1]) -> list[Row]:
    """Return the rows of an index whose tools have sentences, beside the same one without."""
    sentences = sorted(read_sentences())
    queries = [query.query for query in msgspec.json.Decoder(Query).decode_lines(ASKED.read_bytes())]
    without, having = built(made(size)), built(told(size, sentences))
    times: tuple[list[float], list[float]] = [], []
    for _ in range(3):  # in turns
        times[0].extend(took_ms(without, queries))
        times[1].extend(took_ms(having, queries))
    rows = [
        Row(
            what=f"query over {size:,} with sentences, p{part * 100:g}",
            measured=f"{(value := percentile(times[1], part)):.2f} ms",
            compared=f"without: {(other := percentile(times[0], part)):.2f} ms",
            ratio=f"{value / other:.2f}",
            aim=Aim("<=", bound),
            value=value,
        )
        for part, bound in ((0.5, 1.5), (0.99, 5.0))
    ]
    makes = partial(told, size, sentences), partial(made, size)
    taken, before = (memory_bytes(make) / size / 1000 for make in makes)
    return [
        *rows,
        Row(
            what="memory per tool with sentences",
            measured=f"{taken:.1f} kB",
            compared=f"without: {before:.1f} kB",
            ratio=f"{taken / before:.2f}",
        ),
    ]


def told(size: int, sentences: Sequence[str]) -> Documents:
    """Return made-up documents with some of these sentences each, the same ones each time."""
    chance = random.Random(3)
    return {
        server: [replace(each, said=tuple(chance.choices(sentences, k=SENTENCES))) for each in documents]
        for server, documents in made(size).items()
    }


def read_sentences() -> set[str]:
    """Return all sentences of the phrase book."""
    pages = (msgspec.json.decode(path.read_bytes(), type=Page) for path in FOLDER.glob("*.json"))
    return {sentence for page in pages for tool in page.tools for sentence in tool.said}


def stall_rows(size: int = SIZES[-1]) -> list[Row]:
    """Return the rows of the loop's pauses; the first phase is the machine's own."""
    rows: list[Row] = []
    for phase, late_ms in stall.run(size).items():
        greatest, usual = max(late_ms), percentile(late_ms, 0.99)
        text = f"{greatest:.1f} ms (p99 {usual:.1f})"
        aim = None if phase == "idle" else Aim("<=", 20)
        rows.append(Row(what=f"longest pause of the loop: {phase}", measured=text, aim=aim, value=greatest))
    return rows


def main() -> None:
    """Read the arguments, measure, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_speed", description=__doc__)
    parser.add_argument("--python", type=Path, help="a Python that has bm25s")
    parser.add_argument("--alone", action="store_true", help="install nothing: skip bm25s unless --python is given")
    meanings.add_options(parser)
    options = parser.parse_args()
    if options.rerank == "neural":
        tools = honest(tools=SIZES[-1])
        options.vectors.mkdir(parents=True, exist_ok=True)
        print(markdown(meaning_speed.rows(built(documents_of(tools)), queries_over(tools), options.vectors)))
        return
    python = options.python or (None if options.alone else peers.prepared(None, ("bm25s",), "bm25s"))
    rows: list[Row] = []
    for size in SIZES:
        print(f"measuring {size} tools ...", file=sys.stderr, flush=True)
        rows += compared_at(size, python)
    print("measuring the index and the loop ...", file=sys.stderr, flush=True)
    print(markdown([*rows, *index_rows(), *said_rows(), *stall_rows()]))


if __name__ == "__main__":
    main()
