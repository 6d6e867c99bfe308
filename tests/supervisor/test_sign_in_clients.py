"""What clients of the field do when they are asked who they are: each signs in once, and never because of a policy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.host.datadir import DataDir
from supervisor.identity import requester
from supervisor.oauth.bearer import verifier
from supervisor.oauth.bearer.verifier import IdentityProvider
from tests.fakes.clock import Clock
from tests.fakes.identity_provider import ISSUER, NOW, MemoryProvider, signed
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.sign_in_clients import CLIENTS, PUBLIC, Habits, SignInClient
from tests.scenario.daemon import World, world

SERVERS: dict[str, Any] = {"clock": {"command": "x"}, "vault": {"command": "x", "users": ["ana"]}}
IDENTITY: dict[str, Any] = {
    "users": {"ana": {}, "ben": {"subject": "7"}},
    "issuers": [{"issuer": ISSUER, "audience": ["the daemon"]}],
}
LEEWAY_S = 60
CALL: dict[str, Any] = {"name": "clock-tell_time", "arguments": {"n": 1}}


class Gate:
    """A daemon behind an identity provider, whose tokens are good until the clock `now` is later."""

    def __init__(self, at: World, now: Clock) -> None:
        self.at = at
        self.now = now
        self.expires_at = NOW + 600
        self._numbers = count()

    def issue(self, resource: str) -> str:
        return signed(sub="7", aud=resource or "the daemon", exp=self.expires_at, jti=str(next(self._numbers)))

    def client_of(self, habits: Habits, path: str = "/mcp") -> SignInClient:
        return SignInClient(self.at.http, habits, self.issue, path)


@asynccontextmanager
async def gate(directory: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    make, provider, now = IdentityProvider, MemoryProvider(), Clock(NOW)
    monkeypatch.setattr(requester, "BURST", 1000)  # all of them come from one address
    monkeypatch.setattr(verifier, "IdentityProvider", lambda issuer, nursery: make(issuer, nursery, provider))
    fakes = {"clock": FakeServer(tools=[tool("tell_time")])}
    settings: dict[str, Any] = {"auth": "both", "identity": IDENTITY, "public_url": PUBLIC}
    async with world(directory, data, SERVERS, fakes, daemon={"clock": now}, **settings) as at:
        yield Gate(at, now)


async def test_each_signs_in_once_and_calls(tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    async with gate(tmp_path, data, monkeypatch) as gated:
        for (name, habits), path in product(CLIENTS.items(), ("/mcp", "/mcp/servers/clock")):
            client = gated.client_of(habits, path)
            await client.connect()
            assert (await client.ask("tools/list")).json()["result"]["tools"], (name, path)
            assert client.browsers == (0 if habits.static else 1), (name, path)
            assert client.seen[401] == client.browsers, (name, path)


async def test_what_it_may_not_have_costs_none_a_login(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VS Code opens a browser for any 403, Claude Code takes one for a token that has expired."""
    async with gate(tmp_path, data, monkeypatch) as gated:
        for name, habits in CLIENTS.items():
            client = gated.client_of(habits)
            await client.connect()
            before, browsers = client.seen.copy(), client.browsers
            for tool_name in ("vault-echo", "nothing-there"):
                answer = await client.ask("tools/call", name=tool_name, arguments={})
                assert answer.status_code == 200, (name, tool_name)
                told = answer.json()
                assert "error" in told or told["result"]["isError"], (name, tool_name)
            assert (client.seen - before).keys() == {200}, name
            for path in ("/api/status", "/api/servers/vault", "/api/access-tokens"):
                assert (await gated.at.http.get(path, headers=client.headers())).status_code == 404, (name, path)
            assert client.browsers == browsers, name


async def test_a_token_that_expires_at_the_fifth_call_costs_a_refresh_and_no_session(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gate(tmp_path, data, monkeypatch) as gated:
        for name, habits in CLIENTS.items():
            client = gated.client_of(habits)
            await client.connect()
            session = client.session
            for number in range(8):
                if number == 4:
                    gated.now.now = gated.expires_at + LEEWAY_S + 1
                    gated.expires_at += 1200
                answer = await client.ask("tools/call", **CALL)
                if habits.static and number >= 4:  # until its user gives it another one
                    assert answer.status_code == 401, (name, number)
                else:
                    assert answer.json()["result"]["structuredContent"] == {"n": 1}, (name, number)
            assert client.session == session, name
            assert client.refreshed == (0 if habits.static else 1), name


async def test_a_token_that_expires_on_the_stream_is_renewed_there(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gate(tmp_path, data, monkeypatch) as gated:
        clients = {name: gated.client_of(habits) for name, habits in CLIENTS.items()}
        ended: dict[str, int] = {}

        async def listen(name: str) -> None:
            ended[name] = await clients[name].listen()

        for client in clients.values():
            await client.connect()
            client.token = signed(sub="7", aud="the daemon", exp=NOW - LEEWAY_S + 1)
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for name in clients:
                    nursery.start_soon(listen, name)
            assert ended == dict.fromkeys(CLIENTS, 200), "it ends with the token"
            gated.now.now = NOW + 2
            for name, client in clients.items():
                assert await client.listen() == 401, name
                if CLIENTS[name].static:
                    continue
                assert client.refreshed == 1, name
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.listen)
                    answer = await client.ask("tools/call", **CALL)
                    nursery.cancel_scope.cancel()
                assert answer.json()["result"]["structuredContent"] == {"n": 1}, name
                assert client.browsers == 1, name
