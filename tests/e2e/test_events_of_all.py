"""Events of all servers at `/mcp` and `/mcp/all`: one list, any way of delivery, cursors that outlive everything."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from actors.protocol.agreement.versions import META_SUBSCRIPTION
from tests.e2e.daemons import Daemon, restarted, running
from tests.fakes.era_clients import EraClient
from tests.fakes.http_client import JSON_HEADERS, legacy, modern, modern_headers
from tests.fleet.valkey import settle, valkey
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

SERVERS = Path(__file__).with_name("servers")
TICKS = {"command": sys.executable, "args": ["-I", str(SERVERS / "events.py")]}
TOLD = "notifications/events/"


def feed(file: Path, *how: str, **settings: Any) -> dict[str, Any]:
    file.touch()
    return {"command": sys.executable, "args": ["-I", str(SERVERS / "feed.py"), str(file), *how], **settings}


def happen(file: Path, *ids: str) -> None:
    with file.open("a") as opened:
        opened.write("".join(f"{each}\n" for each in ids))


@asynccontextmanager
async def client_of(daemon: Daemon, path: str = "/mcp", era: str = "modern") -> AsyncIterator[EraClient]:
    async with httpx2.AsyncClient(base_url=daemon.url, timeout=PATIENCE_S) as http:
        client = EraClient(http, path, era)
        await client.greet()
        yield client
        assert client.wrong == []


class Heard:
    """What a stream tells, one by one."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer
        self.cursor: str | None = None

    async def next(self) -> tuple[str, Any]:
        """Return the next notification, or the result: of which kind, and what it says."""
        while line := await trio.to_thread.run_sync(self._answer.readline):
            if not line.startswith(b"data: {"):
                continue
            message = json.loads(line.removeprefix(b"data: "))
            if "method" not in message:
                return "over", message
            params = message["params"]
            assert params.pop("_meta")[META_SUBSCRIPTION] == "mine"
            self.cursor = params.get("cursor", self.cursor)
            what = message["method"].removeprefix(TOLD)
            if what != "heartbeat":
                return what, params
        raise AssertionError("the stream ended without a result")

    async def ids(self, count: int) -> list[str]:
        """Return the ids of the next events, after which nothing else was told."""
        told = [await self.next() for _ in range(count)]
        assert [what for what, _ in told] == ["event"] * count, told
        return [said["eventId"] for _, said in told]

    async def until(self, wanted: str) -> Any:
        """Return the next notification of a kind, whatever errors come before."""
        while True:
            what, said = await self.next()
            if what == wanted:
                return said
            assert what == "error", (what, said)


@asynccontextmanager
async def stream(
    daemon: Daemon, name: str, path: str = "/mcp", era: str = "modern", **more: Any
) -> AsyncIterator[Heard]:
    """Open a stream; leaving it ends it."""
    params = {"name": name, "arguments": {}, **more}
    async with client_of(daemon, path, era) as client:
        if era == "legacy":
            body, headers = legacy("events/stream", params, id_="mine"), {**JSON_HEADERS, **client._session}
        else:
            body, headers = modern("events/stream", params, id_="mine"), modern_headers("events/stream")

        def begin() -> HTTPResponse:
            connection.request("POST", path, body, headers)
            return connection.getresponse()

        with closing(HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE_S)) as connection:
            yield Heard(await trio.to_thread.run_sync(begin))
        if era == "legacy":
            left = legacy("notifications/cancelled", {"requestId": "mine"}, id_=None)
            assert (await client._post(left, headers)).status_code == 202


async def poll(client: EraClient, name: str, cursor: str | None, *, until: int = 0) -> dict[str, Any]:
    """Poll for so many events, and return what came together."""
    events: list[Any] = []
    truncated = False
    with trio.fail_after(PATIENCE_S):
        while True:
            polled = await client.result("events/poll", name=name, arguments={}, cursor=cursor)
            events += polled["events"]
            truncated, cursor = truncated or polled["truncated"], polled["cursor"]
            if len(events) >= until and not polled["hasMore"]:
                return {**polled, "ids": [each["eventId"] for each in events], "truncated": truncated}
            await trio.sleep(0.1)


