"""A daemon that asks who comes in: what is foreign is as if it were not there."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import trio
from trio_websocket import ConnectionClosed, ConnectionRejected

from actors.kit import Reply
from actors.messages import Question
from supervisor import operations
from supervisor.bridge.address import read_address
from supervisor.bridge.connection import NotReached, open_connection
from supervisor.daemon_client.client import RequestRefused
from supervisor.daemon_client.client import connect as connect_daemon
from supervisor.daemon_client.sockets import open_socket
from supervisor.front import wiring
from supervisor.front.pages.logs import PageSockets
from supervisor.front.pages.view import View
from supervisor.host.datadir import DataDir, open_data_dir
from supervisor.identity import requester, tokens
from supervisor.identity.operator_key import GOOD_FOR_S, KEY_FILE, OperatorKey, endpoint, sign_pass
from supervisor.servers.reloading.refusal import HEADER
from supervisor.service.asking.elicitations import CallElicitations
from supervisor.store.write_behind import WriteBehind
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.daemon import World, configuration, running, world

IDENTITY: dict[str, Any] = {
    "users": {"ana": {"role": "admin"}, "ben": {}, "cem": {"role": "auditor"}},
    "teams": {"core": {"members": ["ana", "ben"], "servers": ["search"]}},
}
SERVERS: dict[str, Any] = {
    "search": {"command": "x", "description": "search of the core team"},
    "vault": {"command": "x", "users": ["ana"], "description": "canary of ana"},
    "clock": {"command": "x", "description": "what time it is"},
}
TOOLS = {"search": ["find_page", "read_page"], "vault": ["open_canary", "find_canary"], "clock": ["tell_time"]}


@pytest.fixture(autouse=True)
def known_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the key of the daemon."""
    monkeypatch.setenv("MCPVISOR_DATA_DIR", str(tmp_path / "data"))


def doorway(
    directory: Path, data: DataDir, servers: dict[str, Any] = SERVERS, *users: str, **settings: Any
) -> AbstractAsyncContextManager[World]:
    """A daemon to which these users are admitted, as members."""
    fakes = {
        server: FakeServer(tools=[tool(name) for name in names], silent_at={"events/stream"})
        for server, names in TOOLS.items()
    }
    given = {"auth": "tokens", "identity": IDENTITY, "people": {user: {} for user in users}, **settings}
    return world(directory, data, servers, fakes, **given)


@pytest.mark.case("I11")
async def test_whoever_shows_nothing_is_told_of_nothing(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requester, "BURST", 1000)  # whoever shows many wrong ones would be slowed down
    paths = ("/mcp", "/mcp/all", "/mcp/servers/clock", "/mcp/servers/none", "/api/status", "/none")
    async with doorway(tmp_path, data, {}) as at:
        for case in product(("GET", "POST", "DELETE", "PUT"), paths):
            told = set()
            for shown in (None, "mcpv_none", "x"):
                answer = await at[shown].ask(*case, content=b"no json")
                assert answer.status_code == 401, case
                assert answer.headers["www-authenticate"].startswith('Bearer realm="mcpvisor"'), case
                assert answer.json()["error"]["data"]["type"] == "unauthenticated", case
                told.add((answer.headers["www-authenticate"], answer.content))
            assert len(told) == 2, case


