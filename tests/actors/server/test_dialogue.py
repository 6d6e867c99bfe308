"""What a server says and asks while it works on a call reaches whoever made the call, and the answers go back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import AnswerFirst, CallTimedOut, ServerExited, TooManyCalls
from actors.kit import Reply
from actors.messages import Note, Question, Result
from actors.principal import ClientKey, Principal
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.asking.questions import Fallback
from actors.protocol.exchanges import LEFT_S, Interest
from actors.server import ServerSettings
from actors.server.calls.turns import QUIET_CALLS
from actors.server.parts.dialogue import CONTENDED_S, HOLD_S, PATIENT_HOLD_S
from tests.actors.server.rig import content, running_server
from tests.fakes.late_clock import lasting
from tests.fakes.mcp_server import FakeServer

ASKING = ServerSettings(terms=Terms(capabilities=OF_CLIENTS), question_timeout_s=100, call_max_s=1000)
LOGGING: dict[str, Any] = {"tools": {}, "logging": {}}


class Caller:
    """Whoever made a call: it hears notes, and answers questions when the test says so. `client`: whose call it is."""

    def __init__(self, client: str | tuple[str, str] = "") -> None:
        self.client = client
        self.notes: list[tuple[str, Any]] = []
        self.questions: list[tuple[Question, Reply[msgspec.Raw]]] = []
        self.asked = trio.Event()

    def note(self, note: Note) -> bool:
        self.notes.append((note.method, json.loads(note.params)))
        return True

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        reply: Reply[msgspec.Raw] = Reply()
        self.questions.append((question, reply))
        self.asked.set()
        return reply

    def answer(self, body: bytes = b'{"action":"accept"}') -> None:
        """Answer what was asked last."""
        self.questions[-1][1].answer(msgspec.Raw(body))

    @property
    def identity(self) -> ClientKey:
        principal, own = self.client if isinstance(self.client, tuple) else (self.client, self.client or self)
        return Principal(principal), own

    def visitor(self, question: Question | None = None) -> None:
        return None


async def got(call: Reply[Result]) -> Any:
    """What a server got for its question during a call of `ask`."""
    return (await content(call))["got"]


async def test_a_server_is_only_asked_for_what_somebody_wants(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(capabilities=LOGGING)) as rig:
        await rig.call(exchange=Caller(), interest=Interest(log_level=""))
        await rig.call()
        assert all("_meta" not in message.get("params", {}) for message in rig.fake.messages)
        assert rig.fake.count("logging/setLevel") == 0


async def test_the_level_of_a_legacy_server_follows_the_most_talkative_caller(autojump_clock: MockClock) -> None:
    quiet, talkative = Caller(), Caller()
    levels = ["debug", "warning", "error"]
    async with running_server(FakeServer(capabilities=LOGGING)) as rig:
        await rig.call("log", exchange=quiet, interest=Interest(log_level="error"), levels=levels)
        await rig.call("log", exchange=talkative, interest=Interest(log_level="debug"), levels=levels)
        await rig.call("log", exchange=quiet, interest=Interest(log_level="error"), levels=levels)
        await rig.call("log", levels=levels)
        asked = [
            message["params"]["level"] for message in rig.fake.messages if message.get("method") == "logging/setLevel"
        ]
    assert asked == ["error", "debug"]
    assert [note["level"] for _, note in quiet.notes] == ["error", "error"]
    assert [note["level"] for _, note in talkative.notes] == levels


@pytest.mark.parametrize("unsaid_first", [True, False])
async def test_who_did_not_say_a_level_hears_as_before_once_somebody_else_did(
    autojump_clock: MockClock, unsaid_first: bool
) -> None:
    quiet, unsaid = Caller(), Caller()
    async with running_server(FakeServer(capabilities=LOGGING)) as rig:
        if unsaid_first:
            await rig.call("log", exchange=Caller(), interest=Interest(log_level=""), levels=["info"])
        await rig.call("log", exchange=quiet, interest=Interest(log_level="error"), levels=["info", "error"])
        await rig.call("log", exchange=unsaid, interest=Interest(log_level=""), levels=["info", "error"])
        asked = [
            message["params"]["level"] for message in rig.fake.messages if message.get("method") == "logging/setLevel"
        ]
    assert asked == (["info"] if unsaid_first else ["error", "info"])
    assert [note["level"] for _, note in quiet.notes] == ["error"]
    assert [note["level"] for _, note in unsaid.notes] == ["info", "error"]


async def test_a_modern_server_is_told_the_level_with_each_request(autojump_clock: MockClock) -> None:
    caller = Caller()
    async with running_server(FakeServer(probe="modern", capabilities=LOGGING), era=None) as rig:
        await rig.call("log", exchange=caller, interest=Interest(b"7", "info"), levels=["info"])
        (call,) = [message for message in rig.fake.messages if message.get("method") == "tools/call"]
        meta = call["params"]["_meta"]
        assert meta["io.modelcontextprotocol/logLevel"] == "info"
        assert meta["progressToken"] == call["id"]
        assert rig.fake.count("logging/setLevel") == 0
    assert [note["level"] for _, note in caller.notes] == ["info"]


async def test_a_question_waits_for_the_caller_and_the_answer_goes_back(autojump_clock: MockClock) -> None:
    caller = Caller()
    async with running_server(settings=ASKING) as rig:
        call = rig.submit("ask", exchange=caller, deadline_s=60)
        await caller.asked.wait()
        ((question, _),) = caller.questions
        assert (question.method, msgspec.json.decode(question.params)["message"]) == ("elicitation/create", "Sure?")
        await trio.sleep(90)  # longer than the call's deadline, which waits meanwhile
        caller.answer(b'{"action":"accept","content":{"a":1e2}}')
        assert (await got(call))["result"] == {"action": "accept", "content": {"a": 100}}
    initialize = next(message for message in rig.fake.messages if message["method"] == "initialize")
    assert initialize["params"]["capabilities"] == json.loads(OF_CLIENTS)


@pytest.mark.case("X07")
async def test_a_question_that_nobody_answers_is_cancelled_in_time(autojump_clock: MockClock) -> None:
    caller = Caller()
    async with running_server(settings=ASKING) as rig:
        began = trio.current_time()
        assert (await rig.call("ask", exchange=caller))["got"]["result"] == {"action": "cancel"}
        assert trio.current_time() - began == lasting(100)
    assert caller.questions[0][1].settled


@pytest.mark.parametrize(
    ("method", "fallback", "given"),
    [
        ("elicitation/create", "default", {"result": {"action": "accept", "content": {"name": "x"}}}),
        ("elicitation/create", "error", {"error": {"code": -1, "message": "nobody answered in time"}}),
        ("sampling/createMessage", "cancel", {"error": {"code": -1, "message": "nobody answered in time"}}),
    ],
)
async def test_or_gets_what_is_configured(
    autojump_clock: MockClock, method: str, fallback: Fallback, given: Any
) -> None:
    named = {"name": {"type": "string", "default": "x"}}
    settings = msgspec.structs.replace(ASKING, question_fallback=fallback)
    async with running_server(settings=settings) as rig:
        answer = await got(rig.submit("ask", exchange=Caller(), method=method, properties=named))
    assert {name: answer[name] for name in given} == given


async def test_after_a_question_that_was_taken_back_the_deadline_counts_again(autojump_clock: MockClock) -> None:
    async with running_server(settings=ASKING) as rig:
        began = trio.current_time()
        with pytest.raises(CallTimedOut):
            await rig.call("ask", exchange=Caller(), deadline_s=20, s=5, pause_s=1000)
        assert trio.current_time() - began == lasting(25, wakes=2)


@pytest.mark.case("X08")
async def test_questions_end_with_their_process(autojump_clock: MockClock) -> None:
    caller = Caller()
    async with running_server(settings=ASKING) as rig:
        call = rig.submit("ask", exchange=caller)
        await caller.asked.wait()
        await rig.restart()
        with pytest.raises(ServerExited, match="stopped while the call was in flight"):
            await call.wait()
        assert caller.questions[0][1].settled
        assert await rig.call(a=1) == {"a": 1}


async def test_progress_puts_the_deadline_off_and_only_so_far(autojump_clock: MockClock) -> None:
    settings = ServerSettings(call_max_s=200)
    caller = Caller()
    async with running_server(settings=settings) as rig:
        await rig.call("progress", 60, caller, Interest(b"1"), progress=[1, 2, 3], pause_s=50)
        began = trio.current_time()
        with pytest.raises(CallTimedOut, match="did not answer tools/call within 200 s"):
            await rig.call("progress", 60, caller, Interest(b"1"), progress=list(range(10)), pause_s=50)
        assert trio.current_time() - began == lasting(200)
        with pytest.raises(CallTimedOut, match="within 60 s"):
            await rig.call("progress", 60, progress=[1, 2, 3], pause_s=50)  # nobody wanted to hear of it


async def test_of_several_calls_none_is_asked_until_only_one_can_be_meant(autojump_clock: MockClock) -> None:
    caller, other = Caller(), Caller()
    async with running_server(settings=ASKING) as rig:
        slow = rig.submit("sleep", exchange=other, s=3)
        await wait_all_tasks_blocked()
        call = rig.submit("ask", exchange=caller)
        began = trio.current_time()
        await caller.asked.wait()
        assert trio.current_time() - began == lasting(3)
        assert slow.settled
        caller.answer()
        assert (await got(call))["result"] == {"action": "accept"}
    assert other.questions == []


async def test_where_it_stays_unknown_the_server_is_told_and_calls_take_turns(autojump_clock: MockClock) -> None:
    callers = [Caller() for _ in range(4)]
    async with running_server(settings=ASKING) as rig:
        calls = [rig.submit("ask", exchange=caller) for caller in callers[:2]]
        await trio.sleep(HOLD_S - 0.5)
        assert not any(call.settled for call in calls)
        assert (await rig.status()).one_at_a_time
        await trio.sleep(1)
        for call in calls:
            error = (await got(call))["error"]
            assert error["code"] == -32601
            assert "call these tools one after the other" in error["message"]
        for caller in callers[2:]:
            calls.append(rig.submit("ask", exchange=caller))
            await callers[2].asked.wait()
        await wait_all_tasks_blocked()
        assert not callers[3].asked.is_set()
        assert (await rig.status()).waiting == 1
        callers[2].answer()
        await callers[3].asked.wait()
        callers[3].answer(b'{"action":"decline"}')
        assert [(await got(call))["result"]["action"] for call in calls[2:]] == ["accept", "decline"]
    assert callers[0].questions == callers[1].questions == []


async def test_a_call_whose_turn_does_not_come_is_told_why(autojump_clock: MockClock) -> None:
    async with running_server(settings=ASKING) as rig:
        calls = [rig.submit("ask", exchange=Caller()) for _ in range(2)]
        await trio.sleep(HOLD_S + 1)
        assert all(call.settled for call in calls)
        rig.submit("ask", exchange=Caller())
        await wait_all_tasks_blocked()
        with pytest.raises(
            TooManyCalls, match="one call of 'ask' or the like at a time, and the present one waits for somebody"
        ):
            await rig.call("ask", exchange=Caller(), deadline_s=10)


async def contended(rig: Any) -> Caller:
    """Let two calls ask at once, which is refused, and one alone, which waits for an answer."""
    for _ in range(2):
        rig.submit("ask", exchange=Caller())
    await trio.sleep(HOLD_S + 1)
    patient = Caller()
    rig.submit("ask", exchange=patient, deadline_s=900)
    await patient.asked.wait()
    return patient


async def test_calls_of_tools_that_never_ask_do_not_wait_for_somebody_to_fill_in_a_form(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=ASKING) as rig:
        patient = await contended(rig)
        began = trio.current_time()
        assert await rig.call("echo", exchange=Caller(), a=1) == {"a": 1}
        assert await rig.call("sleep", exchange=Caller(), s=2) is not None
        assert trio.current_time() - began == lasting(2)
        assert not patient.questions[0][1].settled


async def test_who_waits_until_somebody_else_answers_a_question_is_told_so(autojump_clock: MockClock) -> None:
    waiting, deaf = Caller(), Caller()
    async with running_server(settings=ASKING) as rig:
        patient = await contended(rig)
        began = (await rig.status()).asked_since
        assert began is None
        await trio.sleep(12)
        calls = [rig.submit("ask", exchange=waiting, interest=Interest(log_level="")), rig.submit("ask", exchange=deaf)]
        await wait_all_tasks_blocked()
        await rig.call("echo", exchange=Caller())
        ((method, params),) = waiting.notes
        assert (method, params["level"]) == ("notifications/message", "info")
        assert "waits for its turn: server 's' is busy" in params["data"]
        assert "waits for somebody to answer a question, for 12 s" in params["data"]
        assert deaf.notes == []
        status = await rig.status()
        assert status.asked_since is not None
        assert trio.current_time() - status.asked_since == lasting(12)
        patient.answer(b"{}")
        await waiting.asked.wait()
        assert [call.settled for call in calls] == [False, False]


async def test_a_question_is_asked_as_soon_as_the_calls_beside_it_are_over_whatever_else_is_called(
    autojump_clock: MockClock,
) -> None:
    caller, other = Caller(), Caller()
    async with running_server(settings=ASKING) as rig:
        rig.submit("sleep", exchange=other, s=3)
        await wait_all_tasks_blocked()
        call = rig.submit("ask", exchange=caller)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        rig.submit("echo", exchange=other)
        later = rig.submit("progress", exchange=other, progress=[1], pause_s=60)
        await caller.asked.wait()
        assert trio.current_time() - began == lasting(3)
        assert not later.settled
        assert not (await rig.status()).one_at_a_time
        caller.answer()
        later.abandon()
        assert (await got(call))["result"] == {"action": "accept"}
    assert other.questions == []


async def test_a_question_of_a_tool_that_asks_waits_longer_for_one_that_does_not(autojump_clock: MockClock) -> None:
    first, second = Caller(), Caller()
    async with running_server(settings=ASKING) as rig:
        calls = [rig.submit("ask", exchange=first)]
        await first.asked.wait()
        first.answer()
        rig.submit("sleep", exchange=Caller(), s=PATIENT_HOLD_S - 2)
        await wait_all_tasks_blocked()
        calls.append(rig.submit("ask", exchange=second))
        await second.asked.wait()
        assert trio.current_time() == pytest.approx(PATIENT_HOLD_S - 2, abs=1)
        second.answer()
        assert [(await got(call))["result"]["action"] for call in calls] == ["accept", "accept"]


async def test_a_tool_that_was_only_there_takes_turns_until_it_was_quiet_some_times(autojump_clock: MockClock) -> None:
    async with running_server(settings=ASKING) as rig:
        slow = rig.submit("sleep", exchange=Caller(), s=HOLD_S + 1)
        await wait_all_tasks_blocked()
        assert "error" in (await rig.call("ask", exchange=Caller()))["got"]
        await slow.wait()
        for number in range(QUIET_CALLS + 1):
            patient = Caller()
            rig.submit("ask", exchange=patient)
            await patient.asked.wait()
            beside = rig.submit("sleep", exchange=Caller(), s=0)
            await trio.sleep(1)
            assert beside.settled is (number == QUIET_CALLS)
            patient.answer(b"{}")
            await beside.wait()


async def test_who_never_answers_does_not_hold_up_the_others(autojump_clock: MockClock) -> None:
    patient, next_one = Caller(), Caller()
    settings = ServerSettings(terms=Terms(capabilities=OF_CLIENTS), question_timeout_s=500, call_max_s=1000)
    async with running_server(settings=settings) as rig:
        for _ in range(2):
            rig.submit("ask", exchange=Caller())
        await trio.sleep(HOLD_S + 1)
        alone = rig.submit("ask", exchange=patient, deadline_s=900)
        await trio.sleep(400)
        assert not alone.settled  # nobody else waits
        patient.answer(b"{}")
        await alone.wait()
        unattended = rig.submit("ask", exchange=Caller(), deadline_s=900)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        call = rig.submit("ask", exchange=next_one, deadline_s=900)
        await next_one.asked.wait()
        assert trio.current_time() - began == lasting(CONTENDED_S, wakes=2)
        assert (await got(unattended))["result"] == {"action": "cancel"}
        next_one.answer()
        assert (await got(call))["result"] == {"action": "accept"}


ONE_AT_A_TIME = ServerSettings(
    terms=Terms(capabilities=OF_CLIENTS), question_timeout_s=500, call_max_s=1000, max_in_flight=1
)


async def test_where_all_that_a_server_takes_wait_for_answers_the_next_call_is_as_one_that_waits_for_its_turn(
    autojump_clock: MockClock,
) -> None:
    model = {"by_model": True}
    async with running_server(settings=ONE_AT_A_TIME) as rig:
        asked = Caller("one")
        rig.submit("ask", exchange=asked, deadline_s=900, how=model)
        beside = rig.submit("echo", exchange=Caller("one"), how=model)
        await asked.asked.wait()
        with pytest.raises(AnswerFirst, match="of 'ask', asks, and this one for its turn; nothing was sent"):
            await beside.wait()
        assert (await rig.status()).asked_since is None
        with pytest.raises(
            TooManyCalls, match=r"no more than 1 at a time \(max_in_flight\), and each present one waits"
        ):
            await rig.call("echo", exchange=Caller("other"), deadline_s=20)
        assert await rig.call("echo", exchange=Caller("other"), a=1) == {"a": 1}
        assert trio.current_time() == pytest.approx(CONTENDED_S, abs=2)


async def test_a_question_that_others_wait_for_from_the_start_does_not_last(autojump_clock: MockClock) -> None:
    async with running_server(settings=ONE_AT_A_TIME) as rig:
        rig.submit("ask", exchange=Caller("one"), deadline_s=900)
        assert await rig.call("echo", exchange=Caller("other"), deadline_s=900, a=1) == {"a": 1}
        assert trio.current_time() == pytest.approx(CONTENDED_S, abs=2)


@pytest.mark.parametrize("answered_s", [400, None])
async def test_a_question_that_its_own_client_waits_for_has_its_time_and_what_waits_for_it_too(
    autojump_clock: MockClock, answered_s: float | None
) -> None:
    async with running_server(settings=ONE_AT_A_TIME) as rig:
        caller = Caller("one")
        asking_one = rig.submit("ask", exchange=caller, deadline_s=900)
        await caller.asked.wait()
        began = trio.current_time()
        beside = rig.submit("sleep", exchange=caller, deadline_s=20, s=15)
        late = rig.submit("sleep", exchange=caller, deadline_s=20, s=15)
        if answered_s is not None:
            await trio.sleep(answered_s)
            assert not beside.settled
            caller.answer(b"{}")
        await asking_one.wait()
        assert trio.current_time() - began == lasting(answered_s or 500)
        await beside.wait()
        with pytest.raises(CallTimedOut):  # it has what was left when it began to wait
            await late.wait()
        assert trio.current_time() - began == lasting((answered_s or 500) + 20, wakes=2)


async def test_a_call_stands_still_no_longer_than_any_may_take(autojump_clock: MockClock) -> None:
    settings = ServerSettings(
        terms=Terms(capabilities=OF_CLIENTS), question_timeout_s=500, call_max_s=300, max_in_flight=1
    )
    async with running_server(settings=settings) as rig:
        caller = Caller("one")
        rig.submit("ask", exchange=caller, deadline_s=900)
        await caller.asked.wait()
        began = trio.current_time()
        with pytest.raises(TooManyCalls, match="each present one waits for somebody to answer a question"):
            await rig.call("echo", exchange=caller, deadline_s=20)
        assert trio.current_time() - began == lasting(300)


async def test_the_time_of_a_call_that_stood_still_goes_on_with_the_end_of_the_process(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=ONE_AT_A_TIME) as rig:
        caller = Caller("one")
        asking_one = rig.submit("ask", exchange=caller, deadline_s=900)
        await caller.asked.wait()
        began = trio.current_time()
        beside = rig.submit("hang", exchange=caller, deadline_s=20)
        await trio.sleep(100)
        await rig.restart()
        with pytest.raises(ServerExited):
            await asking_one.wait()
        restarted_s = trio.current_time() - began
        with pytest.raises(CallTimedOut):
            await beside.wait()
        assert trio.current_time() - began == lasting(restarted_s + 20)


@pytest.mark.parametrize(
    ("owner", "answered_s", "waited_s"), [("other", 2 * LEFT_S, LEFT_S), ("other", 2.0, 2.0), ("same", 2 * LEFT_S, 0.0)]
)
async def test_a_question_that_may_be_about_another_clients_cancelled_call_waits(
    autojump_clock: MockClock, owner: str, answered_s: float, waited_s: float
) -> None:
    caller = Caller("same")
    async with running_server(settings=ASKING) as rig:
        slow = rig.submit("sleep", exchange=Caller(owner), s=answered_s)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        slow.abandon()
        call = rig.submit("ask", exchange=caller)
        await caller.asked.wait()
        assert trio.current_time() - began == lasting(waited_s, wakes=3)
        assert not (await rig.status()).one_at_a_time
        caller.answer(b"{}")
        assert "result" in await got(call)


@pytest.mark.parametrize("others", [1, 2])
async def test_a_call_that_began_after_a_question_is_not_meant(autojump_clock: MockClock, others: int) -> None:
    callers, late = [Caller(f"{number}") for number in range(others)], Caller("late")
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(await rig.fake.ask())

    async with running_server(settings=ASKING) as rig, trio.open_nursery() as nursery:
        gone = rig.submit("sleep", exchange=Caller("gone"), s=100)
        await wait_all_tasks_blocked()
        gone.abandon()
        present = [rig.submit("sleep", exchange=caller, s=1) for caller in callers]
        await wait_all_tasks_blocked()
        nursery.start_soon(ask)
        for reply in present:
            await reply.wait()
        await rig.call("sleep", exchange=late, s=2 * HOLD_S)
    assert [caller.questions for caller in (*callers, late)] == [[]] * (others + 1)
    assert ("another client has cancelled" in answers[0]["error"]["message"]) is (others == 1)


async def test_where_the_server_was_seen_to_go_on_it_is_told_that_nobody_is_asked(autojump_clock: MockClock) -> None:
    caller, gone = Caller("one"), Caller("other")
    async with running_server(settings=ASKING) as rig:
        for _ in range(2):
            slow = rig.submit("sleep", exchange=gone, s=2 * LEFT_S)
            await wait_all_tasks_blocked()
            slow.abandon()
            await trio.sleep(2 * LEFT_S + 1)
        rig.submit("sleep", exchange=gone, s=100).abandon()
        slow = rig.submit("sleep", exchange=gone, s=100)
        await wait_all_tasks_blocked()
        slow.abandon()
        await trio.sleep(2 * LEFT_S)
        answer = await got(rig.submit("ask", exchange=caller))
    assert caller.questions == []
    assert "another client has cancelled" in answer["error"]["message"]


async def test_a_question_that_is_held_ends_with_its_process(autojump_clock: MockClock) -> None:
    async with running_server(settings=ASKING) as rig:
        calls = [rig.submit("crash", exchange=Caller(), pause_s=1), rig.submit("ask", exchange=Caller())]
        for call in calls:
            with pytest.raises(ServerExited):
                await call.wait()
        await trio.sleep(HOLD_S + 1)


async def test_a_server_hears_the_newest_of_what_a_client_tells_at_once_and_nothing_without_a_token(
    autojump_clock: MockClock,
) -> None:
    caller = Caller()
    async with running_server(settings=ASKING) as rig, trio.open_nursery() as nursery:
        cases: tuple[dict[str, Any], ...] = ({}, {"token": 7})
        for arguments in cases:
            caller.asked = trio.Event()
            nursery.start_soon(rig.submit("ask", 60.0, caller, **arguments).wait)
            await caller.asked.wait()
            question, reply = caller.questions[-1]
            assert (question.progress is None) is (not arguments)
            hear = question.progress or (lambda params: None)
            for done in (1, 2):
                hear(json.dumps({"progressToken": "ours", "progress": done, "message": "m"}).encode())
            reply.answer(msgspec.Raw(b'{"action":"decline"}'))
            await wait_all_tasks_blocked()
            hear(b'{"progressToken":"ours","progress":3}')  # the question is closed
        await wait_all_tasks_blocked()
        told = [each["params"] for each in rig.fake.messages if each.get("method") == "notifications/progress"]
    assert told == [{"progressToken": 7, "progress": 2, "message": "m"}]
