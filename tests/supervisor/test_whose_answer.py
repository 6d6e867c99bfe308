"""Every answer is that of its own call: equal ids of two sessions, and sessions of a server that end all the time.

`WHOSE_ANSWER_CALLS=20000` is the long form: the number of calls of the first test.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Self

import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.mcp_server import FakeServer
from tests.fakes.remote_server import RemoteServer
from tests.scenario.daemon import world

CALLS = int(os.environ.get("WHOSE_ANSWER_CALLS", "400"))
LINES = 4
"""Connections of each session, each of which has one call under way."""
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


class Line:
    """One kept connection of a client, in bytes: httpx2 would take longer than all that is tested."""

    def __init__(self, stream: trio.SocketStream, host: str) -> None:
        self._stream = stream
        self._host = host
        self._read = b""
        self.session = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await trio.aclose_forcefully(self._stream)

    async def ask(self, id_: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request; `initialize` begins a session."""
        body = json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode()
        session = f"Mcp-Session-Id: {self.session}\r\n" if self.session else ""
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n{session}"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        await self._stream.send_all(head.encode() + body)
        while b"\r\n\r\n" not in self._read:
            self._read += await self._stream.receive_some(65536)
        lines, _, self._read = self._read.partition(b"\r\n\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines.split(b"\r\n")[1:])
        size = int(headers[b"content-length"])
        while len(self._read) < size:
            self._read += await self._stream.receive_some(65536)
        answer, self._read = self._read[:size], self._read[size:]
        if method == "initialize":
            (given,) = (line for line in lines.split(b"\r\n") if line.lower().startswith(b"mcp-session-id: "))
            self.session = given.partition(b": ")[2].decode()
        told: dict[str, Any] = json.loads(answer)
        return told


@pytest.mark.case("C11")
async def test_of_calls_with_equal_ids_in_two_sessions_none_gets_a_foreign_answer(
    tmp_path: Path, data: DataDir
) -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve, plain=True)
    foreign: list[Any] = []
    done = 0

    async def call(line: Line, who: str, ids: range) -> None:
        nonlocal done
        async with line:
            for id_ in ids:
                arguments = {"who": who, "n": id_}
                answer = await line.ask(id_, "tools/call", {"name": "far-echo", "arguments": arguments})
                done += 1
                if answer["id"] != id_ or answer["result"]["structuredContent"] != arguments:
                    foreign.append((who, id_, answer))

    async with server.running():
        entries = {"far": {"url": server.url}}
        async with (
            world(tmp_path, data, entries, patience_s=600, daemon={"connect": None}) as at,
            trio.open_nursery() as nursery,
        ):
            host = at.http.base_url
            for who in ("one", "two"):
                session = ""
                for part in range(LINES):
                    stream = await trio.open_tcp_stream(host.host, host.port or 0)
                    line = Line(stream, host.netloc.decode())
                    line.session = session
                    if not session:
                        await line.ask(0, "initialize", INITIALIZE)
                        session = line.session
                    nursery.start_soon(call, line, who, range(part, CALLS // 2, LINES))
    assert (done, foreign) == (CALLS, [])
    carried_out = [each["params"]["arguments"] for each in fake.messages if each.get("method") == "tools/call"]
    assert len({(each["who"], each["n"]) for each in carried_out}) == len(carried_out) == CALLS


@pytest.mark.case("H09")
async def test_while_the_sessions_of_a_server_end_all_the_time_each_call_is_made_once_and_has_its_own_answer(
    tmp_path: Path, data: DataDir
) -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve, session_calls=7)
    answers: dict[int, Any] = {}
    async with server.running():
        entries = {"far": {"url": server.url}}
        async with (
            world(tmp_path, data, entries, daemon={"connect": None}, starts_per_s=1000) as at,
            trio.open_nursery() as nursery,
        ):

            async def call(number: int) -> None:
                answers[number] = await at.call("far-echo", n=number)

            for number in range(90):
                nursery.start_soon(call, number)
    assert {number: answer["result"]["structuredContent"] for number, answer in answers.items()} == {
        number: {"n": number} for number in range(90)
    }
    carried_out = [each["params"]["arguments"]["n"] for each in fake.messages if each.get("method") == "tools/call"]
    assert sorted(carried_out) == list(range(90))
    assert server.forgotten >= 90 // 7
    assert server.count("POST", "initialize") <= server.forgotten + 1