async def test_what_anybody_may_know_needs_no_token(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        for path in ("/", "/healthz", "/readyz"):
            assert (await at.ask("GET", path)).status_code in (200, 503)
        assert await at.page("/readyz") == {"ready": True}, "no names"
        assert "servers" in await at.operator.page("/readyz")


async def test_people_see_and_call_what_is_theirs(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, people={user: {"role": "admin"} for user in ("ana", "ben", "cem")}) as at:
        assert await at.operator.tools() == [
            *("clock__tell_time", "search__find_page", "search__read_page"),
            *("vault__find_canary", "vault__open_canary"),
        ]
        assert await at["ana"].tools() == await at.operator.tools()
        assert await at["ben"].tools() == ["clock__tell_time", "search__find_page", "search__read_page"]
        assert await at["cem"].tools() == ["clock__tell_time"]
        greeting = (await at["ben"].rpc("initialize", protocolVersion="2025-11-25"))["result"]
        assert "search" in greeting["instructions"], "the first of a realm is told what there is"
        assert "vault" not in greeting["instructions"]
        assert (await at["ben"].result("search-find_page", n=1))["structuredContent"] == {"n": 1}
        for name in ("vault-open_canary", "execute_mcp_tool"):
            refused = await at["ben"].result(name, tool_path="vault:open_canary", arguments={})
            assert "there is no" in json.dumps(refused) or "not" in json.dumps(refused)
            assert "canary of ana" not in json.dumps(refused)
        found = (await at["ben"].result("discover_mcp_tools", query="find canary"))["structuredContent"]
        assert "vault" not in json.dumps(found)
        door = (await at["ben"].at("/mcp/servers/vault").rpc("tools/list"))["error"]
        none = (await at["ben"].at("/mcp/servers/nowhere").rpc("tools/list"))["error"]
        assert door["message"] == none["message"].replace("nowhere", "vault")


@pytest.mark.case("I01")
async def test_one_beside_another_gets_what_one_alone_gets(tmp_path: Path, data: DataDir) -> None:
    """The twin daemons: ben beside ana with a vault, and ben where there is neither."""
    said: list[list[Any]] = []
    alone = {name: entry for name, entry in SERVERS.items() if name != "vault"}
    for servers in (SERVERS, alone):
        async with doorway(tmp_path, data, servers, "ben") as at:
            ben = at["ben"]
            answers = [
                await ben.send("initialize", protocolVersion="2025-11-25"),
                await ben.at("/mcp/all").send("tools/list"),
                await ben.send("tools/call", name="discover_mcp_tools", arguments={"query": "*", "limit": 50}),
                await ben.send("resources/list"),
                await ben.ask("GET", "/api/status"),
                await ben.ask("POST", "/api/access-tokens", json={"user": "ben"}),
            ]
            for probe in ("vault", "vault:open_canary", "vault-open_canary", "open_canary", "find canary"):
                answers += [
                    await ben.send("tools/call", name="discover_mcp_tools", arguments={"query": probe}),
                    await ben.send("tools/call", name="execute_mcp_tool", arguments={"tool_path": probe}),
                    await ben.send("tools/call", name=probe, arguments={}),
                    await ben.at(f"/mcp/servers/{probe}").send("tools/list"),
                    await ben.send("resources/read", uri=f"mcp://{probe}/x"),
                    await ben.ask("GET", f"/api/servers/{probe}"),
                ]
            said.append([(answer.status_code, without_time(answer.text)) for answer in answers])
    for beside, by_itself in zip(*said, strict=True):
        assert beside == by_itself
    assert not [answer for answer in said[0] if answer[0] in (401, 403)]


def without_time(text: str) -> str:
    """An answer without how long it took."""
    return re.sub(r'(search_time_ms\\*":)[\d.]+', r"\1", text)


async def test_a_token_that_is_revoked_or_expired_lets_nobody_in(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}) as at:
        id_ = await at.admit("ben", label="laptop")
        assert (await at["ben"].send("ping")).status_code == 200
        (row,) = (await at.operator.page("/api/access-tokens"))["tokens"]
        assert (row["id"], row["user"], row["label"], row["role"]) == (id_, "ben", "laptop", "member")
        assert at.keys["ben"] not in json.dumps(row)
        await at.revoke(id_)
        assert (await at["ben"].send("ping")).status_code == 401
        for who in ("ben", "operator"):
            path = f"/api/access-tokens/{id_}"
            assert (await at[who].ask("DELETE", path)).status_code == (401 if who == "ben" else 400)


