"""MCP over HTTP as clients of the modern era see it."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut, CallTooLarge, InvalidArguments, UnknownTool
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from actors.protocol.wire.mirrors import Mirror
from supervisor.config import Settings
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.sessions import Sealer
from supervisor.front.listen import StreamLimit
from supervisor.service.client import Client
from supervisor.service.drain import RequestDrain
from tests.fakes.http_client import META, Exchange, fetch, legacy, modern, modern_headers, opened, serving
from tests.fakes.service import FakeService, OneDoor, forever, raising, returning

SUBSCRIPTION = META + "subscriptionId"
EVERYTHING = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def app_of(service: FakeService, *, closing: trio.Event | None = None, limit: int = 1024, **settings: Any) -> McpHttp:
    return McpHttp(
        RequestDrain(service, trio.Event() if closing is None else closing),
        sealer=Sealer(b"k" * 32),
        doors=OneDoor(service),
        settings=Settings(**settings),
        limit=StreamLimit(limit),
    )


async def ask(service: FakeService, method: str, params: dict[str, Any] | None = None, **more: Any) -> Exchange:
    name = (params or {}).get("name")
    return await fetch(app_of(service), "POST", modern_headers(method, name), modern(method, params, **more))


def code_of(answer: Exchange) -> tuple[int, Any, int]:
    return answer.status, answer.json["id"], answer.json["error"]["code"]


@pytest.mark.parametrize("padding", [0, 2 * 1024 * 1024])
async def test_a_head_that_says_something_else_than_the_arguments_reaches_no_service(padding: int) -> None:
    service = FakeService()
    service.behaviours["tools/call"] = returning(b'{"resultType":"complete"}')
    service.mirrors["t"] = (Mirror("mcp-param-region", ("region",)),)
    params = {"name": "t", "arguments": {"region": "eu", "more": "x" * padding}}
    for headers, status in [({"mcp-param-region": "eu"}, 200), ({"mcp-param-region": "us"}, 400), ({}, 400)]:
        head = modern_headers("tools/call", "t", **headers)
        answer = await fetch(app_of(service), "POST", head, modern("tools/call", params))
        assert answer.status == status
        if status == 400:
            assert answer.json["error"]["code"] == -32020
    assert len(service.asked) == 1


# Requests -------------------------------------------------------------------------------------------------------------


async def test_a_session_id_is_neither_looked_at_nor_sent_back() -> None:
    app = app_of(FakeService(x=returning(b"{}")))
    answer = await fetch(app, "POST", modern_headers("x", **{"mcp-session-id": "nonsense"}), modern("x"))
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers
    assert len(app.sessions) == 0


@pytest.mark.case("C17")
@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such/method"],
)
async def test_methods_that_do_not_exist_are_404(method: str) -> None:
    service = FakeService()
    assert code_of(await ask(service, method, id_=0)) == (404, 0, -32601)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UnknownTool("no such tool"), 400, -32602),
        (InvalidArguments("wrong"), 400, -32602),
        (CallTooLarge("much"), 413, -31413),
        (CallTimedOut("late"), 200, -31408),
        (RemoteError(ErrorObject(-32602, "theirs")), 200, -32602),
        (RemoteError(ErrorObject(-32021, "theirs")), 400, -32021),
    ],
)
async def test_the_error_decides_the_status(error: Exception, status: int, code: int) -> None:
    assert code_of(await ask(FakeService(x=raising(error)), "x")) == (status, 1, code)


async def test_that_a_server_has_no_such_method_is_404_where_the_protocol_has_none_either() -> None:
    error = raising(RemoteError(ErrorObject(-32601, "theirs")))
    for method, status in (("tasks/list", 404), ("completion/complete", 200), ("prompts/list", 200)):
        service = FakeService()
        service.behaviours[method] = error
        assert code_of(await ask(service, method)) == (status, 1, -32601)


async def test_the_ladder_stands_before_the_service() -> None:
    service = FakeService(x=returning(b"{}"))
    headers = modern_headers("y")
    assert code_of(await fetch(app_of(service), "POST", headers, modern("x", id_="i"))) == (400, "i", -32020)
    assert service.asked == []


async def test_a_notification_is_accepted_and_cancels_nothing() -> None:
    service = FakeService(slow=forever)
    app = app_of(service)
    async with opened(app, "POST", modern_headers("slow"), modern("slow", id_=5)) as call:
        await wait_all_tasks_blocked()
        message = legacy("notifications/cancelled", {"requestId": 5}, id_=None)
        answer = await fetch(app, "POST", modern_headers("notifications/cancelled"), message)
        assert (answer.status, answer.body) == (202, b"")
        await wait_all_tasks_blocked()
        assert not call.ended


async def test_a_client_that_leaves_has_cancelled_its_request() -> None:
    cancelled = trio.Event()

    async def slow(client: Client, params: msgspec.Raw) -> bytes:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with opened(app_of(FakeService(slow=slow)), "POST", modern_headers("slow"), modern("slow")) as call:
        await wait_all_tasks_blocked()
        assert not cancelled.is_set()
        call.leave()
        with trio.fail_after(30):
            await cancelled.wait()
    assert call.status == 0


async def test_the_same_id_of_two_clients_is_answered_to_each() -> None:
    async def echo(client: Client, params: msgspec.Raw) -> bytes:
        await trio.lowlevel.checkpoint()
        return msgspec.json.encode({"for": client.name})

    app = app_of(FakeService(echo=echo))
    answers: dict[str, Any] = {}

    async def call(name: str) -> None:
        body = modern("echo", clientInfo={"name": name, "version": "1"})
        answers[name] = (await fetch(app, "POST", modern_headers("echo"), body)).json["result"]["for"]

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(call, f"client {number}")
    assert len(answers) == 50
    assert all(name == found for name, found in answers.items())


async def test_a_late_answer_becomes_a_stream(autojump_clock: MockClock) -> None:
    async def late(client: Client, params: msgspec.Raw) -> bytes:
        await trio.sleep(50)
        raise UnknownTool("late and wrong")

    app = app_of(FakeService(late=late))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.run)
        async with opened(app, "POST", modern_headers("late"), modern("late")) as call:
            assert (await call.event())["error"]["code"] == -32602
            await call.end()
        nursery.cancel_scope.cancel()
    assert (call.status, call.comments) == (200, 3)
    assert b"id:" not in call.body
    assert b"retry:" not in call.body


async def test_a_client_that_leaves_a_late_answer_has_cancelled_it(autojump_clock: MockClock) -> None:
    cancelled_at: list[float] = []

    async def late(client: Client, params: msgspec.Raw) -> bytes:
        try:
            await trio.sleep(500)
        finally:
            cancelled_at.append(trio.current_time())
        return b""

    app = app_of(FakeService(late=late))
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.run)
        async with opened(app, "POST", modern_headers("late"), modern("late")) as call:
            await trio.sleep(40)
            call.leave()
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert [moment - start for moment in cancelled_at] == [pytest.approx(40)]
    assert call.body.count(b"ping") == 2


async def test_only_event_streams_accepted_means_the_answer_is_one_and_errors_keep_their_status() -> None:
    app = app_of(FakeService(x=returning(b"{}")))
    async with opened(app, "POST", modern_headers("x", accept="text/event-stream"), modern("x")) as call:
        assert (await call.event())["result"] == {}
        await call.end()
    wrong = await fetch(app, "POST", modern_headers("y", accept="text/event-stream"), modern("y"))
    assert code_of(wrong) == (404, 1, -32601)


# Subscriptions --------------------------------------------------------------------------------------------------------


def listening(app: McpHttp, notifications: Any, *, id_: Any = 1, **headers: str) -> Any:
    params = {} if notifications is None else {"notifications": notifications}
    body = modern("subscriptions/listen", params, id_=id_)
    return opened(app, "POST", modern_headers("subscriptions/listen", **headers), body)


@pytest.mark.parametrize("id_", [0, "listen:0"])
async def test_a_subscription_is_acknowledged_then_told_of_what_it_asked_for(
    id_: Any, autojump_clock: MockClock
) -> None:
    service = FakeService()
    async with listening(app_of(service), {"toolsListChanged": True, "promptsListChanged": False}, id_=id_) as stream:
        acknowledged = await stream.event()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"] == {
            "_meta": {SUBSCRIPTION: id_},
            "notifications": {"toolsListChanged": True},
        }
        service.change(prompts=1, resources=1)
        await trio.sleep(10)
        service.change(tools=1)
        assert await stream.event() == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": {SUBSCRIPTION: id_}},
        }
        await trio.sleep(20)
        assert stream.body.count(b"event:") == 2
        assert stream.body.endswith(b": ping\n\n")


async def test_what_is_not_supported_is_left_out_of_the_acknowledgement() -> None:
    wishes = {**EVERYTHING, "resourceSubscriptions": ["file:///a"], "taskIds": ["t"]}
    async with listening(app_of(FakeService()), wishes) as stream:
        assert (await stream.event())["params"]["notifications"] == EVERYTHING


@pytest.mark.parametrize("wishes", [{}, {"toolsListChanged": False}, {"resourceSubscriptions": ["file:///a"]}])
async def test_with_nothing_to_honour_the_subscription_is_complete_at_once(wishes: Any) -> None:
    async with listening(app_of(FakeService()), wishes, id_="l") as stream:
        assert (await stream.event())["params"]["notifications"] == {}
        result = {"_meta": {SUBSCRIPTION: "l"}, "resultType": "complete"}
        assert await stream.event() == {"jsonrpc": "2.0", "id": "l", "result": result}
        await stream.end()


async def test_resources_are_acknowledged_if_they_are_told_of_and_then_told_of(autojump_clock: MockClock) -> None:
    service = FakeService()
    service.watched = {"file:///a", "file:///b"}
    wishes = {"resourceSubscriptions": ["file:///b", "file:///x", "file:///a", "file:///b"]}
    async with listening(app_of(service), wishes, id_="l") as stream:
        honoured = {"resourceSubscriptions": ["file:///b", "file:///a"]}
        assert (await stream.event())["params"] == {"_meta": {SUBSCRIPTION: "l"}, "notifications": honoured}
        updates = service.subscribers[0]
        for _ in range(3):
            await trio.sleep(10)
            before = trio.current_time()
            for _ in range(5):
                updates.note("file:///a")
            updates.note("file:///b")
            for uri in ("file:///a", "file:///b"):
                told = {"_meta": {SUBSCRIPTION: "l"}, "uri": uri}
                assert await stream.event() == {
                    "jsonrpc": "2.0",
                    "method": "notifications/resources/updated",
                    "params": told,
                }
            assert trio.current_time() - before < 0.3
    assert sorted(service.left) == ["file:///a", "file:///b"]
    assert stream.body.count(b"updated") == 6


async def test_a_storm_of_updates_is_told_every_quarter_of_a_second(autojump_clock: MockClock) -> None:
    service = FakeService()
    service.watched = {"file:///a"}
    async with listening(app_of(service), {"resourceSubscriptions": ["file:///a"], **EVERYTHING}) as stream:
        await stream.event()
        for _ in range(1000):
            service.subscribers[0].note("file:///a")
            await trio.sleep(0.002)
        await trio.sleep(1)
        assert 8 <= stream.body.count(b"updated") <= 10


@pytest.mark.parametrize("how", ["the client leaves", "the daemon ends"])
async def test_subscribing_ends_with_whoever_it_is_for(how: str, autojump_clock: MockClock) -> None:
    class Slow(FakeService):
        async def subscribe(self, exchange: Any, name: str) -> None:
            await super().subscribe(exchange, name)
            await trio.sleep_forever()

    service, closing = Slow(), trio.Event()
    service.watched = {"file:///a"}
    async with listening(app_of(service, closing=closing), {"resourceSubscriptions": ["file:///a"]}) as stream:
        await wait_all_tasks_blocked()
        assert (len(service.subscribers), service.left) == (1, [])
        stream.leave() if how == "the client leaves" else closing.set()
        await wait_all_tasks_blocked()
        assert service.left == ["file:///a"]


@pytest.mark.parametrize(
    ("uris", "code"), [([str(number) for number in range(1001)], -31429), (["x" * 8193], -32602), ("x", -32602)]
)
async def test_too_many_or_too_long_resources_are_refused(uris: Any, code: int) -> None:
    async with listening(app_of(FakeService()), {"resourceSubscriptions": uris}) as stream:
        await stream.end()
    assert stream.json["error"]["code"] == code


@pytest.mark.parametrize("wishes", [None, 7, [], {"toolsListChanged": "yes"}])
async def test_a_subscription_that_does_not_say_what_it_wants_is_refused(wishes: Any) -> None:
    async with listening(app_of(FakeService()), wishes) as stream:
        await stream.end()
    assert code_of(stream) == (400, 1, -32602)


async def test_a_subscription_needs_a_client_that_takes_streams() -> None:
    async with listening(app_of(FakeService()), EVERYTHING, accept="application/json") as stream:
        await stream.end()
    assert code_of(stream) == (406, 1, -32600)


async def test_too_many_subscriptions_are_refused_before_the_acknowledgement() -> None:
    app = app_of(FakeService(), limit=1)
    async with listening(app, EVERYTHING) as first:
        await first.event()
        async with listening(app, EVERYTHING, id_=2) as second:
            await second.end()
        assert code_of(second) == (200, 2, -31429)
    async with listening(app, EVERYTHING) as third:
        assert (await third.event())["method"] == "notifications/subscriptions/acknowledged"


async def test_the_daemons_end_is_told_to_every_subscription() -> None:
    closing = trio.Event()
    app = app_of(FakeService(), closing=closing)
    async with listening(app, EVERYTHING, id_="a") as one, listening(app, {"toolsListChanged": True}, id_=7) as other:
        for stream in (one, other):
            await stream.event()
        closing.set()
        for stream, id_ in ((one, "a"), (other, 7)):
            assert (await stream.event())["id"] == id_
            await stream.end()


# Over a real server ---------------------------------------------------------------------------------------------------


@pytest.mark.case("C12")
async def test_a_client_that_leaves_a_real_server_has_cancelled_its_request() -> None:
    started, cancelled = trio.Event(), trio.Event()

    async def slow(client: Client, params: msgspec.Raw) -> bytes:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    with trio.fail_after(30):
        async with serving(app_of(FakeService(slow=slow))) as client, trio.open_nursery() as nursery:
            nursery.start_soon(partial(client.post, "/mcp", content=modern("slow"), headers=modern_headers("slow")))
            await started.wait()
            nursery.cancel_scope.cancel()
        assert cancelled.is_set()
