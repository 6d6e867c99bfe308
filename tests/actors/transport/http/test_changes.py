"""A remote server tells of changed lists on a stream, which servers and proxies end: what was missed is read."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager

import pytest
import trio

from actors.life.policy import RestartPolicy
from actors.server.parts import discovery
from actors.transport.http.remote import HttpLimits
from tests.actors.server.rig import Rig
from tests.actors.transport.behind import behind
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import RemoteServer, Request


def remote(server: RemoteServer) -> AbstractAsyncContextManager[Rig]:
    era = "modern" if server.modern else "legacy"
    return behind(server, limits=HttpLimits(), era=era, policy=RestartPolicy(backoff_initial_s=0.05))


class Stream:
    """Streams of changes, each of which can be ended; `opened` is set by the newest. `said` comes first on each."""

    def __init__(self, said: bytes, *, modern: bool) -> None:
        self.count = 0
        self.opened = trio.Event()
        self.ended = trio.Event()
        self._said = said
        self._modern = modern

    async def serve(self, request: Request) -> None:
        self.count += 1
        await request.begin_events()
        if self._modern:
            told = {"notifications": {"toolsListChanged": True}}
            ack = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": told}
            await request.event(json.dumps(ack).encode())
        await request.stream.send_all(self._said)
        self.opened.set()
        await self.ended.wait()

    def cut(self) -> None:
        self.ended.set()
        self.opened, self.ended = trio.Event(), trio.Event()


@pytest.mark.parametrize("modern", [True, False])
async def test_what_changes_while_nobody_could_hear_of_it_is_read(
    modern: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "CATCH_UP_S", 0.0)
    fake = FakeServer(probe="modern" if modern else "error")
    stream = Stream(b"retry: 100\n\n", modern=modern)
    server = RemoteServer(fake.serve, modern=modern, faults={"subscriptions/listen" if modern else "GET": stream.serve})
    async with remote(server) as rig:
        await rig.wake()
        await rig.until_listed(1)
        await stream.opened.wait()
        fake.tools.append(tool("missed"))
        stream.cut()
        await rig.until_listed(2)
        assert rig.listed[-1] == ["echo", "missed"]
        assert stream.count == 2
        stream.ended.set()


async def test_a_stream_whose_server_repeats_what_was_missed_costs_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "CATCH_UP_S", 0.0)
    fake = FakeServer()
    stream = Stream(b'id: 7\nretry: 100\ndata: {"jsonrpc":"2.0","method":"x"}\n\n', modern=False)
    server = RemoteServer(fake.serve, faults={"GET": stream.serve})
    async with remote(server) as rig:
        await rig.wake()
        await rig.until_listed(1)
        await stream.opened.wait()
        stream.cut()
        await stream.opened.wait()
        await trio.testing.wait_all_tasks_blocked(0.5)
        assert len(rig.listed) == 1
        assert [request.headers.get("last-event-id") for request in server.requests if request.verb == "GET"] == [
            None,
            "7",
        ]
        stream.ended.set()


@pytest.mark.case("H24")
async def test_a_storm_of_changes_of_a_remote_server_costs_few_readings_and_the_last_one_counts() -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    async with remote(server) as rig:
        await rig.wake()
        await rig.until_listed(1)
        await server.listened.wait()
        for number in range(1000):
            fake.tools[1:] = [tool(f"grown{number}")]
            await fake.notify("notifications/tools/list_changed")
        while rig.listed[-1] != ["echo", "grown999"]:
            await rig.told.wait()
        assert await rig.call("echo", n=1) == {"n": 1}
    assert 2 <= server.count("POST", "tools/list") <= 5
