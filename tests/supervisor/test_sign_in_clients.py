"""What clients of the field do when they are asked who they are: each signs in once, and never because of a policy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from supervisor.host.datadir import DataDir
from supervisor.oauth.bearer import verifier
from supervisor.oauth.bearer.verifier import IdentityProvider
from tests.fakes.identity_provider import ISSUER, NOW, MemoryProvider, signed
from tests.fakes.sign_in_clients import CLIENTS, PUBLIC, Habits, SignInClient
from tests.scenario.daemon import World, configuration, running
from tests.supervisor.test_identity_of_daemon import connect

SERVERS: dict[str, Any] = {"clock": {"command": "x"}, "vault": {"command": "x", "users": ["ana"]}}
IDENTITY: dict[str, Any] = {
    "users": {"ana": {}, "ben": {"subject": "7"}},
    "issuers": [{"issuer": ISSUER, "audience": ["the daemon"]}],
}
LEEWAY_S = 60
CALL: dict[str, Any] = {"name": "clock-tell_time", "arguments": {"n": 1}}
ROWS = pytest.mark.parametrize("habits", CLIENTS.values(), ids=CLIENTS)


class Gate:
    """A daemon behind an identity provider, whose tokens are good until the clock is `put` later."""

    def __init__(self, client: httpx2.AsyncClient, put: Callable[[float], None]) -> None:
        self.client = client
        self.put = put
        self.expires_at = NOW + 600
        self._numbers = count()

    def issue(self, resource: str) -> str:
        return signed(sub="7", aud=resource or "the daemon", exp=self.expires_at, jti=str(next(self._numbers)))

    def client_of(self, habits: Habits, path: str = "/mcp") -> SignInClient:
        return SignInClient(self.client, habits, self.issue, path)


@asynccontextmanager
async def gate(directory: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    make, provider, now = IdentityProvider, MemoryProvider(), [NOW]
    monkeypatch.setattr(verifier, "IdentityProvider", lambda issuer, nursery: make(issuer, nursery, provider))
    config = configuration(directory, SERVERS, auth="both", identity=IDENTITY, public_url=PUBLIC)
    async with running(config, data, connect=connect, clock=lambda: now[0]) as client:
        await World(client, data).operator.ready()
        yield Gate(client, lambda later: now.__setitem__(0, later))


@ROWS
@pytest.mark.parametrize("path", ["/mcp", "/mcp/servers/clock"])
async def test_it_signs_in_once_and_calls(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch, habits: Habits, path: str
) -> None:
    async with gate(tmp_path, data, monkeypatch) as at:
        client = at.client_of(habits, path)
        await client.connect()
        listed = (await client.ask("tools/list")).json()["result"]["tools"]
        assert listed
        assert client.browsers == (0 if habits.static else 1)
        assert client.seen[401] == client.browsers


@ROWS
async def test_what_it_may_not_have_costs_it_no_login(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch, habits: Habits
) -> None:
    """VS Code opens a browser for any 403, Claude Code takes one for a token that has expired."""
    async with gate(tmp_path, data, monkeypatch) as at:
        client = at.client_of(habits)
        await client.connect()
        before, browsers = client.seen.copy(), client.browsers
        for name in ("vault-open_canary", "nothing-there"):
            answer = await client.ask("tools/call", name=name, arguments={})
            assert answer.status_code == 200
            told = answer.json()
            assert "error" in told or told["result"]["isError"]
        assert (client.seen - before).keys() == {200}
        for path in ("/api/status", "/api/servers/vault", "/api/access-tokens"):
            assert (await at.client.get(path, headers=client.headers())).status_code == 404
        assert client.browsers == browsers


@ROWS
async def test_a_token_that_expires_at_the_fifth_call_costs_a_refresh_and_no_session(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch, habits: Habits
) -> None:
    async with gate(tmp_path, data, monkeypatch) as at:
        client = at.client_of(habits)
        await client.connect()
        session = client.session
        for number in range(8):
            if number == 4:
                at.put(at.expires_at + LEEWAY_S + 1)
                at.expires_at += 1200
            answer = await client.ask("tools/call", **CALL)
            if habits.static and number >= 4:  # until its user gives it another one
                assert answer.status_code == 401
            else:
                assert answer.json()["result"]["structuredContent"] == {"n": 1}, number
        assert client.session == session
        assert client.refreshed == (0 if habits.static else 1)


@ROWS
async def test_a_token_that_expires_on_the_stream_is_renewed_there(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch, habits: Habits
) -> None:
    async with gate(tmp_path, data, monkeypatch) as at:
        client = at.client_of(habits)
        await client.connect()
        client.token = signed(sub="7", aud="the daemon", exp=NOW - LEEWAY_S + 1)
        with trio.fail_after(30):
            assert await client.listen() == 200, "it ends with the token"
            at.put(NOW + 2)
            assert await client.listen() == 401
            if habits.static:
                return
            assert client.refreshed == 1
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.listen)
                answer = await client.ask("tools/call", **CALL)
                nursery.cancel_scope.cancel()
        assert answer.json()["result"]["structuredContent"] == {"n": 1}
        assert client.browsers == 1
