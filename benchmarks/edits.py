"""A random walk of edits of a configuration under load, with a model beside it that knows what must be true.

The file is edited as people and programs do: servers come, go, change, are switched off, move; the file is written in
place, replaced, written in halves, put back as it was, or broken. After each edit the daemon must be as the file says:

- the servers are those of the file, and the tools that a client lists are theirs;
- a server whose entry is the same, or differs only in what holds for its calls, has the process that it had;
- a file that is broken is refused and changes nothing.

Meanwhile clients call. A call is judged if its server was in the file from its beginning until its end: it must have
a result. Others must be answered at all.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx2
import msgspec
import trio
from msgspec.structs import replace

from actors.protocol.agreement.versions import LATEST_LEGACY

SERVER = Path(__file__).with_name("edited_server.py")
NAMES = tuple(f"s{number:02d}" for number in range(16))
FIRST = 12
"""So many servers there are at the beginning; there are never fewer than half of them."""
LOOK_S = 0.03
PATIENCE_S = 120.0
"""Longer than anything takes on a busy machine: whoever waits for it has failed."""
LONGEST_CALL_S = 0.3
HEADERS = {"accept": "application/json", "mcp-protocol-version": LATEST_LEGACY}

Json = dict[str, Any]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One server in the file. `variant` is in its command line, `idle_s` in its actor, `timeout_s` in its calls."""

    variant: int = 0
    idle_s: int = 600
    timeout_s: int = 60
    off: bool = False

    def same_process(self, other: Entry) -> bool:
        return replace(self, timeout_s=0) == replace(other, timeout_s=0)

    def written(self, place: str) -> Json:
        own: Json = {"command": sys.executable, "args": ["-I", "-S", str(SERVER), str(self.variant), place]}
        own |= {"idle_timeout_s": self.idle_s, "call_timeout_s": self.timeout_s}
        return {**own, "disabled": True} if self.off else own


Entries = dict[str, Entry]
Edit = Callable[[random.Random, Entries], Entries]


def some(luck: random.Random, entries: Entries) -> str:
    return luck.choice(sorted(entries))


def add(luck: random.Random, entries: Entries) -> Entries:
    absent = [name for name in NAMES if name not in entries]
    return {**entries, luck.choice(absent): Entry(variant=luck.randrange(3))} if absent else remove(luck, entries)


def remove(luck: random.Random, entries: Entries) -> Entries:
    if len(entries) <= FIRST // 2:
        return add(luck, entries)
    gone = some(luck, entries)
    return {name: entry for name, entry in entries.items() if name != gone}


def relaunch(luck: random.Random, entries: Entries) -> Entries:
    name = some(luck, entries)
    return {**entries, name: replace(entries[name], variant=entries[name].variant + 1)}


def retune(luck: random.Random, entries: Entries) -> Entries:
    name = some(luck, entries)
    return {**entries, name: replace(entries[name], idle_s=entries[name].idle_s + 1)}


def adjust(luck: random.Random, entries: Entries) -> Entries:
    name = some(luck, entries)
    return {**entries, name: replace(entries[name], timeout_s=entries[name].timeout_s + 1)}


def switch(luck: random.Random, entries: Entries) -> Entries:
    name = some(luck, entries)
    return {**entries, name: replace(entries[name], off=not entries[name].off)}


def reorder(luck: random.Random, entries: Entries) -> Entries:
    return dict(luck.sample(sorted(entries.items()), len(entries)))


def several(luck: random.Random, entries: Entries) -> Entries:
    for edit in luck.sample((add, remove, relaunch, retune, adjust, switch), 3):
        entries = edit(luck, entries)
    return entries


EDITS: tuple[Edit, ...] = (add, remove, relaunch, retune, adjust, switch, reorder, several)


def text_of(luck: random.Random, entries: Entries, settings: Json, place: str) -> str:
    """Return a file that says this, spelled in one of many ways."""
    servers = {name: entry.written(place) for name, entry in entries.items()}
    body = json.dumps({"supervisor": settings, "mcpServers": servers}, indent=luck.choice((None, 1, 2, 4)))
    return luck.choice(("", "// one of many\n", "\n\n")) + body + luck.choice(("", "\n"))


