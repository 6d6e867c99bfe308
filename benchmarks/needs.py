"""How often a model gets what it needs: `python -m benchmarks.needs CATALOG.jsonl QUERIES.jsonl [--sample N]`.

The files are those of `benchmarks.search`. A daemon runs in a process of its own, with a server for each of the
catalogue (`strict_server`) that it starts, lists and wakes as it does any. For each query a model that always does the
same (`model`) discovers once, makes arguments from what the rows show, and executes. A need is met if its tool is among
the first five rows and the call is valid by the tool's own schema. A query that no tool answers is right if no row says
that it fits. `--transcript FILE` writes all that the model sent and read. The first query is sent when the daemon has
come to rest: with meanings it makes vectors in the background, and with `--keep DIR` the next run finds them there.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from benchmarks import client as mcp
from benchmarks.machine import ROOT, cpu_s, pause, until
from benchmarks.model import Model, Outcome
from benchmarks.needs_report import report
from benchmarks.running import Place, Running, daemon, entry, until_ready
from benchmarks.search import Query, Tool, definition
from supervisor.config.values import Rerank
from supervisor.tokens.counting import Tiktoken, load_encoding

STRICT_SERVER = ROOT / "benchmarks" / "strict_server.py"
READY_S = 300.0
REST_S = 1800.0
WINDOW_S = 2.0
AT_REST = 0.1
"""The share of a processor that a daemon without work takes at most."""
WORDS_ALONE = "search goes by words alone"


def publish(
    tools: Iterable[Tool], directory: Path, answers: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, Any]:
    """Write the tools of each server to a file; return the servers' entries in the configuration.

    `answers`: by server, what its tools answer.
    """
    by_server: dict[str, dict[str, object]] = defaultdict(dict)
    for tool in tools:
        by_server[tool.server].setdefault(tool.name, definition(tool))
    servers: dict[str, Any] = {}
    for number, (name, listed) in enumerate(by_server.items()):
        path = directory / f"tools-{number}.json"
        path.write_bytes(msgspec.json.encode(list(listed.values())))
        command: tuple[str, ...] = (sys.executable, str(STRICT_SERVER), name, str(path))
        if answers and name in answers:
            told = directory / f"answers-{number}.json"
            told.write_bytes(msgspec.json.encode(answers[name]))
            command = (*command, str(told))
        servers[name] = entry(command)
    return servers


def replay(
    tools: Iterable[Tool], queries: Iterable[Query], directory: Path, *, limit: int, rerank: str
) -> list[Outcome]:
    """Run a daemon in a directory before servers with these tools; return what became of each query.

    Exits if meanings were asked for and cannot be had.
    """
    servers = publish(tools, directory)
    tokenizer = Tiktoken(load_encoding())
    begun, log = time.perf_counter(), directory / "daemon.log"
    log.unlink(missing_ok=True)
    with daemon(Place(directory), servers, rerank=rerank) as running:
        until_at_rest(running)
        check_meanings(log)
        print(f"{len(servers)} servers are ready after {time.perf_counter() - begun:.1f} s")
        with mcp.Client(running.port) as client:
            model = Model(client.answer, tokenizer.count, limit)
            return [model.try_to_meet(query) for query in queries]


def until_at_rest(running: Running) -> None:
    """Wait until all is discovered, and until nothing is made in the background any more."""
    until_ready(running.port, READY_S)
    until(lambda: bool(mcp.page(running.port, "/readyz")["ready"]), "the daemon is ready", READY_S)

    def rests() -> bool:
        before = cpu_s(running.process.pid)
        pause(WINDOW_S)
        return cpu_s(running.process.pid) - before < AT_REST * WINDOW_S

    until(rests, "the daemon has come to rest", REST_S)


def check_meanings(log: Path) -> None:
    """Exit if the daemon's log says that meanings were asked for and cannot be had."""
    lines = log.read_text(encoding="utf-8").splitlines()
    missing = next((line for line in lines if WORDS_ALONE in line), None)
    if missing is not None:
        raise SystemExit(missing)


def sampled(queries: Sequence[Query], count: int | None) -> list[Query]:
    """Return so many queries, always the same ones, in their order; all of them if there are no more."""
    if count is None or count >= len(queries):
        return list(queries)
    return [queries[place] for place in sorted(random.Random(0).sample(range(len(queries)), count))]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.needs", description=__doc__)
    options.add_argument("catalog", type=Path, metavar="CATALOG.jsonl")
    options.add_argument("queries", type=Path, metavar="QUERIES.jsonl")
    options.add_argument("--rerank", choices=get_args(Rerank), default="off", help="the daemon's setting (default off)")
    options.add_argument("--limit", type=int, default=10, help="rows asked for (default 10)")
    options.add_argument("--sample", type=int, metavar="N", help="so many of the queries only")
    options.add_argument("--transcript", type=Path, metavar="FILE", help="write what the model sent and read")
    options.add_argument("--keep", type=Path, metavar="DIR", help="keep the daemon's files there")
    return options


def main() -> None:
    """Read the arguments, replay, print."""
    options = parser().parse_args()
    catalog = options.catalog.read_bytes()
    tools = msgspec.json.Decoder(Tool).decode_lines(catalog)
    queries = sampled(msgspec.json.Decoder(Query).decode_lines(options.queries.read_bytes()), options.sample)
    with tempfile.TemporaryDirectory(prefix="needs-") as temporary:
        directory = Path(temporary)
        if options.keep:  # what a daemon knows of one catalogue is wrong for another
            directory = options.keep.resolve() / hashlib.sha256(catalog).hexdigest()[:16]
            directory.mkdir(parents=True, exist_ok=True)
        outcomes = replay(tools, queries, directory, limit=options.limit, rerank=options.rerank)
    if options.transcript:
        text = "\n\n".join("\n".join(one.log) for one in outcomes)
        options.transcript.write_text(f"{text}\n", encoding="utf-8")
    report(outcomes)


if __name__ == "__main__":
    main()
