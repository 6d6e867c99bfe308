"""MCP over WebSocket, both eras, with a real client over our server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream

from actors.errors import ServerStarting, ShuttingDown
from actors.messages import Note, Question
from actors.protocol.agreement.versions import META_CAPABILITIES, META_SUBSCRIPTION, META_VERSION
from supervisor.front.websocket import McpWebSocket, WebSocketSettings, choose_subprotocol
from supervisor.service.client import Client
from supervisor.service.drain import RequestDrain
from supervisor.service.port import Revisions
from tests.fakes.front_server import Running, dispatch, frame, read_all, running, until
from tests.fakes.http_client import modern
from tests.fakes.service import FakeService, OneDoor, SomeDoors, raising

META = {META_VERSION: "2026-07-28", META_CAPABILITIES: {}}


class Service(FakeService):
    """Answers `echo`, holds `hold` until it is released or cancelled, sends `size` bytes at `big`; `converse` asks."""

    def __init__(self) -> None:
        super().__init__(
            bug=raising(RuntimeError("a secret")), hold=self._hold, events__stream=self._hold, converse=self._converse
        )
        self.behaviours |= {"echo": echo, "big": big, "resources/subscribe": self._subscribe}
        self.watched = {"watched", "watched:a"}
        self.broken = False
        self.held, self.release, self.cancelled = (trio.Event() for _ in range(3))

    @property
    def clients(self) -> list[Client]:
        return [client for client, _, _ in self.asked]

    @property
    def revisions(self) -> Revisions:
        if self.broken:
            raise RuntimeError("a bug")
        return super().revisions

    async def left_one(self) -> str:
        """Wait until the first subscription has ended; return to what it was."""
        await until(lambda: self.left)
        return self.left[0]

    async def _hold(self, client: Client, params: msgspec.Raw) -> bytes:
        self.held.set()
        try:
            await self.release.wait()
        except trio.Cancelled:
            self.cancelled.set()
            raise
        return bytes(params)

    async def _converse(self, client: Client, params: msgspec.Raw) -> bytes:
        exchange = self.exchanges[-1]
        exchange.note(Note("notifications/progress", b'{"progressToken":7,"progress":1}'))
        question = msgspec.Raw(b'{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}')
        return bytes(await exchange.ask(Question("elicitation/create", question)).wait())

    async def _subscribe(self, client: Client, params: msgspec.Raw) -> bytes:
        await self.subscribe(self.exchanges[-1], json.loads(bytes(params))["uri"])
        return b"{}"


async def echo(client: Client, params: msgspec.Raw) -> bytes:
    await trio.lowlevel.checkpoint()
    return bytes(params) or b"{}"


async def big(client: Client, params: msgspec.Raw) -> bytes:
    await trio.lowlevel.checkpoint()
    return json.dumps("a" * json.loads(bytes(params))["size"]).encode()


class Peer:
    """A client that speaks JSON."""

    def __init__(self, socket: WebSocketConnection, stream: trio.SocketStream) -> None:
        self.socket = socket
        self.stream = stream

    async def send(self, message: Any) -> None:
        await self.socket.send_message(message if isinstance(message, str | bytes) else json.dumps(message))

    async def receive(self) -> Any:
        with trio.fail_after(30):
            return json.loads(await self.socket.get_message())

    async def request(self, method: str, id_: Any = 1, **params: Any) -> None:
        await self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})

    async def notify(self, method: str, **params: Any) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, method: str, id_: Any = 1, **params: Any) -> Any:
        await self.request(method, id_, **params)
        return await self.receive()

    async def initialize(self, version: str = "2025-11-25", capabilities: Any = None) -> None:
        answer = await self.ask(
            "initialize", "init", protocolVersion=version, capabilities=capabilities or {}, clientInfo={"name": "c"}
        )
        assert answer["result"]["protocolVersion"] == version

    async def initialized(self) -> None:
        """Say so, and wait until it has been understood."""
        await self.notify("notifications/initialized")
        assert await self.ask("ping", "after") == {"jsonrpc": "2.0", "id": "after", "result": {}}

    async def closed(self) -> tuple[int, list[Any]]:
        """Read until the connection is closed; return the code and what came before."""
        messages: list[Any] = []
        with trio.fail_after(30), suppress(ConnectionClosed):
            while True:
                messages.append(json.loads(await self.socket.get_message()))
        reason = self.socket.closed
        return (reason.code if reason is not None else 0), messages


class Front:
    """A server, its service and how to connect."""

    def __init__(self, server: Running, service: Service, drain: RequestDrain) -> None:
        self.server = server
        self.service = service
        self.drain = drain

    @asynccontextmanager
    async def connect(self, path: str = "/mcp", **options: Any) -> AsyncIterator[Peer]:
        # The stream is ours: trio-websocket leaves its own open when the server closes first.
        async with await self.server.connect() as stream, trio.open_nursery() as nursery:
            host = f"127.0.0.1:{self.server.port}"
            socket = await wrap_client_stream(nursery, stream, host, path, **options)
            yield Peer(socket, stream)
            with trio.fail_after(30):
                await socket.aclose()
            nursery.cancel_scope.cancel()

    async def handshake(self, header: bytes) -> bytes:
        """Return the first line of the answer to a handshake with one more header line."""
        opening = self.server.upgrade()[:-2] + header + b"\r\n\r\n"
        return (await self.server.exchange(opening)).split(b"\r\n", 1)[0]


@asynccontextmanager
async def front(
    second: Service | None = None,
    max_message_bytes: int = 1024 * 1024,
    ping_s: float = 20.0,
    **settings: Any,
) -> AsyncIterator[Front]:
    service, closing = Service(), trio.Event()
    drain = RequestDrain(service, closing)
    websocket = McpWebSocket(
        drain,
        WebSocketSettings(**{"drain_s": 1.0, **settings}),
        doors=OneDoor(service) if second is None else SomeDoors({"": service, "second": second}),
    )
    async with running(
        dispatch(mcp_websocket=websocket.serve),
        closing,
        grace_s=5.0,
        websocket_max_message_bytes=max_message_bytes,
        websocket_ping_s=ping_s,
    ) as server:
        yield Front(server, service, drain)


def code(answer: Any) -> tuple[Any, int]:
    return answer["id"], answer["error"]["code"]


# Handshake


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["mcp"], "mcp"),
        (["mcp.auth.dG9rZW4", "mcp.version.2025-11-25", "mcp"], "mcp"),
        (["mcp.auth.dG9rZW4", "mcp.version.2026-07-28"], "mcp.version.2026-07-28"),
        (["mcp.version.1999-01-01"], None),
        (["mcp.auth.dG9rZW4"], None),
        (["graphql-ws"], None),
        ([], None),
    ],
)
def test_a_subprotocol_is_chosen_that_is_spoken_and_holds_no_token(offered: list[str], chosen: str | None) -> None:
    assert choose_subprotocol(offered) == chosen


@pytest.mark.parametrize("path", ["/mcp", "/ws"])
async def test_a_client_with_and_without_subprotocol_is_served_on_both_paths(path: str) -> None:
    async with front() as here:
        for subprotocols in ([], ["mcp"]):
            async with here.connect(path, subprotocols=subprotocols) as peer:
                assert peer.socket.subprotocol == ("mcp" if subprotocols else None)
                assert (await peer.ask("echo", 0, _meta=META))["id"] == 0


async def test_subprotocols_that_are_not_spoken_are_a_bad_request() -> None:
    async with front() as here:
        assert b" 400 " in await here.handshake(b"Sec-WebSocket-Protocol: graphql-ws")


# Modern requests


async def test_modern_requests_need_no_handshake_and_are_answered_side_by_side() -> None:
    async with front() as here, here.connect() as peer:
        await peer.request("hold", "slow", _meta=META)
        answer = await peer.ask("echo", 0, _meta=META, x=1)
        assert (answer["id"], answer["result"]["x"]) == (0, 1)
        here.service.release.set()
        assert (await peer.receive())["id"] == "slow"
        assert {(client.era, client.version) for client in here.service.clients} == {("modern", "2026-07-28")}


async def test_a_bug_of_the_service_is_an_internal_error_without_its_text() -> None:
    async with front() as here, here.connect() as peer:
        answer = await peer.ask("bug", _meta=META)
        assert code(answer) == (1, -32603)
        assert "secret" not in json.dumps(answer)


async def test_a_cancelled_request_is_stopped_and_not_answered() -> None:
    async with front() as here, here.connect() as peer:
        await peer.request("hold", 1, _meta=META)
        await here.service.held.wait()
        await peer.notify("notifications/cancelled", requestId=1)
        assert (await peer.ask("echo", 2, _meta=META))["id"] == 2
        with trio.fail_after(30):
            await here.service.cancelled.wait()


async def test_a_cancellation_directly_behind_its_request_finds_it() -> None:
    async with front() as here, here.connect() as peer:
        for id_ in range(20):
            await peer.request("hold", id_, _meta=META)
            await peer.notify("notifications/cancelled", requestId=id_)
        assert (await peer.ask("echo", "read", _meta=META))["id"] == "read"
        here.service.release.set()
        assert (await peer.ask("echo", "end", _meta=META))["id"] == "end"


@pytest.mark.case("I18")
async def test_a_cancellation_of_another_type_or_connection_changes_nothing() -> None:
    async with front() as here, here.connect() as peer, here.connect() as other:
        await peer.request("hold", 1, _meta=META)
        await here.service.held.wait()
        for wrong in ("1", 1.0, True, None):
            await peer.notify("notifications/cancelled", requestId=wrong)
        await other.notify("notifications/cancelled", requestId=1)
        for somebody in (peer, other):
            await somebody.ask("echo", "sync", _meta=META)
        here.service.release.set()
        assert (await peer.receive())["id"] == 1


@pytest.mark.case("C12")
async def test_closing_the_connection_cancels_what_is_in_flight() -> None:
    async with front() as here:
        async with here.connect() as peer:
            await peer.request("hold", 1, _meta=META)
            await here.service.held.wait()
        with trio.fail_after(30):
            await here.service.cancelled.wait()


async def test_requests_over_the_limit_wait_for_their_turn() -> None:
    async with front(max_in_flight=2, max_waiting=3) as here, here.connect() as peer:
        for id_ in range(20):
            await peer.request("hold", id_, _meta=META)
        await here.service.held.wait()
        assert len(here.service.clients) <= 2
        here.service.release.set()
        assert {(await peer.receive())["id"] for _ in range(20)} == set(range(20))


async def test_streams_of_events_keep_no_request_from_its_turn_and_have_a_limit_of_their_own() -> None:
    async with front(max_in_flight=1, max_waiting=1, max_streams=3) as here, here.connect() as peer:
        for id_ in range(3):
            await peer.request("events/stream", id_, _meta=META)
        refused = await peer.ask("events/stream", "more", _meta=META)
        assert (refused["id"], refused["error"]["code"]) == ("more", -32025)
        assert refused["error"]["data"] | {"limit": "streams", "max": 3} == refused["error"]["data"]
        assert (await peer.ask("echo", "call", _meta=META))["id"] == "call"
        await peer.notify("notifications/cancelled", requestId=1)
        await peer.ask("echo", "then", _meta=META)
        await peer.request("events/stream", "other", _meta=META)
        here.service.release.set()
        assert {(await peer.receive())["id"] for _ in range(3)} == {0, 2, "other"}


async def test_a_request_that_waits_can_be_cancelled() -> None:
    async with front(max_in_flight=1) as here, here.connect() as peer:
        for id_ in ("runs", "waits"):
            await peer.request("hold", id_, _meta=META)
        await peer.notify("notifications/cancelled", requestId="waits")
        await peer.notify("notifications/cancelled", requestId="runs")
        assert (await peer.ask("echo", "end", _meta=META))["id"] == "end"


async def test_a_client_that_sends_400_requests_at_once_and_reads_gets_400_answers() -> None:
    async with front() as here, here.connect() as peer:
        requests = [
            {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"_meta": META} if method == "echo" else {}}
            for id_, method in enumerate(["echo", "ping", "nowhere", "echo"] * 100)
        ]
        await peer.ask(
            "ping", "first"
        )  # the server's own ping is answered by now: the client writes one thing at a time
        await peer.stream.send_all(b"".join(frame(json.dumps(request).encode()) for request in requests))
        assert {(await peer.receive())["id"] for _ in range(400)} == set(range(400))


# Listens


async def test_listens_share_a_connection_and_each_hears_only_its_kinds() -> None:
    async with front(list_changed_min_interval_s=0) as here, here.connect() as peer:
        for id_, wanted in ((7, "toolsListChanged"), ("7", "promptsListChanged")):
            answer = await peer.ask("subscriptions/listen", id_, _meta=META, notifications={wanted: True, "x": 1})
            assert answer["method"] == "notifications/subscriptions/acknowledged"
            assert answer["params"] == {"_meta": {META_SUBSCRIPTION: id_}, "notifications": {wanted: True}}
        for kind, id_ in (("tools", 7), ("prompts", "7"), ("tools", 7)):
            here.service.change(**{kind: getattr(here.service.current, kind) + 1})
            told = await peer.receive()
            assert told["method"] == f"notifications/{kind}/list_changed"
            assert told["params"]["_meta"] == {META_SUBSCRIPTION: id_}
        here.service.change(resources=1)
        assert (await peer.ask("echo", "end", _meta=META))["id"] == "end"


async def test_a_listen_for_resources_is_acknowledged_with_those_that_are_told_of() -> None:
    wanted = {"resourceSubscriptions": ["watched:a", "x"], "toolsListChanged": True}
    async with front(list_changed_min_interval_s=0) as here, here.connect() as peer:
        answer = await peer.ask("subscriptions/listen", 7, _meta=META, notifications=wanted)
        honoured = {"resourceSubscriptions": ["watched:a"], "toolsListChanged": True}
        assert answer["params"] == {"_meta": {META_SUBSCRIPTION: 7}, "notifications": honoured}
        here.service.subscribers[0].note("watched:a")
        told = await peer.receive()
        assert told["method"] == "notifications/resources/updated"
        assert told["params"] == {"_meta": {META_SUBSCRIPTION: 7}, "uri": "watched:a"}
        here.service.change(tools=1)
        assert (await peer.receive())["method"] == "notifications/tools/list_changed"
        await peer.notify("notifications/cancelled", requestId=7)
        assert (await peer.ask("echo", "end", _meta=META))["id"] == "end"
        assert await here.service.left_one() == "watched:a"


async def test_a_listen_for_resources_that_nobody_tells_of_is_over() -> None:
    async with front() as here, here.connect() as peer:
        wanted = {"resourceSubscriptions": ["x"]}
        answer = await peer.ask("subscriptions/listen", 7, _meta=META, notifications=wanted)
        assert answer["params"]["notifications"] == {}
        assert (await peer.receive())["result"]["_meta"] == {META_SUBSCRIPTION: 7}
        wanted = {"resourceSubscriptions": ["x"] * 2 + [str(number) for number in range(1000)]}
        assert code(await peer.ask("subscriptions/listen", 7, _meta=META, notifications=wanted)) == (7, -31429)


async def test_a_legacy_session_is_told_of_resources_until_it_ends() -> None:
    async with front() as here:
        async with here.connect() as peer:
            await peer.initialize()
            await peer.initialized()
            assert await peer.ask("resources/subscribe", 1, uri="watched:a") == {
                "jsonrpc": "2.0",
                "id": 1,
                "result": {},
            }
            here.service.subscribers[0].note("watched:a")
            told = await peer.receive()
            assert told == {
                "jsonrpc": "2.0",
                "method": "notifications/resources/updated",
                "params": {"uri": "watched:a"},
            }
        assert await here.service.left_one() == "watched:a"


async def test_a_listen_for_nothing_is_acknowledged_and_over() -> None:
    async with front() as here, here.connect() as peer:
        assert (await peer.ask("subscriptions/listen", 1, _meta=META, notifications={}))["params"][
            "notifications"
        ] == {}
        assert (await peer.receive())["result"]["_meta"] == {META_SUBSCRIPTION: 1}


async def test_a_cancelled_listen_is_silent_and_its_id_free_again() -> None:
    async with front(list_changed_min_interval_s=0) as here, here.connect() as peer:
        wanted = {"toolsListChanged": True}
        await peer.ask("subscriptions/listen", 1, _meta=META, notifications=wanted)
        assert code(await peer.ask("subscriptions/listen", 1, _meta=META, notifications=wanted)) == (1, -32600)
        await peer.notify("notifications/cancelled", requestId=1)
        await peer.ask("echo", 2, _meta=META)
        here.service.change(tools=1)
        assert (await peer.ask("echo", 3, _meta=META))["id"] == 3
        assert "params" in await peer.ask("subscriptions/listen", 1, _meta=META, notifications=wanted)


async def test_more_listens_than_the_limit_are_refused() -> None:
    async with front(max_listens=1) as here, here.connect() as peer:
        wanted = {"toolsListChanged": True}
        await peer.ask("subscriptions/listen", 1, _meta=META, notifications=wanted)
        answer = await peer.ask("subscriptions/listen", 2, _meta=META, notifications=wanted)
        assert "subscriptions" in answer["error"]["message"]


# Legacy sessions


async def test_a_legacy_session_belongs_to_its_connection() -> None:
    async with front() as here, here.connect() as peer:
        assert code(await peer.ask("echo", 1)) == (1, -32600)
        assert (await peer.ask("ping", 2))["result"] == {}
        await peer.initialize("2025-06-18")
        assert (await peer.ask("echo", 3, x=1))["result"] == {"x": 1}
        client = here.service.clients[-1]
        assert (client.era, client.version, client.name) == ("legacy", "2025-06-18", "c")
        assert client.session is not None
        again = await peer.ask("initialize", 4, protocolVersion="2025-06-18", capabilities={})
        assert code(again) == (4, -32600)
        assert code(await peer.ask("subscriptions/listen", 5, notifications={})) == (5, -32601)
        async with here.connect() as other:
            assert code(await other.ask("echo", 1)) == (1, -32600)


async def test_an_initialize_without_parameters_makes_no_session() -> None:
    async with front() as here, here.connect() as peer:
        assert code(await peer.ask("initialize", 1)) == (1, -32602)
        assert code(await peer.ask("echo", 2)) == (2, -32600)


async def test_both_eras_may_share_a_connection() -> None:
    async with front() as here, here.connect() as peer:
        await peer.initialize()
        await peer.ask("echo", 1, _meta=META)
        await peer.ask("echo", 2)
        assert [client.era for client in here.service.clients] == ["modern", "legacy"]


async def test_a_log_level_belongs_to_the_session() -> None:
    async with front() as here, here.connect() as peer:
        await peer.initialize()
        await peer.ask("echo", 1)
        assert [exchange.session.log_level for exchange in here.service.exchanges] == [""]
        assert (await peer.ask("logging/setLevel", 2, level="debug"))["result"] == {}
        assert code(await peer.ask("logging/setLevel", 3, level="loud")) == (3, -32602)
        await peer.ask("echo", 4)
        assert [exchange.session.log_level for exchange in here.service.exchanges] == [
            "debug",
            "debug",
        ]  # of one session


async def test_what_is_told_and_asked_comes_before_the_answer_on_the_same_socket() -> None:
    async with front() as here, here.connect() as peer:
        await peer.initialize(capabilities={"elicitation": {}})
        await peer.send({"jsonrpc": "2.0", "id": "w", "method": "converse"})
        told, asked = await peer.receive(), await peer.receive()
        assert (told["method"], told["params"]["progressToken"]) == ("notifications/progress", 7)
        assert (asked["method"], asked["params"]["message"]) == ("elicitation/create", "Sure?")
        await peer.send({"jsonrpc": "2.0", "id": 7, "result": {"action": "decline"}})
        await peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
        assert await peer.receive() == {"jsonrpc": "2.0", "id": "w", "result": {"action": "accept"}}


async def test_a_client_of_a_socket_that_cancels_a_question_has_refused_it() -> None:
    async with front() as here, here.connect() as peer:
        await peer.initialize(capabilities={"elicitation": {}})
        await peer.send({"jsonrpc": "2.0", "id": "w", "method": "converse"})
        _, asked = await peer.receive(), await peer.receive()
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": asked["id"]}}
        await peer.send({"jsonrpc": "2.0", **cancelled})
        answer = await peer.receive()
        assert (answer["id"], "the client has cancelled this" in answer["error"]["message"]) == ("w", True)


async def test_a_modern_client_of_a_socket_is_told_and_not_asked() -> None:
    async with front() as here, here.connect() as peer:
        await peer.send(json.loads(modern("converse", id_="w")))
        assert (await peer.receive())["method"] == "notifications/progress"
        assert "did not declare elicitation" in (await peer.receive())["error"]["message"]


async def test_a_legacy_client_hears_of_changes_once_it_is_initialized() -> None:
    async with front(list_changed_min_interval_s=0) as here, here.connect() as peer:
        await peer.initialize()
        here.service.change(tools=1)
        await peer.initialized()
        here.service.change(tools=2, prompts=1)
        told = [await peer.receive(), await peer.receive()]
        assert [message["method"] for message in told] == [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
        ]
        assert "params" not in told[0]


# HttpProtocolError, too much, too slow


async def test_a_binary_message_closes_with_1003() -> None:
    async with front() as here, here.connect() as peer:
        await peer.send(b"{}")
        assert (await peer.closed())[0] == 1003


async def test_more_answers_at_once_than_may_queue_reach_a_client_that_reads() -> None:
    async with front(max_queued_messages=3, max_in_flight=10) as here, here.connect() as peer:
        for id_ in range(8):
            await peer.request("hold", id_, _meta=META)
        assert (await peer.ask("echo", "sync", _meta=META))["id"] == "sync"
        here.service.release.set()
        assert {(await peer.receive())["id"] for _ in range(8)} == set(range(8))


@pytest.mark.case("W02")
async def test_a_client_that_does_not_read_its_answers_is_closed_with_1008() -> None:
    async with front(stall_s=0.2, max_queued_messages=2) as here, await here.server.connect() as stream:
        await stream.send_all(here.server.upgrade())
        assert b" 101 " in await stream.receive_some(4096)
        params = {"size": 60_000, "_meta": META}
        for id_, method in enumerate(["hold"] + ["big"] * 400):
            request = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
            await stream.send_all(frame(json.dumps(request).encode()))
        with trio.fail_after(30):
            await here.service.cancelled.wait()  # the connection was given up
        assert b"\x03\xf0answers are waiting and nobody reads them" in await read_all(stream)


@pytest.mark.case("W06")
async def test_a_client_that_answers_no_ping_is_closed_and_subscribed_to_nothing_any_more() -> None:
    async with front(ping_s=0.1) as here, await here.server.connect() as stream:
        await stream.send_all(here.server.upgrade())
        assert b" 101 " in await stream.receive_some(4096)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
        for method, params in (("initialize", hello), ("resources/subscribe", {"uri": "watched"})):
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            await stream.send_all(frame(json.dumps(request).encode()))
        assert await here.service.left_one() == "watched"
        assert b"\x03\xf0no answer to a ping within 0.1 s" in await read_all(stream)


async def test_one_answer_of_any_size_is_sent() -> None:
    async with front(max_queued_bytes=1000) as here, here.connect(max_message_size=1 << 22) as peer:
        assert len((await peer.ask("big", 1, _meta=META, size=2_000_000))["result"]) == 2_000_000


async def test_a_bug_in_the_connection_closes_with_1011() -> None:
    async with front() as here, here.connect() as peer:
        await peer.initialize()
        here.service.broken = True
        await peer.notify("notifications/initialized")
        assert (await peer.closed())[0] == 1011


async def test_a_session_begins_only_with_a_result() -> None:
    async with front() as here, here.connect() as peer:
        here.service.behaviours["initialize"] = raising(ServerStarting("not yet", server="late"))
        told = await peer.ask("initialize", protocolVersion="2025-11-25")
        assert told["error"]["data"]["server"] == "late"
        assert "no session" in (await peer.ask("echo"))["error"]["message"]
        del here.service.behaviours["initialize"]
        await peer.initialize()
        assert "result" in await peer.ask("echo")


# Doors


async def test_a_path_leads_to_its_door() -> None:
    second = Service()
    async with front(second=second) as here:
        for path, service in (("/mcp", here.service), ("/ws", here.service), ("/mcp/second", second)):
            asked = len(service.clients)
            async with here.connect(path) as peer:
                await peer.initialize()
                await peer.initialized()
                assert "result" in await peer.ask("echo", "legacy")
                assert "result" in await peer.ask("echo", "modern", _meta=META)
                assert len(service.clients) == asked + 2
                service.change(tools=asked + 10)
                assert (await peer.receive())["method"] == "notifications/tools/list_changed"


async def test_what_changed_behind_another_door_is_not_told() -> None:
    second = Service()
    async with front(second=second) as here, here.connect("/mcp/second") as peer:
        await peer.initialize()
        await peer.initialized()
        here.service.change(tools=5)
        second.change(prompts=5)
        assert (await peer.receive())["method"] == "notifications/prompts/list_changed"


# Shutdown


async def test_shutting_down_ends_listens_gracefully_answers_what_is_in_flight_and_closes_with_1001() -> None:
    async with front() as here, here.connect() as peer:
        await peer.ask("subscriptions/listen", "l", _meta=META, notifications={"toolsListChanged": True})
        await peer.request("hold", 1, _meta=META)
        await here.service.held.wait()
        here.server.closing.set()
        ended, cancelled = await peer.receive(), await peer.receive()
        assert ended["result"] == {"_meta": {META_SUBSCRIPTION: "l"}, "resultType": "complete"}
        assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", "l")
        refused = await peer.ask("echo", 2, _meta=META)
        assert refused["error"]["data"]["type"] == "shutdown"
        here.service.release.set()
        closing_code, messages = await peer.closed()
        assert closing_code == 1001
        assert [message["id"] for message in messages] == [1]


async def test_a_request_longer_than_the_drain_is_told_so_before_the_connection_closes() -> None:
    async with front() as here, here.connect() as peer:
        await peer.request("hold", 1, _meta=META)
        await here.service.held.wait()
        here.server.closing.set()
        assert (await peer.ask("echo", 2, _meta=META))["error"]["data"]["outcome"] == "not_sent"
        here.drain.end()
        closing_code, messages = await peer.closed()
        assert closing_code == 1001
        (told,) = messages
        assert code(told) == (1, ShuttingDown.code)
        assert told["error"]["data"] == {"type": "shutdown", "outcome": "not_sent", "retryable": True}
        assert here.service.cancelled.is_set()


async def test_shutting_down_does_not_wait_without_end_for_a_request_that_nobody_ends() -> None:
    async with front(drain_s=0.05) as here, here.connect() as peer:
        await peer.request("hold", 1, _meta=META)
        await here.service.held.wait()
        here.server.closing.set()
        assert (await peer.closed())[0] == 1001
