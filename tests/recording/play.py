"""Plays a transcript: does what its lines say, and writes what came of each below it.

A line that begins with `> ` is a step, the lines below it that begin with two blanks are what came of it, all others
are for readers. `Stage` has a method for each kind of step.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import sqlite3
import time
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, closing, redirect_stdout
from difflib import unified_diff
from functools import partial
from hashlib import sha256
from io import StringIO
from itertools import groupby, islice
from pathlib import Path
from runpy import run_module
from shutil import copy
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from supervisor.host.version import VERSION
from tests.fakes.otlp_collector import collecting
from tests.recording.masks import layout, masked, readable
from tests.recording.mixture import Mixture
from tests.recording.servers import Servers
from tests.recording.world import Answer, Client, Request, World, command, receive, serving

RECORDED: Final = Path(__file__).with_name("recorded")
STEP: Final = "> "
NOBODY: Final = "nobody"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WS")
HARDENED: Final = {"x-content-type-options": "nosniff", "x-frame-options": "DENY", "referrer-policy": "no-referrer"}
UNSHOWN: Final = frozenset({"date", "content-length", "content-type", "connection", "transfer-encoding"})
UPGRADE: Final = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
ENDLESS: Final = frozenset({"watch", "top"})
"""Commands that somebody ends with Ctrl-C."""
WITHOUT_DAEMON: Final = "http://127.0.0.1:1"
TOOL_CALL: Final = {"content-type": "application/json", "mcp-protocol-version": "2025-11-25"}
SHOWN_LINES: Final = 60
"""Most lines of what is different in one step."""
SHOWN_ROWS: Final = 12
"""Most rows of a table."""
FORGIVEN_S: Final = 12.0
"""After that long two wrong tokens are forgiven."""


class Stage:
    """A daemon, if one runs, and those who use it. `keys` are their tokens by name."""

    def __init__(self, world: World, directory: Path, patch: pytest.MonkeyPatch, whole: AsyncExitStack) -> None:
        self.world = world
        self.directory = directory
        self.port = 0
        self.keys: dict[str, str] = {NOBODY: ""}
        self._patch = patch
        self._data = directory / "data"
        self._servers = Servers()
        self._running = AsyncExitStack()
        self._whole = whole
        whole.push_async_callback(self._end, "")
        self._clients: dict[str, Client] = {}
        self._told: dict[str, bytearray] = {}
        self._logged = 0
        self._requests: list[Request] = []
        self._places = {str(directory): "DIR", VERSION: "VERSION"}
        environ = {"HOME": directory, "MCPVISOR_DATA_DIR": self._data, "PATH": "/usr/bin:/bin", "TZ": "UTC"}
        for name in [*os.environ]:
            patch.delenv(name)
        for name, value in {**environ, "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "120"}.items():
            patch.setenv(name, str(value))
        patch.chdir(directory)
        for path in (*RECORDED.glob("*.json"), *RECORDED.glob("*.env")):
            copy(path, directory)
        time.tzset()

    async def step(self, line: str) -> str:
        """Do what a line says; return what came of it."""
        who, _, rest = line.partition(" ")
        verb, _, more = rest.partition(" ")
        steps: dict[str, Callable[[str], Awaitable[str]]] = {
            "daemon": self._daemon,
            "end": self._end,
            "wait": self._wait,
            "each": self._each,
            "show": self._show,
            "database": self._database,
            "log": self._log,
            "mixture": self._mixture,
            "told": self._heard,
            "schema": self._schema,
            "hook": self._hook,
            "posted": self._posted,
            "collector": self._collector,
            "spans": self._spans,
        }
        if who in steps:
            said = await steps[who](rest)
        elif verb == "runs":
            said = await self._run(who, more)
        elif verb == "calls":
            name, _, arguments = more.partition(" ")
            said = await self._rpc(who, "/mcp", "tools/call", {"name": name, "arguments": json.loads(arguments)})
        elif verb == "asks":
            door, method, params = (*more.split(" ", 2), "{}")[:3]
            said = await self._rpc(who, door, method, json.loads(params))
        elif verb == "hears":
            said = await self._hear(who, more)
        else:
            path, _, body = more.partition(" ")
            said = await self._request(who, verb, path, body)
        return masked(said, self._known())

    def _known(self) -> dict[str, str]:
        """Return what is of this run alone, and what stands for it."""
        tokens = {key: f"<token of {who}>" for who, key in self.keys.items() if key}
        return {**self._places, **tokens}

    # The daemon -------------------------------------------------------------------------------------------------------

    async def _daemon(self, name: str) -> str:
        """Start a daemon with a configuration, and wait until it has tried every server."""
        await self._end("")
        copy(self.directory / name, path := self.directory / "mcp.json")
        started = serving(self.world, path, self._data, self._servers.connect)
        self.port, self.keys["operator"] = await self._running.enter_async_context(started)
        self._places |= {f"127.0.0.1:{self.port}": "127.0.0.1:PORT", f"mcpvisor-{self.port}": "mcpvisor-PORT"}
        while (answer := await self.ask("operator", "GET", "/readyz")).status != 200:  # noqa: ASYNC110 - servers start
            await trio.sleep(0.5)
        return readable(answer.body, "json")

    async def _end(self, _: str) -> str:
        for client in self._clients.values():
            await client.close()
        self._clients.clear()
        await self._running.aclose()
        self._running = AsyncExitStack()
        return ""

    async def _wait(self, seconds: str) -> str:
        await trio.sleep(float(seconds))
        return ""

    async def ask(self, who: str, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Return what the daemon answers somebody; a token that comes with it is theirs to whom it was given.

        A number behind `who` is one of their connections.
        """
        name = who.partition(" ")[0]
        key = self.keys.get(name, name)
        lines = {**({"authorization": f"Bearer {key}"} if key else {}), **headers}
        client = self._clients.setdefault(who, Client(self.port))
        if method == "WS":
            method, lines = "GET", {**lines, **UPGRADE}
        answer = await client.ask(method, path, lines, body)
        if method == "POST" and answer.status == 201 and b'"token"' in answer.body:
            made = json.loads(answer.body)
            self.keys["@".join(filter(None, (made["user"], made.get("server"))))] = made["token"]
        return answer

    # Steps of people --------------------------------------------------------------------------------------------------

    async def _request(self, who: str, method: str, path: str, body: str) -> str:
        headers = {"content-type": "application/json"} if body else {}
        if path.startswith(("/ui", "/questions", "/oauth")):
            headers = {"accept": "text/html", **({"content-type": "application/x-www-form-urlencoded"} if body else {})}
        answer = await self.ask(who, method, path, body.encode(), **headers)
        return f"{head(answer)}\n{readable(answer.body, answer.headers.get('content-type', ''))}"

    async def _rpc(self, who: str, door: str, method: str, params: Mapping[str, Any]) -> str:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await self.ask(who, "POST", door, json.dumps(body).encode(), **TOOL_CALL)
        return f"{head(answer)}\n{readable(answer.body, answer.headers.get('content-type', ''))}"

    async def _run(self, who: str, words: str) -> str:
        """Run commands as somebody; a word that begins with `<` is what one reads. Those that end alike are as one."""
        self._patch.setenv("MCPVISOR_URL", f"http://127.0.0.1:{self.port}" if self._clients else WITHOUT_DAEMON)
        self._patch.setenv("MCPVISOR_TOKEN", "" if who == "operator" else self.keys[who])
        ends: dict[str, list[str]] = {}
        for each in words.split("; "):
            ends.setdefault(masked(await self._end_of(shlex.split(each)), self._known()), []).append(each)
        alone = len(ends) == 1
        return "\n".join(end if alone else f"{'; '.join(those)}: {end}" for end, those in ends.items())

    async def _end_of(self, words: list[str]) -> str:
        stdin = "".join(word[1:] + "\n" for word in words if word.startswith("<"))
        words = [word for word in words if not word.startswith("<")]
        code, out, errors = await command(self.world, words, 5.0 if words[0] in ENDLESS else 300.0, stdin)
        if out.startswith(("{", "[")) and "--json" in words:
            out = "\n".join(_laid_out(out))
        said = "".join(f"stderr: {line}\n" for line in errors.splitlines())
        return re.sub(r"(?m)(?<=\S)(?<!^[+-]) {2,}", "  ", f"exit {code}\n{out.rstrip()}\n{said}")

    async def _hear(self, who: str, path: str) -> str:
        """Open an event stream, of which `told` shows what comes."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        token = f"authorization: Bearer {self.keys[who]}\r\n" if self.keys[who] else ""
        said = f"GET {path} HTTP/1.0\r\nhost: 127.0.0.1:{self.port}\r\n{token}"
        await stream.send_all(f"{said}accept: text/event-stream\r\n\r\n".encode())
        self._told[who] = told = bytearray()

        async def listen() -> None:
            async with stream:
                async for part in stream:
                    told.extend(part)

        nursery = await self._running.enter_async_context(trio.open_nursery())
        self._running.callback(nursery.cancel_scope.cancel)
        nursery.start_soon(listen)
        return ""

    async def _heard(self, who: str) -> str:
        await trio.sleep(5.0)
        text = bytes(self._told[who]).decode()
        self._told[who].clear()
        return re.sub(r"^data: ({.*})$", lambda data: f"data: {layout(json.loads(data[1]))}", text, flags=re.MULTILINE)

    # What is recorded of all ------------------------------------------------------------------------------------------

    async def _each(self, path: str) -> str:
        """Ask for a path by every method as everybody; people who are answered alike stand together, so do methods."""
        answers: dict[str, dict[str, list[str]]] = {who: {} for who in [*self.keys, "wrong"]}
        for method in METHODS:
            self.world.clock.jump(FORGIVEN_S)
            for who, by_answer in answers.items():
                body = b"{}" if method in ("POST", "PUT", "PATCH", "DELETE") else b""
                kind = {"content-type": "application/json"} if body else {}
                said = masked(head(await self.ask(who, method, path, body, **kind)), self._known())
                by_answer.setdefault(said, []).append(method)
        people: dict[str, list[str]] = {}
        for who, by_answer in answers.items():
            told = "\n".join(f"  {' '.join(methods)}: {said}" for said, methods in by_answer.items())
            people.setdefault(told, []).append(who)
        return "\n".join(f"{', '.join(names)}\n{told}" for told, names in people.items())

    async def _show(self, name: str) -> str:
        """Show a file: the first lines, of all others how many there are of each kind, and a digest."""
        lines = [masked(line, self._known()) for line in (self.directory / name).read_text().splitlines()]
        first, rest = lines[:300], lines[300:]
        kinds = Counter(" ".join(re.findall(r'"type":"([^"]+)"|"outcome":"([^"]+)"', line)[0]) for line in rest)
        counts = [f"{count} more: {kind}" for kind, count in sorted(kinds.items())]
        digest = [f"sha256 of these: {sha256(os.linesep.join(rest).encode()).hexdigest()[:7]}"] if rest else []
        return "\n".join([*first, *counts, *digest])

    async def _database(self, query: str) -> str:
        """Show what a query finds; without one the schema and the first rows of each table, JSON laid out."""
        with closing(sqlite3.connect(self._data / "store.sqlite3")) as connection:

            def found(sql: str) -> list[str]:
                return [layout([_of_blob(each) for each in row]) for row in connection.execute(sql)]

            if query:
                return "\n".join(found(query))
            schema = connection.execute(
                "SELECT type, name, sql FROM sqlite_master WHERE sql > '' ORDER BY name"
            ).fetchall()
            rows = []
            for table in (name for kind, name, _ in schema if kind == "table"):
                some = found(f"SELECT * FROM {table} ORDER BY 1, 2")
                rows += [f"{table}: {row}" for row in some[:SHOWN_ROWS]]
                rows += [f"{table}: {len(some) - SHOWN_ROWS} more"] if len(some) > SHOWN_ROWS else []
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        return "\n".join([f"schema {version}", *(sql for _, _, sql in schema), *rows])

    async def _log(self, _: str) -> str:
        """Show what was logged since it was shown last."""
        lines, self._logged = self.world.log[self._logged :], len(self.world.log)
        counted = [(line, len([*same])) for line, same in groupby(masked(each, self._known()) for each in lines)]
        return "\n".join(line if count == 1 else f"{line} ({count} times)" for line, count in counted)

    async def _mixture(self, words: str) -> str:
        """Make so many calls by chance from a seed, as everybody; say how many of each kind ended in which way."""
        calls, seed = map(int, words.split())

        async def ask(whom: str, door: str, body: Mapping[str, Any]) -> Answer:
            return await self.ask(whom, "POST", door, json.dumps(body).encode(), **TOOL_CALL)

        people = [who for who in self.keys if who != NOBODY]
        return "\n".join(await Mixture(random.Random(seed), people, ask).play(calls))

    async def _schema(self, _: str) -> str:
        """Show which schema there is for editors."""
        with redirect_stdout(out := StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # another test of this process has imported it already
            run_module("supervisor.reference.configuration", run_name="__main__")
        return f"sha256 {sha256(out.getvalue().encode()).hexdigest()[:7]}"

    async def _hook(self, _: str) -> str:
        """Have somebody take what is posted to `${HOOK}` until all is over."""
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery = await self._whole.enter_async_context(trio.open_nursery())
        self._whole.callback(nursery.cancel_scope.cancel)
        self._whole.push_async_callback(self._end, "")  # before that
        nursery.start_soon(trio.serve_listeners, partial(receive, self._requests), [listener])
        place = f"127.0.0.1:{listener.socket.getsockname()[1]}"
        self._places[place] = "127.0.0.1:HOOK"
        self._patch.setenv("HOOK", f"http://{place}/hook")
        return ""

    async def _posted(self, _: str) -> str:
        """Show what was posted since it was shown last."""
        await trio.sleep(5.0)
        requests, self._requests[:] = [*self._requests], []
        return "\n".join(
            f"{each.line}\n{layout({**each.headers, 'content-length': '<varies>'})}\n{readable(each.body, 'json')}"
            for each in requests
        )

    async def _collector(self, _: str) -> str:
        """Have a collector of spans run until all is over, to which daemons send theirs."""
        self._collected = self._whole.enter_context(collecting())
        self._patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", self._collected.url)
        return ""

    async def _spans(self, _: str) -> str:
        """Show the spans that came, each below that of which it is a part, with its attributes."""
        requests = [ExportTraceServiceRequest.FromString(body) for _, _, body in self._collected.seen]
        resources = [each for request in requests for each in request.resource_spans]
        spans = [span for each in resources for scope in each.scope_spans for span in scope.spans]
        sent = [span for span in spans if span.name != "mcpvisor.wait"]  # on a busy machine a call waits for the start
        names = {span.span_id: span.name for span in sent}
        return "\n".join(
            [f"by {layout(_attributes(resources[0].resource.attributes))}"]
            + [
                f"{names.get(span.parent_span_id, '')} > {span.name}: kind {span.kind}, status {span.status.code}"
                f" {span.status.message}\n{layout(_attributes(span.attributes))}"
                for span in sent
            ]
        )


def head(answer: Answer) -> str:
    """Return status, content type, headers, and of a refusal who says so: its code and type."""
    kind = answer.headers.get("content-type", "")
    lines = {name: value for name, value in answer.headers.items() if name not in UNSHOWN}
    if "allow" in lines:
        lines["allow"] = ", ".join(sorted(lines["allow"].split(", ")))  # a set, and written as one
    if HARDENED.items() <= lines.items():
        lines = {name: value for name, value in lines.items() if name not in HARDENED}
    elif answer.status != 101:
        lines["hardened"] = "no"
    said = [str(answer.status), kind, *(f"{name}={value}" for name, value in lines.items())]
    if b'"error":' in answer.body[:100] and kind == "application/json":
        error = json.loads(answer.body)["error"]
        said.append(f"error {error if isinstance(error, str) else _of_error(error)}")
    return "; ".join(filter(None, said))


def _of_error(error: Mapping[str, Any]) -> str:
    return f"{error['code']} {(error.get('data') or {}).get('type', '')}".rstrip()


def _laid_out(text: str) -> Iterator[str]:
    """Yield JSON values that stand behind each other in our layout."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield readable(json.dumps(value).encode(), "json")
        at += len(text[at:]) - len(text[at:].lstrip())


