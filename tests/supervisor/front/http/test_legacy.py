"""MCP over HTTP as clients of the legacy era see it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ServerExited, UnknownTool
from actors.principal import LOCAL, Principal
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.config import Settings
from supervisor.front.edge.request import ClientGone
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.sessions import Sealer, SessionMemory, session_digest
from supervisor.service.client import Client
from supervisor.service.drain import RequestDrain
from tests.fakes.clock import Clock
from tests.fakes.front_server import running
from tests.fakes.http_client import JSON_HEADERS, Exchange, fetch, legacy, opened
from tests.fakes.service import FakeService, OneDoor, forever, raising, returning

KEY = b"k" * 32
STREAM = {"accept": "text/event-stream"}


class Front:
    """The application under test and what it was given."""

    def __init__(self, service: FakeService, **settings: Any) -> None:
        self.service = service
        self.wall = Clock(1_800_000_000.0)
        self.drain = RequestDrain(service, trio.Event())
        self.ended: dict[str, float] = {}
        self.principal = LOCAL
        self.settings = Settings(**settings)
        self.app = self.started_again()

    def started_again(self) -> McpHttp:
        """The application as after a restart of the daemon: nothing lives on but the key and what was ended."""
        self.app = McpHttp(
            self.drain,
            sealer=Sealer(KEY),
            doors=OneDoor(self.drain.service),
            settings=self.settings,
            now=self.wall,
            memory=SessionMemory(ended=self.ended.__setitem__, already_ended=self.ended),
        )
        return self.app

    async def post(self, body: bytes, session: str | None = None, **headers: str) -> Exchange:
        with_session = {} if session is None else {"mcp-session-id": session}
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return await fetch(self.app, "POST", {**JSON_HEADERS, **with_session, **more}, body, principal=self.principal)

    async def initialize(self, version: str = "2025-11-25") -> str:
        params = {
            "protocolVersion": version,
            "capabilities": {"roots": {}},
            "clientInfo": {"name": "c", "version": "1"},
        }
        answer = await self.post(legacy("initialize", params, id_=0))
        assert answer.status == 200
        return answer.headers["mcp-session-id"]


def front_of(**behaviours: Any) -> Front:
    return Front(FakeService(**behaviours))


@asynccontextmanager
async def keeping_alive(front: Front) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(front.app.run)
        yield
        nursery.cancel_scope.cancel()


def code_of(answer: Exchange) -> tuple[int, Any, int]:
    return answer.status, answer.json["id"], answer.json["error"]["code"]


# Opening a session ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ],
)
async def test_initialize_negotiates_the_version_and_opens_a_session(asked: str, answered: str) -> None:
    front = front_of(tools__list=returning(b'{"tools":[]}'))
    answer = await front.post(legacy("initialize", {"protocolVersion": asked}, id_="i"))
    assert answer.json["id"] == "i"
    assert answer.json["result"]["protocolVersion"] == answered
    token = answer.headers["mcp-session-id"]
    assert all(0x21 <= ord(char) <= 0x7E for char in token)
    assert (await front.post(legacy("tools/list"), token)).json["result"] == {"tools": []}
    client = front.service.asked[0][0]
    assert (client.version, client.era, client.session) == (answered, "legacy", session_digest(token))


async def test_the_session_knows_its_client_also_after_a_restart() -> None:
    front = front_of(ping2=returning(b"{}"))
    token = await front.initialize("2025-06-18")
    await front.post(legacy("ping2"), token)
    front.started_again()
    await front.post(legacy("ping2"), token)
    before, after = (client for client, _, _ in front.service.asked)
    assert before == after
    assert (before.name, before.version, bytes(before.capabilities)) == ("c", "2025-06-18", b'{"roots":{}}')


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 7}, {"protocolVersion": "x", "clientInfo": 7}])
async def test_an_invalid_initialize_opens_no_session(params: Any) -> None:
    front = front_of()
    answer = await front.post(legacy("initialize", params))
    assert code_of(answer) == (200, 1, -32602)
    assert "mcp-session-id" not in answer.headers
    assert len(front.app.sessions) == 0


@pytest.mark.case("C10")
async def test_a_second_initialize_opens_another_session_and_leaves_the_first_alone() -> None:
    front = front_of()
    first = await front.initialize()
    again = await front.post(legacy("initialize", {"protocolVersion": "2024-11-05"}), first)
    assert again.headers["mcp-session-id"] != first
    assert len(front.app.sessions) == 2


# Losing one -----------------------------------------------------------------------------------------------------------


@pytest.mark.case("C08", "C19")
async def test_unknown_forged_and_foreign_sessions_are_not_found_alike() -> None:
    front = front_of()
    token = await front.initialize()
    front.principal = Principal("somebody else")
    foreign = await front.post(legacy("ping", id_="p"), token)
    front.started_again()
    foreign_again = await front.post(legacy("ping", id_="p"), token)
    bodies = {(answer.status, answer.body) for answer in (foreign, foreign_again)}
    for wrong in ("", "x", token[:-1], token + "A", "a.b", "é"):
        answer = await front.post(legacy("ping", id_="p"), wrong)
        bodies.add((answer.status, answer.body))
    assert len(bodies) == 1
    assert code_of(foreign) == (404, "p", -32600)
    front.principal = LOCAL
    assert (await front.post(legacy("ping"), token)).status == 200


async def test_a_session_ends_at_its_greatest_age(autojump_clock: MockClock) -> None:
    front = Front(FakeService(), session_max_age_s=100.0)
    token = await front.initialize()
    front.wall.now += 1_000_000  # a clock that is set ends nothing that lives
    await trio.sleep(99)
    assert (await front.post(legacy("ping"), token)).status == 200
    await trio.sleep(1)
    assert (await front.post(legacy("ping"), token)).status == 404
    assert front.ended == {}


async def test_an_idle_session_stays_ended_after_a_restart(autojump_clock: MockClock) -> None:
    front = Front(FakeService(), session_idle_s=10.0)
    token = await front.initialize()
    await trio.sleep(9)
    assert (await front.post(legacy("ping"), token)).status == 200
    await trio.sleep(11)
    assert (await front.post(legacy("ping"), token)).status == 404
    assert set(front.ended) == {session_digest(token)}
    front.started_again()
    assert (await front.post(legacy("ping"), token)).status == 404


async def test_a_deleted_session_stays_deleted_after_a_restart() -> None:
    front = front_of()
    token = await front.initialize()
    expires_at = front.wall.now + front.settings.session_max_age_s
    assert (await fetch(front.app, "DELETE", {"mcp-session-id": token})).status == 204
    assert (await front.post(legacy("ping"), token)).status == 404
    assert (await fetch(front.app, "DELETE", {"mcp-session-id": token})).status == 404
    assert front.ended == {session_digest(token): expires_at}
    front.started_again()
    assert (await front.post(legacy("ping"), token)).status == 404


async def test_deleting_a_session_cancels_what_it_has_in_flight() -> None:
    front = front_of(slow=forever)
    token = await front.initialize()
    async with opened(front.app, "POST", {**JSON_HEADERS, "mcp-session-id": token}, legacy("slow")) as call:
        await wait_all_tasks_blocked()
        await fetch(front.app, "DELETE", {"mcp-session-id": token})
        await call.end()
    assert code_of(call) == (200, 1, -32800)


# Requests -------------------------------------------------------------------------------------------------------------


async def test_without_a_session_a_request_is_served_as_plain_json() -> None:
    front = front_of(tools__call=returning(b'{"content":[]}'))
    answer = await fetch(front.app, "POST", {"content-type": "application/json"}, legacy("tools/call", {"name": "x"}))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body == b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    client, method, params = front.service.asked[0]
    assert client == Client(version="2025-11-25")
    assert (method, params) == ("tools/call", b'{"name":"x"}')


async def test_without_a_session_the_version_header_counts() -> None:
    front = front_of(x=returning(b"{}"))
    await front.post(legacy("x"), mcp_protocol_version="2025-06-18")
    assert front.service.asked[0][0].version == "2025-06-18"


async def test_an_unsupported_version_header_is_refused() -> None:
    answer = await front_of().post(legacy("ping"), mcp_protocol_version="1999-01-01")
    assert code_of(answer) == (400, 1, -32602)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownTool("no such tool"), -32602),
        (ServerExited("gone"), -31502),
        (RemoteError(ErrorObject(-32000, "theirs")), -32000),
    ],
)
async def test_failures_are_errors_inside_http_200(error: Exception, code: int) -> None:
    assert code_of(await front_of(x=raising(error)).post(legacy("x", id_=0))) == (200, 0, code)


@pytest.mark.case("C17")
async def test_methods_that_nobody_has_are_errors_inside_http_200() -> None:
    front = front_of()
    for method in ("nope", "subscriptions/listen", "server/discover"):
        assert code_of(await front.post(legacy(method))) == (200, 1, -32601)


@pytest.mark.parametrize(
    "message", [legacy("notifications/initialized", id_=None), b'{"jsonrpc":"2.0","id":1,"result":{}}']
)
async def test_notifications_and_responses_are_accepted_without_an_answer(message: bytes) -> None:
    front = front_of()
    token = await front.initialize()
    for session in (token, None):
        answer = await front.post(message, session)
        assert (answer.status, answer.body) == (202, b"")
    assert (await front.post(message, "unknown")).status == 404
    assert front.service.asked == []


async def test_ping_is_answered_here() -> None:
    front = front_of()
    token = await front.initialize()
    assert (await front.post(legacy("ping"), token)).json["result"] == {}
    assert front.service.asked == []


async def test_a_log_level_belongs_to_a_session() -> None:
    front = front_of(x=returning(b"{}"))
    token = await front.initialize()
    assert (await front.post(legacy("logging/setLevel", {"level": "debug"}), token)).json["result"] == {}
    assert code_of(await front.post(legacy("logging/setLevel", {"level": "loud"}), token)) == (200, 1, -32602)
    assert code_of(await front.post(legacy("logging/setLevel", {"level": "debug"}))) == (200, 1, -32601)
    for session in (token, None):
        await front.post(legacy("x"), session)
    assert [exchange.session.log_level for exchange in front.service.exchanges] == ["debug", None]


async def test_only_event_streams_accepted_means_the_answer_is_one() -> None:
    front = front_of(x=returning(b'{"a":\n1}'))
    async with opened(front.app, "POST", {**JSON_HEADERS, **STREAM}, legacy("x")) as call:
        assert await call.event() == {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}
        await call.end()
    assert call.headers["content-type"] == "text/event-stream"


# Cancelling -----------------------------------------------------------------------------------------------------------


@pytest.mark.case("I18")
async def test_a_request_is_cancelled_by_its_own_session_and_by_the_type_of_its_id() -> None:
    front = front_of(slow=forever)
    mine, other = await front.initialize(), await front.initialize()

    async def cancel(id_: Any, session: str | None) -> None:
        message = legacy("notifications/cancelled", {"requestId": id_}, id_=None)
        assert (await front.post(message, session)).status == 202
        await wait_all_tasks_blocked()

    async with opened(front.app, "POST", {**JSON_HEADERS, "mcp-session-id": mine}, legacy("slow", id_="1")) as call:
        await wait_all_tasks_blocked()
        for id_, session in ((1, mine), ("1", other), ("1", None), ("2", mine), (None, mine)):
            await cancel(id_, session)
            assert not call.ended
        await cancel("1", mine)
        await call.end()
    assert code_of(call) == (200, "1", -32800)


@pytest.mark.parametrize("with_session", [False, True])
async def test_a_request_that_is_under_way_when_the_daemon_ends_is_told_so(with_session: bool) -> None:
    front = front_of(slow=forever, quick=returning(b"{}"))
    session = {"mcp-session-id": await front.initialize()} if with_session else {}
    async with opened(front.app, "POST", {**JSON_HEADERS, **session}, legacy("slow")) as call:
        await wait_all_tasks_blocked()
        front.drain.closing.set()
        refused = msgspec.json.decode(
            (await fetch(front.app, "POST", {**JSON_HEADERS, **session}, legacy("quick"))).body
        )
        assert refused["error"]["data"]["outcome"] == "not_sent"
        front.drain.end()
        await call.end()
    told = msgspec.json.decode(call.body)["error"]
    assert (call.status, told["data"]) == (200, {"type": "shutdown", "outcome": "not_sent", "retryable": True})


@pytest.mark.case("C09")
async def test_the_same_id_twice_in_flight_is_answered_twice() -> None:
    gates = [trio.Event(), trio.Event()]
    waiting = iter(gates)

    async def slow(client: Client, params: msgspec.Raw) -> bytes:
        await next(waiting).wait()
        return bytes(params)

    front = front_of(slow=slow)
    headers = {**JSON_HEADERS, "mcp-session-id": await front.initialize()}
    async with opened(front.app, "POST", headers, legacy("slow", {"call": 1})) as first:
        await wait_all_tasks_blocked()
        async with opened(front.app, "POST", headers, legacy("slow", {"call": 2})) as second:
            await wait_all_tasks_blocked()
            gates[1].set()
            await second.end()
            gates[0].set()
            await first.end()
    assert (first.json["result"], second.json["result"]) == ({"call": 1}, {"call": 2})


async def test_a_client_that_leaves_has_cancelled_nothing() -> None:
    gate, done = trio.Event(), trio.Event()

    async def slow(client: Client, params: msgspec.Raw) -> bytes:
        await gate.wait()
        done.set()
        return b"{}"

    front = front_of(slow=slow)
    async with opened(front.app, "POST", JSON_HEADERS, legacy("slow")) as call:
        await wait_all_tasks_blocked()
        call.leave()
        await wait_all_tasks_blocked()
        gate.set()
    assert done.is_set()


async def test_a_stream_of_events_ends_when_its_client_leaves() -> None:
    ended = trio.Event()

    async def stream(client: Client, params: msgspec.Raw) -> bytes:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError("it never ends by itself")

    front = front_of(events__stream=stream)
    with trio.fail_after(30), suppress(ClientGone):
        async with opened(front.app, "POST", JSON_HEADERS, legacy("events/stream")) as call:
            await wait_all_tasks_blocked()
            call.leave()
            await ended.wait()


# Late answers ---------------------------------------------------------------------------------------------------------


async def late(client: Client, params: msgspec.Raw) -> bytes:
    await trio.sleep(40)
    return b'{"late":true}'


async def test_a_late_answer_becomes_a_stream_with_signs_of_life(autojump_clock: MockClock) -> None:
    front = front_of(late=late)
    before = trio.current_time()
    async with keeping_alive(front), opened(front.app, "POST", JSON_HEADERS, legacy("late")) as call:
        await trio.sleep(14.9)
        assert call.status == 0
        assert (await call.event())["result"] == {"late": True}
        await call.end()
    assert (call.headers["content-type"], call.comments) == ("text/event-stream", 2)
    assert trio.current_time() - before == pytest.approx(40)


async def test_a_late_answer_stays_json_for_clients_that_name_no_stream(autojump_clock: MockClock) -> None:
    front = front_of(late=late)
    async with keeping_alive(front):
        for accept in ("*/*", "application/json"):
            answer = await fetch(front.app, "POST", {**JSON_HEADERS, "accept": accept}, legacy("late"))
            assert answer.headers["content-type"] == "application/json"
            assert answer.json["result"] == {"late": True}


async def test_many_late_answers_wait_beside_punctual_ones(autojump_clock: MockClock) -> None:
    front = front_of(late=late, quick=returning(b"{}"))
    async with keeping_alive(front), trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(partial(_late_call, front, number))
        for _ in range(20):
            await trio.sleep(1.5)
            assert (await front.post(legacy("quick"))).headers["content-type"] == "application/json"


async def _late_call(front: Front, number: int) -> None:
    await trio.sleep(number * 0.7)
    async with opened(front.app, "POST", JSON_HEADERS, legacy("late", id_=number)) as call:
        assert (await call.event())["id"] == number
        await call.end()


async def test_a_late_answer_goes_on_without_its_client(autojump_clock: MockClock) -> None:
    done = trio.Event()

    async def very_late(client: Client, params: msgspec.Raw) -> bytes:
        await trio.sleep(100)
        done.set()
        return b"{}"

    front = front_of(late=very_late)
    async with keeping_alive(front):
        for leaves_at in (1, 20):
            async with opened(front.app, "POST", JSON_HEADERS, legacy("late")) as call:
                await trio.sleep(leaves_at)
                call.leave()
                await done.wait()
                done = trio.Event()
            assert (call.status != 0) == (leaves_at > 15)


# The stream of a session ----------------------------------------------------------------------------------------------


async def test_the_stream_tells_of_changes(autojump_clock: MockClock) -> None:
    front = front_of()
    token = await front.initialize()
    async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
        await wait_all_tasks_blocked()
        assert (stream.status, stream.body) == (200, b": ping\n\n")
        front.service.change(tools=1)
        assert await stream.event() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        front.service.change(prompts=5)
        assert (await stream.event())["method"] == "notifications/prompts/list_changed"
        await trio.sleep(31)
        assert stream.body.endswith(b": ping\n\n: ping\n\n")


@pytest.mark.parametrize(("lasts_s", "told"), [(5.0, [1, 1, 1]), (31.0, [1, 0, 0])])
async def test_a_change_without_a_stream_is_told_when_one_opens_and_again_only_where_it_may_not_have_arrived(
    autojump_clock: MockClock, lasts_s: float, told: list[int]
) -> None:
    front = front_of()
    token = await front.initialize()
    front.service.change(tools=1)
    front.service.change(tools=2)
    for expected in told:
        async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
            await trio.sleep(lasts_s)
        assert stream.body.count(b"tools/list_changed") == expected
        assert stream.body.count(b"event:") == expected
        await trio.sleep(100)  # however late the client comes back


async def test_what_is_told_again_is_all_that_was_told_last_and_nothing_before_it(autojump_clock: MockClock) -> None:
    front = front_of()
    token = await front.initialize()
    async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
        for pause_s, change in ((1, {"tools": 1}), (60, {"prompts": 1}), (2, {"resources": 1})):
            await trio.sleep(pause_s)
            front.service.change(**change)
        await trio.sleep(2)
    async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
        await trio.sleep(5)
    assert (stream.body.count(b"tools/"), stream.body.count(b"prompts/"), stream.body.count(b"resources/")) == (0, 1, 1)


async def test_after_a_restart_everything_counts_as_changed(autojump_clock: MockClock) -> None:
    front = front_of()
    token = await front.initialize()
    front.started_again()
    async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
        kinds = {(await stream.event())["method"].split("/")[1] for _ in range(3)}
    assert kinds == {"tools", "resources", "prompts"}


def subscribing() -> Front:
    """A front whose service subscribes the session to `file:///a`."""
    service = FakeService()
    service.watched = {"file:///a"}
    front = Front(service)

    async def subscribe(client: Client, params: msgspec.Raw) -> bytes:
        await service.subscribe(service.exchanges[-1], msgspec.json.decode(params)["uri"])
        return b"{}"

    service.behaviours["resources/subscribe"] = subscribe
    return front


UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "file:///a"}}


async def test_the_stream_tells_of_resources_that_changed_with_and_without_it(autojump_clock: MockClock) -> None:
    front = subscribing()
    token = await front.initialize()
    async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
        await trio.sleep(1)
        answer = await front.post(legacy("resources/subscribe", {"uri": "file:///a"}), token)
        assert answer.json["result"] == {}
        updates = front.service.subscribers[0]
        updates.note("file:///a")
        assert await stream.event() == UPDATED
    for number in range(5):
        updates.note("file:///a")
        await trio.sleep(number)
    async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
        assert await stream.event() == UPDATED
        await trio.sleep(10)
        assert stream.body.count(b"updated") == 1


@pytest.mark.case("C19")
async def test_what_a_stream_that_broke_off_may_not_have_delivered_is_told_again(autojump_clock: MockClock) -> None:
    front = subscribing()
    token = await front.initialize()
    await front.post(legacy("resources/subscribe", {"uri": "file:///a"}), token)
    front.service.subscribers[0].note("file:///a")
    for _ in range(2):
        async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
            assert await stream.event() == UPDATED


async def test_a_session_that_was_subscribed_to_resources_ends_with_the_daemon(autojump_clock: MockClock) -> None:
    front = subscribing()
    subscribed, other = [await front.initialize() for _ in range(2)]
    await front.post(legacy("resources/subscribe", {"uri": "file:///a"}), subscribed)
    refused = await front.post(legacy("resources/subscribe", {"uri": "file:///x"}), other)
    assert refused.json["error"]["code"] == -32601
    for token in (subscribed, other):
        assert (await front.post(legacy("ping"), token)).status == 200
    front.started_again()
    assert (await front.post(legacy("ping"), subscribed)).status == 404
    assert (await front.post(legacy("ping"), other)).status == 200


async def test_a_client_that_went_away_without_a_word_is_subscribed_to_nothing_once_its_session_is_idle(
    autojump_clock: MockClock,
) -> None:
    front = subscribing()
    async with keeping_alive(front):
        token = await front.initialize()
        await front.post(legacy("resources/subscribe", {"uri": "file:///a"}), token)
        await trio.sleep(front.settings.session_idle_s - 1)
        assert front.service.left == []
        await trio.sleep(100)
        assert front.service.left == ["file:///a"]


async def test_a_session_that_is_deleted_is_subscribed_to_nothing_any_more() -> None:
    front = subscribing()
    token = await front.initialize()
    await front.post(legacy("resources/subscribe", {"uri": "file:///a"}), token)
    await fetch(front.app, "DELETE", {"mcp-session-id": token})
    assert front.service.left == ["file:///a"]


@pytest.mark.case("C19")
async def test_the_newest_stream_of_a_session_wins(autojump_clock: MockClock) -> None:
    front = front_of()
    headers = {**STREAM, "mcp-session-id": await front.initialize()}
    async with opened(front.app, "GET", headers) as old:
        await wait_all_tasks_blocked()
        async with opened(front.app, "GET", headers) as new:
            await old.end()
            front.service.change(tools=1)
            assert (await new.event())["method"] == "notifications/tools/list_changed"
            assert not new.ended
    assert b"event" not in old.body


async def test_a_session_whose_older_stream_ended_lives_as_long_as_the_newer(autojump_clock: MockClock) -> None:
    front = Front(FakeService(), session_idle_s=20.0, session_max_age_s=1000.0)
    token = await front.initialize()
    headers = {**STREAM, "mcp-session-id": token}
    async with opened(front.app, "GET", headers) as old:
        await wait_all_tasks_blocked()
        async with opened(front.app, "GET", headers) as new:
            await old.end()
            await trio.sleep(25)  # less than a sign of life is apart, which is a use of the session
            assert not new.ended
            assert (await front.post(legacy("ping"), token)).status == 200
    await trio.sleep(25)
    assert (await front.post(legacy("ping"), token)).status == 404


async def test_two_streams_opened_at_once_leave_one() -> None:
    front = front_of()
    headers = {**STREAM, "mcp-session-id": await front.initialize()}
    async with opened(front.app, "GET", headers) as one, opened(front.app, "GET", headers) as other:
        await wait_all_tasks_blocked()
        assert [one.ended, other.ended].count(True) == 1


async def test_an_open_stream_keeps_its_session(autojump_clock: MockClock) -> None:
    front = Front(FakeService(), session_idle_s=20.0, session_max_age_s=1000.0)
    token = await front.initialize()
    async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
        await trio.sleep(100)
        await front.initialize()
        assert not stream.ended
        assert (await front.post(legacy("ping"), token)).status == 200
        front.wall.now += 1000
        await stream.end()


@pytest.mark.parametrize("how", ["delete", "close"])
async def test_a_stream_ends_with_its_session_or_the_daemon(how: str) -> None:
    front = front_of()
    token = await front.initialize()
    async with opened(front.app, "GET", {**STREAM, "mcp-session-id": token}) as stream:
        await wait_all_tasks_blocked()
        if how == "delete":
            await fetch(front.app, "DELETE", {"mcp-session-id": token})
        else:
            front.drain.closing.set()
        await stream.end()


@pytest.mark.case("C18")
@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", STREAM, 405),
        ("GET", {**STREAM, "mcp-protocol-version": "2026-07-28"}, 405),
        ("GET", {**STREAM, "mcp-session-id": "x"}, 404),
        ("GET", {"accept": "application/json", "mcp-session-id": "x"}, 406),
        ("GET", {"mcp-session-id": "x"}, 406),
        ("DELETE", {}, 405),
        ("DELETE", {"mcp-session-id": "x"}, 404),
        ("PUT", {}, 405),
        ("HEAD", {}, 405),
        ("OPTIONS", {}, 405),
    ],
)
async def test_other_methods_than_post_need_a_session(method: str, headers: dict[str, str], status: int) -> None:
    answer = await fetch(front_of().app, method, headers)
    assert answer.status == status
    assert ("allow" in answer.headers) == (status == 405)


# Bodies ---------------------------------------------------------------------------------------------------------------


@pytest.mark.case("C05")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/json", "accept": "text/html"}, 406),
        ({"content-type": "application/json; charset=utf-8", "accept": "*/*"}, 200),
    ],
)
async def test_content_type_and_accept_are_checked_before_the_body(headers: dict[str, str], status: int) -> None:
    answer = await fetch(front_of().app, "POST", headers, legacy("ping"))
    assert answer.status == status
    assert answer.bodies_read == (status == 200)


@pytest.mark.case("C01")
async def test_a_body_that_announces_too_much_is_not_read() -> None:
    front = Front(FakeService(), max_body_bytes=100)
    answer = await front.post(legacy("ping"), content_length="101")
    assert (answer.status, answer.bodies_read, answer.headers["connection"]) == (413, 0, "close")
    assert answer.json["error"]["code"] == -31413


@pytest.mark.case("C01")
async def test_a_body_that_grows_too_long_is_refused_on_the_way() -> None:
    front = Front(FakeService(), max_body_bytes=100)
    answer = await fetch(front.app, "POST", JSON_HEADERS, [b" " * 60] * 10)
    assert (answer.status, answer.bodies_read) == (413, 2)
    assert (await fetch(front.app, "POST", JSON_HEADERS, b" " * 101)).status == 413
    lying = await fetch(front.app, "POST", {**JSON_HEADERS, "content-length": "5"}, b" " * 101)
    assert lying.status == 413


async def test_a_body_in_pieces_is_put_together() -> None:
    pieces = [bytes([byte]) for byte in legacy("ping")]
    assert (await fetch(front_of().app, "POST", JSON_HEADERS, [*pieces, b""])).json["result"] == {}


@pytest.mark.case("C02")
async def test_a_body_that_never_ends_is_given_up(autojump_clock: MockClock) -> None:
    before = trio.current_time()
    answer = await fetch(front_of().app, "POST", JSON_HEADERS, b'{"jsonrpc', hold_body=True)
    assert answer.status == 408
    assert trio.current_time() - before == pytest.approx(30)


async def test_a_client_that_leaves_within_its_body_gets_nothing() -> None:
    async with opened(front_of().app, "POST", JSON_HEADERS, b'{"jsonrpc', hold_body=True) as call:
        await wait_all_tasks_blocked()
        call.leave()
    assert call.status == 0


# Batches --------------------------------------------------------------------------------------------------------------


async def test_a_batch_that_expects_nothing_is_accepted() -> None:
    front = front_of()
    token = await front.initialize("2025-03-26")
    answer = await front.post(b"[" + legacy("notifications/x", id_=None) + b"]", token)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.case("C16")
async def test_no_other_session_and_no_sessionless_client_may_send_batches() -> None:
    front = front_of()
    batch = b"[" + legacy("ping") + b"]"
    assert code_of(await front.post(batch, await front.initialize("2025-06-18"))) == (400, None, -32600)
    assert code_of(await front.post(batch)) == (400, None, -32600)


# Over a real server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", ["before", "after"])
async def test_a_client_that_leaves_a_real_server_before_or_after_the_stream_began_has_cancelled_nothing(
    leaves: str,
) -> None:
    started, done = trio.Event(), trio.Event()

    async def late(client: Client, params: msgspec.Raw) -> bytes:
        started.set()
        await trio.sleep(0.25)  # some intervals of comments to a client that is gone
        done.set()
        return b"{}"

    interval_s = {"before": 0.1, "after": 0.02}[leaves]
    request = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request += b"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s"
    front = Front(FakeService(late=late), sse_keepalive_s=interval_s)
    with trio.fail_after(30):
        async with running(partial(front.app.serve, "")) as server, keeping_alive(front):
            async with await server.connect() as stream:
                await stream.send_all(request % (len(legacy("late")), legacy("late")))
                await started.wait()
                if leaves == "after":
                    assert b"text/event-stream" in await stream.receive_some()
            await done.wait()
