"""Calls during which servers ask: each has exactly one outcome, and is made exactly once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.snapshot import Catalogue
from actors.errors import CallTimedOut, CannotAsk, MalformedRequest, ProtocolViolation, ServerExited, SupervisorError
from actors.kit import Latest, Reply
from actors.messages import Caller, CallServer, Note, Question, Result
from actors.principal import LOCAL, Principal
from actors.protocol.asking.input_required import Retry
from actors.protocol.asking.questions import MAX_ERROR_BYTES, Fallback
from actors.protocol.exchanges import MESSAGE, PROGRESS
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from actors.search.index import Index
from supervisor.config import ServerConfig
from supervisor.config.values import Ask
from supervisor.host.workbench import Workbench
from supervisor.identity.audit import NO_AUDIT
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.names import LaunchNames
from supervisor.servers.safety import SafetyRules
from supervisor.service.asking.confirmations import Confirmations, Consents
from supervisor.service.asking.exchange import Exchange, QuestionTable
from supervisor.service.asking.round_trips import MAX_ROUNDS, RoundTrips
from supervisor.service.asking.rounds import (
    GRACE_S,
    MAX_OPEN,
    MAX_PARKED,
    SWEPT,
    AskedByResult,
    CapabilityRequired,
    InputNeeded,
    Parked,
    Parking,
    Rounds,
)
from supervisor.service.client import Client
from tests.fakes.deployments import deployment
from tests.fakes.exchanges import Ear, exchange
from tests.fakes.router import FakeRouter

EVERYTHING = msgspec.Raw(b'{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}')
MODERN = Client(era="modern", version="2026-07-28", capabilities=EVERYTHING)
LEGACY = Client(version="2025-11-25", capabilities=EVERYTHING)
ELICIT, SAMPLE = "elicitation/create", "sampling/createMessage"
SURE = Question(ELICIT, msgspec.Raw(b'{"message":"Sure?"}'))
YES = {"action": "accept", "content": {"sure": True}}
DONE = Result(msgspec.Raw(b'{"content":[]}'), "legacy")
QUESTION_S = 100.0
CALL_MAX_S = 1000.0


def round_trips(router: FakeRouter, cell: Latest[Deployment], parking: Parking) -> RoundTrips:
    safety = SafetyRules(cell, Latest(Catalogue(index=Index.empty())))
    bench, names = Workbench(), LaunchNames(cell.value.mask)
    confirmations = Confirmations(parking, bench, NO_AUDIT, Consents(lambda: 0.0))
    return RoundTrips(router.address, cell, safety, bench, parking, names, confirmations)


class Rig:
    """The two sides of calls: clients by `begin`, the server by `router.calls`."""

    def __init__(
        self, nursery: trio.Nursery, key: bytes = bytes(32), *, ask: Ask = "everyone", fallback: Fallback = "cancel"
    ) -> None:
        self.router = FakeRouter()
        self.closing = trio.Event()
        self._nursery = nursery
        self.parking = Parking(key)
        entry = ServerConfig(
            name="s",
            command="x",
            question_timeout_s=QUESTION_S,
            call_max_s=CALL_MAX_S,
            confirm=("drop_*",),
            confirm_within_s={"drop_slowly": 3 * QUESTION_S, "drop_*": QUESTION_S},
            ask=ask,
            question_fallback=fallback,
        )
        self._deployment = deployment(entry)
        self._trips = round_trips(self.router, self._deployment, self.parking)

    def restart(self) -> None:
        """The daemon is another one, with the same key."""
        self.parking = Parking(bytes(32))
        self._trips = round_trips(self.router, self._deployment, self.parking)

    def begin(
        self, request: Exchange, members: bytes = b'"name":"t"', *, by_result: bool = False, name: str = "t"
    ) -> Outcome:
        outcome = Outcome(request, by_result)
        message = CallServer(server="s", method=request.method, members=members, name=name, exchange=request)
        self._nursery.start_soon(outcome.wait, self._trips, request, message)
        return outcome

    async def made(self, request: Exchange, members: bytes = b'"name":"t"', **how: Any) -> Outcome:
        """Begin a call, and let happen what follows from that."""
        outcome = self.begin(request, members, **how)
        await settled()
        return outcome

    async def answer(self, result: Result | Exception, number: int = 0) -> None:
        """Let the server answer a call, and let happen what follows from that."""
        reply = self.router.calls[number][1]
        reply.fail(result) if isinstance(result, Exception) else reply.answer(result)
        await settled()

    async def opened(self, opening: Exchange | None = None, **how: Any) -> tuple[Outcome, Caller, Reply[Result]]:
        """Begin the only call; what it comes to, and the server's side of it: the caller, and the reply."""
        first = await self.made(opening or request(), **how)
        ((message, reply),) = self.router.calls
        assert message.exchange is not None
        return first, message.exchange, reply


