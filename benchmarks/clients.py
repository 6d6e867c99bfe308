"""`python -m benchmarks.clients`: what two published clients make of each door, Claude Code and Codex.

They are installed by npm, or taken from `--clients DIR`; one that cannot be had is left out, and said. Their model is
`benchmarks.played_model`: it asks for a search where a client holds tools back, for a discovery at `/mcp`, and then for
three reads in one turn. So it is known what a client sends its model, and what it does with the calls; not what a model
would do. Behind the daemon are the servers of `mcpvisor demo` and `benchmarks/slow_server.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Final

import msgspec

from benchmarks import slow_server
from benchmarks.client import Client
from benchmarks.machine import ROOT
from benchmarks.peers import cache_python, node_program
from benchmarks.played_model import SEARCH, Asked, Body, Call, Model, played
from benchmarks.running import Place, daemon, entry, until_ready
from supervisor.demo.setting import configuration
from supervisor.metatools.definitions import DISCOVER, EXECUTE
from supervisor.tokens.counting import Tiktoken, load_encoding

OURS: Final = "mcpvisor"
"""The name of our entry in a client's configuration."""
READS: Final = "execute_read_only_mcp_tool"
BY_EFFECT: Final = "/mcp?execute=by-effect"
NEED: Final = "look up an entry of the archive"
ARCHIVE: Final = "archive"
LOOK_UP: Final = slow_server.LOOK_UP
GETS: Final = {"text": slow_server.TEXT, "structure": slow_server.STRUCTURED}
TIMEOUT_S: Final = 120.0
REVISION: Final = re.compile(r'operation_duration_seconds_count\{[^}]*mcp_protocol_version="([\d-]+)"[^}]*\} ([\d.]+)')


class Door(msgspec.Struct, frozen=True):
    """Addresses by entry. `reader`: entry and tool that the reads go by; `finds`: the model discovers first."""

    title: str
    entries: Mapping[str, str]
    reader: tuple[str, str]
    arguments: Body
    finds: bool = False
    hints: bool = True


class Seen(msgspec.Struct, kw_only=True):
    """What is found of a client at a door. Tokens are those over what the client sends without any server.

    `turns` of the model until it has asked for the reads; `reads_s` and `read_s` are of three in one turn, and of one.
    """

    shown: int
    held_back: bool
    first_tokens: int
    last_tokens: int
    turns: int
    reads_s: float
    read_s: float
    rules: str
    gets: str
    revision: str