async def test_a_token_that_cannot_be_made_says_why(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doorway(tmp_path, data, {}) as at:
        monkeypatch.setattr(tokens, "MAX_TOKENS", 1)
        await at.admit("ben")
        full = await at.said("POST", "/access-tokens", 409, {"user": "ben"})
        assert full.startswith("there are 1 token")
        monkeypatch.setattr(tokens, "MAX_TOKENS", 9)
        monkeypatch.setattr(WriteBehind, "state", "degraded")
        assert "cannot write its database" in await at.said("POST", "/access-tokens", 503, {"user": "ben"})


async def test_what_is_wrong_in_the_file_is_told_to_auditors_alone(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, people={user: {"role": "auditor"} for user in ("ben", "cem")}) as at:
        at.path.write_text(at.path.read_text().replace('"mcpServers"', '"mcpServers": 1, "canary"', 1))
        await at.reload(422)
        told = {}
        for who in (None, "ben", "cem", "operator"):
            answers = [await at[who].ask("GET", path) for path in ("/readyz", "/api/status", "/api/none")]
            told[who] = [HEADER in answer.headers for answer in answers]
        assert told[None] == told["ben"] == [False, False, False]
        assert told["cem"] == told["operator"] == [False, True, True]


@pytest.mark.case("D10")
async def test_tokens_are_known_after_a_restart_and_those_of_no_user_are_none(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}, "ben") as at:
        keys = at.keys
    async with doorway(tmp_path, data, {}) as at:
        at.keys = keys
        assert (await at["ben"].send("ping")).status_code == 200
    async with doorway(tmp_path, data, {}, identity={"users": {"ana": {}}}) as at:
        at.keys = keys
        assert (await at["ben"].send("ping")).status_code == 401
        assert "there is no user 'ben'" in await at.said("POST", "/access-tokens", 400, {"user": "ben"})


@pytest.mark.case("I10")
async def test_guessing_is_slow_and_keeps_nobody_out_who_is_right(
    tmp_path: Path, data: DataDir, caplog: pytest.LogCaptureFixture
) -> None:
    async with doorway(tmp_path, data, {}, "ben") as at:
        statuses = [(await at["x"].send("ping")).status_code for _ in range(13)]
        assert statuses == [401] * 10 + [429] * 3
        refused = await at["x"].send("ping")
        assert int(refused.headers["retry-after"]) > 0
        told = [each.getMessage() for each in caplog.records if "wrong tokens" in each.getMessage()]
        assert told == ["127.0.0.1 shows wrong tokens and is slowed down; 11 were wrong so far"]
        assert (await at["ben"].send("ping")).status_code == 200


ENDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no user any more": ({"users": {"ana": {}}}, {}),
    "in no team any more": ({"users": {"ana": {}, "ben": {}}}, {}),
    "of a team without servers": ({**IDENTITY, "teams": {"core": {"members": ["ana", "ben"]}}}, {}),
    "no user of a server any more": (IDENTITY, {"vault": {"command": "x", "users": ["ana"]}}),
}
"""Who is known then, and which servers are different."""
OF_BOTH: dict[str, Any] = {"search": {"command": "x"}, "vault": {"command": "x", "users": ["ana", "ben"]}}


@pytest.mark.case("W10", "D10", "I12", "I17")
@pytest.mark.parametrize("why", ["revoked", *ENDS])
async def test_streams_end_with_the_right_to_them(tmp_path: Path, data: DataDir, why: str) -> None:
    async with doorway(tmp_path, data, OF_BOTH) as at:
        ids = {user: await at.admit(user) for user in ("ben", "ana")}
        ended = {what: trio.Event() for what in (*ids, "socket")}

        async def listen(user: str, *, task_status: trio.TaskStatus[None]) -> None:
            opened = await at[user].send("initialize", protocolVersion="2025-11-25")
            headers = {**at[user].headers, "accept": "text/event-stream"}
            headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            async with at.http.stream("GET", "/mcp", headers=headers) as answer:
                assert answer.status_code == 200
                task_status.started()
                await until_its_end(answer)
            ended[user].set()

        async def speak(*, task_status: trio.TaskStatus[None]) -> None:
            async with at["ben"].websocket("/ws") as socket:
                task_status.started()
                with pytest.raises(ConnectionClosed):
                    await socket.get_message()
            ended["socket"].set()

        async with trio.open_nursery() as nursery:
            await nursery.start(listen, "ben")
            await nursery.start(listen, "ana")
            await nursery.start(speak)
            if why == "revoked":
                await at.revoke(ids["ben"])
            else:
                identity, servers = ENDS[why]
                await at.edit({**OF_BOTH, **servers}, auth="tokens", identity=identity)
            with trio.fail_after(20):
                await ended["ben"].wait()
                await ended["socket"].wait()
            assert (await at["ana"].send("ping")).status_code == 200
            assert not ended["ana"].is_set() or why != "revoked"
            nursery.cancel_scope.cancel()