async def begin(client: EraClient, name: str) -> dict[str, Any]:
    """Return the first answer to a poll: the stream of the server has an error, and goes on a moment later."""
    with trio.fail_after(PATIENCE_S):
        while "result" not in (answer := await client.ask("events/poll", name=name, arguments={}, cursor=None)):
            assert answer["error"]["message"] == "UpstreamError"
            await trio.sleep(0.1)
    return dict(answer["result"])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    return {name: folder / name for name in ("pushed", "polled")}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, files: dict[str, Path]) -> Iterator[Daemon]:
    """One with servers of both eras: whose events were told long ago, and whose happen during a test."""
    servers = {
        "newer": TICKS,
        "older": {**TICKS, "era": "legacy"},
        "pushed": feed(files["pushed"], "push"),
        "polled": feed(files["polled"], "poll", era="legacy"),
    }
    folder = tmp_path_factory.mktemp("events")
    with running(folder, servers, leaves_calls=True) as daemon:
        trio.run(daemon.ready)
        yield daemon


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/all"])
def test_one_list_has_the_events_of_all_servers(daemon: Daemon, path: str, era: str) -> None:
    async def report() -> None:
        async with client_of(daemon, path, era) as client:
            capabilities = (await client.greet())["capabilities"]
            assert capabilities["extensions"]["io.modelcontextprotocol/events"] == {"listChanged": True}
            listed = {each["name"]: each["delivery"] for each in (await client.result("events/list"))["events"]}
            names = {"newer:tick", "older:tick", "pushed:line", "polled:line"}
            assert {name: listed.get(name) for name in names} == {name: ["poll", "push"] for name in names}
            assert not any(name.endswith(":hook") for name in listed)
            for server in ("newer", "older"):
                begun = await begin(client, f"{server}:tick")
                assert (begun["events"], begun["truncated"], begun["nextPollMs"]) == ([], False, 5000)
                refused = (await client.ask("events/poll", name=f"{server}:tock", arguments={}))["error"]
                assert (refused["code"], refused["data"]["kind"]) == (-32023, "event")

    trio.run(report)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("server", ["pushed", "polled"])
def test_what_a_server_only_pushes_is_polled_and_the_reverse(
    daemon: Daemon, files: dict[str, Path], server: str, era: str
) -> None:
    name, ids = f"{server}:line", [f"{era}-{number}" for number in range(3)]

    async def report() -> None:
        async with client_of(daemon, era=era) as client, stream(daemon, name, era=era) as heard:
            assert (await heard.next())[0] == "active"
            begun = await poll(client, name, None)
            happen(files[server], *ids)
            assert await heard.ids(3) == ids
            polled = await poll(client, name, begun["cursor"], until=3)
            assert (polled["ids"], polled["truncated"], polled["cursor"]) == (ids, False, heard.cursor)
            assert polled["events"] == [] or polled["events"][-1]["name"] == name
            async with stream(daemon, name, "/mcp/all", era, cursor=begun["cursor"]) as other:
                assert (await other.next())[1]["truncated"] is False
                assert await other.ids(3) == ids

    trio.run(report)


def test_a_cursor_outlives_a_restart_of_the_daemon_and_nothing_is_lost(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("pushed", "polled", "forgetful")}
    servers = {
        "pushed": feed(files["pushed"], "push"),
        "polled": feed(files["polled"], "poll"),
        "forgetful": feed(files["forgetful"], "push", "forgets"),
    }
    cursors: dict[str, str] = {}

    async def before(daemon: Daemon) -> None:
        await daemon.ready()
        async with client_of(daemon) as client:
            for name, file in files.items():
                cursor = (await poll(client, f"{name}:line", None))["cursor"]
                happen(file, "a", "b")
                assert (await poll(client, f"{name}:line", cursor, until=2))["ids"] == ["a", "b"]
                cursors[name] = cursor
        await daemon.settled()

    async def after(daemon: Daemon) -> None:
        await daemon.ready()
        async with client_of(daemon) as client:
            for name, file in files.items():
                polled = await poll(client, f"{name}:line", cursors[name], until=3 if name != "forgetful" else 2)
                happen(file, "d")
                last = await poll(client, f"{name}:line", polled["cursor"], until=1)
                expected = (["a", "b"], True) if name == "forgetful" else (["a", "b", "c"], False)
                told = polled["truncated"] or last["truncated"]
                assert (polled["ids"], told, last["ids"]) == (*expected, ["d"])

    with running(tmp_path / "daemon", servers, leaves_calls=True) as daemon:
        trio.run(before, daemon)
    for file in files.values():
        happen(file, "c")
    with restarted(daemon, leaves_calls=True) as following:
        trio.run(after, following)