class Application(ABC):
    """A published client, and how it is run with a model of ours."""

    title: ClassVar[str]
    package: ClassVar[str]
    program: ClassVar[str]

    def __init__(self, command: Path, home: Path) -> None:
        self.command = command
        self.home = home
        home.mkdir()

    def run(self, model: Model, entries: Mapping[str, str], allowed: Sequence[tuple[str, str]]) -> list[Asked]:
        """Run it once, with addresses by entry and rules for tools by entry; return what it asked the model.

        Raises `RuntimeError` with what it said if it asked nothing.
        """
        model.asked.clear()
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **self.environment(model)}
        command = [str(self.command), *self.options(model, entries, allowed)]
        done = subprocess.run(
            command,
            capture_output=True,
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
        if not model.asked:
            raise RuntimeError(f"{self.title} asked its model nothing: {(done.stderr or done.stdout)[-1000:]!r}")
        return list(model.asked)

    def version(self) -> str:
        said = subprocess.run([self.command, "--version"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"\d+(\.\d+)+", said)
        return f"{self.title} {found[0] if found else said.strip()}"

    @abstractmethod
    def environment(self, model: Model) -> dict[str, str]: ...

    @abstractmethod
    def options(
        self, model: Model, entries: Mapping[str, str], allowed: Sequence[tuple[str, str]]
    ) -> Iterator[str]: ...

    @abstractmethod
    def call(self, tool: tuple[str, str], arguments: Body) -> Call:
        """Return the call of a tool of an entry."""

    @abstractmethod
    def search(self, tools: Sequence[tuple[str, str]]) -> Call:
        """Return the call that has tools shown which are held back."""

    @abstractmethod
    def results(self, body: Body) -> list[str]:
        """Return what a request has of the results of tools, as JSON."""

    @abstractmethod
    def said(self, body: Body) -> Any:
        """Return what of a request a model reads."""


class ClaudeCode(Application):
    """As with the API of its maker: with another one it would not hold back tools unless it is told to."""

    title, package, program = "Claude Code", "@anthropic-ai/claude-code", "claude"

    def environment(self, model: Model) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "true",
        }

    def options(self, model: Model, entries: Mapping[str, str], allowed: Sequence[tuple[str, str]]) -> Iterator[str]:
        servers = {name: {"type": "http", "url": url} for name, url in entries.items()}
        yield from ("-p", "hello", "--strict-mcp-config", "--mcp-config", json.dumps({"mcpServers": servers}))
        if allowed:
            yield from ("--allowedTools", ",".join(self._name(*tool) for tool in allowed))

    def call(self, tool: tuple[str, str], arguments: Body) -> Call:
        return Call(self._name(*tool), arguments)

    def search(self, tools: Sequence[tuple[str, str]]) -> Call:
        return Call("ToolSearch", {"query": f"select:{','.join(self._name(*tool) for tool in tools)}"})

    def results(self, body: Body) -> list[str]:
        blocks = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
        return [json.dumps(block) for block in blocks if block.get("type") == "tool_result"]

    def said(self, body: Body) -> Any:
        return [body["system"], body["tools"], body["messages"]]

    def _name(self, name: str, tool: str) -> str:
        return f"mcp__{name}__{tool}"


class Codex(Application):
    """Without a user, as its command `exec` runs it."""

    title, package, program = "Codex", "@openai/codex", "codex"

    def environment(self, model: Model) -> dict[str, str]:
        del model
        return {"KEY": "none"}

    def options(self, model: Model, entries: Mapping[str, str], allowed: Sequence[tuple[str, str]]) -> Iterator[str]:
        url = f"http://127.0.0.1:{model.port}/v1"
        provider = f'{{name="played",base_url="{url}",wire_api="responses",env_key="KEY"}}'
        yield from ("exec", "--skip-git-repo-check", "-m", "gpt-5.5")
        yield from ("-c", 'model_provider="played"', "-c", f"model_providers.played={provider}")
        for name, address in entries.items():
            yield from ("-c", f'mcp_servers.{name}.url="{address}"')
        for name, tool in allowed:
            yield from ("-c", f'mcp_servers.{name}.tools.{tool}.approval_mode="approve"')
        yield "hello"

    def call(self, tool: tuple[str, str], arguments: Body) -> Call:
        return Call(tool[1], arguments, f"mcp__{tool[0]}")

    def search(self, tools: Sequence[tuple[str, str]]) -> Call:
        return Call(SEARCH, {"query": " ".join(tool for _, tool in tools)})

    def results(self, body: Body) -> list[str]:
        return [json.dumps(item) for item in body["input"] if item.get("type") == "function_call_output"]

    def said(self, body: Body) -> Any:
        return [body.get("instructions"), body["tools"], body["input"]]


APPLICATIONS: Final[tuple[type[Application], ...]] = (ClaudeCode, Codex)


def main() -> int:
    """Run what can be had, and print a table for each. Return 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients", description=__doc__)
    parser.add_argument("--clients", type=Path, help="a directory of npm where they are, or get installed")
    parser.add_argument("--rounds", type=int, default=5, help="so often the reads are timed")
    arguments = parser.parse_args()
    root = arguments.clients or cache_python().parent.parent / "npm"
    with tempfile.TemporaryDirectory(prefix="clients-") as directory:
        for application in APPLICATIONS:
            command = node_program(application.package, application.program, root)
            if command is None:
                print(f"{application.title} is left out: npm cannot install {application.package}\n")
                continue
            place = Path(directory) / application.program
            print(report(*measured(application(command, place), Path(directory), arguments.rounds)), flush=True)
    return 0


def measured(application: Application, directory: Path, rounds: int) -> tuple[str, dict[str, Seen]]:
    """Return a client's name and version with the tools there are, and what is seen of it by door."""
    seen: dict[str, Seen] = {}
    there: list[Body] = []
    for hints in (False, True):
        place = Place(directory / f"{application.program}-{hints}")
        place.directory.mkdir()
        slow = entry((sys.executable, str(ROOT / "benchmarks" / "slow_server.py")))
        servers = {**configuration()["mcpServers"], ARCHIVE: slow}
        with daemon(place, servers, client_hints=hints) as running:
            until_ready(running.port)
            for door in doors(running.port, sorted(servers)):
                if door.hints == hints:
                    print(f"{application.title} at {door.title} ...", file=sys.stderr, flush=True)
                    seen[door.title] = at(application, door, running.port, rounds)
            there = listed(running.port, "/mcp/all")
    return f"{application.version()}, {len(servers)} servers, {len(there)} tools, {len(reading(there))} only read", seen


def doors(port: int, servers: Sequence[str]) -> Iterator[Door]:
    """Return the doors to measure: the one of five tools only if the daemon has it."""
    address = f"http://127.0.0.1:{port}"
    inner = {"tool_path": f"{ARCHIVE}:{LOOK_UP}", "arguments": {"number": 1}}
    yield Door("`/mcp`, without hints", {OURS: f"{address}/mcp"}, (OURS, EXECUTE), inner, finds=True, hints=False)
    yield Door("`/mcp`", {OURS: f"{address}/mcp"}, (OURS, EXECUTE), inner, finds=True)
    if READS in {tool["name"] for tool in listed(port, BY_EFFECT)}:
        yield Door(f"`{BY_EFFECT}`", {OURS: f"{address}{BY_EFFECT}"}, (OURS, READS), inner, finds=True)
    own = {"number": 1}
    yield Door("`/mcp/all`", {OURS: f"{address}/mcp/all"}, (OURS, f"{ARCHIVE}__{LOOK_UP}"), own)
    each = {name: f"{address}/mcp/servers/{name}" for name in servers}
    yield Door("an entry for each server", each, (ARCHIVE, LOOK_UP), own)


def listed(port: int, path: str) -> list[Body]:
    """Return the tools at a door; none if there is no such door."""
    found: list[Body] = []
    cursor: dict[str, str] = {}
    try:
        with Client(port, path=path) as client:
            while True:
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": cursor}
                result = msgspec.json.decode(client.post(message, client.headers)[1])["result"]
                found += result["tools"]
                if "nextCursor" not in result:
                    return found
                cursor = {"cursor": result["nextCursor"]}
    except (RuntimeError, KeyError):
        return []


def at(application: Application, door: Door, port: int, rounds: int) -> Seen:
    """Run a client at a door: without a server, without a script, with the script and its rules, without rules.

    The time of the reads is the median of `rounds`.
    """
    wanted = [(OURS, DISCOVER), door.reader] if door.finds else [door.reader]
    before = revisions(port)
    with played(()) as model:
        none = application.run(model, {}, ())[0].body
        first = application.run(model, door.entries, ())[0].body
        shown = [name for name in names_of(first["tools"]) if any(f"mcp__{each}" in name for each in door.entries)]
        held_back = not all(application.call(tool, {}).name in shown for tool in wanted)
        model.turns = turns = script(application, door, wanted if held_back else ())
        runs = [application.run(model, door.entries, wanted) for _ in range(rounds)]
        unasked = application.run(model, door.entries, ())[-1].body
    many = len(turns) - 2
    after = runs[0][many + 1].body
    got = application.results(after)
    if reads_in(got) != 3:
        raise RuntimeError(f"{application.title} made {reads_in(got)} of three reads at {door.title}: {got}")
    count = Tiktoken(load_encoding()).count
    tokens = [count(json.dumps(application.said(body))) for body in (none, first, after)]
    spoken = revisions(port)
    return Seen(
        shown=len(shown),
        held_back=held_back,
        first_tokens=tokens[1] - tokens[0],
        last_tokens=tokens[2] - tokens[0],
        turns=many + 1,
        reads_s=median(taken_s(asked, many) for asked in runs),
        read_s=median(taken_s(asked, many + 1) for asked in runs),
        rules=rules(door, port, application.results(unasked)),
        gets=" and ".join(what for what, sign in GETS.items() if sign in got[-1]),
        revision=", ".join(sorted(each for each, times in spoken.items() if times > before.get(each, 0))),
    )


def script(application: Application, door: Door, hidden: Sequence[tuple[str, str]]) -> list[list[Call]]:
    """Return the turns of a model that does not know the tool that it needs: last three reads in one, then one more."""
    search = [[application.search(hidden)]] if hidden else []
    find = [[application.call((OURS, DISCOVER), {"query": NEED})]] if door.finds else []
    read = application.call(door.reader, door.arguments)
    return [*search, *find, [read] * 3, [read]]


def taken_s(asked: Sequence[Asked], turn: int) -> float:
    """Return how long the calls of a turn took: until the model was asked again."""
    return asked[turn + 1].came_s - asked[turn].answered_s


def names_of(tools: Sequence[Body]) -> list[str]:
    """Return the tools of a request, those of a namespace with its name in front."""
    names = [tool.get("name") or "" for tool in tools if "tools" not in tool]
    spaces = [(tool["name"], inner["name"]) for tool in tools for inner in tool.get("tools", ())]
    return [*names, *(f"{space}__{name}" for space, name in spaces)]


def reads_in(results: Sequence[str]) -> int:
    return sum(any(sign in result for sign in GETS.values()) for result in results)


def rules(door: Door, port: int, results: Sequence[str]) -> str:
    """Return how many rules a user writes so that all reads run unasked, by what ran without any.

    `results`: those of a run without rules.
    """
    ran = reads_in(results) > 0
    if door.finds:
        found = any("tool_path" in result for result in results)
        if door.reader[1] == READS:
            return str(2 - found - ran)
        return "0" if ran else f"{2 - found}; changes run unasked, too"
    return "0" if ran else str(len(reading(listed(port, "/mcp/all"))))


def reading(tools: Sequence[Body]) -> list[Body]:
    """Return the tools that only read by their servers' word, which both clients go by."""
    return [tool for tool in tools if tool.get("annotations", {}).get("readOnlyHint")]


def revisions(port: int) -> dict[str, float]:
    """Return how many requests of each revision there were."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        counts: dict[str, float] = {}
        for revision, times in REVISION.findall(answer.read().decode()):
            counts[revision] = counts.get(revision, 0) + float(times)
    return counts


def report(title: str, seen: Mapping[str, Seen]) -> str:
    """Return what a client makes of each door as a list of Markdown."""
    lines = [f"{title}\n"]
    for door, each in seen.items():
        held = "yes" if each.held_back else "no"
        lines += [
            f"- {door}",
            f"  - shown {each.shown}; held back: {held}; gets {each.gets}; revision {each.revision}",
            f"  - tokens {each.first_tokens:,}; turns {each.turns}; tokens then {each.last_tokens:,}",
            f"  - three reads {each.reads_s:.1f} s, one {each.read_s:.1f} s; rules {each.rules}",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
