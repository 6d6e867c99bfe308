"""`python -m benchmarks.results`: what tools of published servers answer, in tokens, and what a model gets of it.

Servers that need no account are asked what people ask of them, about a clone of this repository: files, its history, a
database and a graph made of it. Each call is made twice: whole, as a program gets it, and within a budget. Tokens are
counted with cl100k, of the texts of a result or of its structured content, whichever is more. The last figure says what
it costs to find one thing in the rest. Needs the package indexes of npm and PyPI, and Node.js; where there is no `uvx`
on the PATH, it is installed beside.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.client import Client, page
from benchmarks.machine import ROOT, free_port, pause, program
from benchmarks.published import uvx_beside
from supervisor.service.fitting.relay import WHOLE
from supervisor.service.results.cutting import META_KEY
from supervisor.tokens.counting import Tiktoken, load_encoding

BUDGET = 5000
START_S = 600.0
STEP_S = 1.0
ROWS = 2000


class Question(msgspec.Struct, frozen=True):
    """A call of a tool, and how one thing of its result is found: by words, or by a path."""

    server: str
    tool: str
    arguments: dict[str, Any]
    part: str = ""


def main() -> int:
    """Ask all that is up, print the list, and say which servers did not come up. Return 0."""
    arguments = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="results-") as directory:
        place = Path(directory)
        repository = place / "repository"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(repository)], check=True)
        port = free_port()
        config = place / "mcp.json"
        config.write_bytes(msgspec.json.encode(configuration(place, repository, port, arguments.budget)))
        path = f"{uvx_beside(place)}{os.environ['PATH']}"
        command = [sys.executable, "-m", "supervisor", "run", "--config", str(config)]
        with program(command, port, place / "daemon.log", env={"PATH": path}):
            up = until_listed(port)
            with Client(port) as client:
                prepare(client, up)
                print(report(client, [each for each in questions(repository) if each.server in up], arguments.budget))
        print(f"\nNot up: {', '.join(sorted(SERVERS - up)) or 'none'}.")
    return 0


SERVERS = frozenset({"filesystem", "git", "sqlite", "memory", "time"})
PAGES = ("reference/configuration", "reference/servers", "reference/errors", "guides/operating", "background/security")
"""Of the documentation, read in one call."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.results", description=__doc__)
    parser.add_argument("--budget", type=int, default=BUDGET, help="tokens that a result may have")
    return parser


def configuration(place: Path, repository: Path, port: int, budget: int) -> dict[str, Any]:
    """Return the configuration of the daemon: servers as their READMEs say."""
    npx = {"command": "npx"}
    uvx = {"command": "uvx"}
    servers: dict[str, Any] = {
        "filesystem": {**npx, "args": ["-y", "@modelcontextprotocol/server-filesystem", str(repository)]},
        "memory": {
            **npx,
            "args": ["-y", "@modelcontextprotocol/server-memory"],
            "env": {"MEMORY_FILE_PATH": str(place / "memory.jsonl")},
        },
        "git": {**uvx, "args": ["mcp-server-git", "--repository", str(repository)]},
        "sqlite": {**uvx, "args": ["mcp-server-sqlite", "--db-path", str(place / "data.sqlite3")]},
        "time": {**uvx, "args": ["mcp-server-time", "--local-timezone", "UTC"]},
    }
    own = {"listen": f"127.0.0.1:{port}", "data_dir": str(place / "data"), "result_token_budget": budget}
    return {"mcpServers": servers, "supervisor": own}


