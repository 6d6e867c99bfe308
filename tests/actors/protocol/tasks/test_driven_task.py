"""A task that we drive: made once, asked for until it is over, and its call has exactly one outcome."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.agreement.versions import Era
from actors.protocol.facts import CallAsked, CallLasts, CallLost, Fact
from actors.protocol.task_calls import MAX_QUESTIONS, MAX_REWRITTEN_BYTES, DrivenTask
from actors.protocol.tasks import RELATED
from actors.protocol.wire.jsonrpc import ErrorObject
from actors.protocol.wire.peer import Answered, Cause, Failure, Malformed, Refused

ELICIT, SAMPLE = "elicitation/create", "sampling/createMessage"
ERROR = ErrorObject(-32000, "no")
OUTCOMES = (Answered, Refused, Malformed, CallLost)
FORM = {"method": ELICIT, "params": {"message": "?"}}


class Rig:
    """A call with the test for its server."""

    def __init__(self, era: Era = "legacy") -> None:
        self.era = era
        self.sent: list[tuple[str, Any]] = []
        self.task = DrivenTask(7, era, self._send)

    def _send(self, method: str, more: bytes) -> None:
        self.sent.append((method, json.loads(b"{" + more + b"}")))

    def make(self) -> Fact | None:
        state = {"taskId": "a", "status": "working", "pollInterval": 2000}
        return self.answer({"resultType": "task", **state} if self.era == "modern" else {"task": state})

    def answer(self, result: Any) -> Fact | None:
        return self.task.on_result(msgspec.Raw(json.dumps(result).encode()))

    def tell(self, status: str, **more: Any) -> Fact | None:
        return self.answer({"taskId": "a", "status": status, **more})

    def take(self) -> list[str]:
        methods = [method for method, _ in self.sent]
        self.sent.clear()
        return methods


def failure(cause: Cause = "crashed") -> Failure:
    return Failure(id=b"1", cause=cause, reason="away")


def modern() -> Rig:
    """A call whose task was asked for once."""
    rig = Rig("modern")
    rig.make()
    rig.task.due()
    assert rig.take() == ["tasks/get"]
    return rig


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_result_at_once_is_the_result(era: Era) -> None:
    rig = Rig(era)
    assert rig.answer({"content": []}) == Answered(7, msgspec.Raw(b'{"content": []}'))
    assert rig.take() == []
    assert Rig(era).task.on_error(ERROR) == Refused(7, ERROR)
    assert Rig(era).task.on_failure(failure("expired")) == CallLost(7, failure("expired"))


def test_a_legacy_server_is_asked_for_the_result_and_then_only_how_far_it_is() -> None:
    rig = Rig()
    assert rig.make() == CallLasts(7)
    assert rig.take() == ["tasks/result"]
    assert rig.task.on_error(ERROR) is None
    assert rig.tell("working", pollInterval=3000) == CallLasts(7, 3)
    assert not rig.task.sent
    assert rig.take() == ["tasks/get"]
    rig.task.due()
    assert rig.tell("input_required") is None
    assert rig.task.on_error(ERROR) is None
    assert rig.take() == ["tasks/get", "tasks/result", "tasks/get"]
    assert rig.tell("input_required") == CallLasts(7, 1), "it was refused a moment ago"
    rig.task.due()
    assert rig.tell("completed") is None
    assert rig.take() == ["tasks/get", "tasks/result"]
    assert rig.answer({"content": []}) == Answered(7, msgspec.Raw(b'{"content": []}'))


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_the_error_of_a_legacy_task_that_is_over_is_that_of_the_call(status: str) -> None:
    rig = Rig()
    rig.make()
    assert rig.task.on_error(ERROR) is None
    assert rig.tell(status) == Refused(7, ERROR)


def test_a_result_that_is_refused_though_the_task_is_over_is_refused() -> None:
    rig = Rig()
    rig.make()
    rig.task.on_error(ErrorObject(1, "early"))
    assert rig.tell("completed") is None
    assert rig.task.on_error(ERROR) == Refused(7, ERROR)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_task_that_cannot_be_asked_for_is_asked_for_once_more(era: Era) -> None:
    rig = Rig(era)
    rig.make()
    rig.task.due()
    assert rig.task.on_failure(failure()) == CallLasts(7, 1)
    rig.task.due()
    assert rig.take()[-1] == "tasks/get"
    assert rig.tell("working") == CallLasts(7, 1)
    rig.task.due()
    assert rig.task.on_failure(failure()) == CallLasts(7, 1)
    rig.task.due()
    assert rig.task.on_failure(failure()) == CallLost(7, failure())


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_is_never_made_again_where_a_session_is_over(era: Era) -> None:
    rig = Rig(era)
    rig.make()
    assert rig.task.on_failure(failure("expired")) == CallLost(7, failure("crashed"))


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_state_that_cannot_be_read_ends_it(era: Era) -> None:
    rig = Rig(era)
    rig.make()
    if era == "legacy":
        rig.task.on_error(ERROR)
    rig.task.due()
    assert isinstance(rig.answer({"taskId": "a"}), Malformed)


def test_a_modern_task_has_everything_in_its_state() -> None:
    assert modern().tell("completed", result={"x": 1}) == Answered(7, msgspec.Raw(b'{"x": 1}'))
    assert modern().tell("failed", error={"code": -32000, "message": "no"}) == Refused(7, ERROR)
    cancelled = modern().tell("cancelled", statusMessage="enough")
    assert cancelled == Refused(7, ErrorObject(-32603, "the task was cancelled: enough"))
    assert modern().tell("cancelled") == Refused(7, ErrorObject(-32603, "the task was cancelled"))
    for status in ("completed", "failed"):
        assert isinstance(modern().tell(status), Malformed)
    assert modern().task.on_error(ERROR) == Refused(7, ERROR)


def test_its_questions_are_asked_one_after_the_other_and_once() -> None:
    rig = modern()
    questions = {"a": FORM, "b": {"method": "x/y"}, "c": {"method": ELICIT, "params": {"mode": "odd"}}, "d": FORM}
    first = rig.tell("input_required", inputRequests=questions)
    assert isinstance(first, CallAsked)
    assert (first.call, first.method) == (7, ELICIT)
    assert not rig.task.sent
    rig.task.due()
    rig.task.on_answer(b'{"action":"accept"}')
    assert rig.sent == [("tasks/update", {"inputResponses": {"a": {"action": "accept"}}})]
    rig.task.on_answer(b"{}")
    assert rig.answer({}) is None
    second = rig.tell("input_required", inputRequests=questions)
    assert isinstance(second, CallAsked)
    assert second.id != first.id
    rig.task.on_answer(ERROR)
    assert rig.sent[-1] == ("tasks/update", {"inputResponses": {"d": {"action": "cancel"}}})
    assert rig.task.on_error(ERROR) is None
    assert rig.tell("input_required", inputRequests=questions) == CallLasts(7, 1)


def test_a_question_that_has_no_answer_costs_the_task_its_life() -> None:
    rig = modern()
    rig.tell("input_required", inputRequests={"a": {"method": SAMPLE, "params": {}}})
    rig.task.on_answer(ERROR)
    assert rig.take() == ["tasks/cancel"]
    assert rig.answer({}) is None
    assert rig.tell("cancelled") == Refused(7, ERROR)


def test_questions_without_end_are_not_asked_without_end() -> None:
    rig = modern()
    assert rig.tell("input_required", inputRequests={"x" * 1025: FORM}) == CallLasts(7, 1)
    asked = 0
    for number in range(MAX_QUESTIONS + 1):
        rig.task.due()
        if isinstance(rig.tell("input_required", inputRequests={str(number): FORM}), CallAsked):
            asked += 1
            rig.task.on_answer(b"{}")
            rig.answer({})
    assert asked == MAX_QUESTIONS


def test_a_large_result_is_not_written_anew() -> None:
    for size, named in ((10, False), (MAX_REWRITTEN_BYTES, True)):
        rig = Rig()
        rig.make()
        fact = rig.answer({"content": [], "x": "y" * size, "_meta": {RELATED: {"taskId": "a"}}})
        assert isinstance(fact, Answered)
        assert (RELATED in bytes(fact.result).decode()) is named


ANYTHING = st.one_of(
    st.builds(ErrorObject, st.integers(-40000, 0), st.text(max_size=5)),
    st.builds(failure, st.sampled_from(["unavailable", "crashed", "expired", "protocol"])),
    st.sampled_from(["working", "input_required", "completed", "failed", "cancelled"]),
    st.dictionaries(st.sampled_from(["task", "taskId", "status", "resultType"]), st.text(max_size=5), max_size=4),
)


@given(st.sampled_from(["legacy", "modern"]), st.lists(ANYTHING, max_size=30))
def test_it_has_one_outcome_and_always_waits_for_something_until_then(era: Era, said: list[Any]) -> None:
    rig = Rig(era)
    rig.make()
    keys = iter(range(1000))
    for each in said:
        before = len(rig.sent)
        if not rig.task.sent:
            rig.task.due()
            rig.task.on_answer(b"{}")
            assert len(rig.sent) == before + 1, "whoever has waited goes on"
        if isinstance(each, ErrorObject):
            fact = rig.task.on_error(each)
        elif isinstance(each, Failure):
            fact = rig.task.on_failure(each)
        elif isinstance(each, str):
            fact = rig.tell(each, inputRequests={str(next(keys)): FORM})
        else:
            fact = rig.answer(each)
        if isinstance(fact, OUTCOMES):
            assert fact.tag == 7
            assert not (isinstance(fact, CallLost) and fact.failure.cause == "expired"), "that would make it again"
            return
        assert isinstance(fact, CallLasts | CallAsked) is not rig.task.sent or fact == CallLasts(7)
    assert all(method.startswith("tasks/") for method, _ in rig.sent)