async def until_its_end(answer: httpx2.Response) -> None:
    with suppress(httpx2.HTTPError):
        async for _ in answer.aiter_bytes():
            pass


@pytest.mark.case("W10", "I12")
async def test_what_has_no_end_of_its_own_ends_when_its_token_expires(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, OF_BOTH) as at:
        await at.admit("ben", expires_in_s=1.5)
        ben = at["ben"]
        opened = await ben.send("initialize", protocolVersion="2025-11-25")
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "accept": "text/event-stream"}
        listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        ended: list[str] = []

        async def stream(name: str, method: str, headers: dict[str, str], content: bytes = b"") -> None:
            async with at.http.stream(method, "/mcp", headers={**headers, **ben.headers}, content=content) as answer:
                assert answer.status_code == 200
                await until_its_end(answer)
            ended.append(name)

        async def events() -> None:
            headers, body = modern_headers("events/stream"), modern("events/stream", {"name": "tick"})
            with suppress(httpx2.HTTPError):
                await ben.ask("POST", "/mcp/servers/search", headers=headers, content=body)
            ended.append("events")

        async def socket() -> None:
            async with ben.websocket("/ws") as socket:
                with pytest.raises(ConnectionClosed):
                    await socket.get_message()
            ended.append("socket")

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream, "stream", "GET", session)
                nursery.start_soon(stream, "listen", "POST", modern_headers("subscriptions/listen"), listen)
                nursery.start_soon(socket)
                nursery.start_soon(events)
        assert sorted(ended) == ["events", "listen", "socket", "stream"]
        assert (await ben.send("ping")).status_code == 401


@pytest.mark.case("I23")
async def test_nobody_takes_all_connections_from_others(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}, "ana", "ben", max_connections=12) as at:
        async with AsyncExitStack() as sockets:
            for _ in range(6):
                await sockets.enter_async_context(at["ana"].websocket("/ws"))
            refused = await at["ana"].send("ping")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert refused.json()["error"]["data"]["type"] == "overloaded"
            assert "6 requests of yours are open" in refused.json()["error"]["message"]
            assert (await at["ben"].send("ping")).status_code == 200
            await at.order("GET", "/status")
        while (await at["ana"].send("ping")).status_code == 429:  # the ends of sockets are seen one after the other
            pass


async def tools_by_bridge(at: World) -> set[str]:
    """Which tools a program finds that speaks through `mcpvisor stdio`."""
    async with open_connection(read_address(f"{at.url}/mcp/all")) as connection:
        await connection.send(modern("tools/list"))
        answer = json.loads(await connection.receive() or b"")
    return {tool["name"] for tool in answer["result"]["tools"]}