def questions(repository: Path) -> Iterator[Question]:
    """Yield what is asked, the small ones as well: most results are."""
    files, repo = str(repository), {"repo_path": str(repository)}
    yield Question("time", "get_current_time", {"timezone": "Asia/Tokyo"})
    yield Question("filesystem", "list_directory", {"path": f"{files}/docs"})
    yield Question("filesystem", "read_text_file", {"path": f"{files}/LICENSE"})
    design = f"{files}/docs/contributing/architecture.md"
    yield Question("filesystem", "read_text_file", {"path": design}, "search=The catalogue")
    many = [f"{files}/docs/{name}.md" for name in PAGES]
    yield Question("filesystem", "read_multiple_files", {"paths": many}, "search=envFile")
    yield Question("filesystem", "search_files", {"path": files, "pattern": "**/*.py"}, "search=lifecycle")
    yield Question("filesystem", "directory_tree", {"path": f"{files}/supervisor"}, "search=keeper.py")
    yield Question("git", "git_status", repo)
    yield Question("git", "git_log", {**repo, "max_count": 10})
    yield Question("git", "git_log", {**repo, "max_count": 200}, "search=Keep the")
    yield Question("git", "git_show", {**repo, "revision": "HEAD"}, "search=+def ")
    yield Question("git", "git_diff", {**repo, "target": "HEAD~10"}, "search=+def ")
    yield Question("sqlite", "list_tables", {})
    yield Question("sqlite", "read_query", {"query": "SELECT * FROM files"}, "search=lifecycle.py")
    yield Question("memory", "search_nodes", {"query": "module-7"})
    yield Question("memory", "read_graph", {}, "path=$.entities[7]")


def until_listed(port: int) -> frozenset[str]:
    """Wait until every server is listed, or has failed, or the time is over; return those that are up."""
    end = time.monotonic() + START_S
    up: frozenset[str] = frozenset()
    while up != SERVERS and time.monotonic() < end:
        pause(STEP_S)
        rows = page(port, "/api/status")["servers"]
        up = frozenset(row["server"] for row in rows if row.get("tools"))
        if all(row["state"] == "failed" for row in rows if row["server"] not in up):
            break
    return up


def prepare(client: Client, up: frozenset[str]) -> None:
    """Fill the database and the graph with what a user would have there."""
    if "sqlite" in up:
        client.call(("sqlite-create_table", {"query": "CREATE TABLE files (id INTEGER, path TEXT, lines INTEGER)"}))
        paths = [str(file.relative_to(ROOT)) for file in sorted(ROOT.glob("supervisor/**/*.py"))][:ROWS]
        values = ", ".join(f"({number}, '{path}', {number * 7})" for number, path in enumerate(paths))
        client.call(("sqlite-write_query", {"query": f"INSERT INTO files VALUES {values}"}))
    if "memory" in up:
        entities = [
            {"name": f"module-{number}", "entityType": "module", "observations": [f"has {number} functions", "is pure"]}
            for number in range(200)
        ]
        client.call(("memory-create_entities", {"entities": entities}))


def report(client: Client, asked: list[Question], budget: int) -> str:
    """Return the answers as a list of Markdown."""
    count = Tiktoken(load_encoding()).count
    lines = []
    for question in asked:
        name = f"{question.server}-{question.tool}"
        whole = client.call((name, question.arguments), meta={WHOLE: True})
        given = client.call((name, question.arguments))
        size, cost = len(msgspec.json.encode(whole)), tokens(whole, count)
        lines.append(f"- `{question.server}:{question.tool}`{_what(question)}: {cost:,} tokens, {size:,} bytes")
        if (kept := given.get("_meta", {}).get(META_KEY)) is not None:
            more = ""
            if question.part:
                read = client.call(("read_mcp_resource", {"uri": f"{kept['uri']}?{question.part}"}))
                more = f"; {tokens(read, count):,} for `?{question.part}`"
            lines.append(f"  - within a budget of {budget:,}: {tokens(given, count):,} tokens{more}")
    return "\n".join(lines)


def tokens(result: dict[str, Any], count: Callable[[str], int]) -> int:
    """Return the tokens of what a model reads of a result: its texts, or its structured content if that is more."""
    texts = "\n".join(block.get("text", "") for block in result.get("content", ()))
    structured = result.get("structuredContent")
    return max(count(texts), 0 if structured is None else count(msgspec.json.encode(structured).decode()))


def _what(question: Question) -> str:
    """Return the arguments in short and in parentheses, without the directory of this run."""
    named = {name: value for name, value in question.arguments.items() if name != "repo_path"}
    told = [f"{len(value)} files" if isinstance(value, list) else Path(str(value)).name for value in named.values()]
    return f" ({', '.join(told)})" if told else ""


if __name__ == "__main__":
    sys.exit(main())