def break_up(luck: random.Random, text: str) -> str:
    """Return a file with a mistake."""
    match luck.randrange(3):
        case 0:
            return text[: text.rindex("}") // 2 + 1]
        case 1:
            return text.replace('"command"', '"comand"', 1)
        case _:
            return text.replace('"mcpServers": {', '"mcpServers": {"twice": {}, "twice": {},', 1)


class Walk:
    """Edits the configuration `file` of the daemon at `url`, and judges. A context manager closes it.

    `wrong` has what must not have been, `took_s` how long it was from a valid edit until the tools were those of the
    file, `refused_s` from a broken one until it was refused.
    """

    def __init__(self, file: Path, settings: Json, seed: int) -> None:
        self.wrong: list[str] = []
        self.took_s: list[float] = []
        self.refused_s: list[float] = []
        self.counts: Counter[str] = Counter()
        self.entries: Entries = {name: Entry() for name in NAMES[:FIRST]}
        self._file = file
        self.url = ""
        self._settings = settings
        self._luck = random.Random(seed)
        self._present: dict[str, int] = {}
        self._serial = 0
        self._pids: dict[str, int | None] = {}
        self._texts: list[tuple[str, Entries]] = []
        self._http = httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S)

    @property
    def place(self) -> str:
        return str(self._file.parent)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def begin(self) -> None:
        """Write the first file, before the daemon is started."""
        self._write_text(text_of(self._luck, self.entries, self._settings, self.place))

    # Edits ----------------------------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Edit the file once, wait until the daemon is as it must be then, and judge."""
        kind = self._luck.random()
        text = text_of(self._luck, self.entries, self._settings, self.place)
        if kind < 0.15:
            self.counts["broken"] += 1
            await self._be_refused(break_up(self._luck, text))
            return
        if kind < 0.25 and self._texts:
            self.counts["put back"] += 1
            text, entries = self._luck.choice(self._texts)
        else:
            edit = self._luck.choice(EDITS)
            self.counts[edit.__name__] += 1
            entries = edit(self._luck, self.entries)
            text = text_of(self._luck, entries, self._settings, self.place)
        self._texts = [*self._texts[-9:], (text, entries)]
        await self._be_followed(text, entries)

    async def _be_refused(self, text: str) -> None:
        await self._write(text)
        written_at = trio.current_time()
        page = await self._until(lambda page: bool(page["configuration"]["refused"]), "the broken file is refused")
        self.refused_s.append(trio.current_time() - written_at)
        self._judge(page, self.entries)

    async def _be_followed(self, text: str, entries: Entries) -> None:
        """Write a valid file; what it removes is not there for sure from now on, what it adds once it was seen."""
        for name in [name for name in self._present if name not in entries or entries[name].off]:
            del self._present[name]
        written = time.time()
        await self._write(text)
        written_at = trio.current_time()

        def followed(page: Json) -> bool:
            source = page["configuration"]
            return source["loaded_at"] >= written and not source["refused"]

        await self._until(followed, "the file is read")
        await self._until_listed(entries)
        self.took_s.append(trio.current_time() - written_at)
        self._judge(await self._until(followed, "the file is in force"), entries)
        self.entries = entries
        for name, entry in entries.items():
            if not entry.off and name not in self._present:
                self._serial += 1
                self._present[name] = self._serial

    async def _write(self, text: str) -> None:
        match self._luck.randrange(3):
            case 0:
                self._write_text(text)
            case 1:
                beside = self._file.with_suffix(".new")
                beside.write_text(text)
                beside.replace(self._file)
            case _:
                with self._file.open("w") as out:
                    out.write(text[: len(text) // 2])
                    out.flush()
                    await trio.sleep(self._luck.uniform(0, 0.15))
                    out.write(text[len(text) // 2 :])

    def _write_text(self, text: str) -> None:
        self._file.write_text(text)

    # Judging --------------------------------------------------------------------------------------------------------

    def _judge(self, page: Json, entries: Entries) -> None:
        rows = {row["server"]: row for row in page["servers"]}
        if rows.keys() != entries.keys():
            self.wrong.append(f"servers are {sorted(rows)}, not {sorted(entries)}")
        for name, entry in entries.items():
            before = self.entries.get(name)
            pid, known = rows.get(name, {}).get("pid"), self._pids.get(name)
            if before is not None and before.same_process(entry) and known is not None and pid != known:
                self.wrong.append(f"{name} had the process {known}, has {pid}, and its entry is the same")
        self._pids = {name: row.get("pid") for name, row in rows.items()}

    async def settle(self) -> None:
        """Wait until every server that may run does, and remember their processes."""
        wanted = {name for name, entry in self.entries.items() if not entry.off}

        def ready(page: Json) -> bool:
            rows = {row["server"]: row for row in page["servers"]}
            return all(rows[name]["state"] == "ready" for name in wanted if name in rows)

        page = await self._until(ready, "all servers are ready")
        self._pids = {row["server"]: row.get("pid") for row in page["servers"]}
        self._present = {name: number for number, name in enumerate(sorted(wanted))}
        self._serial = len(wanted)

    def processes(self) -> set[int]:
        """Return the processes of servers that there are."""
        mark = self.place.encode()
        return {
            int(process.name)
            for process in Path("/proc").iterdir()
            if process.name.isdigit() and _is_server(process, mark) and int(process.name) != os.getpid()
        }

    async def _until(self, holds: Callable[[Json], bool], what: str) -> Json:
        with trio.move_on_after(PATIENCE_S):
            while True:
                page: Json = (await self._http.get(f"{self.url}/api/status")).json()
                if holds(page):
                    return page
                await trio.sleep(LOOK_S)
        raise AssertionError(f"not within {PATIENCE_S:g} s: {what}; {self.wrong}")

    async def _until_listed(self, entries: Entries) -> None:
        running = {name: entry for name, entry in entries.items() if not entry.off}
        wanted = {f"{name}__{tool}" for name, e in running.items() for tool in ("work", f"only_{e.variant}")}
        listed: set[str] = set()
        with trio.move_on_after(PATIENCE_S):
            while listed != wanted:
                listed = await self._list()
                await trio.sleep(LOOK_S)
            return
        raise AssertionError(f"not listed: {sorted(wanted - listed)}; listed too much: {sorted(listed - wanted)}")

    async def _list(self) -> set[str]:
        listed: set[str] = set()
        params: Json = {}
        while True:
            result = (await self._ask("/mcp/all", "tools/list", params))["result"]
            listed |= {tool["name"] for tool in result["tools"]}
            if "nextCursor" not in result:
                return listed
            params = {"cursor": result["nextCursor"]}

    async def _ask(self, path: str, method: str, params: Json) -> Json:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer: Json = (await self._http.post(f"{self.url}{path}", json=message, headers=HEADERS)).json()
        return answer

    # Calls ----------------------------------------------------------------------------------------------------------

    async def call_for_ever(self, seed: int) -> None:
        """Be a client that calls one tool after the other."""
        luck = random.Random(seed)
        while True:
            await self._call(luck.choice(NAMES), luck.uniform(0, LONGEST_CALL_S))
            await trio.sleep(luck.uniform(0, 0.02))

    async def _call(self, name: str, seconds: float) -> None:
        present = self._present.get(name)
        arguments = {"tool_path": f"{name}:work", "arguments": {"seconds": seconds}}
        answer = await self._ask("/mcp", "tools/call", {"name": "execute_mcp_tool", "arguments": arguments})
        judged = present is not None and self._present.get(name) == present
        worked = "result" in answer and not answer["result"].get("isError")
        self.counts["calls"] += 1
        self.counts["calls judged"] += judged
        if judged and not worked:
            self.wrong.append(f"a call of {name} was answered with {json.dumps(answer)[:500]}")
        elif not worked and "result" not in answer and "type" not in (answer["error"].get("data") or {}):
            self.wrong.append(f"a call of {name}, which had gone, was answered with {json.dumps(answer)[:500]}")


def _is_server(process: Path, mark: bytes) -> bool:
    try:
        command = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return mark in command and str(SERVER).encode() in command