class Outcome:
    """What one request of a client came to."""

    def __init__(self, exchange: Exchange, by_result: bool = False) -> None:
        self.exchange = exchange
        self._by_result = by_result
        self.scope = trio.CancelScope()
        self.kind = "none"
        self.value: Any = None

    async def wait(self, trips: RoundTrips, request: Exchange, message: CallServer) -> None:
        with self.scope:
            try:
                self.kind, self.value = "result", await trips.result(request, message, by_result=self._by_result)
            except AskedByResult as told:
                self.kind, self.value = "told", told
            except InputNeeded as needed:
                self.kind, self.value = "asked", json.loads(needed.result)
            except (SupervisorError, RemoteError) as error:
                self.kind, self.value = "error", error
        if self.scope.cancelled_caught:
            self.kind = "cancelled"

    @property
    def keys(self) -> list[str]:
        assert self.kind == "asked", (self.kind, self.value)
        return list(self.value["inputRequests"])


@asynccontextmanager
async def rig(ask: Ask = "everyone", fallback: Fallback = "cancel") -> AsyncIterator[Rig]:
    async with trio.open_nursery() as nursery:
        made = Rig(nursery, ask=ask, fallback=fallback)
        nursery.start_soon(made.parking.run, made.closing)
        yield made
        nursery.cancel_scope.cancel()


def request(client: Client = MODERN, method: str = "tools/call", ear: Ear | None = None, **more: Any) -> Exchange:
    return exchange(client, method, ear=ear, **more)


def again(asked: Outcome, answers: Mapping[str, Any], client: Client = MODERN, ear: Ear | None = None) -> Exchange:
    """The request that answers a round."""
    retry = Retry(
        msgspec.Raw(json.dumps(answers).encode()), msgspec.Raw(json.dumps(asked.value["requestState"]).encode())
    )
    return Exchange(client, b"2", "tools/call", msgspec.Raw(b"{}"), voice=ear, retry=retry)


async def settled() -> None:
    """Until nothing happens any more; what waits a moment for other questions has waited."""
    await wait_all_tasks_blocked()
    await trio.sleep(0.1)
    await wait_all_tasks_blocked()


# A modern client of a legacy server ---------------------------------------------------------------------------------