@pytest.mark.parametrize(("path", "name"), [("/mcp", "s:line"), ("/mcp/servers/s", "line")])
def test_the_end_of_the_daemon_is_the_end_of_a_stream_and_no_error(tmp_path: Path, path: str, name: str) -> None:
    file, cursors = tmp_path / "file", list[str | None]()

    async def before(daemon: Daemon) -> None:
        await daemon.ready()
        async with stream(daemon, name, path) as heard:
            assert (await heard.next())[0] == "active"
            happen(file, "a")
            assert await heard.ids(1) == ["a"]
            daemon.process.send_signal(signal.SIGTERM)
            what, message = await heard.next()
            assert what == "over"
            assert message["result"] == {
                "resultType": "complete",
                "_meta": {META_SUBSCRIPTION: "mine", "mcpvisor/shutdown": True},
            }
            cursors.append(heard.cursor)
        assert await daemon.ended() == 0

    async def after(daemon: Daemon) -> None:
        await daemon.ready()
        async with stream(daemon, name, path, cursor=cursors[0]) as heard:
            assert (await heard.next())[0] == "active"
            assert await heard.ids(1) == ["b"]

    unhurried: dict[str, Any] = {"drain_s": 300, "shutdown_s": 600}  # nothing waits for a stream to end
    with running(tmp_path / "daemon", {"s": feed(file, "push")}, leaves_calls=True, **unhurried) as daemon:
        trio.run(before, daemon)
    happen(file, "b")
    with restarted(daemon, leaves_calls=True) as following:
        trio.run(after, following)


@pytest.mark.parametrize(("how", "truncated"), [(("push",), False), (("poll",), False), (("push", "forgets"), True)])
def test_a_server_that_is_killed_is_followed_on(tmp_path: Path, how: tuple[str, ...], truncated: bool) -> None:
    file = tmp_path / "file"

    async def report(daemon: Daemon) -> None:
        await daemon.ready()
        async with stream(daemon, "s:line") as heard:
            assert (await heard.next())[0] == "active"
            happen(file, "a")
            assert await heard.ids(1) == ["a"]
            (row,) = (await daemon.page("/api/status"))["servers"]
            os.kill(row["pid"], signal.SIGKILL)
            happen(file, "b")
            if truncated:  # what happened while it was away it does not know
                assert (await heard.until("active"))["truncated"] is True
                happen(file, "c")
                assert (await heard.until("event"))["eventId"] == "c"
            else:
                assert (await heard.until("event"))["eventId"] == "b"

    with running(tmp_path / "daemon", {"s": feed(file, *how)}, leaves_calls=True) as daemon:
        trio.run(report, daemon)


def test_any_node_of_a_fleet_goes_on_from_the_cursor_of_another_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    (tmp_path / "engine").mkdir()

    async def report(*nodes: Daemon) -> None:
        here, there = nodes
        for node in nodes:
            await node.ready()
            await node.until("/api/nodes", lambda told: len(told["nodes"]) == 2)
        async with client_of(here) as mine, client_of(there) as other:
            begun = await poll(mine, "s:line", None)
            happen(file, "a", "b")
            polled = await poll(other, "s:line", begun["cursor"], until=2)
            assert (polled["ids"], polled["truncated"]) == (["a", "b"], False)
            async with stream(there, "s:line", cursor=begun["cursor"]) as heard:
                assert (await heard.next())[1]["truncated"] is False
                assert await heard.ids(2) == ["a", "b"]
                happen(file, "c")
                assert await heard.ids(1) == ["c"]
            async with stream(there, "s:line") as own:
                assert (await own.next())[0] == "active"
                happen(file, "d")
                assert await own.ids(1) == ["d"]

    with valkey(tmp_path / "engine") as engine, ExitStack() as stack:
        trio.run(settle, engine)
        fleet = {"engine": engine.url, "keys": ["the key of this fleet, which is long"], "lease_s": 60.0}
        servers = {"s": feed(file, "push")}
        nodes = [
            stack.enter_context(running(tmp_path / name, servers, leaves_calls=True, fleet={**fleet, "node": name}))
            for name in "ab"
        ]
        trio.run(report, *nodes)
