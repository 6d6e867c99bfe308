"""Two nodes that speak over a real connection, with TLS and their key, about launches that one of them owns."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from actors.errors import (
    BreakerTripped,
    CallTimedOut,
    CallTooLarge,
    CannotAsk,
    ConfigError,
    ServerExited,
    SpawnFailed,
    SupervisorError,
    TooManyCalls,
)
from actors.kit import Reply
from actors.messages import (
    CallServer,
    Note,
    Question,
    Refreshed,
    RefreshServer,
    RestartServer,
    Result,
    SleepServer,
    WakeServer,
)
from actors.principal import Principal
from actors.protocol.exchanges import Interest
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.fleet.engine import Elsewhere, LeaseTimes, Node, NodeAway, Place
from supervisor.fleet.links import frames, link, links
from supervisor.fleet.links.frames import DEAD_S, CallSent, ForLaunch, FrameStream, NoteSent, SignOfLife, read_answering
from supervisor.fleet.links.link import DistantCaller, OutgoingLink
from supervisor.fleet.links.links import FleetKeys, Links
from supervisor.fleet.membership import Membership, Ownership
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.sharing import TrioClock

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
ANA = Principal("user/ana")
Delivered = tuple[str, ForLaunch, Reply[Any]]


class Heard:
    """Implements `Watchers`. `heard` is what this node heard of others; `watched` who is told by it."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []
        self.watched: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self.changed = trio.Event()

    def add(self, launch: str, uri: str, tell: Callable[[], None], node: object) -> None:
        if uri == "too many":
            raise TooManyCalls("no more")
        self.watched.setdefault((launch, uri), []).append(tell)

    def remove(self, launch: str, uri: str, tell: Callable[[], None]) -> bool:
        self.watched[launch, uri].remove(tell)
        return not self.watched[launch, uri]

    def hear(self, launch: str, uri: str) -> None:
        self._hear("changed", launch, uri)

    def hear_move(self, launch: str) -> None:
        self._hear("moved", launch)

    def hear_break(self) -> None:
        self._hear("lost")

    def _hear(self, *what: str) -> None:
        self.heard.append(what)
        self.changed.set()

    async def next(self) -> tuple[str, ...]:
        await self.changed.wait()
        self.changed = trio.Event()
        return self.heard[-1]


