"""Requests that try to be another one than they seem, and answers that are for nobody else: a whole daemon is asked."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.catalogue.snapshot import segment_of
from actors.registry import indexing
from actors.search.segment import Segment
from supervisor.host.datadir import DataDir
from tests.fakes.front_server import Ticker, read_all
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import Socket, message
from tests.scenario.daemon import World, world

SERVERS: dict[str, Any] = {"clock": {"command": "x"}, "vault": {"command": "x", "users": ["ana"]}}
IDENTITY: dict[str, Any] = {"users": {"ana": {"role": "admin"}, "ben": {}}}
TOLD_WITHIN_S = 30.0
AGAIN_S = 0.4
"""After so long what was told may be told again."""


async def raw(at: World, who: str | None, method: str, target: str, *headers: str) -> bytes:
    """Ask with a target as it is written, and return the whole answer."""
    host = at.http.base_url
    shown = [f"{name}: {value}" for name, value in at[who].headers.items()]
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host.netloc.decode()}", *shown, *headers, "Connection: close"]
    async with await trio.open_tcp_stream(host.host, host.port or 0) as stream:
        await stream.send_all("\r\n".join([*lines, "", ""]).encode("latin-1"))
        return await read_all(stream)


def scene(directory: Path, data: DataDir, **fakes: FakeServer) -> AbstractAsyncContextManager[World]:
    pace: dict[str, Any] = {"list_changed_min_interval_s": 0.1, "list_changed_debounce_s": 0.05}
    fakes = {"clock": FakeServer(), "vault": FakeServer(), **fakes}
    people = {"ana": {"role": "admin"}, "ben": {"role": "member"}}
    return world(directory, data, SERVERS, fakes, people=people, auth="tokens", identity=IDENTITY, **pace)


ADMINS = "api/access-tokens"
WAYS = [
    *(f"/mcp/../{ADMINS}", f"/healthz/../{ADMINS}", f"/./{ADMINS}", f"//{ADMINS}", "/api//access-tokens"),
    *(f"/{ADMINS}/", f"/{ADMINS}/.", f"/{ADMINS}.", f"/{ADMINS};x", f"/{ADMINS}%00", f"/{ADMINS}%20", f"/{ADMINS}#"),
    *("/api%2faccess-tokens", "/api%2Faccess-tokens", "/%61pi/access-tokens", "/api/%2e%2e/api/access-tokens"),
    *("/API/access-tokens", "/api/Access-Tokens", "/api\\access-tokens", f"/ui/static/../../{ADMINS}"),
    *(f"/ui/static/x/..%2f..%2f..%2f{ADMINS}", f"/.well-known/../{ADMINS}", f"/healthz/%2e%2e/{ADMINS}"),
    *(f"/{ADMINS}?path=/healthz", f"/{ADMINS}?/healthz", f"/healthz?/{ADMINS}", f"/mcp/..;/{ADMINS}"),
]


@pytest.mark.case("C20", "I14")
async def test_no_way_of_writing_a_path_leads_past_who_may_see_it(tmp_path: Path, data: DataDir) -> None:
    async with scene(tmp_path, data) as at:
        seen = await raw(at, "ana", "GET", f"/{ADMINS}")
        assert b'"user":"ben"' in seen.replace(b" ", b"")
        for target in WAYS:
            for who in (None, "ben"):
                told = await raw(at, who, "GET", target)
                assert told.startswith(b"HTTP/1.1 "), target
                assert b'"tokens"' not in told, (who, target)
                assert not told.startswith(b"HTTP/1.1 5"), (who, target)
                if who is None and not target.startswith("/healthz?"):
                    assert told[9:12] in (b"400", b"401", b"404"), (target, told)


OTHERWISE = [
    *("X-HTTP-Method-Override: DELETE", "X-Method-Override: POST", "X-HTTP-Method: PUT"),
    *("X-Original-URL: /healthz", "X-Rewrite-URL: /healthz", "X-Forwarded-Prefix: /ui", "X-Forwarded-Host: evil"),
    *("X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "Forwarded: for=127.0.0.1;host=evil", "Via: 1.1 x"),
    *("X-Internal-User: ana", "X-User: ana", "X_User: ana", "X-Forwarded-User: ana", "X-Remote-User: ana"),
    *("X-Internal-Key: 1", "mcp-init-host: evil.example", "X-Mcp-Authorized: vault", "Cookie: token=1; user=ana"),
]
ASKED = [("GET", f"/{ADMINS}"), ("GET", "/api/status"), ("GET", "/api/servers/vault"), ("DELETE", f"/{ADMINS}/x")]


@pytest.mark.case("C22", "C15")
async def test_no_field_of_a_head_makes_a_request_another_one_or_somebody_elses(tmp_path: Path, data: DataDir) -> None:
    async with scene(tmp_path, data) as at:
        for who in (None, "ben"):
            for method, target in ASKED:
                plain = (await raw(at, who, method, target))[9:12]
                for field in OTHERWISE:
                    told = await raw(at, who, method, target, field)
                    assert told[9:12] == plain, (who, method, target, field)
                    assert b'"tokens"' not in told
        assert b'"user":"ben"' in (await raw(at, "ana", "GET", f"/{ADMINS}", *OTHERWISE)).replace(b" ", b"")


UNIQUE = {"type": "array", "uniqueItems": True, "items": {"type": "object"}}
NESTED: dict[str, Any] = {"type": "string"}
for _ in range(40):
    NESTED = {"anyOf": [NESTED, {"allOf": [NESTED, {"type": "object"}]}]} if len(str(NESTED)) < 4000 else NESTED
COSTLY = {"type": "object", "properties": {"items": UNIQUE, "deep": NESTED}, "required": ["items"]}
HELD_MS = 100.0


@pytest.mark.case("C24")
async def test_arguments_that_are_costly_to_check_hold_up_nobody(tmp_path: Path, data: DataDir) -> None:
    costly = FakeServer(tools=[tool("echo", inputSchema=COSTLY)])
    arguments = {"items": [{"n": number} for number in range(6000)], "deep": {"a": [{}] * 1000}}
    async with scene(tmp_path, data, clock=costly) as at, trio.open_nursery() as nursery:
        nursery.start_soon((ticker := Ticker()).run)
        for name, params in (
            ("execute_mcp_tool", {"tool_path": "clock:echo", "arguments": arguments}),
            ("execute_mcp_tool", {"tool_path": "clock:echo", "arguments": json.dumps(arguments)}),
            ("clock__echo", arguments),
        ):
            told = await at["ben"].result(name, **params)
            assert told.get("structuredContent") == arguments or told["isError"], str(told)[:200]
        nursery.cancel_scope.cancel()
    assert ticker.longest_ms < HELD_MS


CHANGED = "notifications/tools/list_changed"


async def listening(at: World, stack: AsyncExitStack, user: str) -> Socket:
    """Open a socket of a user on which changes are told."""
    socket = await stack.enter_async_context(at[user].socket("/mcp/all"))
    await socket.greet()
    await told_of(socket, 1)
    return socket


async def told_of(socket: Socket, id_: int) -> list[str]:
    """Return what was told until a ping is answered that is sent now."""
    await socket.send(message("ping", id_=id_))
    told: list[str] = []
    with trio.fail_after(TOLD_WITHIN_S):
        while (heard := await socket.next()).get("id") != id_:
            told.append(heard["method"])
    return told


@pytest.mark.case("W11", "I06")
async def test_a_change_is_told_once_on_each_socket_of_who_sees_it_and_to_nobody_else(
    tmp_path: Path, data: DataDir
) -> None:
    async with scene(tmp_path, data) as at, AsyncExitStack() as stack:
        sockets = {name: await listening(at, stack, name.rstrip("2")) for name in ("ana", "ana2", "ben")}
        for name in ("ana", "ana2", "ben"):
            await told_of(sockets[name], 2)
        for server, who in (("vault", {"ana", "ana2"}), ("clock", {"ana", "ana2", "ben"})):
            at.fakes[server].tools.append(tool(f"grown_{server}"))
            await at.fakes[server].notify(CHANGED)
            with trio.fail_after(TOLD_WITHIN_S):
                for name in sorted(who):
                    assert await sockets[name].next() == {"jsonrpc": "2.0", "method": CHANGED}
            await trio.sleep(AGAIN_S)  # what is told twice is told an interval later
            for name, socket in sockets.items():
                assert await told_of(socket, 3) == [], (server, name)


MARKUP = "<img src=x onerror=alert(1)><script>alert(1)</script>\"'`{{7*7}}"
HOSTILE = tool("echo", MARKUP, title=MARKUP, annotations={"title": MARKUP})
PAGES = ("/ui", "/ui/tool?path=clock:echo", "/ui/servers/clock", "/ui/tools", "/ui/calls", "/ui/changes", "/ui/people")


@pytest.mark.case("I20")
async def test_no_page_runs_what_a_server_wrote_or_takes_a_form_that_it_did_not_make(
    tmp_path: Path, data: DataDir
) -> None:
    async with scene(tmp_path, data, clock=FakeServer(tools=[HOSTILE])) as at:
        await at["ben"].executed("clock:echo", **{MARKUP: MARKUP})
        shown = 0
        for path in PAGES:
            page = await at["ana"].ask("GET", path)
            assert page.status_code == 200, path
            policy = page.headers["content-security-policy"]
            assert {"script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy.split("; "))
            assert "unsafe" not in policy
            assert "<img src=x" not in page.text
            assert "<script>" not in page.text
            shown += "&lt;img src=x" in page.text
        assert shown, "it was there to be seen"
        for form in (b"", b"token=", b"token=0000"):
            kind = {"content-type": "application/x-www-form-urlencoded"}
            told = await at["ana"].ask("POST", "/ui/servers/clock/disable", content=form, headers=kind)
            assert told.status_code == 400
            foreign = {**kind, "origin": "https://evil.example"}
            told = await at["ana"].ask("POST", "/ui/servers/clock/disable", content=form, headers=foreign)
            assert told.status_code == 403
        assert (await at["ana"].row("clock"))["disabled"] is False


QUERIES = {
    **{text: text for text in ("(a+)+$", '"', "*", "NEAR(", "' OR 1=1 --", "!^$|", "\\" * 50, "a\x00b", "%00", "")},
    "dots": ".*" * 1000,
    "a megabyte": "find " * 200_000,
    "faces": "\U0001f600" * 500,
    "rtl": "\u202e\u05d0" * 500,
    "marks": "e" + "\u0301" * 5000,
}


@pytest.mark.case("Q01", "Q02")
async def test_no_query_is_more_than_words_or_takes_longer_than_its_turn(tmp_path: Path, data: DataDir) -> None:
    tools = [tool(f"find_{number}", f"Finds what has the number {number}.") for number in range(300)]
    async with scene(tmp_path, data, clock=FakeServer(tools=tools)) as at, trio.open_nursery() as nursery:
        nursery.start_soon((ticker := Ticker()).run)
        for name, query in QUERIES.items():
            told = await at["ben"].result("discover_mcp_tools", query=query)
            assert "content" in told or told["code"] == -32602, (name, str(told)[:200])
        nursery.cancel_scope.cancel()
    assert ticker.longest_ms < HELD_MS


SEARCHES, CHANGES = 60, 200


@pytest.mark.case("Q04")
async def test_searches_during_a_storm_of_changes_make_no_index_and_hold_up_nobody(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def noted(server: str, *of: Any) -> Segment:
        made.append(server)
        return segment_of(server, *of)

    tools = [tool(f"find_{number}", f"Finds what has the number {number}.") for number in range(1000)]
    monkeypatch.setattr(indexing, "segment_of", noted)
    async with scene(tmp_path, data, clock=FakeServer(tools=tools)) as at:
        made.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon((ticker := Ticker()).run)
            for number in range(SEARCHES):
                at.fakes["clock"].tools[-1] = tool(f"grown_{number}", "Grows.")
                await at.fakes["clock"].notify(CHANGED, CHANGES // SEARCHES)
                first, *_ = await at["ben"].discover(f"what has the number {number}")
                assert first.startswith("clock:find_")
            nursery.cancel_scope.cancel()
        assert len(made) < SEARCHES / 3, "readings are a second apart, and each is indexed once"
        assert ticker.longest_ms < HELD_MS