async def test_a_question_ends_the_request_and_the_next_one_goes_on_with_the_call(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first, caller, reply = await here.opened()
        answer = caller.ask(SURE)
        await settled()
        assert first.value["inputRequests"] == {
            "question-1": {"method": ELICIT, "params": {"message": "Sure?"}},
        }
        assert first.value["resultType"] == "input_required"
        second = await here.made(again(first, {"question-1": YES, "unknown": {}}))
        assert json.loads(bytes(await answer.wait())) == YES
        reply.answer(DONE)
        await settled()
        assert (second.kind, second.value) == ("result", DONE)
        assert len(here.router.calls) == 1
        assert len(here.parking) == 0


async def test_nobody_else_goes_on_with_a_call_who_knows_its_state(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first, caller, _ = await here.opened()
        answer = caller.ask(SURE)
        await settled()
        stranger = msgspec.structs.replace(MODERN, principal=Principal("somebody else"))
        theirs = await here.made(again(first, {"question-1": YES}, client=stranger))
        assert isinstance(theirs.value, MalformedRequest)
        assert not answer.settled
        await here.made(again(first, {"question-1": YES}))
        assert answer.settled


async def test_questions_that_come_together_travel_together(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first, caller, _ = await here.opened()
        replies = [caller.ask(SURE)]
        await trio.sleep(0.02)
        replies.append(caller.ask(Question(SAMPLE, msgspec.Raw(b"{}"))))
        await settled()
        assert first.keys == ["question-1", "question-2"]
        second = await here.made(again(first, {"question-2": {"role": "assistant"}}))
        assert [reply.settled for reply in replies] == [False, True]
        assert second.keys == ["question-1"]  # what has no answer is asked again
        await here.made(again(second, {"question-1": YES}))
        assert replies[0].settled


async def test_a_result_that_comes_with_a_question_is_the_outcome(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first, caller, reply = await here.opened()
        caller.ask(SURE)
        await trio.sleep(0.01)
        reply.answer(DONE)
        await settled()
        assert first.kind == "result"
        assert len(here.parking) == 0


async def test_calls_that_are_over_together_are_given_up_a_few_at_a_time(autojump_clock: MockClock) -> None:
    async with rig() as here:
        until = trio.current_time() + QUESTION_S
        for _ in range(8 * SWEPT):
            here.parking.park(Parked(LOCAL, b"", until, Reply(), Rounds(request())))
        await wait_all_tasks_blocked()
        left = [len(here.parking)]
        await trio.sleep(QUESTION_S)
        while len(here.parking):
            left.append(len(here.parking))
            await trio.lowlevel.checkpoint()
        assert max(before - after for before, after in pairwise(left)) <= 2 * SWEPT  # two turns, as trio may order them


async def test_what_the_client_did_not_declare_is_not_asked(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first, caller, reply = await here.opened(request(Client(era="modern", version="2026-07-28")))
        with pytest.raises(CannotAsk, match="did not declare elicitation"):
            await caller.ask(SURE).wait()
        reply.answer(DONE)
        await settled()
        assert first.kind == "result"


@pytest.mark.parametrize(
    ("body", "kind"), [(b'{"content":[],"isError":true}', "error"), (b'{"content":[],"isError":false}', "result")]
)
async def test_a_call_that_failed_for_that_says_what_to_declare(
    autojump_clock: MockClock, body: bytes, kind: str
) -> None:
    client = Client(era="modern", version="2026-07-28", capabilities=msgspec.Raw(b'{"elicitation":{}}'))
    url = Question(ELICIT, msgspec.Raw(b'{"mode":"url","url":"https://example.com"}'))
    async with rig() as here:
        first, caller, reply = await here.opened(request(client))
        for question in (url, Question(SAMPLE, msgspec.Raw(b"{}"))):
            assert caller.ask(question).settled
        reply.answer(Result(msgspec.Raw(body), "legacy"))
        await settled()
        assert first.kind == kind
        if kind == "error":
            assert isinstance(first.value, CapabilityRequired)
            required = first.value.data()["requiredCapabilities"]
            assert required == {"elicitation": {"url": {}}, "sampling": {}}


async def test_a_server_may_take_its_question_back(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first, caller, reply = await here.opened()
        question = caller.ask(SURE)
        await settled()
        question.abandon()
        second = await here.made(again(first, {"question-1": YES}))
        assert second.kind == "none"
        reply.answer(DONE)
        await settled()
        assert second.kind == "result"


async def test_one_call_may_ask_only_so_much_at_a_time(autojump_clock: MockClock) -> None:
    async with rig() as here:
        _, caller, _ = await here.opened()
        replies = [caller.ask(SURE) for _ in range(MAX_OPEN + 1)]
        assert [reply.settled for reply in replies] == [False] * MAX_OPEN + [True]


@pytest.mark.case("X07")
async def test_where_too_many_calls_of_a_client_wait_its_server_is_told_and_others_may_still_be_asked(
    autojump_clock: MockClock,
) -> None:
    async with rig() as here:
        for _ in range(MAX_PARKED // 2):
            here.parking.park(Parked(MODERN.principal, b"", 1e9, None, Rounds(request())))
        other = request(msgspec.structs.replace(MODERN, name="another"))
        here.parking.park(Parked(MODERN.principal, b"", 1e9, None, Rounds(other)))
        first, caller, reply = await here.opened()
        question = caller.ask(SURE)
        await settled()
        with pytest.raises(CannotAsk):
            await question.wait()
        reply.answer(DONE)
        await settled()
        assert first.kind == "result"


async def test_at_the_end_of_the_daemon_nobody_is_waited_for(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first = await here.made(request())
        second = await here.made(request())
        (parked, reply), (late, other) = here.router.calls
        assert parked.exchange is not None
        assert late.exchange is not None
        question = parked.exchange.ask(SURE)
        await settled()
        assert first.kind == "asked"
        here.closing.set()
        await settled()
        assert (reply.settled, question.settled, len(here.parking)) == (True, True, 0)
        question = late.exchange.ask(SURE)
        await settled()
        assert question.settled
        other.answer(DONE)
        await settled()
        assert second.kind == "result"


async def test_notes_go_to_the_request_that_is_there_with_its_own_token(autojump_clock: MockClock) -> None:
    early, late, deaf = Ear(), Ear(), Ear()
    async with rig() as here:
        opening = request(ear=early)
        opening.interest(msgspec.Raw(b'{"progressToken":1}'))
        first, caller, _ = await here.opened(opening)
        progress = Note(PROGRESS, b'{"progressToken":1,"progress":5}')
        assert caller.note(progress)
        caller.ask(SURE)
        await settled()
        assert not caller.note(progress)  # nobody is there
        following = again(first, {}, ear=late)
        following.interest(msgspec.Raw(b'{"progressToken":"other"}'))
        second = here.begin(following)
        await wait_all_tasks_blocked()
        assert caller.note(progress)
        assert not caller.note(Note(MESSAGE, b'{"level":"info"}'))
        await settled()
        third = again(second, {"question-1": YES}, ear=deaf)
        third.interest(msgspec.Raw(b'{"io.modelcontextprotocol/logLevel":"info"}'))
        await here.made(third)
        assert not caller.note(progress)
        assert caller.note(Note(MESSAGE, b'{"level":"info"}'))
    assert [said["params"] for said in early.heard] == [{"progressToken": 1, "progress": 5}]
    assert [said["params"] for said in late.heard] == [{"progressToken": "other", "progress": 5}]
    assert [said["method"] for said in deaf.heard] == [MESSAGE]


@pytest.mark.parametrize(
    ("answers", "said"),
    [(b"7", "inputResponses"), (b'{"question-1":null}', "inputResponses"), (b'{"question-1":true}', "inputResponses")],
)
async def test_a_malformed_answer_costs_the_call_nothing(autojump_clock: MockClock, answers: bytes, said: str) -> None:
    async with rig() as here:
        first, caller, _ = await here.opened()
        question = caller.ask(SURE)
        await settled()
        state = msgspec.Raw(json.dumps(first.value["requestState"]).encode())
        wrong = Exchange(MODERN, b"2", "tools/call", msgspec.Raw(b"{}"), retry=Retry(msgspec.Raw(answers), state))
        refused = await here.made(wrong)
        assert isinstance(refused.value, MalformedRequest)
        assert said in refused.value.message
        await here.made(again(first, {"question-1": YES}))
        assert question.settled


async def test_a_visit_is_asked_for_and_then_the_call_is_made_anew(autojump_clock: MockClock) -> None:
    address = {"mode": "url", "elicitationId": "e1", "url": "https://example.com/pay", "message": "Pay"}
    data = msgspec.Raw(json.dumps({"elicitations": [address, {"mode": "url", "url": "file:///x"}]}).encode())
    async with rig() as here:
        first = await here.made(request())
        await here.answer(RemoteError(ErrorObject(-32042, "pay first", data)))
        (asked,) = first.value["inputRequests"].values()
        assert asked["params"] == {"mode": "url", "url": "https://example.com/pay", "message": "Pay"}
        second = await here.made(again(first, {"question-1": {"action": "accept"}}))
        assert len(here.router.calls) == 2
        assert here.router.calls[1][0].retry == b""
        await here.answer(DONE, 1)
        assert second.kind == "result"


@pytest.mark.parametrize(
    ("capabilities", "data"),
    [
        (b'{"elicitation":{}}', b'{"elicitations":[{"mode":"url","url":"https://example.com"}]}'),
        (bytes(EVERYTHING), b'{"elicitations":[]}'),
        (bytes(EVERYTHING), b"7"),
        (bytes(EVERYTHING), b'{"elicitations":[%b{}]}' % (b"{}," * MAX_ERROR_BYTES)),
    ],
)
async def test_otherwise_the_error_stays_one(autojump_clock: MockClock, capabilities: bytes, data: bytes) -> None:
    client = msgspec.structs.replace(MODERN, capabilities=msgspec.Raw(capabilities))
    async with rig() as here:
        first = await here.made(request(client))
        await here.answer(RemoteError(ErrorObject(-32042, "pay first", msgspec.Raw(data))))
        assert isinstance(first.value, RemoteError)


async def test_a_legacy_client_that_may_be_asked_by_results_gets_that_error_all_the_same(
    autojump_clock: MockClock,
) -> None:
    data = msgspec.Raw(
        b'{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://example.com","message":"m"}]}'
    )
    client = msgspec.structs.replace(LEGACY, capabilities=EVERYTHING)
    async with rig() as here:
        first = await here.made(request(client, ear=Ear(), questions=QuestionTable()), by_result=True)
        await here.answer(RemoteError(ErrorObject(-32042, "pay first", data)))
        assert isinstance(first.value, RemoteError)
        assert first.value.error.data == data


# A modern client of a modern server ---------------------------------------------------------------------------------


async def test_what_a_modern_server_asks_passes_as_it_is_and_so_does_the_answer(autojump_clock: MockClock) -> None:
    asked = msgspec.Raw(b'{"resultType":"input_required","inputRequests":{"user_name":{"method":"x"}}, "n": 1.0}')
    async with rig() as here:
        first = await here.made(request())
        await here.answer(Result(asked, "modern"))
        assert first.value == json.loads(bytes(asked))
        retry = Retry(msgspec.Raw(b'{"user_name": {}}'), msgspec.Raw(b'"theirs"'))
        await here.made(Exchange(MODERN, b"2", "tools/call", msgspec.Raw(b"{}"), retry=retry))
        assert here.router.calls[1][0].retry == b'"inputResponses":{"user_name": {}},"requestState":"theirs"'


async def test_what_is_asked_of_one_of_several_calls_is_asked_once_the_call_is_made_alone(
    autojump_clock: MockClock,
) -> None:
    asked = b'{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{}}}'
    asked += b',"requestState":"theirs"}'
    async with rig() as here:
        first = await here.made(msgspec.structs.replace(request(), asks_later=True), by_result=True)
        await here.answer(Result(msgspec.Raw(asked), "modern"))
        assert (first.keys, len(here.parking)) == ([], 1)
        state = msgspec.Raw(json.dumps(first.value["requestState"]).encode())
        going_on = Retry(msgspec.Raw(b'{"name":{"action":"accept"}}'), state, ours=True)
        alone = await here.made(
            Exchange(MODERN, b"2", "tools/call", msgspec.Raw(b"{}"), retry=going_on), by_result=True
        )
        message, reply = here.router.calls[1]
        assert message.retry == b'"requestState":"theirs"', "a model answers nothing in the place of its user"
        reply.answer(Result(msgspec.Raw(asked), "modern"))
        await settled()
        assert alone.value == json.loads(asked)


# A legacy client of a modern server ---------------------------------------------------------------------------------


def incomplete(requests: Mapping[str, Any], state: str | None = None) -> Result:
    more = {} if state is None else {"requestState": state}
    body = {"resultType": "input_required", "inputRequests": requests, **more}
    return Result(msgspec.Raw(json.dumps(body).encode()), "modern")


COMPLETE = Result(msgspec.Raw(b'{"resultType":"complete","content":[]}'), "modern")


async def test_a_legacy_client_is_asked_by_requests(autojump_clock: MockClock) -> None:
    ear, table = Ear(), QuestionTable()
    async with rig() as here:
        call = await here.made(request(LEGACY, ear=ear, questions=table))
        url = {"mode": "url", "url": "https://example.com", "message": "m"}
        asked = {"a": {"method": ELICIT, "params": {"message": "?"}}, "b": {"method": ELICIT, "params": url}}
        await here.answer(incomplete(asked, "s"))
        assert [said["method"] for said in ear.heard] == [ELICIT, ELICIT]
        assert ear.heard[1]["params"].pop("elicitationId")
        assert [said["params"] for said in ear.heard] == [{"message": "?"}, url]
        table.on_answer(ear.heard[1]["id"], msgspec.Raw(b'{"action":"accept"}'), msgspec.Raw(b""))
        table.on_answer(ear.heard[0]["id"], msgspec.Raw(b""), msgspec.Raw(b'{"code":-1,"message":"no"}'))
        await settled()
        members = json.loads(b"{" + here.router.calls[1][0].retry + b"}")
        assert members == {
            "inputResponses": {"a": {"action": "cancel"}, "b": {"action": "accept"}},
            "requestState": "s",
        }
        await here.answer(COMPLETE, 1)
        assert (call.kind, call.value) == ("result", COMPLETE)


async def test_a_server_may_want_no_more_than_another_request(autojump_clock: MockClock) -> None:
    async with rig() as here:
        call = here.begin(request(LEGACY))
        for number in range(MAX_ROUNDS):
            await trio.sleep(1)
            here.router.calls[number][1].answer(
                Result(msgspec.Raw(b'{"resultType":"input_required","requestState":"1"}'), "modern")
            )
        await trio.sleep(1)
        assert here.router.calls[-1][0].retry == b'"requestState":"1"'
        await here.answer(COMPLETE, -1)
        assert call.kind == "result"
        assert len(here.router.calls) == MAX_ROUNDS + 1


async def test_but_not_for_ever(autojump_clock: MockClock) -> None:
    async with rig() as here:
        call = here.begin(request(LEGACY))
        for number in range(MAX_ROUNDS + 1):
            await trio.sleep(1)
            here.router.calls[number][1].answer(
                Result(msgspec.Raw(b'{"resultType":"input_required","requestState":"1"}'), "modern")
            )
        await settled()
        assert isinstance(call.value, ProtocolViolation)
        assert "10 times" in call.value.message
        late = await here.made(request(LEGACY))
        here.router.calls[-1][1].answer(
            Result(msgspec.Raw(b'{"resultType":"input_required","requestState":"1"}'), "modern")
        )
        await trio.sleep(CALL_MAX_S + 1)
        assert isinstance(late.value, CallTimedOut)


@pytest.mark.parametrize(
    ("asked", "kind", "said"),
    [
        ({"a": {"method": SAMPLE}}, CannotAsk, "did not declare sampling"),
        ({"a": {"method": ELICIT, "params": {"mode": "url", "url": "file:///x"}}}, ProtocolViolation, "only addresses"),
        ({}, ProtocolViolation, "without saying for which"),
    ],
)
async def test_what_cannot_be_asked_is_an_error(
    autojump_clock: MockClock, asked: Any, kind: type[SupervisorError], said: str
) -> None:
    client = msgspec.structs.replace(LEGACY, capabilities=msgspec.Raw(b'{"elicitation":{}}'))
    async with rig() as here:
        call = await here.made(request(client, ear=Ear(), questions=QuestionTable()))
        await here.answer(incomplete(asked))
        assert isinstance(call.value, kind)
        assert said in call.value.message
        assert "'s'" in call.value.message


@pytest.mark.parametrize(("method", "error"), [(ELICIT, None), (SAMPLE, CannotAsk)])
async def test_nobody_who_does_not_answer_has_said_yes(
    autojump_clock: MockClock, method: str, error: type[Exception] | None
) -> None:
    ear = Ear()
    async with rig() as here:
        call = await here.made(request(LEGACY, ear=ear, questions=QuestionTable()))
        here.router.calls[0][1].answer(incomplete({"a": {"method": method}}))
        await trio.sleep(QUESTION_S + 1)
        assert ear.heard[-1]["method"] == "notifications/cancelled"
        if error is None:
            assert b'{"action":"cancel"}' in here.router.calls[1][0].retry
        else:
            assert isinstance(call.value, error)
            assert "nobody answered in time" in str(call.value)


@pytest.mark.parametrize(
    ("fallback", "properties", "answer"),
    [
        ("default", {"name": {"type": "string", "default": "x"}}, b'{"action":"accept","content":{"name":"x"}}'),
        ("default", {"sure": {"type": "boolean", "default": True}}, b'{"action":"cancel"}'),
        ("error", {}, b""),
    ],
)
async def test_what_the_server_gets_instead_is_configured(
    autojump_clock: MockClock, fallback: Fallback, properties: Any, answer: bytes
) -> None:
    asked = {"method": ELICIT, "params": {"message": "m", "requestedSchema": {"properties": properties}}}
    async with rig(fallback=fallback) as here:
        call = await here.made(request(LEGACY, ear=Ear(), questions=QuestionTable()))
        here.router.calls[0][1].answer(incomplete({"a": asked}))
        await trio.sleep(QUESTION_S + 1)
        if answer:
            assert answer in here.router.calls[1][0].retry
        else:
            assert isinstance(call.value, CannotAsk)
            assert "nobody answered in time" in call.value.message


async def test_an_answer_counts_though_another_question_has_none(autojump_clock: MockClock) -> None:
    ear, table = Ear(), QuestionTable()
    async with rig() as here:
        await here.made(request(LEGACY, ear=ear, questions=table))
        await here.answer(incomplete({"a": {"method": ELICIT}, "b": {"method": ELICIT}}))
        table.on_answer(ear.heard[1]["id"], msgspec.Raw(json.dumps(YES).encode()), msgspec.Raw(b""))
        await trio.sleep(QUESTION_S + 1)
        sent = json.loads(b"{" + here.router.calls[1][0].retry + b"}")["inputResponses"]
        assert sent == {"a": {"action": "cancel"}, "b": YES}


async def test_a_sample_that_is_refused_ends_the_call(autojump_clock: MockClock) -> None:
    ear, table = Ear(), QuestionTable()
    async with rig() as here:
        call = await here.made(request(LEGACY, ear=ear, questions=table))
        await here.answer(incomplete({"a": {"method": SAMPLE}}))
        table.on_answer(ear.heard[0]["id"], msgspec.Raw(b""), msgspec.Raw(b'{"code":-1,"message":"User said no"}'))
        await settled()
        assert isinstance(call.value, CannotAsk)
        assert "User said no" in call.value.message


# Clients that cannot be asked ---------------------------------------------------------------------------------------

MUTE = Client(version="2025-03-26")


def continued(told: Outcome, answers: Mapping[str, Any], client: Client = MUTE) -> Exchange:
    state = msgspec.Raw(json.dumps(told.value.state).encode())
    retry = Retry(msgspec.Raw(json.dumps(answers).encode()), state, ours=True)
    return Exchange(client, b"2", "tools/call", msgspec.Raw(b"{}"), retry=retry)


@pytest.mark.parametrize("client", [MUTE, Client(era="modern", version="2026-07-28")])
async def test_what_a_legacy_server_asks_is_told_by_a_result(autojump_clock: MockClock, client: Client) -> None:
    async with rig() as here:
        first, caller, reply = await here.opened(request(client), by_result=True)
        question = caller.ask(SURE)
        refused = caller.ask(Question(SAMPLE, msgspec.Raw(b"{}")))
        secret = msgspec.Raw(b'{"requestedSchema":{"properties":{"password":{}}}}')
        hidden = caller.ask(Question(ELICIT, secret))
        await settled()
        assert (refused.settled, hidden.settled, first.kind) == (True, True, "told")
        assert list(first.value.questions) == ["question-1"]
        assert first.value.expires_s == pytest.approx(QUESTION_S)
        second = await here.made(continued(first, {"question-1": YES}, client), by_result=True)
        assert json.loads(bytes(await question.wait())) == YES
        reply.answer(DONE)
        await settled()
        assert second.kind == "result"


async def test_what_a_modern_server_asks_is_told_by_a_result_and_the_call_made_again(autojump_clock: MockClock) -> None:
    asked = {"a": {"method": ELICIT, "params": {"message": "?"}}, "b": {"method": ELICIT, "params": {"message": "!"}}}
    async with rig() as here:
        first = await here.made(request(MUTE), by_result=True)
        await here.answer(incomplete(asked, "theirs"))
        assert list(first.value.questions) == ["a", "b"]
        second = await here.made(continued(first, {"a": YES}), by_result=True)
        assert list(second.value.questions) == ["b"]
        third = await here.made(continued(second, {"a": YES, "b": {"action": "decline"}, "c": {}}), by_result=True)
        members = json.loads(b"{" + here.router.calls[1][0].retry + b"}")
        assert members == {"inputResponses": {"a": YES, "b": {"action": "decline"}}, "requestState": "theirs"}
        await here.answer(COMPLETE, 1)
        assert (third.kind, len(here.router.calls)) == ("result", 2)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (SAMPLE, {}),
        (ELICIT, {"requestedSchema": {"properties": {"password": {}}}}),
        (ELICIT, {"mode": "url", "url": "file:///x"}),
    ],
)
async def test_what_cannot_be_told_is_an_error(autojump_clock: MockClock, method: str, params: Any) -> None:
    async with rig() as here:
        call = await here.made(request(MUTE), by_result=True)
        await here.answer(incomplete({"a": {"method": method, "params": params}}))
        assert isinstance(call.value, CannotAsk)
        assert "server 's' asked for input: " in call.value.message


async def test_a_client_that_can_be_asked_by_its_revision_is(autojump_clock: MockClock) -> None:
    ear, table = Ear(), QuestionTable()
    async with rig() as here:
        modern = here.begin(request(MODERN), by_result=True)
        legacy = await here.made(request(LEGACY, ear=ear, questions=table), by_result=True)
        for _, reply in here.router.calls:
            reply.answer(incomplete({"a": {"method": ELICIT, "params": {}}}))
        await settled()
        assert (modern.kind, legacy.kind) == ("asked", "none")
        assert ear.heard[0]["method"] == ELICIT


@pytest.mark.case("C26")
async def test_a_continuation_that_is_not_ours_goes_to_no_server(autojump_clock: MockClock) -> None:
    retry = Retry(msgspec.Raw(b"{}"), msgspec.Raw(b'"mcpvisor-AAAA"'), ours=True)
    async with rig() as here:
        call = await here.made(Exchange(MODERN, b"2", "tools/call", msgspec.Raw(b"{}"), retry=retry), by_result=True)
        assert isinstance(call.value, MalformedRequest)
        assert here.router.calls == []


# Exactly one outcome ------------------------------------------------------------------------------------------------

STEPS = st.sampled_from(
    ["ask", "answer", "die", "retry", "retry", "retry twice", "foreign", "changed", "old", "leave", "expire", "restart"]
)


class Machine:
    """One call and everything that may happen to it, with a model of what must come of it."""

    def __init__(self, here: Rig) -> None:
        self._here = here
        self._opening = here.begin(request())
        self.outcomes = [self._opening]
        self.questions: list[Reply[msgspec.Raw]] = []
        self._asked: Outcome | None = None
        self._used: Outcome | None = None
        self.lost = False

    @property
    def _call(self) -> tuple[CallServer, Reply[Result]]:
        return self._here.router.calls[0]

    async def take(self, step: str) -> None:
        message, reply = self._call
        latest = self.outcomes[-1]
        if latest.kind == "asked" and latest is not self._used:
            self._asked = latest
        match step:
            case "ask" if not reply.settled and message.exchange is not None:
                self.questions.append(message.exchange.ask(SURE))
            case "answer":
                reply.answer(DONE)
            case "die":
                reply.fail(ServerExited("gone", server="s", outcome="unknown"))
            case "leave":
                latest.scope.cancel()
            case "expire":
                await trio.sleep(QUESTION_S + GRACE_S + 1)
            case "restart":
                self._here.restart()
                self.lost = True
            case "retry" | "retry twice" if self._asked is not None:
                self._retry()
                await wait_all_tasks_blocked()  # the first one to come goes on with the call
                if step == "retry twice":
                    await self._refused(again(self._used or self._asked, {"question-1": YES}))
            case "foreign" if self._asked is not None:
                foreign = msgspec.structs.replace(MODERN, principal=Principal("somebody else"))
                await self._refused(again(self._asked, {"question-1": YES}, client=foreign))
            case "changed" if self._asked is not None:
                await self._refused(again(self._asked, {"question-1": YES}), b'"name":"other"')
            case "old" if self._used is not None:
                await self._refused(again(self._used, {"question-1": YES}))
        await settled()

    def _retry(self) -> None:
        assert self._asked is not None
        answers = dict.fromkeys(self._asked.keys, YES)
        self.outcomes.append(self._here.begin(again(self._asked, answers)))
        self._used, self._asked = self._asked, None

    async def _refused(self, wrong: Exchange, members: bytes = b'"name":"t"') -> None:
        outcome = self._here.begin(wrong, members)
        await wait_all_tasks_blocked()
        assert isinstance(outcome.value, MalformedRequest), (outcome.kind, outcome.value)

    async def end(self) -> None:
        """Let everything come to its end, and look what came of it."""
        self._call[1].answer(DONE)
        await settled()
        kinds = [outcome.kind for outcome in self.outcomes]
        assert "none" not in kinds
        assert kinds.count("result") <= 1
        assert len(self._here.router.calls) == 1  # the call is never made again
        await trio.sleep(QUESTION_S + GRACE_S + 1)
        assert self.lost or len(self._here.parking) == 0
        assert self.lost or all(question.settled for question in self.questions)


@pytest.mark.case("I04", "X06", "X08")
@given(st.lists(STEPS, max_size=12))
def test_a_parked_call_has_one_outcome_whatever_happens(steps: list[str]) -> None:
    async def play() -> None:
        async with rig() as here:
            machine = Machine(here)
            await settled()
            for step in steps:
                await machine.take(step)
            await machine.end()

    trio.run(play, clock=MockClock(autojump_threshold=0))