class LinkedNode:
    """A node with an address. `delivered` is what it was asked for launches of its own."""

    def __init__(self, engine: MemoryEngine, name: str, keys: list[bytes]) -> None:
        self.delivered: list[Delivered] = []
        self.asked = trio.Event()
        self.address = ""
        self._name = name
        times = LeaseTimes(lease_s=600.0)
        self.membership = Membership(engine, times, TrioClock(), self._describe, lambda: f"{name}/1")
        self.own = Ownership(engine, self.membership, self._end)
        self.watchers = Heard()
        self.links = Links(FleetKeys(keys), self.own, self._deliver, self.watchers)

    def _describe(self) -> Node:
        known = getattr(self, "links", None)
        certificate = "" if known is None else known.certificate.fingerprint
        return Node(name=self._name, incarnation="", address=self.address, certificate=certificate)

    def _deliver(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        self.delivered.append((launch, message, reply))
        self.asked.set()

    async def _end(self, launch: str) -> None:
        raise AssertionError(launch)

    async def run(self, nursery: trio.Nursery) -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.address = f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        await nursery.start(self.links.run, listeners)
        nursery.start_soon(self.membership.run, self.own)
        await self.membership.wait_joined()

    async def was_asked(self) -> Delivered:
        await self.asked.wait()
        self.asked = trio.Event()
        return self.delivered[-1]


@asynccontextmanager
async def linked(
    keys: list[bytes] | None = None, other_keys: list[bytes] | None = None
) -> AsyncIterator[tuple[LinkedNode, LinkedNode, Place]]:
    """Yield two nodes, and where a launch is that the second one owns."""
    engine = MemoryEngine(600.0)
    a, b = LinkedNode(engine, "a", keys or [KEY]), LinkedNode(engine, "b", other_keys or [KEY])
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await a.run(nursery)
            await b.run(nursery)
            yield a, b, await b.own.claim("l~1")
            nursery.cancel_scope.cancel()


async def ask(node: LinkedNode, place: Place, message: ForLaunch) -> Reply[Any]:
    reply: Reply[Any] = Reply()
    await node.links.ask(place, message, reply)
    return reply


def call(**fields: Any) -> CallServer:
    return CallServer(server="l", **{"method": "tools/call", "members": b'"name":"t"', **fields})


class Client:
    """Implements `Caller`: a client that is asked, and told."""

    def __init__(self, *, visits: bool = False, reads: bool = True) -> None:
        self._reads = reads
        self.identity = ("user/ana", "session 1")
        self.notes: list[Note] = []
        self.questions: list[tuple[Question, Reply[msgspec.Raw]]] = []
        self.visited: list[str] = []
        self.changed = trio.Event()
        self._visits = visits

    def note(self, note: Note) -> bool:
        self.notes.append(note)
        self.changed.set()
        return self._reads

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        reply: Reply[msgspec.Raw] = Reply()
        self.questions.append((question, reply))
        self.changed.set()
        return reply

    def visitor(self, question: Question | None = None) -> Callable[[str], bool] | None:
        def visited(id_: str) -> bool:
            self.visited.append(id_)
            self.changed.set()
            return True

        return visited if self._visits else None

    async def until(self, wanted: Callable[[], object]) -> None:
        while not wanted():
            self.changed = trio.Event()
            await self.changed.wait()


STAYS = {
    "server": "the launch stands in its place",
    "exchange": "the link speaks to it",
    "trace": "it is told here; its context is in `meta`",
    "lasts": "calls in flight are counted where they come in",
    "waited_s": "the other node tells of what was left when it was asked",
}
"""What a call has that no frame has, and why."""
EVERYTHING = call(
    meta=b'"a":1',
    name="t",
    interest=Interest(b'"p"', "debug", b'{"roots":{}}'),
    retry=b'"requestState":"s"',
    as_task=True,
    definition=b"digest",
    resumes=True,
    by_requests=True,
    by_model=True,
    in_turn=True,
    run="run 1",
    deadline_s=7.5,
    principal=ANA,
)


def test_each_member_of_a_call_passes_or_stays_for_a_reason() -> None:
    members = {each.name: each.default for each in msgspec.structs.fields(CallServer)}
    assert {name for name, default in members.items() if getattr(EVERYTHING, name) == default} == {*STAYS} - {"server"}


class Trace:
    """Implements `CallTrace`."""

    def send(self, meta: bytes) -> bytes:
        return meta + b',"traceparent":"00-1"'

    def end(self, error: str, code: int = 0) -> None:
        raise AssertionError(error)


async def test_the_context_of_a_trace_passes_with_a_call() -> None:
    async with linked() as (a, b, place):
        await ask(a, place, call(meta=b'"a":1', trace=Trace()))
        _, message, _ = await b.was_asked()
        assert isinstance(message, CallServer)
        assert message.meta == b'"a":1,"traceparent":"00-1"'


@pytest.mark.parametrize("size", [0, 3, 128 * 1024, 128 * 1024 + 1, 5_000_000])
async def test_a_call_and_its_result_pass_byte_for_byte(size: int) -> None:
    body, members = secrets.token_bytes(size), b'"name":"t","arguments":{"text":"%b"}' % (b"x" * size)
    sent = replace(EVERYTHING, members=members)
    async with linked() as (a, b, place):
        reply = await ask(a, place, sent)
        launch, message, answer = await b.was_asked()
        assert (launch, message) == ("l~1", replace(sent, server="l~1"))
        answer.answer(Result(msgspec.Raw(body), "modern", run="r", waited_s=0.25, woke=True, lost="a page"))
        assert await reply.wait() == Result(
            msgspec.Raw(body), "modern", run="r", waited_s=0.25, woke=True, lost="a page"
        )


async def test_a_long_result_holds_up_no_other_call() -> None:
    async with linked() as (a, b, place):
        long, short = await ask(a, place, call()), await ask(a, place, call(name="short"))
        while len(b.delivered) < 2:
            await b.was_asked()
        b.delivered[0][2].answer(Result(msgspec.Raw(b"x" * 10_000_000), "modern"))
        b.delivered[1][2].answer(Result(msgspec.Raw(b"{}"), "modern"))
        assert bytes((await short.wait()).body) == b"{}"
        assert not long.settled
        assert len((await long.wait()).body) == 10_000_000


async def test_many_long_results_at_once_all_arrive() -> None:
    async with linked() as (a, b, place):
        replies = [await ask(a, place, call(name=str(n))) for n in range(4)]
        while len(b.delivered) < 4:
            await b.was_asked()
        for number, (_, _, answer) in enumerate(b.delivered):
            answer.answer(Result(msgspec.Raw(b"%d" % (number % 10) * 3_000_000), "modern"))
        for number, reply in enumerate(replies):
            body = bytes((await reply.wait()).body)
            assert (len(body), body[:1], body[-1:]) == (3_000_000, *[b"%d" % (number % 10)] * 2)


async def test_what_is_too_much_for_a_connection_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with linked() as (a, b, place):
        other, long = await ask(a, place, call()), await ask(a, place, call())
        while len(b.delivered) < 2:
            await b.was_asked()
        monkeypatch.setattr(link, "MAX_TEXT_BYTES", 200_000)
        b.delivered[1][2].answer(Result(msgspec.Raw(b"x" * 200_001), "modern"))
        with pytest.raises(CallTooLarge, match="the tool ran") as ran:
            await long.wait()
        assert ran.value.outcome == "completed"
        with pytest.raises(CallTooLarge, match="the call is too much") as refused:
            await (await ask(a, place, call(members=b"x" * 200_001))).wait()
        assert refused.value.outcome == "not_sent"
        b.delivered[0][2].answer(Result(msgspec.Raw(b"{}"), "modern"))
        await other.wait()
        assert len(b.delivered) == 2


async def test_many_who_ask_a_node_that_is_away_wait_for_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    async with linked() as (a, _, place):
        attempts, give_up = [], trio.Event()

        async def connect(node: Node) -> trio.abc.Stream:
            attempts.append(node.name)
            await give_up.wait()
            raise NodeAway("no way there")

        monkeypatch.setattr(a.links, "_connect", connect)
        refused: list[str] = []

        async def try_it() -> None:
            try:
                await ask(a, place, call())
            except NodeAway as error:
                refused.append(error.message)

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(try_it)
            await wait_all_tasks_blocked()
            give_up.set()
        assert attempts == ["b"]
        assert refused == ["no way there"] * 50


async def test_strangers_beyond_a_number_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with linked() as (a, b, place):
        b.links._strangers = trio.Semaphore(1)

        async def until_left(number: int) -> None:
            while b.links._strangers.value != number:  # noqa: ASYNC110 - nothing tells of it
                await trio.sleep(0.01)

        host, _, port = b.address.rpartition(":")
        async with await trio.open_tcp_stream(host, int(port)):
            await until_left(0)
            async with await trio.open_tcp_stream(host, int(port)) as second:
                with suppress(trio.BrokenResourceError):
                    assert await second.receive_some() == b""
        await until_left(1)
        await ask(a, place, call())
        await b.was_asked()


@pytest.mark.parametrize(
    "order",
    [
        WakeServer(server="l", operator=True, urgent=False, principal=ANA),
        SleepServer(server="l", principal=ANA),
        RestartServer(server="l", principal=ANA),
        RefreshServer(server="l", operator=False, principal=ANA),
    ],
    ids=lambda order: type(order).__name__,
)
async def test_orders_pass(order: Any) -> None:
    async with linked() as (a, b, place):
        reply = await ask(a, place, order)
        _, message, answer = await b.was_asked()
        assert message == replace(order, server="l~1")
        found = Refreshed(tools=3, added=("t",)) if isinstance(order, RefreshServer) else None
        answer.answer(found)
        assert await reply.wait() == found


async def test_what_a_server_says_and_asks_meanwhile_reaches_the_client_and_its_answer_the_server() -> None:
    client = Client()
    heard: list[bytes] = []
    async with linked() as (a, b, place):
        reply = await ask(a, place, call(exchange=client))
        _, message, answer = await b.was_asked()
        assert isinstance(message, CallServer)
        assert message.exchange is not None
        assert message.client == ("user/ana", "session 1")
        assert message.exchange.note(Note("notifications/message", b'{"level":"info"}'))
        asked = message.exchange.ask(Question("roots/list", msgspec.Raw(b"{}"), heard.append))
        refused = message.exchange.ask(Question("sampling/createMessage", msgspec.Raw(b"{}")))
        assert message.exchange.visitor() is None
        await client.until(lambda: len(client.questions) == 2)
        assert client.notes == [Note("notifications/message", b'{"level":"info"}')]
        (question, to_answer), (other, to_refuse) = client.questions
        assert (question.method, other.progress) == ("roots/list", None)
        assert question.progress is not None
        question.progress(b'{"progress":1}')
        to_answer.answer(msgspec.Raw(b'{"roots":[]}'))
        to_refuse.fail(CannotAsk("no"))
        assert bytes(await asked.wait()) == b'{"roots":[]}'
        with pytest.raises(CannotAsk, match="no"):
            await refused.wait()
        assert heard == [b'{"progress":1}']
        answer.answer(Result(msgspec.Raw(b"{}"), "legacy"))
        await reply.wait()


async def test_a_client_that_misses_a_part_of_a_stream_is_told_that_it_is_over() -> None:
    client = Client(reads=False)
    part = Note("notifications/events/event", b'{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}')
    async with linked() as (a, b, place):
        reply = await ask(a, place, call(exchange=client))
        _, message, answer = await b.was_asked()
        abandoned = trio.Event()
        answer.on_abandon(abandoned.set)
        assert isinstance(message, CallServer)
        assert message.exchange is not None
        message.exchange.note(Note("notifications/message", b'{"level":"info"}'))  # one of these may be missed
        message.exchange.note(part)
        with pytest.raises(TooManyCalls, match="go on from the last cursor"):
            await reply.wait()
        await abandoned.wait()
        assert client.notes == [Note("notifications/message", b'{"level":"info"}'), part]


async def test_a_question_that_nobody_waits_for_any_more_is_taken_back() -> None:
    client = Client()
    async with linked() as (a, b, place):
        await ask(a, place, call(exchange=client))
        _, message, answer = await b.was_asked()
        assert isinstance(message, CallServer)
        assert message.exchange is not None
        message.exchange.ask(Question("roots/list", msgspec.Raw(b"{}"))).abandon()
        left = message.exchange.ask(Question("roots/list", msgspec.Raw(b"{}")))
        await client.until(lambda: len(client.questions) == 2)
        taken_back = trio.Event()
        client.questions[0][1].on_settled(taken_back.set)
        await taken_back.wait()
        answer.answer(Result(msgspec.Raw(b"{}"), "legacy"))  # its call is over, so the other one is, too
        with pytest.raises(CannotAsk):
            await left.wait()
        to_answer = client.questions[1][1]
        over = trio.Event()
        to_answer.on_settled(over.set)
        await over.wait()


async def test_the_end_of_a_visit_is_told_also_after_the_call() -> None:
    client = Client(visits=True)
    async with linked() as (a, b, place):
        reply = await ask(a, place, call(exchange=client))
        _, message, answer = await b.was_asked()
        assert isinstance(message, CallServer)
        assert message.exchange is not None
        visitor = message.exchange.visitor()
        assert visitor is not None
        assert visitor("first")
        answer.answer(Result(msgspec.Raw(b"{}"), "legacy"))
        await reply.wait()
        assert visitor("second")
        await client.until(lambda: client.visited == ["first", "second"])


async def test_a_call_that_nobody_waits_for_is_cancelled_there() -> None:
    async with linked() as (a, b, place):
        reply = await ask(a, place, call())
        _, _, answer = await b.was_asked()
        gone = trio.Event()
        answer.on_abandon(gone.set)
        reply.abandon()
        await gone.wait()


ERRORS = [
    CallTimedOut("too slow", server="l", outcome="unknown", retry_after_s=2.5, details={"a": [1]}, idempotent=True),
    SpawnFailed("not there", permanent=True, detail="at length", hint="install it"),
    BreakerTripped("its breaker is open", details={"breaker": "tool"}, retry_after_s=3.0),
    TooManyCalls("busy"),
    ServerExited("died", outcome="unknown"),
    ConfigError("wrong", path="/etc/mcp.json", key="a.b", line=3),
    NodeAway("away"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_failure_is_the_same_at_both_nodes(error: SupervisorError) -> None:
    copy = frames.decode_failure(frames.encode_failure(error))
    assert isinstance(copy, type(error))
    assert (str(copy), vars(copy), copy.data(), copy.repeatable) == (
        str(error),
        vars(error),
        error.data(),
        error.repeatable,
    )


def test_an_error_of_a_server_and_a_failure_of_another_version_are_passed_on() -> None:
    error = RemoteError(ErrorObject(-32002, "no such thing", msgspec.Raw(b'{"uri":"a"}')), "l", 0.5)
    copy = frames.decode_failure(frames.encode_failure(error))
    assert isinstance(copy, RemoteError)
    assert (copy.error, copy.server, copy.waited_s) == (error.error, "l", 0.5)
    newer = frames.decode_failure(replace(frames.encode_failure(TooManyCalls("busy")), name="FailureOfTomorrow"))
    assert isinstance(newer, SupervisorError)
    assert (newer.code, newer.kind, newer.repeatable, newer.message) == (-31429, "overloaded", True, "busy")


def test_of_a_bug_nothing_travels_but_that_it_was_one() -> None:
    sent = frames.encode_failure(KeyError("secret"))
    assert "secret" not in repr(sent)
    assert isinstance(frames.decode_failure(sent), SupervisorError)


async def test_a_node_that_does_not_own_it_says_who_does() -> None:
    async with linked() as (a, b, place):
        ours = await a.own.claim("m~1")
        reply = await ask(a, Place("m~1", place.node, 0), call())
        with pytest.raises(Elsewhere) as elsewhere:
            await reply.wait()
        assert elsewhere.value.place == ours
        assert not b.delivered


async def test_a_node_that_is_asked_for_what_nobody_owns_owns_it_from_then_on() -> None:
    async with linked() as (a, b, place):
        reply = await ask(a, Place("n~1", place.node, 0), call())
        _, _, answer = await b.was_asked()
        assert b.own.fence("n~1")
        answer.answer(Result(msgspec.Raw(b"{}"), "modern"))
        await reply.wait()


async def test_what_clients_of_another_node_are_subscribed_to_is_told_there() -> None:
    async with linked() as (a, b, place):
        uri = "file:///x"
        reply = await ask(a, place, call(method="resources/subscribe", name=uri, members=b""))
        _, message, answer = await b.was_asked()
        assert isinstance(message, CallServer)
        answer.answer(Result(msgspec.Raw(b"{}"), "legacy"))
        await reply.wait()
        (tell,) = b.watchers.watched["l~1", uri]
        tell()
        assert await a.watchers.next() == ("changed", "l~1", uri)
        b.watchers.watched["l~1", uri].append(tell)  # somebody else is told, too: the server has no need to hear of it
        leave = call(method="resources/unsubscribe", name=uri, members=b"")
        assert bytes((await (await ask(a, place, leave)).wait()).body) == b"{}"
        assert len(b.delivered) == 1
        assert bytes((await (await ask(a, place, leave)).wait()).body) == b"{}"  # it is not subscribed any more
        assert b.watchers.watched["l~1", uri] == [tell]


async def test_the_last_one_to_leave_a_resource_tells_the_server() -> None:
    async with linked() as (a, b, place):
        uri = "file:///x"
        for method in ("resources/subscribe", "resources/unsubscribe"):
            reply = await ask(a, place, call(method=method, name=uri, members=b""))
            _, message, answer = await b.was_asked()
            assert isinstance(message, CallServer)
            assert message.method == method
            answer.answer(Result(msgspec.Raw(b"{}"), "legacy"))
            await reply.wait()
        assert b.watchers.watched["l~1", uri] == []


async def test_whose_subscription_fails_is_told_of_nothing() -> None:
    async with linked() as (a, b, place):
        reply = await ask(a, place, call(method="resources/subscribe", name="file:///x", members=b""))
        _, _, answer = await b.was_asked()
        answer.fail(ServerExited("gone"))
        with pytest.raises(ServerExited):
            await reply.wait()
        assert b.watchers.watched["l~1", "file:///x"] == []
        with pytest.raises(TooManyCalls):
            await (await ask(a, place, call(method="resources/subscribe", name="too many", members=b""))).wait()
        assert len(b.delivered) == 1


async def test_who_is_subscribed_hears_that_the_launch_moves_and_that_the_connection_is_lost() -> None:
    async with linked() as (a, b, place):
        reply = await ask(a, place, call(method="resources/subscribe", name="file:///x", members=b""))
        _, _, answer = await b.was_asked()
        answer.answer(Result(msgspec.Raw(b"{}"), "legacy"))
        await reply.wait()
        b.links.move("another")
        b.links.move("l~1")
        assert await a.watchers.next() == ("moved", "l~1")
        assert b.watchers.watched["l~1", "file:///x"] == []
        link = a.links.find(place.node)
        assert link is not None
        link.stream.hang_up()
        assert await a.watchers.next() == ("lost",)


async def test_a_node_that_ends_answers_everything_and_is_asked_no_more() -> None:
    async with linked() as (a, b, place), trio.open_nursery() as nursery:
        reply = await ask(a, place, call())
        _, _, answer = await b.was_asked()
        closed = trio.Event()

        async def close() -> None:
            await b.links.close()
            closed.set()

        nursery.start_soon(close)
        link = a.links.find(place.node)
        assert link is not None
        while not link.closing:
            await trio.lowlevel.checkpoint()
        with pytest.raises(Elsewhere) as elsewhere:
            await ask(a, place, call())
        assert elsewhere.value.place is None
        assert not closed.is_set()
        answer.answer(Result(msgspec.Raw(b"{}"), "modern"))
        await reply.wait()
        await closed.wait()
        with pytest.raises(NodeAway, match="cannot be reached") as away:  # who has not heard of it yet connects again
            await ask(a, place, call())
        assert away.value.outcome == "not_sent"


async def test_whoever_connects_while_a_node_ends_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with linked() as (a, b, place), trio.open_nursery() as nursery:
        ours, closed, prove = await a.own.claim("m~1"), trio.Event(), links._check

        async def close() -> None:
            await b.links.close()
            closed.set()

        def end_meanwhile(*proof: Any) -> None:
            nursery.start_soon(close)
            prove(*proof)

        monkeypatch.setattr(links, "_check", end_meanwhile)
        reply = await ask(a, Place("m~1", place.node, 0), call())
        with pytest.raises(Elsewhere) as elsewhere:
            await reply.wait()
        assert elsewhere.value.place == ours
        await closed.wait()


async def test_what_was_done_while_the_lease_ended_is_not_known() -> None:
    async with linked() as (a, b, place):
        reply = await ask(a, place, call())
        _, _, answer = await b.was_asked()
        b.membership.lease = None
        answer.answer(Result(msgspec.Raw(b"{}"), "modern"))
        with pytest.raises(NodeAway, match="lost its lease") as lost:
            await reply.wait()
        assert lost.value.outcome == "unknown"


async def test_an_answer_for_an_owner_of_before_is_none() -> None:
    async with linked() as (a, b, place):
        reply = await ask(a, replace(place, fence=place.fence + 1), call())
        _, _, answer = await b.was_asked()
        answer.answer(Result(msgspec.Raw(b"{}"), "modern"))
        with pytest.raises(NodeAway, match="owner of before") as stale:
            await reply.wait()
        assert stale.value.outcome == "unknown"


async def test_what_was_sent_before_the_connection_broke_is_not_known_and_is_abandoned_there() -> None:
    async with linked() as (a, b, place):
        reply = await ask(a, place, call())
        _, _, answer = await b.was_asked()
        abandoned = trio.Event()
        answer.on_abandon(abandoned.set)
        link = a.links.find(place.node)
        assert link is not None
        await trio.aclose_forcefully(link.stream._stream)
        with pytest.raises(NodeAway, match="broke before the answer came") as broken:
            await reply.wait()
        assert broken.value.outcome == "unknown"
        await abandoned.wait()
        again = await ask(a, place, call())  # over a new connection
        (await b.was_asked())[2].answer(Result(msgspec.Raw(b"{}"), "modern"))
        await again.wait()


@pytest.mark.parametrize(
    ("keys", "other_keys", "good"),
    [
        ([KEY], [KEY], True),
        ([OTHER_KEY, KEY], [KEY], True),
        ([KEY], [OTHER_KEY, KEY], True),
        ([KEY], [OTHER_KEY], False),
    ],
)
async def test_nodes_need_a_key_that_both_have(keys: list[bytes], other_keys: list[bytes], good: bool) -> None:
    async with linked(keys, other_keys) as (a, b, place):
        if good:
            await ask(a, place, call())
            await b.was_asked()
        else:
            with pytest.raises(NodeAway, match="cannot be reached"):
                await ask(a, place, call())
            assert not b.delivered


async def test_who_is_not_the_node_that_the_engine_names_is_asked_nothing() -> None:
    async with linked() as (a, b, place):
        for node, why in (
            (replace(place.node, certificate="0" * 64), "another program answers"),
            (replace(place.node, incarnation="b/0"), "started again"),
            (replace(place.node, address="127.0.0.1:1"), "cannot be reached"),
            (replace(place.node, address=""), "cannot be reached"),
        ):
            with pytest.raises(NodeAway, match=why) as away:
                await ask(a, replace(place, node=node), call())
            assert away.value.outcome == "not_sent"
        assert not b.delivered


async def test_what_strangers_send_to_the_address_does_nothing() -> None:
    async with linked() as (a, b, place):
        host, _, port = b.address.rpartition(":")
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 5000, b""):
            async with await trio.open_tcp_stream(host, int(port)) as stranger:
                await stranger.send_all(said)
                await stranger.send_eof()
                assert isinstance(await stranger.receive_some(), bytes | bytearray)
        await ask(a, place, call())
        await b.was_asked()
        assert len(b.delivered) == 1


async def test_a_peer_of_whom_nothing_is_heard_is_gone(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    link = OutgoingLink(FrameStream(ours), "b", Heard())
    reply: Reply[Any] = Reply()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.run)
        link.ask(Place("l", Node(name="b", incarnation="b/1"), 1), call(), reply)
        with pytest.raises(NodeAway) as gone:
            await reply.wait()
        assert gone.value.outcome == "unknown"
        assert trio.current_time() == pytest.approx(DEAD_S)
        late: Reply[Any] = Reply()
        link.ask(Place("l", Node(name="b", incarnation="b/1"), 1), call(), late)
        with pytest.raises(NodeAway) as later:
            await late.wait()
        assert later.value.outcome == "not_sent"
    await theirs.aclose()


async def test_a_peer_that_is_only_quiet_is_not(autojump_clock: MockClock) -> None:
    streams = [FrameStream(each) for each in memory_stream_pair()]

    def answer(stream: FrameStream, body: bytes) -> None:
        if read_answering(body) == SignOfLife(0):
            stream.send(SignOfLife(0, asked=False))

    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(stream.run, partial(answer, stream))
        await trio.sleep(1000)
        assert not any(stream.gone for stream in streams)
        nursery.cancel_scope.cancel()


async def test_notes_are_dropped_before_a_peer_that_does_not_read(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    stream = FrameStream(ours)
    note = NoteSent(1, "notifications/message", b"x" * 100_000)
    while not stream.crowded:
        stream.send(note)
    caller = DistantCaller(stream, read_call(1))
    assert not caller.note(Note("notifications/message", b"{}"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.run, lambda body: None)
        await wait_all_tasks_blocked()
        assert caller.note(Note("notifications/message", b"{}"))
        nursery.cancel_scope.cancel()
    assert not caller.note(Note("notifications/message", b"{}"))
    await theirs.aclose()


def read_call(id_: int) -> CallSent:
    fields: dict[str, Any] = {"launch": "l", "method": "ping", "members": b"", "meta": b"", "name": "", "retry": b""}
    return CallSent(
        id=id_,
        **fields,
        interest=Interest(),
        as_task=False,
        resumes=False,
        by_requests=False,
        run="",
        deadline_s=1.0,
        principal=ANA,
        client=(ANA, "c"),
        visits=False,
    )