async def test_the_bridge_comes_in_by_the_token_of_its_user_or_as_the_operator(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doorway(tmp_path, data, SERVERS, "ben") as at:
        assert len(await tools_by_bridge(at)) == 5, "whoever can read the key of the daemon is its operator"
        monkeypatch.setenv("MCPVISOR_TOKEN", at.keys["ben"])
        assert await tools_by_bridge(at) == {"clock__tell_time", "search__find_page", "search__read_page"}
        monkeypatch.setenv("MCPVISOR_TOKEN", "mcpv_wrong")
        with pytest.raises(NotReached, match="401: the token is not known here"):
            await tools_by_bridge(at)


async def test_a_page_opens_a_socket_with_a_subprotocol_or_a_ticket(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        id_ = await at.admit("ben")

        async def tools(path: str, *offered: str) -> list[str] | int:
            told: list[str] | int = 0
            try:
                async with at.websocket(path, ("mcp", *offered)) as socket:
                    assert socket.subprotocol == "mcp"
                    await socket.send_message(modern("tools/list").decode())
                    listed = json.loads(await socket.get_message())["result"]["tools"]
                    told = sorted(each["name"] for each in listed)
            except* ConnectionRejected as refused:
                (rejection,) = refused.exceptions
                assert isinstance(rejection, ConnectionRejected)
                told = int(rejection.status_code)
            return told

        async def ticket() -> str:
            answer = await at["ben"].ask("POST", "/api/tickets")
            assert answer.status_code == 201
            return str(answer.json()["ticket"])

        assert await tools("/mcp/all") == 401
        own = await at["ben"].tools()
        assert await tools("/mcp/all", f"mcp.auth.{at.keys['ben']}") == own
        assert await tools("/mcp/all", "mcp.auth.mcpv_wrong") == 401
        given = await ticket()
        assert await tools(f"/mcp/all?ticket={given}") == own
        assert await tools(f"/mcp/all?ticket={given}") == 401
        stale = await ticket()
        await at.revoke(id_)
        assert await tools(f"/mcp/all?ticket={stale}") == 401
        assert (await at["ben"].ask("POST", "/api/tickets")).status_code == 401


async def test_a_page_reads_what_happens_by_a_subprotocol_or_a_ticket(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS, "ben") as at:
        for path in ("/api/events", "/api/logs"):
            async with at.websocket(path, ("mcp", f"mcp.auth.{at.keys['ben']}")) as socket:
                assert socket.subprotocol == "mcp", "a browser takes no handshake without one that it offered"
            ticket = (await at["ben"].ask("POST", "/api/tickets")).json()["ticket"]
            async with at.websocket(f"{path}?ticket={ticket}") as socket:
                assert socket.subprotocol is None, path
            with pytest.RaisesGroup(ConnectionRejected):
                async with at.websocket(f"{path}?ticket={ticket}"):
                    pass


async def test_commands_follow_what_happens_by_a_token_or_as_the_operator(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doorway(tmp_path, data) as at:
        await at.admit("ben")
        for token in ("", at.keys["ben"]):
            if token:
                monkeypatch.setenv("MCPVISOR_TOKEN", token)
            async with open_socket(at.url, "/api/events?after=0") as socket:
                hello = await socket.receive()
                assert ("revision" in hello) == (not token), "a member is not told how much changed for others"
        monkeypatch.setenv("MCPVISOR_TOKEN", "mcpv_wrong")
        with pytest.raises(RequestRefused, match="the token is not known here"):
            async with open_socket(at.url, "/api/events?after=0"):
                pass
        monkeypatch.delenv("MCPVISOR_TOKEN")
        (tmp_path / "data" / "page.key").unlink()
        with pytest.raises(RequestRefused, match="does not have the key of a daemon of this user"):
            async with open_socket(at.url, "/api/events?after=0"):
                pass


async def test_an_operator_asks_several_things_at_once_and_one_after_the_other(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}) as at, connect_daemon(at.url) as client:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(client.perform, operations.STATUS)
        await client.perform(operations.STATUS)


Told = Callable[[bytes], Awaitable[bytes]]
"""What another program answers to what it was asked."""


@asynccontextmanager
async def deceiver(port: int, answer: Told) -> AsyncIterator[tuple[int, set[str]]]:
    """A program that listens at a port, 0 for a free one: the port, and the credentials that it was shown."""
    shown = set[str]()

    async def deceive(stream: trio.SocketStream) -> None:
        asked = b""
        while b"\r\n\r\n" not in asked and (more := await stream.receive_some()):
            asked += more
        shown.update(re.findall(r"(?i)authorization: Bearer (.*)\r", asked.decode()))
        told = await answer(asked)
        await stream.send_all(
            b"HTTP/1.1 401 No\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(told), told)
        )
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, deceive, port, host="127.0.0.1"))
        yield listener.socket.getsockname()[1], shown
        nursery.cancel_scope.cancel()


async def all_commands_ask(port: int) -> list[str]:
    """Every way in which our programs ask a daemon; what each says of it."""
    said = []
    async with connect_daemon(f"http://127.0.0.1:{port}") as client:
        added = {"name": "mine", "entry": {"command": "x"}}
        for operation, body in ((operations.STATUS, None), (operations.ADD_SERVER, added)):
            with pytest.raises(RequestRefused) as refused:
                await client.perform(operation, body=body)
            said.append(str(refused.value))
    with pytest.raises(RequestRefused) as refused:
        async with open_socket(f"http://127.0.0.1:{port}", "/api/events"):
            pass
    said.append(str(refused.value))
    with pytest.raises(NotReached) as missed:
        async with open_connection(read_address(f"127.0.0.1:{port}")):
            pass
    return [*said, str(missed.value)]


def challenges_in(body: bytes) -> dict[str, str]:
    return json.loads(body)["error"]["data"]  # type: ignore[no-any-return]  # the body is ours


