"""A daemon that takes tokens of an identity provider: what a client that shows one, or none, gets to see."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from trio_websocket import ConnectionClosed, ConnectionRejected

from supervisor.host.datadir import DataDir
from supervisor.identity import requester
from supervisor.oauth.bearer import verifier
from supervisor.oauth.bearer.verifier import IdentityProvider
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.identity_provider import EC, ISSUER, NOW, MemoryProvider, signed
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import message
from tests.scenario.daemon import World, world

SERVERS: dict[str, Any] = {"clock": {"command": "x"}, "vault": {"command": "x", "users": ["ana"]}}
TOOLS = {"clock": ["tell_time"], "vault": ["open_canary", "find_canary"]}
PUBLIC = "https://mcp.example"
PEOPLE: dict[str, Any] = {"users": {"ana": {"role": "admin", "subject": "248289"}, "ben": {"subject": "7"}}}
ASKING: dict[str, Any] = {"introspection": {"client_id": "a", "client_secret": "b"}}
Start = Callable[..., Any]


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> MemoryProvider:
    memory = MemoryProvider()
    make = IdentityProvider
    monkeypatch.setattr(verifier, "IdentityProvider", lambda issuer, nursery: make(issuer, nursery, memory))
    return memory


@pytest.fixture
def start(tmp_path: Path, data: DataDir, there: MemoryProvider) -> Start:
    def starting(
        auth: str = "oauth", issuer: dict[str, Any] | None = None, people: dict[str, Any] = PEOPLE, **more: Any
    ) -> AbstractAsyncContextManager[World]:
        issuers = [{"issuer": ISSUER, "audience": ["the daemon"], **(issuer or {})}]
        identity = {**people, "issuers": issuers} if auth != "tokens" else {}
        settings = {"auth": auth, "identity": identity, "public_url": PUBLIC, **more}
        fakes = {name: FakeServer(tools=[tool(each) for each in names]) for name, names in TOOLS.items()}
        begun = trio.current_time()
        clock = {"clock": lambda: NOW + trio.current_time() - begun}
        return world(tmp_path, data, SERVERS, fakes, daemon=clock, **settings)

    return starting


def challenge(answer: httpx2.Response) -> str:
    (line,) = answer.headers.get_list("www-authenticate")
    return str(line)


DOORS = ["/mcp", "/mcp/all", "/mcp/servers/clock", "/mcp/servers/none", "/ws", "/api/status"]


async def test_whoever_shows_no_good_token_is_told_where_to_get_one(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {
        "expired": signed(exp=NOW - 1000),
        "for somebody else": signed(aud="https://other.example/mcp"),
        "of a stranger": signed(sub="9"),
        "of another provider": signed(iss="https://evil.example"),
        "forged": signed()[:-8] + "AAAAAAAA",
        "opaque": "x",
        "empty": "",
    }
    monkeypatch.setattr(requester, "BURST", 1000)
    async with start() as at:
        for method, path in product(("GET", "POST", "DELETE", "PUT"), DOORS):
            door = path if path.startswith("/mcp") else "/mcp"
            told = await at.ask(method, path, content=b"no json")
            assert told.status_code == 401
            plain = (
                f'Bearer resource_metadata="{PUBLIC}/.well-known/oauth-protected-resource{door}", '
                'scope="mcp:read mcp:tools:execute"'
            )
            assert challenge(told) == plain
            for what, token in wrong.items():
                headers = {"authorization": f"Bearer {token}".rstrip()}
                answer = await at.http.request(method, path, content=b"no json", headers=headers)
                assert answer.status_code == 401, (what, method, path)
                error = challenge(answer)
                assert error.startswith(plain + ', error="invalid_token", error_description="'), (what, method, path)
        twice = [("authorization", f"Bearer {signed()}")] * 2
        for method in ("GET", "POST", "DELETE", "PUT"):
            assert (await at.http.request(method, "/mcp", headers=twice)).status_code == 401


async def test_a_good_token_is_let_in_by_each_transport_whoever_fails_beside(start: Start) -> None:
    async with start() as at:
        for number in range(40):
            await at[f"wrong{number}"].ask("GET", "/mcp")
        slowed = await at["wrong"].ask("GET", "/mcp")
        assert slowed.status_code == 429
        assert "www-authenticate" not in slowed.headers, "a challenge would begin a login"
        at.keys["ana"], at.keys["ben"] = signed(), signed(sub="7", aud="the daemon")
        assert await at["ana"].tools() == ["clock__tell_time", "vault__find_canary", "vault__open_canary"]
        assert await at["ben"].tools() == ["clock__tell_time"]
        assert (await at["ben"].result("clock-tell_time", n=1))["structuredContent"] == {"n": 1}
        assert (await at["ana"].ask("GET", "/api/status")).status_code == 200
        assert (await at["ben"].ask("GET", "/api/status")).status_code == 404, "never 403"
        async with at["ben"].socket("/ws") as socket:
            await socket.send(message("ping"))
            assert (await socket.next())["id"] == 1
        rejected = pytest.RaisesExc(ConnectionRejected, check=lambda error: error.status_code == 401)
        with pytest.RaisesGroup(rejected):
            async with at.socket("/ws"):
                pass


async def test_where_to_get_one_is_told_to_anybody(start: Start) -> None:
    async with start() as at:
        base = "/.well-known/oauth-protected-resource"
        documents = {}
        for path in ("", "/mcp", "/mcp/all", "/mcp/servers/clock", "/mcp/servers/none"):
            page = {"origin": "https://any.example"}
            answer = await at.ask("GET", base + path, headers=page)
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
            documents[path] = answer.json()
            assert documents[path]["resource"] == f"{PUBLIC}{path or '/mcp'}"
            assert (await at.ask("OPTIONS", base + path, headers=page)).status_code == 204
        assert documents["/mcp"]["authorization_servers"] == [ISSUER]
        one, other = documents["/mcp/servers/clock"], documents["/mcp/servers/none"]
        assert json.dumps(one).replace("clock", "none") == json.dumps(other)
        for path in ("/x", "/i/clock/mcp"):
            assert (await at.ask("GET", f"{base}{path}")).json()["error"] == "not_found"
        assert (await at.ask("POST", base)).status_code == 404


@pytest.mark.parametrize("auth", ["tokens", "oauth", "both"])
async def test_who_looks_for_an_authorization_server_here_gets_a_quick_no(start: Start, auth: str) -> None:
    async with start(auth) as at:
        asked = [("GET", f"/.well-known/{name}") for name in ("oauth-authorization-server", "openid-configuration")]
        asked += [("GET", "/.well-known/oauth-authorization-server/mcp"), ("POST", "/register")]
        asked += [("GET", "/.well-known/oauth-protected-resource/mcp")] if auth == "tokens" else []
        for method, path in asked:
            answer = await at.ask(method, path, json={})
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path
        if auth == "tokens":
            assert challenge(await at.ask("GET", "/mcp")) == 'Bearer realm="mcpvisor"'


async def test_a_token_for_one_server_is_of_no_use_elsewhere(start: Start) -> None:
    async with start() as at:
        at.keys["ana"] = signed(aud=f"{PUBLIC}/mcp/servers/clock")
        assert (await at["ana"].at("/mcp/servers/clock").send("tools/list")).status_code == 200
        for path in set(DOORS) - {"/mcp/servers/clock"}:
            assert (await at["ana"].at(path).send("tools/list")).status_code == 401, path


CALL = {"name": "execute_mcp_tool", "arguments": {"tool_path": "clock:tell_time", "arguments": {}}}


async def test_a_call_without_the_scope_for_it_is_the_one_thing_that_is_forbidden(start: Start) -> None:
    async with start() as at:
        at.keys["ana"] = signed(scope="mcp:read profile")
        told = set()
        for _ in range(2):
            answer = await at["ana"].send("tools/call", **CALL)
            assert answer.status_code == 403
            assert answer.json()["id"] == 1
            assert answer.json()["error"]["data"]["type"] == "insufficient_scope"
            told.add(challenge(answer))
        (line,) = told
        assert 'error="insufficient_scope"' in line
        assert re.findall(r'scope=(?:"([^"]+)"|([^\s,]+))', line) == [("mcp:read mcp:tools:execute", "")]
        head = modern_headers("tools/call", "execute_mcp_tool")
        sent = await at["ana"].ask("POST", "/mcp", content=modern("tools/call", CALL), headers=head)
        assert (sent.status_code, challenge(sent)) == (403, line)
        assert (await at["ana"].at("/mcp/all").send("tools/call", name="clock__tell_time")).status_code == 403
        assert (await at["ana"].ask("POST", "/api/reload")).status_code == 403
        assert (await at["ana"].ask("GET", "/api/status")).status_code == 200
        assert await at["ana"].tools()
        assert await at["ana"].discover("time")
        async with at["ana"].socket("/mcp") as socket:
            await socket.send(modern("tools/call", CALL))
            assert (await socket.next())["error"]["data"]["type"] == "insufficient_scope"
            await socket.send(message("tools/call", CALL))
            assert (await socket.next())["error"]["data"]["type"] == "insufficient_scope"
        at.keys["none"] = signed(scope="profile")
        answer = await at["none"].send("tools/list")
        assert (answer.status_code, challenge(answer)) == (403, line)


async def test_a_renewed_token_keeps_the_session_and_nobody_else_has_it(start: Start) -> None:
    async with start() as at:
        at.keys |= {"ana": signed(), "later": signed(exp=NOW + 900, jti="2"), "ben": signed(sub="7")}
        session = await at["ana"].session()
        assert (await at["later"].within(session).send("tools/list")).status_code == 200
        foreign = await at["ben"].within(session).send("tools/list")
        unknown = await at["ben"].within("x" * 40).send("tools/list")
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
        assert foreign.status_code == 404


async def test_what_is_open_ends_with_the_token(start: Start) -> None:
    async with start() as at:
        at.keys["ana"] = signed()
        session = await at["ana"].session()
        soon = at[signed(exp=NOW + 3)]
        headers = {**soon.within(session).headers, "accept": "text/event-stream"}
        with trio.fail_after(10):
            async with soon.socket("/ws") as socket:
                async with at.http.stream("GET", "/mcp", headers=headers) as stream:
                    assert stream.status_code == 200
                    with pytest.raises(httpx2.RemoteProtocolError):
                        async for _ in stream.aiter_raw():
                            pass
                with pytest.raises(ConnectionClosed):
                    await socket.next()


async def test_what_a_provider_has_revoked_ends_when_it_is_asked_again(
    start: Start, there: MemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "GOOD_S", 0.5)
    there.said["opaque"] = {"active": True, "sub": "7", "aud": f"{PUBLIC}/mcp", "scope": "mcp:read"}
    async with start(issuer=ASKING) as at:
        with trio.fail_after(10):
            async with at["opaque"].socket("/ws") as socket:
                await socket.send(message("ping"))
                assert await socket.next()
                there.said.clear()
                with pytest.raises(ConnectionClosed):
                    await socket.next()
        assert (await at["opaque"].ask("GET", "/mcp")).status_code == 401


async def signed_in(at: World, token: str) -> None:
    """Have the client signed in with a browser, as who has a token."""
    ticket = await at[token].ticket(purpose="sign-in")
    answer = await at.http.get(f"/ui/sign-in?ticket={ticket}", headers={"sec-fetch-site": "none"})
    assert answer.status_code == 303
    cookie, _, _ = answer.headers["set-cookie"].partition(";")
    at.http.headers["cookie"] = cookie  # it is for https alone


@pytest.mark.parametrize("how", ["revoked", "signed by a key that is withdrawn"])
async def test_who_is_signed_in_is_out_as_soon_as_the_token_is_good_no_more(
    start: Start, there: MemoryProvider, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(verifier, "GOOD_S", 0.5)
    for name in ("FRESH_S", "REFRESH_EVERY_S"):  # so often keys are read
        monkeypatch.setattr(verifier, name, 0.5)
    token = signed(sub="7") if how != "revoked" else "opaque"
    scope = "mcp:read mcp:tools:execute"
    there.said["opaque"] = {"active": True, "sub": "7", "aud": f"{PUBLIC}/mcp", "scope": scope}
    async with start(issuer=ASKING if how == "revoked" else {}) as at:
        await signed_in(at, token)
        socket_ticket = await at[token].ticket()
        assert (await at.http.get("/api/me")).json()["user"] == "ben"
        with trio.fail_after(20):
            async with at.http.stream("GET", "/api/events", headers={"accept": "text/event-stream"}) as events:
                assert events.status_code == 200
                withdraw(there, how)
                with suppress(httpx2.RemoteProtocolError):
                    async for _ in events.aiter_bytes():
                        pass
            assert (await at[token].ask("GET", "/api/me")).status_code == 401
            page = await at.http.get("/ui")
            assert (page.status_code, page.headers["location"]) == (303, "/ui/sign-in?next=/ui")
            assert (await at.http.get("/api/me")).status_code == 401
        rejected = pytest.RaisesExc(ConnectionRejected, check=lambda error: error.status_code == 401)
        with pytest.RaisesGroup(rejected):
            async with at.socket(f"/ws?ticket={socket_ticket}"):
                pass


def withdraw(there: MemoryProvider, how: str) -> None:
    if how == "revoked":
        there.said.clear()
    else:
        there.keys = (EC,)


async def test_a_provider_that_is_away_sends_nobody_to_a_login(start: Start, there: MemoryProvider) -> None:
    there.down = True
    async with start(auth="both", issuer=ASKING) as at:
        for token in (signed(), "opaque"):
            for _ in range(15):
                answer = await at[token].ask("POST", "/mcp")
                assert answer.status_code == 503
                assert answer.headers["retry-after"]
                assert "www-authenticate" not in answer.headers
        await at.admit("ben")
        assert await at["ben"].tools(), "our own tokens ask nobody"


async def test_our_own_tokens_are_shown_to_no_provider(start: Start, there: MemoryProvider) -> None:
    async with start(auth="both", issuer=ASKING) as at:
        await at.admit("ben")
        await at["ben"].ask("GET", "/mcp")
        await at["mcpv_mistyped"].ask("GET", "/mcp")
        await at["mcpvop_0_0"].ask("GET", "/mcp")
        assert there.asked["/introspect"] == 0
    async with start(auth="oauth") as at:
        assert (await at["ben"].ask("GET", "/mcp")).status_code == 401
        assert (await at.operator.ask("GET", "/api/status")).status_code == 200


async def test_pages_of_allowed_origins_may_ask_before_they_sign_in(start: Start) -> None:
    page = "https://inspector.example"
    async with start(allowed_origins=[page]) as at:
        asked = {"origin": page, "access-control-request-method": "POST"}
        answer = await at.ask("OPTIONS", "/mcp", headers=asked)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, page)
        assert "authorization" in answer.headers["access-control-allow-headers"]
        refused = await at.ask("POST", "/mcp", headers={"origin": page})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == page
        assert "WWW-Authenticate" in refused.headers["access-control-expose-headers"]
        foreign = {**asked, "origin": "https://evil.example"}
        assert (await at.ask("OPTIONS", "/mcp", headers=foreign)).status_code == 403


async def test_where_no_users_are_named_whoever_signs_in_is_a_member(start: Start) -> None:
    async with start(people={}) as at:
        at.keys["someone"] = signed(sub="anybody")
        assert await at["someone"].tools() == ["clock__tell_time"]
        assert (await at["someone"].ask("GET", "/api/status")).status_code == 404


async def test_a_provider_that_is_taken_out_of_the_file_lets_nobody_in_and_ends_what_is_open(start: Start) -> None:
    async with start(auth="both") as at:
        with trio.fail_after(20):
            async with at[signed()].socket("/ws") as socket:
                identity = {**PEOPLE, "issuers": [{"issuer": "https://other.example"}]}
                await at.edit(SERVERS, auth="both", identity=identity, public_url=PUBLIC)
                with pytest.raises(ConnectionClosed):
                    await socket.next()
        assert (await at[signed()].ask("GET", "/mcp")).status_code == 401