def _attributes(given: Any) -> dict[str, Any]:
    shown = (each for each in given if not each.key.startswith("telemetry.sdk"))
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in shown}


def _of_blob(value: Any) -> Any:
    """Return what a column of a database has: of bytes the JSON in them, if it is that."""
    if not isinstance(value, bytes):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return "<packed>"


async def _play(world: World, directory: Path, patch: pytest.MonkeyPatch, text: str) -> str:
    lines = []
    async with AsyncExitStack() as whole:
        stage = Stage(world, directory, patch, whole)
        for line in text.splitlines():
            if line.startswith("  "):
                continue
            lines.append(line)
            if line.startswith(STEP):
                said = await stage.step(line.removeprefix(STEP))
                lines += [f"  {each}".rstrip() for each in said.splitlines() if each]
    return "\n".join(lines) + "\n"


def play(text: str) -> str:
    """Return a transcript with what comes of its steps now."""
    world = World()
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        try:
            return world.run(partial(_play, world, Path(directory).resolve(), patch, text))
        finally:
            patch.undo()
            time.tzset()


def difference(recorded: str, played: str) -> str:
    """Return what is different, step by step, of each the first lines; empty if nothing is."""
    told = []
    for before, after in zip(_steps(recorded), _steps(played), strict=True):
        if before != after:
            changes = unified_diff(before[1:], after[1:], "recorded", "now", lineterm="", n=2)
            told += ["", before[0], *islice(changes, SHOWN_LINES)]
    return "\n".join(told)


def _steps(text: str) -> list[list[str]]:
    return [part.splitlines() for part in re.split(f"^(?={STEP})", text, flags=re.MULTILINE)]


def unlike(name: str) -> str:
    """Play a transcript; return what is not as it was recorded, and what to do about it; empty if all is."""
    recorded = (RECORDED / name).read_text(encoding="utf-8")
    if not (told := difference(recorded, play(recorded))):
        return ""
    again = f"python -m tests.recording --write {name}"
    return f"{name} is not as it was recorded:\n{told}\n\nIf all of that is meant: {again}"


def transcripts() -> list[str]:
    return sorted(path.name for path in RECORDED.glob("*.txt"))