REFUSED = (401, 429)
"""So many wrong ones come from one address."""


@pytest.mark.parametrize("auth", ["tokens", "none"])
async def test_what_listens_where_a_daemon_was_learns_nothing_that_is_good_when_it_is_back(
    tmp_path: Path, auth: str
) -> None:
    """It gives what the daemon itself had given to it before, and tries what it is shown at the next one."""
    config = configuration(tmp_path, {}, auth=auth, identity=IDENTITY)
    asked = ("GET", "/api/status") if auth == "tokens" else ("DELETE", "/api/servers/none")
    with open_data_dir(tmp_path / "data", {}) as data:
        async with running(config, data) as http:
            port, told = http.base_url.port, (await http.request(*asked)).content
    assert port is not None

    async def repeat(_: bytes) -> bytes:
        return told

    async with deceiver(port, repeat) as (_, shown):
        await all_commands_ask(port)
    assert len(shown) == 4, "it had the daemon's own words"
    with open_data_dir(tmp_path / "data", {}) as data:
        async with running(config, data, listen=f"127.0.0.1:{port}") as http:
            for each in shown:
                for method, path in (asked, ("GET", "/api/status"), ("POST", "/api/servers"), ("GET", "/api/events")):
                    head = {"authorization": f"Bearer {each}"}
                    body = {"name": "mine", "entry": {"command": "x"}} if method == "POST" else None
                    answer = await http.request(method, path, headers=head, json=body)
                    if auth == "tokens" or method != "GET":
                        assert answer.status_code in REFUSED


async def test_what_cannot_read_the_key_is_shown_nothing_whatever_it_says(tmp_path: Path, data: DataDir) -> None:
    """Not by a command, and not by a bridge that runs: it says where the key is, and makes challenges up."""
    key_file, orders = str(tmp_path / "data" / KEY_FILE), list[bytes]()

    async def make_up(asked: bytes) -> bytes:
        orders.extend([asked.lower()] if asked.startswith(b"POST /api/servers") else [])
        made = {"key_file": key_file, "challenge": "0" * 76, "proof": "1" * 64}
        return json.dumps({"error": {"code": 401, "message": "who is it?", "data": made}}).encode()

    data.key("page")
    async with deceiver(0, make_up) as (port, shown):
        for said in await all_commands_ask(port):
            assert "does not have the key of a daemon of this user, and was shown nothing" in said
    assert not shown
    (order,) = orders
    assert b"content-length: 0\r\n" in order, "nor what is ordered"


async def test_what_passes_on_the_challenge_of_a_daemon_is_shown_nothing(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}) as at:

        async def pass_on(_: bytes) -> bytes:
            return (await at.ask("GET", "/api/status")).content

        async with deceiver(0, pass_on) as (port, shown):
            await all_commands_ask(port)
        assert not shown


async def test_an_answer_to_a_challenge_is_good_once_and_for_one_request(tmp_path: Path, data: DataDir) -> None:
    key, now = data.key("page"), time.monotonic()
    async with doorway(tmp_path, data, {}) as at:
        host, port = at.http.base_url.host, at.http.base_url.port
        end = endpoint((host, port))

        async def answer(method: str, path: str, asked: tuple[str, str] = ("GET", "/api/status")) -> int:
            told = challenges_in((await at.ask("GET", "/api/status")).content)
            shown = sign_pass(key, told["challenge"], end, *asked)
            first, second = [(await at[shown].ask(method, path)).status_code for _ in range(2)]
            assert second in REFUSED
            return first

        assert await answer("GET", "/api/status") == 200
        assert await answer("GET", "/api/status?x=1") == 200
        for other in (("POST", "/api/status"), ("GET", "/api/me"), ("GET", "/api/status/")):
            assert await answer("GET", "/api/status", other) in REFUSED
        told = challenges_in((await at.ask("GET", "/api/status")).content)
        early = OperatorKey(key, data.boot, lambda: now - GOOD_FOR_S).challenge(end)["challenge"]
        late = OperatorKey(key, data.boot, lambda: now + 60).challenge(end)["challenge"]
        elsewhere = OperatorKey(key, b"another boot", time.monotonic).challenge(end)["challenge"]
        for challenge in (early, late, elsewhere, told["challenge"][:-1] + "x", ""):
            shown = sign_pass(key, challenge, end, "GET", "/api/status")
            assert (await at[shown].ask("GET", "/api/status")).status_code in REFUSED


