"""Tools that run only after a yes: nothing is sent without one, on no way."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from actors.errors import CannotAsk, InvalidArguments, MalformedRequest
from actors.messages import CallServer, Question, Result
from actors.principal import LOCAL
from actors.protocol.asking.input_required import Retry
from supervisor.host.workbench import Workbench
from supervisor.service.asking.confirmations import SESSION_S, Confirmations, Consents, Declined
from supervisor.service.asking.exchange import Exchange, QuestionTable, SessionState
from supervisor.service.asking.rounds import GRACE_S, Parked, Parking, Rounds
from supervisor.service.client import Client
from tests.fakes.chat_model import defined
from tests.fakes.exchanges import Ear
from tests.fakes.kept_audit import KeptAudit
from tests.supervisor.service.asking.test_round_trips import (
    CALL_MAX_S,
    COMPLETE,
    DONE,
    LEGACY,
    MODERN,
    MUTE,
    QUESTION_S,
    Outcome,
    Rig,
    again,
    continued,
    incomplete,
    request,
    rig,
    settled,
)

DANGEROUS = "drop_all"
MEMBERS = b'"name":"drop_all","arguments":{"table":"users"}'
YES = {"action": "accept", "content": {"run": True}}
NO: list[Any] = [
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "accept"},
    {"action": "accept", "content": {"run": False}},
    {"action": "accept", "content": {"run": "yes"}},
    {"action": "accept", "content": []},
]


async def begin(here: Rig, exchange: Exchange, *, by_result: bool = False) -> Outcome:
    """Begin a call that needs a yes, and let happen what follows from that."""
    return await here.made(exchange, MEMBERS, by_result=by_result, name=DANGEROUS)


@pytest.mark.case("X04")
async def test_a_legacy_client_is_asked_before_anything_is_sent(autojump_clock: MockClock) -> None:
    ear, table = Ear(), QuestionTable()
    async with rig() as here:
        call = await begin(here, request(LEGACY, ear=ear, questions=table))
        assert here.router.calls == []
        (asked,) = ear.heard
        assert asked["params"]["message"] == 'Run s:drop_all with {"table":"users"}?'
        assert asked["params"]["requestedSchema"]["required"] == ["run"]
        table.on_answer(asked["id"], msgspec.Raw(json.dumps(YES).encode()), msgspec.Raw(b""))
        await settled()
        await here.answer(DONE)
        assert call.kind == "result"


@pytest.mark.parametrize("answer", [*NO, None])
async def test_nothing_but_a_yes_is_one(autojump_clock: MockClock, answer: Any) -> None:
    ear, table = Ear(), QuestionTable()
    async with rig() as here:
        legacy = await begin(here, request(LEGACY, ear=ear, questions=table))
        modern = await begin(here, request(MODERN))
        if answer is None:
            table.on_answer(ear.heard[0]["id"], msgspec.Raw(b""), msgspec.Raw(b'{"code":-1,"message":"no"}'))
        else:
            table.on_answer(ear.heard[0]["id"], msgspec.Raw(json.dumps(answer).encode()), msgspec.Raw(b""))
        retried = await begin(here, again(modern, {} if answer is None else {"confirm": answer}))
        assert isinstance(legacy.value, Declined)
        assert isinstance(retried.value, Declined)
        assert legacy.value.outcome == "not_sent"
        assert here.router.calls == []


@pytest.mark.case("X07")
async def test_no_answer_in_time_is_a_no(autojump_clock: MockClock) -> None:
    async with rig() as here:
        call = await begin(here, request(LEGACY, ear=Ear(), questions=QuestionTable()))
        await trio.sleep(QUESTION_S + 1)
        assert "nobody answered in time" in str(call.value)
        assert here.router.calls == []


async def test_a_tool_may_have_a_time_of_its_own_for_the_answer(autojump_clock: MockClock) -> None:
    async with rig() as here:
        slow = here.begin(request(LEGACY, ear=Ear(), questions=QuestionTable()), name="drop_slowly")
        quick = await begin(here, request(LEGACY, ear=Ear(), questions=QuestionTable()))
        parked = here.begin(request(MODERN), name="drop_slowly")
        await trio.sleep(QUESTION_S + 1)
        assert (slow.kind, quick.kind) == ("none", "error")
        await trio.sleep(QUESTION_S + GRACE_S)
        late = await here.made(again(parked, {"confirm": YES}), name="drop_slowly")
        assert len(here.router.calls) == 1, "its client may still say yes"
        here.router.calls[0][1].answer(DONE)
        await trio.sleep(QUESTION_S)
        assert (slow.kind, late.kind) == ("error", "result")


@pytest.mark.case("X04")
@pytest.mark.parametrize("client", [MUTE, Client(era="modern", version="2026-07-28")])
async def test_a_client_that_cannot_be_asked_runs_nothing(autojump_clock: MockClock, client: Client) -> None:
    async with rig() as here:
        call = await begin(here, request(client))
        assert isinstance(call.value, CannotAsk)
        assert "s:drop_all runs only after its user has said yes" in call.value.message
        assert here.router.calls == []


async def test_a_modern_client_confirms_by_its_second_request_once(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first = await begin(here, request(MODERN))
        assert list(first.value["inputRequests"]) == ["confirm"]
        second = await begin(here, again(first, {"confirm": YES}))
        await here.answer(DONE)
        assert second.kind == "result"
        assert here.router.calls[0][0].retry == b""
        third = await begin(here, again(first, {"confirm": YES}))
        assert third.kind == "error"
        assert len(here.router.calls) == 1


async def test_it_may_go_by_a_result_where_everyone_may_be_asked(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first = await begin(here, request(MUTE), by_result=True)
        assert list(first.value.questions) == ["confirm"]
        second = await begin(here, continued(first, {"confirm": YES}), by_result=True)
        await here.answer(DONE)
        assert second.kind == "result"


async def test_the_rounds_of_a_modern_server_are_confirmed_with_the_call_and_no_made_up_state(
    autojump_clock: MockClock,
) -> None:
    async with rig() as here:
        first = await begin(here, request(MODERN))
        second = await begin(here, again(first, {"confirm": YES}))
        await here.answer(incomplete({"a": {"method": "roots/list"}}, "theirs"))
        assert second.value["requestState"] == "theirs"
        forged = Outcome(request(MODERN))
        forged.kind, forged.value = "asked", {"requestState": "made up"}
        refused = await begin(here, again(forged, {"a": {}}))
        assert list(refused.value["inputRequests"]) == ["confirm"]
        third = await begin(here, again(second, {"a": {"roots": []}}))
        assert here.router.calls[1][0].retry == b'"inputResponses":{"a": {"roots": []}},"requestState":"theirs"'
        await here.answer(COMPLETE, 1)
        assert third.kind == "result"


async def test_one_yes_runs_a_tool_once_however_often_the_last_round_is_sent(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first = await begin(here, request(MODERN))
        second = await begin(here, again(first, {"confirm": YES}))
        await here.answer(incomplete({"a": {"method": "roots/list"}}, "theirs"))
        third, fourth = (here.begin(again(second, {"a": {"roots": []}}), MEMBERS, name=DANGEROUS) for _ in range(2))
        await settled()
        assert len(here.router.calls) == 2
        assert {third.kind, fourth.kind} == {"none", "asked"}
        asked = third if third.kind == "asked" else fourth
        assert asked.keys == ["confirm"]


@pytest.mark.case("X06")
async def test_a_yes_that_comes_too_late_is_none_whatever_else_waits(autojump_clock: MockClock) -> None:
    async with rig() as here:
        rounds = Rounds(request(MODERN))
        now = trio.current_time()
        here.parking.park(Parked(LOCAL, b"", now + 10 * QUESTION_S, None, rounds))
        await settled()
        first = await begin(here, request(MODERN))
        await trio.sleep(QUESTION_S + GRACE_S + 1)
        assert len(here.parking) == 1
        late = await begin(here, again(first, {"confirm": YES}))
        assert "its time is over" in str(late.value)
        assert here.router.calls == []


async def test_the_question_shows_every_argument_that_runs_whatever_stands_before_them(
    autojump_clock: MockClock,
) -> None:
    ear = Ear()
    async with rig() as here:
        members = b'"x":{"arguments":{"path":"/tmp/harmless"}},"name":"drop_all","arguments":{"a":"%b","path":"/etc"}'
        await here.made(request(LEGACY, ear=ear, questions=QuestionTable()), members % (b"x" * 5000), name=DANGEROUS)
        message = ear.heard[0]["params"]["message"]
        assert ' (4,000 more characters) "' in message
        assert ',"path":"/etc"}, and beside the arguments {"x":{"arguments":{"path":"/tmp/harmless"}}}?' in message
        assert message.endswith("(not all is shown of 1 of its 3 values)")


async def test_a_call_that_cannot_be_shown_whole_asks_nobody_and_runs_nothing(autojump_clock: MockClock) -> None:
    ear = Ear()
    async with rig() as here:
        arguments = json.dumps({f"key{number}": number for number in range(1000)}).encode()
        call = await here.made(
            request(LEGACY, ear=ear, questions=QuestionTable()), b'"arguments":' + arguments, name="drop_x"
        )
        assert isinstance(call.value, InvalidArguments)
        assert (ear.heard, here.router.calls) == ([], [])


async def test_a_yes_does_not_outlive_the_time_of_a_call(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first = await begin(here, request(MODERN))
        second = await begin(here, again(first, {"confirm": YES}))
        here.router.calls[0][1].answer(incomplete({"a": {"method": "roots/list"}}, "theirs"))
        await trio.sleep(CALL_MAX_S + 1)
        late = await begin(here, again(second, {"a": {"roots": []}}))
        assert list(late.value["inputRequests"]) == ["confirm"]
        assert len(here.router.calls) == 1


async def test_a_yes_for_a_session_is_over_after_twelve_hours(autojump_clock: MockClock) -> None:
    def of_a_tool(exchange: Exchange) -> Exchange:
        exchange.tool = defined(DANGEROUS)
        return exchange

    async with rig() as here:
        first = await begin(here, of_a_tool(request(MODERN)))
        content = {"run": True, "remember": "session"}
        await begin(here, of_a_tool(again(first, {"confirm": {"action": "accept", "content": content}})))
        await trio.sleep(SESSION_S - 1)
        await begin(here, of_a_tool(request(MODERN)))
        assert len(here.router.calls) == 2, "nobody is asked"
        await trio.sleep(1)
        last = await begin(here, of_a_tool(request(MODERN)))
        assert last.keys == ["confirm"]
        assert len(here.router.calls) == 2


async def test_a_confirmed_call_may_be_asked_by_its_legacy_server_too(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first = await begin(here, request(MODERN))
        second = await begin(here, again(first, {"confirm": YES}))
        ((message, reply),) = here.router.calls
        assert message.exchange is not None
        message.exchange.ask(Question("elicitation/create", msgspec.Raw(b"{}")))
        await settled()
        third = await begin(here, again(second, {"question-1": {"action": "accept"}}))
        reply.answer(Result(msgspec.Raw(b"{}"), "legacy"))
        await settled()
        assert third.kind == "result"


Sender = Literal["modern", "modern by execute_mcp_tool", "legacy by execute_mcp_tool"]
SENDERS: tuple[Sender, ...] = get_args(Sender)


async def sent(here: Rig, sender: Sender, state: str, answers: dict[str, Any]) -> Outcome:
    """Make the call again with a state, as one of the clients there may be."""
    said = msgspec.Raw(json.dumps(answers).encode()), msgspec.Raw(json.dumps(state).encode())
    retry = Retry(*said, ours=sender.endswith("execute_mcp_tool"))
    client = MODERN if sender.startswith("modern") else LEGACY
    made = Exchange(
        client, b"9", "tools/call", msgspec.Raw(b"{}"), voice=Ear(), session=SessionState(QuestionTable()), retry=retry
    )
    return await begin(here, made, by_result=retry.ours)


async def test_a_confirmed_call_does_not_run_again_when_a_client_of_the_other_era_sends_its_state(
    autojump_clock: MockClock,
) -> None:
    async with rig(ask="clients") as here:
        first = await begin(here, request(MODERN))
        second = await begin(here, again(first, {"confirm": YES}))
        ((message, reply),) = here.router.calls
        assert message.exchange is not None
        message.exchange.ask(Question("elicitation/create", msgspec.Raw(b"{}")))
        await settled()
        other = await sent(here, "legacy by execute_mcp_tool", second.value["requestState"], {})
        assert isinstance(other.value, MalformedRequest)
        assert other.value.outcome == "unknown"  # it runs
        assert len(here.router.calls) == 1
        third = await begin(here, again(second, {"question-1": {"action": "accept"}}))
        reply.answer(DONE)
        await settled()
        assert third.kind == "result"


async def test_what_was_told_by_a_result_is_not_gone_on_with_at_a_door_that_tells_nothing(
    autojump_clock: MockClock,
) -> None:
    async with rig() as here:
        first = await begin(here, request(MUTE), by_result=True)
        elsewhere = await sent(here, "modern", first.value.state, {"confirm": YES})
        assert isinstance(elsewhere.value, MalformedRequest)
        assert here.router.calls == []


@pytest.mark.case("X06")
@given(st.permutations([(who, state) for who in SENDERS for state in range(4)]), st.booleans(), st.booleans())
def test_one_yes_is_one_run_whoever_sends_back_which_state(
    steps: list[tuple[Sender, int]], answered: bool, everyone: bool
) -> None:
    async def scenario() -> None:
        async with rig(ask="everyone" if everyone else "clients") as here:
            first = await begin(here, request(MODERN))
            second = await begin(here, again(first, {"confirm": YES}))
            message = here.router.calls[0][0]
            assert message.exchange is not None
            message.exchange.ask(Question("elicitation/create", msgspec.Raw(b"{}")))
            await settled()
            states = [first.value["requestState"], second.value["requestState"], "mcpvisor-made-up", "theirs"]
            for sender, number in steps:
                answers = {"question-1": {"action": "accept"}} if answered else {}
                later = await sent(here, sender, states[number], answers)
                if later.kind == "asked":
                    states.append(later.value["requestState"])
            assert len(here.router.calls) == 1

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


def test_what_nobody_is_to_be_asked_about_is_refused_and_recorded() -> None:
    audit = KeptAudit()
    confirmations = Confirmations(Parking(b"key"), Workbench(), audit, Consents(lambda: 0.0))
    error = confirmations.refusal(CallServer(server="s", method="tools/call", members=b"", name="drop_all"))
    assert (error.outcome, "s:drop_all was not run" in error.message) == ("not_sent", True)
    assert audit.notes == [("tool.confirm", "s:drop_all", "refused", "its user is not to be asked")]
