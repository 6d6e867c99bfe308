"""A person answers what a client cannot be asked: on a page, once, and nobody else learns of it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors.errors import CannotAsk, InvalidArguments
from actors.facts import Fact, FactLog
from actors.kit import Reply
from actors.messages import Question
from actors.principal import LOCAL, Principal
from actors.protocol.asking.questions import MAX_FORM_BYTES
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.events.kinds import ElicitationAsked, ElicitationEnded
from supervisor.service.asking.confirmations import Declined
from supervisor.service.asking.elicitations import MAX_OPEN_OF_ONE, CallElicitations, Elicitation, Elicitations
from supervisor.service.asking.exchange import Exchange, QuestionTable
from supervisor.service.client import Client
from tests.fakes.exchanges import Ear
from tests.fakes.kept_audit import KeptAudit
from tests.supervisor.service.asking.test_round_trips import (
    COMPLETE,
    DONE,
    ELICIT,
    LEGACY,
    MUTE,
    QUESTION_S,
    SAMPLE,
    YES,
    Outcome,
    Rig,
    continued,
    incomplete,
    request,
    rig,
    settled,
)

MUTE_MODERN = Client(era="modern", version="2026-07-28")
PASSWORD = {
    "message": "Your password?",
    "requestedSchema": {"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password"]},
}
SURE = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}}
PAGES = "http://127.0.0.1:1/questions"


def question(params: Any, method: str = ELICIT) -> Question:
    return Question(method, msgspec.Raw(json.dumps(params).encode()))


class Desk:
    """The questions of one daemon, and what is told of them."""

    def __init__(self) -> None:
        self._facts = FactLog(lambda: 1000.0)
        self.all = Elicitations(self._facts, "http://127.0.0.1:1")

    def call(self, client: Client = MUTE, *, everyone: bool = True) -> CallElicitations:
        return CallElicitations(self.all, "s", "t", QUESTION_S, everyone, client, tool="t")

    def fill(self, client: Client) -> list[Reply[msgspec.Raw]]:
        """Ask for a client until no more may wait; return who waits."""
        waiting: list[Reply[msgspec.Raw]] = []
        with suppress(CannotAsk):
            while True:
                reply = Reply[msgspec.Raw]()
                self.call(client).offer(question(SURE), reply)
                waiting.append(reply)
        return waiting

    def of(self, client: Client, *, everyone: bool = True, **more: Any) -> Exchange:
        made = request(client, **more)
        made.elicitations = self.call(everyone=everyone)
        return made

    def again(self, earlier: Outcome, answers: Any, client: Client = MUTE) -> Exchange:
        made = continued(earlier, answers, client)
        made.elicitations = self.call()
        return made

    @property
    def only(self) -> Elicitation:
        (one,) = self.all.of(LOCAL)
        return one

    def told(self) -> list[tuple[type[Fact], dict[str, Any]]]:
        return [(type(each.fact), msgspec.to_builtins(each.fact)) for each in self._facts.events()]


# The table ----------------------------------------------------------------------------------------------------------


async def test_a_question_waits_under_its_address_until_it_is_answered() -> None:
    desk, reply = Desk(), Reply[msgspec.Raw]()
    page = desk.call().offer(question(PASSWORD), reply)
    one = desk.only
    assert page == f"{PAGES}/{one.id}"
    assert (one.server, one.about, one.form.kind) == ("s", "t", "secret")
    assert one.asked_at == pytest.approx(trio.current_time(), abs=5)
    assert one.expires == pytest.approx(trio.current_time() + QUESTION_S, abs=5)
    assert desk.all.find(one.id, Principal("another")) is None
    desk.all.answer(one, "accept", {"password": "hunter2"})
    assert json.loads(bytes(await reply.wait())) == {"action": "accept", "content": {"password": "hunter2"}}
    assert desk.all.of(LOCAL) == []
    about = {"server_slug": "s", "tool_name": "t", "kind": "secret", "asked": "page", "question_id": one.id}
    assert desk.told() == [(ElicitationAsked, about), (ElicitationEnded, {**about, "action": "accept"})]


def test_a_tool_with_a_long_name_is_told_by_its_begin() -> None:
    desk = Desk()
    CallElicitations(desk.all, "s", tool="t" * 1000).on_asked(question(SURE), Reply[msgspec.Raw]())
    ((_, said),) = desk.told()
    assert said["tool_name"] == "t" * 500


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_no_needs_nothing_to_be_filled_in(action: Any) -> None:
    desk, reply = Desk(), Reply[msgspec.Raw]()
    desk.call().offer(question(PASSWORD), reply)
    desk.all.answer(desk.only, action, {"password": 7})
    assert json.loads(bytes(await reply.wait())) == {"action": action}


async def test_a_wrong_answer_costs_the_question_nothing() -> None:
    desk, reply = Desk(), Reply[msgspec.Raw]()
    desk.call().offer(question(PASSWORD), reply)
    with pytest.raises(InvalidArguments) as raised:
        desk.all.answer(desk.only, "accept", {})
    assert raised.value.details == {"fields": {"password": "has to be filled in"}}
    assert not reply.settled


async def test_what_nobody_waits_for_any_more_is_gone() -> None:
    desk, reply, late = Desk(), Reply[msgspec.Raw](), Reply[msgspec.Raw]()
    desk.call().offer(question(SURE), reply)
    one = desk.only
    reply.abandon()
    assert desk.all.find(one.id, LOCAL) is None
    desk.all.answer(one, "accept", {"sure": True})  # by somebody who had the page open
    assert reply.value is None
    desk.call().on_asked(question(SURE), late)
    late.answer(msgspec.Raw(b'{"action":"maybe"}'))
    ends = [data for kind, data in desk.told() if kind == ElicitationEnded]
    assert [(data["asked"], data["action"]) for data in ends] == [("page", "none"), ("client", "unreadable")]


@pytest.mark.parametrize(
    "asked",
    [question({}, SAMPLE), question({"mode": "url", "url": "file:///x"}), question({"requestedSchema": 7})],
)
async def test_what_cannot_be_shown_on_a_page_is_refused(asked: Question) -> None:
    with pytest.raises(CannotAsk):
        Desk().call().offer(asked, Reply())


@pytest.mark.case("I23")
async def test_a_client_that_asks_much_in_whatever_sessions_leaves_room_for_others_and_other_principals() -> None:
    desk = Desk()
    sessions = [Client(name="busy", session=session) for session in ("one", "two")]
    assert [len(desk.fill(session)) for session in sessions] == [MAX_OPEN_OF_ONE // 2, 0]
    with pytest.raises(CannotAsk, match=f"{MAX_OPEN_OF_ONE // 2} questions of this client wait for an answer already"):
        desk.call(sessions[0]).offer(question(SURE), Reply())
    assert len(desk.fill(Client(name="other"))) == MAX_OPEN_OF_ONE // 4
    assert len(desk.fill(Client(name="busy", principal=Principal("another")))) == MAX_OPEN_OF_ONE // 2


async def test_what_is_answered_leaves_room_for_what_its_client_is_asked_next() -> None:
    desk = Desk()
    client = Client(name="busy")
    waiting = desk.fill(client)
    desk.all.answer(desk.all.of(LOCAL)[0], "decline", {})
    waiting[-1].abandon()
    more = desk.fill(client)
    assert len(more) == 2
    for reply in (*waiting, *more):
        reply.abandon()
    assert desk.all._shared == {}, "nothing is kept of who is asked nothing"


# Calls --------------------------------------------------------------------------------------------------------------


def ask(here: Rig, params: Any, method: str = ELICIT) -> Reply[msgspec.Raw]:
    """Let the server of the only call ask something."""
    ((message, _),) = here.router.calls
    assert message.exchange is not None
    return message.exchange.ask(question(params, method))


@pytest.mark.parametrize("client", [MUTE, MUTE_MODERN])
async def test_a_call_at_a_door_waits_for_a_person_where_everyone_may_be_asked(
    autojump_clock: MockClock, client: Client
) -> None:
    desk = Desk()
    async with rig() as here:
        # A legacy client's own exchange is the caller of its server's questions, a modern one's are its rounds.
        mine = desk.of(client)
        call = await here.made(mine)
        answer = ask(here, PASSWORD)
        await settled()
        assert call.kind == "none"
        assert not desk.only.repeats
        desk.all.answer(desk.only, "accept", {"password": "hunter2"})
        assert json.loads(bytes(await answer.wait()))["content"] == {"password": "hunter2"}
        await here.answer(DONE)
        assert call.kind == "result"


async def test_elsewhere_nobody_is_asked(autojump_clock: MockClock) -> None:
    desk = Desk()
    async with rig() as here:
        await here.made(desk.of(MUTE, everyone=False))
        answer = ask(here, SURE)
        with pytest.raises(CannotAsk):
            await answer.wait()
        assert desk.all.of(LOCAL) == []


async def test_a_client_that_can_be_asked_is_and_others_are_told_that_it_was(autojump_clock: MockClock) -> None:
    desk, table = Desk(), QuestionTable()
    async with rig() as here:
        await here.made(desk.of(LEGACY, ear=Ear(), questions=table))
        ask(here, SURE)
        assert desk.all.of(LOCAL) == []
        (asked,) = table._open
        table.on_answer(asked, msgspec.Raw(json.dumps(YES).encode()), msgspec.Raw(b""))
        said = [(kind, data["asked"], data.get("action")) for kind, data in desk.told()]
        assert said == [(ElicitationAsked, "client", None), (ElicitationEnded, "client", "accept")]


async def test_a_secret_is_typed_on_a_page_and_the_model_only_waits(autojump_clock: MockClock) -> None:
    desk = Desk()
    async with rig() as here:
        first = await here.made(desk.of(MUTE), by_result=True)
        answer = ask(here, PASSWORD)
        await settled()
        (told,) = first.value.questions.values()
        assert (told.page, told.there_only) == (f"{PAGES}/{desk.only.id}", True)
        assert desk.only.repeats
        early = await here.made(
            desk.again(first, {"question-1": {"action": "accept", "content": {"password": "guess"}}}), by_result=True
        )
        assert (early.kind, answer.settled) == ("told", False)
        desk.all.answer(desk.only, "accept", {"password": "hunter2"})
        assert json.loads(bytes(await answer.wait()))["content"] == {"password": "hunter2"}
        here.router.calls[0][1].answer(DONE)
        last = await here.made(desk.again(early, {}), by_result=True)
        assert last.kind == "result"
        assert len(here.router.calls) == 1


async def test_whoever_answers_first_has_answered(autojump_clock: MockClock) -> None:
    desk = Desk()
    async with rig() as here:
        first = await here.made(desk.of(MUTE), by_result=True)
        answer = ask(here, SURE)
        await settled()
        one = desk.only
        again = await here.made(desk.again(first, {"question-1": YES}), by_result=True)
        assert json.loads(bytes(await answer.wait())) == YES
        desk.all.answer(one, "decline", {})
        assert desk.all.of(LOCAL) == []
        await here.answer(DONE)
        assert again.kind == "result"


@pytest.mark.parametrize("client", [MUTE, MUTE_MODERN])
async def test_what_a_modern_server_asks_is_asked_on_a_page_too(autojump_clock: MockClock, client: Client) -> None:
    desk = Desk()
    async with rig() as here:
        call = await here.made(desk.of(client))
        await here.answer(incomplete({"a": {"method": ELICIT, "params": PASSWORD}}, "x"))
        assert call.kind == "none"
        desk.all.answer(desk.only, "accept", {"password": "hunter2"})
        await settled()
        again = here.router.calls[1][0]
        assert b"hunter2" in again.retry
        assert b'"requestState":"x"' in again.retry
        await here.answer(COMPLETE, 1)
        assert call.kind == "result"


async def test_its_secrets_pass_through_no_model_either(autojump_clock: MockClock) -> None:
    desk = Desk()
    asked = {"a": {"method": ELICIT, "params": PASSWORD}, "b": {"method": ELICIT, "params": SURE}}
    async with rig() as here:
        first = await here.made(desk.of(MUTE), by_result=True)
        await here.answer(incomplete(asked, "x"))
        assert {key: each.there_only for key, each in first.value.questions.items()} == {"a": True, "b": False}
        second = await here.made(desk.again(first, {"a": YES, "b": YES}), by_result=True)
        assert list(second.value.questions) == ["a"]
        desk.all.answer(desk.only, "accept", {"password": "hunter2"})
        await here.made(desk.again(second, {}), by_result=True)
        sent = json.loads(b"{" + here.router.calls[1][0].retry + b"}")
        assert sent["inputResponses"] == {"a": {"action": "accept", "content": {"password": "hunter2"}}, "b": YES}
        assert desk.all.of(LOCAL) == []


async def test_a_call_that_nobody_comes_back_for_takes_its_page_with_it(autojump_clock: MockClock) -> None:
    desk = Desk()
    async with rig() as here:
        first = await here.made(desk.of(MUTE), by_result=True)
        await here.answer(incomplete({"a": {"method": ELICIT, "params": PASSWORD}}))
        assert first.kind == "told"
        await trio.sleep(QUESTION_S + 10)
        assert desk.all.of(LOCAL) == []


@pytest.mark.parametrize("by_result", [True, False])
@pytest.mark.parametrize("client", [MUTE, MUTE_MODERN])
async def test_nobody_answers_in_vain_once_the_call_has_its_result(
    autojump_clock: MockClock, client: Client, by_result: bool
) -> None:
    desk = Desk()
    async with rig() as here:
        first = await here.made(desk.of(client), by_result=by_result)
        answer = ask(here, PASSWORD)
        await settled()
        assert desk.only.form.kind == "secret"
        here.router.calls[0][1].answer(DONE)  # whether its client is there, or comes back for it
        await settled()
        if client is MUTE and not by_result:
            first.exchange.close()
        assert desk.all.of(LOCAL) == []
        with pytest.raises(CannotAsk, match="is over"):
            await answer.wait()


async def test_a_page_goes_with_the_client_whose_call_it_is_about(autojump_clock: MockClock) -> None:
    desk = Desk()
    async with rig() as here:
        call = await here.made(desk.of(MUTE_MODERN))
        answer = ask(here, PASSWORD)
        call.scope.cancel()
        await settled()
        assert (call.kind, desk.all.of(LOCAL), answer.settled) == ("cancelled", [], True)


async def test_a_page_stays_while_the_client_answers_another_question(autojump_clock: MockClock) -> None:
    desk = Desk()
    forms_only = Client(era="modern", version="2026-07-28", capabilities=msgspec.Raw(b'{"elicitation":{}}'))
    async with rig() as here:
        first = await here.made(desk.of(forms_only))
        visit = ask(here, {"mode": "url", "url": "https://pay.example", "message": "Pay"})
        ask(here, SURE)
        await settled()
        assert first.keys == ["question-1"]
        desk.all.answer(desk.only, "accept", {})
        assert json.loads(bytes(await visit.wait())) == {"action": "accept"}


async def test_without_a_page_a_secret_is_an_error(autojump_clock: MockClock) -> None:
    async with rig() as here:
        first = await here.made(request(MUTE), by_result=True)
        await here.answer(incomplete({"a": {"method": ELICIT, "params": PASSWORD}}))
        assert isinstance(first.value, CannotAsk)
        assert "only a person may answer this" in first.value.message


# Confirmations ------------------------------------------------------------------------------------------------------


async def drop(here: Rig, asking: Exchange, *, by_result: bool) -> Outcome:
    return await here.made(asking, b'"name":"drop_all","arguments":{}', by_result=by_result, name="drop_all")


@pytest.mark.parametrize(("said", "kind"), [({"run": True}, "result"), ({"run": False}, "error")])
async def test_a_model_cannot_say_yes_for_its_user_but_a_person_can(
    autojump_clock: MockClock, said: Any, kind: str
) -> None:
    desk = Desk()
    async with rig(ask="clients") as here:
        first = await drop(here, desk.of(MUTE), by_result=True)
        (told,) = first.value.questions.values()
        assert told.there_only
        yes = {"confirm": {"action": "accept", "content": {"run": True}}}
        second = await drop(here, desk.again(first, yes), by_result=True)
        assert (second.kind, here.router.calls) == ("told", [])
        desk.all.answer(desk.only, "accept", said)
        last = await drop(here, desk.again(second, {}), by_result=True)
        if kind == "result":
            await here.answer(DONE)
        else:
            assert isinstance(last.value, Declined)
            assert here.router.calls == []
        assert last.kind == kind


async def test_a_yes_of_a_model_is_recorded_also_where_there_is_no_room_for_a_page(autojump_clock: MockClock) -> None:
    kept, desk = KeptAudit(), Desk()
    desk.all = Elicitations(FactLog(lambda: 1000.0), "", kept)
    desk.fill(MUTE)
    async with rig() as here:
        first = await drop(here, desk.of(MUTE), by_result=True)
        (told,) = first.value.questions.values()
        assert (told.page, told.there_only) == ("", False)
        answer = {"confirm": {"action": "accept", "content": {"run": True}}}
        await drop(here, desk.again(first, answer), by_result=True)
        assert [(action, outcome) for action, _, outcome, _ in kept.notes] == [("tool.confirm", "done")]


async def test_at_a_door_the_call_waits_for_a_person_who_says_yes(autojump_clock: MockClock) -> None:
    desk = Desk()
    async with rig() as here:
        yes = await drop(here, desk.of(MUTE), by_result=False)
        late = await drop(here, desk.of(MUTE_MODERN), by_result=False)
        assert here.router.calls == []
        first, second = desk.all.of(LOCAL)
        assert [(each.confirms, each.repeats) for each in (first, second)] == [(True, False), (True, False)]
        desk.all.answer(first, "accept", {"run": True})
        await settled()
        await here.answer(DONE)
        assert yes.kind == "result"
        await trio.sleep(QUESTION_S + 1)
        assert isinstance(late.value, Declined)
        assert len(here.router.calls) == 1
        assert desk.all.of(LOCAL) == []


async def test_a_model_is_told_of_so_much_at_once_at_most(autojump_clock: MockClock) -> None:
    desk = Desk()
    large = {**SURE, "message": "x" * (MAX_FORM_BYTES // 2)}
    async with rig() as here:
        first = await here.made(desk.of(MUTE), by_result=True)
        one, other = ask(here, large), ask(here, large)
        await settled()
        assert len(first.value.questions) == len(desk.all.of(LOCAL)) == 1
        assert not one.settled
        with pytest.raises(CannotAsk, match="bytes of questions at once"):
            await other.wait()


async def test_an_answer_is_recorded_once_and_never_what_it_says() -> None:
    kept = KeptAudit()
    everything = Elicitations(FactLog(lambda: 1000.0), "", kept)
    call = CallElicitations(everything, "s", "t", QUESTION_S, everyone=True, tool="t")
    for action in ("accept", "decline"):
        reply = Reply[msgspec.Raw]()
        call.offer(question(SURE), reply)
        (one,) = everything.of(LOCAL)
        everything.answer(one, action, {"sure": True})
    given, given_up = Reply[msgspec.Raw](), Reply[msgspec.Raw]()
    for reply in (given, given_up):
        call.on_asked(question(SURE), reply)
    given.answer(msgspec.Raw(b'{"action":"cancel"}'))
    given_up.fail(CannotAsk("it is over"))
    assert kept.notes == [
        ("question.answer", "s:t", "done", "accept, confirmation"),
        ("question.answer", "s:t", "refused", "decline, confirmation"),
        ("question.answer", "s:t", "refused", "cancel, confirmation"),
    ]


CANARY = "hunter2"
SAYS_YES: Any = {"action": "accept", "content": {"run": True}}
SAID: list[tuple[Any, list[tuple[str, str]]]] = [
    (SAYS_YES, [("done", "the user said yes")]),
    ({**SAYS_YES, "content": {"run": True, "remember": "always"}}, [("done", "the user said yes, for good")]),
    ({**SAYS_YES, "content": {"run": True, "remember": [CANARY]}}, [("done", "the user said yes")]),
    ({"action": "accept", "content": {"run": False}}, [("refused", "the user did not say yes")]),
    ({"action": "decline"}, [("refused", "the user did not say yes")]),
    ({"action": CANARY}, [("refused", "the user did not say yes")]),
    (RemoteError(ErrorObject(-1, CANARY)), [("refused", "the user did not say yes")]),
    (CannotAsk("nobody came back"), []),
]


@pytest.mark.parametrize(("said", "noted"), SAID)
async def test_whether_a_tool_may_run_is_recorded_when_it_is_said(said: Any, noted: list[tuple[str, str]]) -> None:
    kept = KeptAudit()
    everything = Elicitations(FactLog(lambda: 1000.0), "", kept)
    call = CallElicitations(everything, "s", "t", QUESTION_S, confirms=True, tool="t")
    reply = Reply[msgspec.Raw]()
    call.on_asked(question(SURE), reply)
    if isinstance(said, Exception):
        reply.fail(said)
    else:
        reply.answer(msgspec.Raw(json.dumps(said).encode()))
    assert kept.notes == [("tool.confirm", "s:t", *each) for each in noted]
