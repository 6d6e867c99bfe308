"""What the daemon itself tells by the Events extension (SEP-3415) at the doors of all servers: streamed, and polled."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import trio
from jsonschema import Draft202012Validator

from actors.protocol.agreement.versions import META_SUBSCRIPTION
from tests.e2e.daemons import Daemon, client, restarted, running, stand_in, write_config
from tests.e2e.test_stdio import BRIDGE, Bridge, started
from tests.fakes.era_clients import EraClient
from tests.fakes.http_client import JSON_HEADERS, legacy, modern, modern_headers
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
SERVERS: Json = {"growing": stand_in("growing"), "memo": stand_in("memo")}
MEMO = "memo://one"
CHANGED = "memo:resources/updated"


@contextmanager
def daemon_in(directory: Path) -> Iterator[Daemon]:
    with running(directory, SERVERS) as daemon:
        trio.run(daemon.ready)
        yield daemon


class Stream:
    """An open `events/stream`."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer

    async def next(self, what: str) -> Json:
        """Wait for a notification, and return its params; heartbeats may come before it."""
        while line := await trio.to_thread.run_sync(self._answer.readline):
            if line.startswith(b"data: {"):
                said = json.loads(line.removeprefix(b"data: "))
                assert said["params"]["_meta"] == {META_SUBSCRIPTION: "mine"}
                told = said["method"].rpartition("/")[2]
                if told != "heartbeat":
                    assert told == what, said
                    params: Json = said["params"]
                    return params
        raise AssertionError("the stream has ended")


@contextmanager
def streaming(daemon: Daemon, path: str, era: str, session: Any, **asked: Any) -> Iterator[Stream]:
    method, is_legacy = "events/stream", era == "legacy"
    body = legacy(method, asked, id_="mine") if is_legacy else modern(method, asked, id_="mine")
    headers = {**JSON_HEADERS, **session} if is_legacy else modern_headers(method)
    with closing(HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE_S)) as connection:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        assert answer.status == 200
        yield Stream(answer)
        answer.close()


@pytest.mark.parametrize(("path", "era"), [("/mcp", "modern"), ("/mcp/all", "legacy")])
def test_what_happens_is_streamed_and_polled(tmp_path: Path, path: str, era: str) -> None:
    """A server is added, the tools of another one change, and a resource of a third one is updated."""
    wanted: Json = {
        "mcp.server.registered": {"server": "late*"},
        "mcp.tools.updated": {"server": "growing"},
        CHANGED: {"uri": f"mcp://memo/{MEMO}"},
    }

    async def cause(daemon: Daemon, name: str) -> None:
        if name == CHANGED:
            await daemon.execute("memo:write", text="news")
        elif name == "mcp.tools.updated":
            await daemon.execute("growing:grow")
        else:
            write_config(daemon.directory, {**SERVERS, "later": stand_in("stubborn")})

    async def report(daemon: Daemon) -> None:
        async with client() as http:
            http.base_url = daemon.url
            asker = EraClient(http, path, era)
            await asker.greet()
            types = {each["name"]: each for each in (await asker.result("events/list"))["events"]}
            heard: Json = {}
            for name, arguments in wanted.items():
                asked = {"name": name, "arguments": arguments}
                begun = await asker.result("events/poll", **asked, cursor=None)
                assert (begun["events"], begun["truncated"]) == ([], False)
                with streaming(daemon, path, era, asker._session, **asked, cursor=begun["cursor"]) as stream:
                    assert (await stream.next("active"))["truncated"] is False
                    await cause(daemon, name)
                    event = await stream.next("event")
                polled = await asker.result("events/poll", **asked, cursor=begun["cursor"])
                assert [each["eventId"] for each in polled["events"]] == [event["eventId"]]
                rest = await asker.result("events/poll", **asked, cursor=event["cursor"])
                assert (rest["events"], rest["truncated"]) == ([], False)
                assert event["name"] == name
                Draft202012Validator(types[name]["payloadSchema"]).validate(event["data"])
                heard[name] = event["data"]
            assert heard["mcp.server.registered"]["server_slug"] == "later"
            assert heard["mcp.tools.updated"]["added_tools"] == ["sprout_5"]
            assert heard[CHANGED] == wanted[CHANGED]
            assert asker.wrong == []

    with daemon_in(tmp_path / "daemon") as daemon:
        trio.run(report, daemon)


async def hear(bridge: Bridge, what: str) -> Json:
    """Wait for a notification of the stream at a bridge."""
    while (said := await bridge.hear()).get("method") != f"notifications/events/{what}":
        pass
    params: Json = said["params"]
    return params


@pytest.mark.parametrize("end", ["kill", "term"])
def test_a_stream_at_the_bridge_outlives_its_daemon(tmp_path: Path, end: str) -> None:
    """Whether that died or was stopped, the client hears nothing of it but what may be missing."""
    asked: Json = {"name": "mcp.tool.executed", "arguments": {"tool": "echo"}, "cursor": None}

    async def follow(daemon: Daemon) -> None:
        home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        async with started([*BRIDGE, f"{daemon.url}/mcp"], home, tmp_path / "log") as bridge:
            await bridge.say(modern("events/stream", asked, id_="mine"))
            await hear(bridge, "active")
            await daemon.execute("growing:echo")
            first = await hear(bridge, "event")
            if end == "kill":
                await daemon.kill()
            else:
                daemon.process.send_signal(signal.SIGTERM)
                assert await daemon.ended() == 0
            with restarted(daemon) as following:
                await following.ready()
                gap = await hear(bridge, "active")
                assert gap["truncated"] is True, "what happened in the life of another daemon is not known"
                await following.execute("growing:echo")
                second = await hear(bridge, "event")
                assert second["eventId"] != first["eventId"]
                assert {each["_meta"][META_SUBSCRIPTION] for each in (first, gap, second)} == {"mine"}
                assert not [said for said in bridge.heard if "id" in said]
                assert await bridge.end() == 0

    with running(tmp_path / "daemon", SERVERS) as daemon:
        trio.run(daemon.ready)
        trio.run(follow, daemon)