async def test_whoever_comes_through_a_proxy_is_told_nothing_of_the_key(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}) as at:
        assert challenges_in((await at.ask("GET", "/api/status")).content).keys() >= {"challenge", "proof"}
        for name in ("x-forwarded-for", "forwarded", "via", "x-real-ip"):
            answer = await at.ask("GET", "/api/status", headers={name: "for=1.2.3.4"})
            assert challenges_in(answer.content).keys().isdisjoint({"challenge", "proof", "key_file"})
            assert KEY_FILE not in answer.text


async def test_a_stranger_hears_nothing_of_how_much_there_is(tmp_path: Path, data: DataDir) -> None:
    """Not of servers that are still on their way, nor of questions that wait for the operator."""
    never = {"slow": {"command": "x"}, "slower": {"command": "x"}}
    fakes = {name: FakeServer(silent_at={"initialize", "server/discover"}) for name in never}
    question = Question("elicitation/create", msgspec.Raw(b'{"message":"?","requestedSchema":{"type":"object"}}'))
    shown: list[View] = []

    def keep(view: View) -> PageSockets:
        shown.append(view)
        return PageSockets(view)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "PageSockets", keep)
        async with world(tmp_path, data, never, fakes, waits=False, auth="tokens", identity=IDENTITY) as at:
            (view,) = shown
            asked = CallElicitations(view.elicitations, "slow", timeout_s=60)
            for _ in range(3):
                asked.offer(question, Reply())
            ready = await at.ask("GET", "/readyz")
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            assert not re.search("[0-9]|slow", ready.text)
            page = await at.text("/ui/sign-in")
            assert "badge" not in page
            assert "<nav" in page
            assert "/ui/servers" not in page


async def test_a_member_cannot_tell_from_the_numbers_of_calls_how_many_others_made(
    tmp_path: Path, data: DataDir
) -> None:
    async with doorway(tmp_path, data, SERVERS, "ana", "ben") as at:
        for number in range(3):
            await at["ben"].result("clock-tell_time", n=number)
            for _ in range(number * 2):
                await at["ana"].result("clock-tell_time")
        told = await at["ben"].page("/api/calls")
        mine = [row["number"] for row in told["calls"]]
        assert len(set(mine)) == 3
        assert max(mine) - min(mine) > 1000, "they are in no order"
        assert told["newest"] == mine[0]
        await at["ana"].result("clock-tell_time")
        assert (await at["ben"].page("/api/calls"))["newest"] == told["newest"]
        first = await at["ben"].page("/api/calls", limit=1)
        rest = await at["ben"].page("/api/calls", limit=5, before=first["next"])
        assert [row["number"] for row in (*first["calls"], *rest["calls"])] == mine
        every = await at.operator.page("/api/calls", limit=100)
        assert [row["number"] for row in every["calls"]] == sorted(
            (row["number"] for row in every["calls"]), reverse=True
        )


async def test_a_member_sees_on_the_dashboard_how_to_connect_a_client(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS, "ben", public_url="https://mcp.example") as at:
        page = await at["ben"].text("/ui")
        assert "<code>https://mcp.example/mcp</code>" in page
        assert "<code>https://mcp.example/mcp/servers/clock</code>" in page
        assert "<code>Authorization: Bearer TOKEN</code>" in page


async def test_a_member_is_not_told_the_names_of_profiles_by_a_wrong_one(tmp_path: Path, data: DataDir) -> None:
    profiles = {"salary-review": {"servers": ["clock"]}}
    async with doorway(tmp_path, data, SERVERS, "ben", profiles=profiles) as at:
        for wrong in ("x", "salary-revew"):
            answer = await at["ben"].at(f"/mcp?profile={wrong}").send("tools/list")
            assert (answer.status_code, "salary-review" in answer.text) == (404, False)
        assert "salary-review" in (await at.operator.at("/mcp?profile=x").send("tools/list")).text
        assert (await at["ben"].at("/mcp?profile=salary-review").send("tools/list")).status_code == 200
