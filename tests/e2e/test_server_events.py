"""Events of a server (SEP-3415) through its own door: listed, polled, streamed and sent, in both eras on both sides."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from actors.protocol.agreement.versions import META_SUBSCRIPTION
from tests.e2e.daemons import Daemon, running
from tests.fakes.era_clients import EraClient
from tests.fakes.http_client import JSON_HEADERS, legacy, modern, modern_headers

pytestmark = pytest.mark.e2e

SERVER = Path(__file__).with_name("servers") / "events.py"
EVENTS = "io.modelcontextprotocol/events"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with a server of each era that has events."""
    entry = {"command": sys.executable, "args": ["-I", str(SERVER)]}
    with running(tmp_path_factory.mktemp("events"), {"newer": entry, "older": {**entry, "era": "legacy"}}) as daemon:
        trio.run(daemon.ready)
        yield daemon


@pytest.fixture(scope="module")
def beyond(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One that reaches these servers over HTTP: they are behind the other one."""
    remote = {name: {"url": f"{daemon.url}/mcp/servers/{name}"} for name in ("newer", "older")}
    remote["older"]["era"] = "legacy"
    with running(tmp_path_factory.mktemp("beyond"), remote) as far:
        trio.run(far.ready)
        yield far


def messages(daemon: Daemon, path: str, era: str, params: Any, session: Any, until: str = "") -> list[Any]:
    """What a stream brings, up to the message of a method, or to the result; a legacy client says that it leaves."""
    name, is_legacy = "events/stream", era == "legacy"
    body = legacy(name, params, id_="mine") if is_legacy else modern(name, params, id_="mine")
    headers = {**JSON_HEADERS, **session} if is_legacy else modern_headers(name)
    host, _, port = daemon.url.rpartition("/")[2].rpartition(":")
    heard: list[Any] = []
    with closing(HTTPConnection(host, int(port), timeout=60)) as connection:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        while line := answer.readline():
            if line.startswith(b"data: {"):
                heard.append(json.loads(line.removeprefix(b"data: ")))
                if heard[-1].get("method") == until or "id" in heard[-1]:
                    break
    if is_legacy and until:
        with closing(HTTPConnection(host, int(port), timeout=60)) as connection:
            left = legacy("notifications/cancelled", {"requestId": "mine"}, id_=None)
            connection.request("POST", path, left, headers)
            assert connection.getresponse().status == 202
    return heard


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("server", ["older", "newer"])
def test_everything_passes_in_both_eras(request: pytest.FixtureRequest, over: str, server: str, era: str) -> None:
    daemon: Daemon = request.getfixturevalue("daemon" if over == "stdio" else "beyond")
    path = f"/mcp/servers/{server}"

    async def report() -> None:
        async with httpx2.AsyncClient(base_url=daemon.url) as http:
            client = EraClient(http, path, era)
            assert (await client.greet())["capabilities"]["extensions"] == {EVENTS: {"listChanged": False}}
            listed = (await client.result("events/list"))["events"]
            assert [(each["name"], each["delivery"]) for each in listed] == [
                ("tick", ["poll", "push", "webhook"]),
                ("hook", ["webhook"]),
            ]
            watched = {"name": "tick", "arguments": {}}
            begun = await client.result("events/poll", **watched, cursor=None)
            assert (begun["events"], begun["cursor"], begun["truncated"]) == ([], "100", False)
            late = await client.result("events/poll", **watched, cursor="3", maxEvents=2)
            assert [each["eventId"] for each in late["events"]] == ["evt_95", "evt_96"]
            assert (late["cursor"], late["truncated"], late["hasMore"], late["nextPollMs"]) == ("97", True, True, 1000)
            refused = (await client.ask("events/poll", name="tock", arguments={}))["error"]
            assert (refused["code"], refused["data"]) == (-32023, {"kind": "event"})
            address = {"mode": "webhook", "url": "https://example.org/hook", "secret": f"whsec_{'A' * 32}"}
            taken = await client.result("events/subscribe", **watched, delivery=address, cursor=None, ttlMs=None)
            assert (taken["id"], taken["cursor"], taken["truncated"]) == ("sub_1", "100", False)
            assert "error" not in await client.ask("events/unsubscribe", **watched, delivery={"url": address["url"]})

            session = client._session
            ends = {"name": "tick", "arguments": {"ends": True}, "cursor": "3"}
            *told, result = await trio.to_thread.run_sync(messages, daemon, path, era, ends, session)
            assert [each["method"].rpartition("/")[2] for each in told] == [
                "active",
                *["event"] * 5,
                "error",
                "heartbeat",
            ]
            assert {each["params"]["_meta"][META_SUBSCRIPTION] for each in told} == {"mine"}
            assert told[0]["params"] | {"_meta": {}} == {"cursor": "95", "truncated": True, "_meta": {}}
            assert [each["params"]["cursor"] for each in told[1:6]] == ["96", "97", "98", "99", "100"]
            assert (result["id"], result["result"]["_meta"][META_SUBSCRIPTION]) == ("mine", "mine")
            assert ("resultType" in result["result"]) is (era == "modern")
            goes_on = {"name": "tick", "arguments": {}, "cursor": "99"}
            heard = await trio.to_thread.run_sync(
                messages, daemon, path, era, goes_on, session, "notifications/events/heartbeat"
            )
            assert [each["params"].get("cursor") for each in heard] == ["99", "100", None, "100"]
            assert client.wrong == []

    trio.run(report)
