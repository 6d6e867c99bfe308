"""What a plugin is answered: in time, too late, by nobody; and that the time of people is none of the call."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallRefused, CallTimedOut, SupervisorError
from actors.facts import FactLog
from actors.protocol.asking.questions import Fallback
from supervisor.config import ServerConfig
from supervisor.events.kinds import ElicitationAsked, ElicitationEnded
from supervisor.host.workbench import Workbench
from supervisor.plugins.contract import Plugin, PluginOptions, Rejection, ToolCall
from supervisor.plugins.questions import ConfirmationInput, QuestionInput, SelectInput, TextInput, UserQuestion
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.asking.exchange import QuestionTable
from supervisor.service.asking.rounds import Parking
from supervisor.service.plugins import MAX_ANSWER_BYTES, CallHooks, PluginQuestions, read_answer
from supervisor.service.request import ServerRequest
from tests.fakes.deployments import deployment
from tests.fakes.exchanges import Ear, exchange
from tests.fakes.kept_audit import KeptAudit
from tests.supervisor.plugins.test_hooks import table_of
from tests.supervisor.service.asking.test_round_trips import LEGACY

QUESTION_S = 100.0
NO_DEFAULT = TextInput()
DEFAULT = SelectInput(choices=("low", "high"), default="low")


class Asks(Plugin[PluginOptions]):
    """Asks for one thing, and refuses a call with what came of it."""

    guards = True
    answered: QuestionInput[Any] = NO_DEFAULT

    async def before_call(self, call: ToolCall) -> UserQuestion[Any] | Rejection | None:
        question = UserQuestion("key", "What is it?", self.answered)
        answer = call.answer(question)
        if answer is None:
            return question
        return Rejection(f"{answer.action} {answer.value}") if answer.value != "go on" else None


class World:
    """One plugin, and a legacy client; `made` is when a call was made, and with which time of its own."""

    def __init__(self, answered: QuestionInput[Any] = NO_DEFAULT, fallback: Fallback = "cancel") -> None:
        kind = type("Asking", (Asks,), {"answered": answered})
        entry = ServerConfig(name="s", command="x", question_timeout_s=QUESTION_S, question_fallback=fallback)
        cell, bench, audit = deployment(entry), Workbench(), KeptAudit()
        self.facts = FactLog(lambda: 0.0)
        elicitations = Elicitations(self.facts, "", audit)
        questions = PluginQuestions(Parking(bytes(32)), cell, elicitations, bench)
        self.hooks = CallHooks(table_of(asks=kind), cell, bench, audit, questions)
        self.ear, self.table = Ear(), QuestionTable()
        self.made: list[tuple[float, float]] = []
        self.outcome: bytes | SupervisorError | None = None

    async def call(self) -> None:
        request = ServerRequest(
            "s", "tools/call", b'"name":"t"', msgspec.Raw(b"{}"), since=trio.current_time(), name="t"
        )
        made = exchange(LEGACY, "tools/call", ear=self.ear, questions=self.table)
        try:
            self.outcome = await self.hooks.call(made, request, self.make)
        except SupervisorError as error:
            self.outcome = error

    async def make(self, request: ServerRequest) -> bytes:
        await trio.lowlevel.checkpoint()
        self.made.append((trio.current_time(), request.since))
        return b'{"content":[]}'

    def answer(self, answer: dict[str, Any]) -> None:
        raw = msgspec.Raw(json.dumps(answer).encode())
        self.table.on_answer(self.ear.heard[0]["id"], raw, msgspec.Raw(b""))


@pytest.mark.parametrize(
    ("answered", "fallback", "told"),
    [
        (NO_DEFAULT, "cancel", "none None"),
        (NO_DEFAULT, "default", "none None"),
        (DEFAULT, "cancel", "none None"),
        (DEFAULT, "default", "accept low"),
        (ConfirmationInput(), "default", "none None"),
    ],
)
async def test_where_nobody_answers_in_time_the_fallback_of_the_server_is_the_answer(
    autojump_clock: MockClock, answered: QuestionInput[Any], fallback: Fallback, told: str
) -> None:
    at = World(answered, fallback)
    await at.call()
    assert trio.current_time() == pytest.approx(QUESTION_S, abs=1)
    assert isinstance(at.outcome, CallRefused)
    assert at.outcome.message.endswith(f": {told}")
    assert at.made == []
    withdrawn = at.ear.heard[-1]
    assert withdrawn["method"] == "notifications/cancelled", "nobody waits for the answer any more"
    asked, ended = (each.fact for each in at.facts.events())
    assert type(asked) is ElicitationAsked
    assert isinstance(ended, ElicitationEnded)
    assert ended.action == "none"


async def test_where_the_operator_wants_an_error_a_call_that_nobody_answers_is_one(autojump_clock: MockClock) -> None:
    at = World(fallback="error")
    await at.call()
    assert isinstance(at.outcome, CallTimedOut)
    assert at.outcome.outcome == "not_sent"
    assert "plugin asks asked something" in at.outcome.message


async def test_the_time_that_a_person_takes_is_no_time_of_the_call_or_of_the_hook(autojump_clock: MockClock) -> None:
    at = World()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(at.call)
        await trio.sleep(QUESTION_S - 1)
        at.answer({"action": "accept", "content": {"answer": "go on"}})
        await wait_all_tasks_blocked()
    assert at.outcome == b'{"content":[]}'
    ((made, since),) = at.made
    assert made == pytest.approx(since, abs=1)


async def test_a_client_that_goes_away_leaves_no_question_behind(autojump_clock: MockClock) -> None:
    at = World()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(at.call)
        await wait_all_tasks_blocked()
        assert len(at.ear.heard) == 1
        nursery.cancel_scope.cancel()
    assert at.outcome is None
    assert at.made == []


@pytest.mark.parametrize(
    ("sent", "action", "content"),
    [
        ({"action": "accept", "content": {"a": 1}}, "accept", b'{"a": 1}'),
        ({"action": "accept"}, "accept", b"{}"),
        ({"action": "decline", "content": {"a": 1}}, "decline", b"{}"),
        ({"action": "cancel"}, "cancel", b"{}"),
        ({"action": "none"}, "cancel", b"{}"),
        ({"action": ["accept"]}, "cancel", b"{}"),
        ({}, "cancel", b"{}"),
        ({"action": "accept", "content": {"a": "x" * MAX_ANSWER_BYTES}}, "cancel", b"{}"),
    ],
)
def test_what_is_sent_is_read_as_what_it_is(sent: dict[str, Any], action: str, content: bytes) -> None:
    given = read_answer(msgspec.Raw(json.dumps(sent).encode()))
    assert (given.action, given.content) == (action, content)
