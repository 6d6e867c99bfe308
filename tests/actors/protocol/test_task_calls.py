"""Calls about tasks in one conversation: what is sent, and whose it is what the server says of a task."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import msgspec
import pytest

from actors.messages import CallServer
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Agreement, Identity, Negotiation, Terms
from actors.protocol.agreement.versions import Era
from actors.protocol.conversation import Conversation
from actors.protocol.exchanges import PROGRESS, Interest
from actors.protocol.facts import CallAsked, CallLasts, CallLost, CallNoted
from actors.protocol.listing import ListLimits
from actors.protocol.task_calls import MAX_OPEN
from actors.protocol.tasks import EXTENSION, RELATED
from actors.protocol.wire.jsonrpc import ErrorObject
from actors.protocol.wire.peer import Answered, Failure, Malformed, Refused
from tests.fakes.clock import Clock

CAPABILITIES: dict[Era, Any] = {
    "legacy": {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}},
    "modern": {"extensions": {EXTENSION: {}}},
}
FORM = "elicitation/create"


class Rig:
    """A conversation that has agreed, with the test for the server."""

    def __init__(self, era: Era = "legacy", capabilities: Any = None) -> None:
        needs = lambda tool: tool == "later"  # noqa: E731  (as it is given)
        negotiation = Negotiation(Identity(), era, Terms(capabilities=OF_CLIENTS))
        self.talk = Conversation(count(1), negotiation, ListLimits(), lambda _: (), needs, Clock())
        self.talk.greet()
        said = {"capabilities": CAPABILITIES[era] if capabilities is None else capabilities}
        versions: dict[str, Any] = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "t", "version": "1"}}
        if era == "modern":
            versions = {
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "ttlMs": 0,
                "cacheScope": "private",
            }
        assert isinstance(self.answer({**said, **versions}), Agreement)
        self.talk.output.clear()

    def take(self) -> list[Any]:
        sent = [json.loads(message.body) for message in self.talk.output]
        self.talk.output.clear()
        return sent

    def call(self, number: int, method: str = "tools/call", name: str = "later", **more: Any) -> Any:
        members = json.dumps({"taskId" if method.startswith("tasks/") else "name": name})[1:-1].encode()
        self.talk.call(number, CallServer(server="s", method=method, members=members, name=name, **more))
        (sent,) = self.take()
        return sent

    def receive(self, stream: bytes = b"", **message: Any) -> Any:
        return self.talk.receive(json.dumps({"jsonrpc": "2.0", **message}).encode(), stream=stream)

    def answer(self, result: Any, id_: str | None = None) -> Any:
        return self.receive(id=id_ or json.loads(self.talk.output[-1].id), result=result)

    def made(self, number: int, task: str, **more: Any) -> Any:
        """Make a task for a client that speaks them; return the request that did."""
        sent = self.call(number, as_task=True, interest=Interest(progress=b'"mine"'))
        assert isinstance(self.answer({"task": {"taskId": task, "status": "working", **more}}, sent["id"]), Answered)
        return sent

    def ask(self, id_: str, task: str, **more: Any) -> Any:
        params = {"message": "?", "requestedSchema": {}, "_meta": {RELATED: {"taskId": task}}}
        return self.receive(id=id_, method=FORM, params=params, **more)


def test_a_question_about_a_task_is_for_whoever_waits_for_its_result() -> None:
    rig = Rig()
    rig.made(1, "a")
    rig.made(2, "b")
    assert rig.ask("q0", "a") is None
    assert rig.take()[0]["error"]["code"] == -32601
    rig.call(3, "tasks/result", "a")
    other = rig.call(4, "tasks/result", "b")["id"]
    rig.call(5, "tools/call", "plain")
    asked = rig.ask("q1", "a", stream=f'"{other}"'.encode())
    assert isinstance(asked, CallAsked)
    assert asked.call == 3
    rig.talk.answer(asked.id, json.dumps({"action": "accept", "_meta": {RELATED: {"taskId": "ours"}}}).encode())
    assert rig.take()[0]["result"]["_meta"] == {RELATED: {"taskId": "a"}}
    asked = rig.ask("q2", "b")
    assert isinstance(asked, CallAsked)
    assert asked.call == 4
    rig.talk.answer(asked.id, ErrorObject(-1, "no"))
    assert rig.take()[0]["error"]["message"] == "no"


def test_a_question_that_names_no_task_may_be_about_one_all_the_same() -> None:
    rig = Rig()
    rig.made(1, "a")
    rig.call(2, "tasks/result", "a")
    rig.call(3, "tools/call", "plain")
    asked = rig.receive(id="q", method=FORM, params={"message": "?"})
    assert isinstance(asked, CallAsked)
    assert asked.call is None


def test_what_the_server_tells_of_a_task_is_too() -> None:
    rig = Rig()
    token = rig.made(1, "a")["id"]
    status = {"taskId": "a", "status": "working"}
    progress = {"progressToken": token, "progress": 1}
    assert rig.receive(method="notifications/tasks/status", params=status) is None
    assert rig.receive(method=PROGRESS, params=progress) is None
    rig.call(2, "tasks/result", "a")
    noted = rig.receive(method="notifications/tasks/status", params=status)
    assert (noted.call, json.loads(noted.params)) == (2, status)
    noted = rig.receive(method=PROGRESS, params=progress)
    assert isinstance(noted, CallNoted)
    assert (noted.call, json.loads(noted.params)["progressToken"]) == (2, "mine")
    third = rig.call(3, "tasks/result", "a")["id"]
    rig.talk.cancel(2, "enough")
    noted = rig.receive(method=PROGRESS, params={**progress, "progress": 2})
    assert noted.call == 3
    rig.answer({"content": []}, third)
    assert rig.receive(method=PROGRESS, params={**progress, "progress": 3}) is None
    for odd in ({}, {"taskId": "x" * 70_000, "status": "working"}):
        before = rig.talk.exchanges.unheard
        assert rig.receive(method="notifications/tasks/status", params=odd) is None
        assert rig.talk.exchanges.unheard == before + 1


def test_questions_without_end_take_no_room_without_end() -> None:
    rig = Rig()
    rig.made(1, "a")
    rig.call(2, "tasks/result", "a")
    for number in range(MAX_OPEN + 1):
        rig.ask(str(number), "a")
    rig.take()
    for number in (0, MAX_OPEN):
        rig.talk.answer(f'"{number}"'.encode(), json.dumps({"_meta": {RELATED: {"taskId": "ours"}}}).encode())
    (answered,) = rig.take()
    assert (answered["id"], answered["result"]) == ("0", {"_meta": {RELATED: {"taskId": "a"}}})


def test_a_task_that_is_asked_for_for_long_takes_no_more_room() -> None:
    rig = Rig("modern")
    sent = rig.call(1)
    rig.answer({"resultType": "task", "taskId": "a", "status": "working"}, sent["id"])
    exchanges = rig.talk.exchanges
    for _ in range(100):
        rig.talk.tasks.due(1)
        (sent,) = rig.take()
        assert isinstance(rig.answer({"taskId": "a", "status": "working"}, sent["id"]), CallLasts)
        assert len(exchanges._by_id) == 2
    rig.talk.cancel(1, "enough")
    assert not exchanges._by_id
    assert len(exchanges) == 0


def test_log_messages_of_a_task_are_too() -> None:
    rig = Rig(capabilities={**CAPABILITIES["legacy"], "logging": {}})
    rig.made(1, "a")
    rig.call(2, "tasks/result", "a", interest=Interest(log_level=""))
    rig.call(3, "tools/call", "plain", interest=Interest(log_level=""))
    message = {"level": "error", "data": 1, "_meta": {RELATED: {"taskId": "a"}}}
    noted = rig.receive(method="notifications/message", params=message)
    assert isinstance(noted, CallNoted)
    assert noted.call == 2
    message["_meta"] = {RELATED: {"taskId": "nobody's"}}
    assert rig.receive(method="notifications/message", params=message) is None


def test_it_is_known_which_tasks_are_not_over() -> None:
    rig = Rig()
    for number, task in enumerate("abcd", 1):
        rig.made(number, task, ttl=number * 1000)
    tasks = rig.talk.tasks
    assert (tasks.open, tasks.longest_s) == (4, 4)
    sent = rig.call(5, "tasks/get", "d")
    rig.answer({"taskId": "d", "status": "working"}, sent["id"])
    assert tasks.longest_s == 4
    sent = rig.call(6, "tasks/cancel", "d")
    rig.answer({"taskId": "d", "status": "cancelled"}, sent["id"])
    assert tasks.longest_s == 3
    sent = rig.call(7, "tasks/result", "c")
    rig.answer({"content": []}, sent["id"])
    assert tasks.longest_s == 2
    rig.receive(method="notifications/tasks/status", params={"taskId": "b", "status": "failed"})
    assert tasks.longest_s == 1
    sent = rig.call(8, "tasks/get", "a")
    rig.answer({"odd": 1}, sent["id"])
    assert tasks.open == 1
    sent = rig.call(9, as_task=True)
    rig.answer({"task": {"taskId": "e", "status": "completed"}}, sent["id"])
    assert tasks.open == 1
    for number in range(MAX_OPEN):
        rig.made(10 + number, f"n{number}")
    assert tasks.open == MAX_OPEN


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_driven_call_ends_however_its_answer_is_lost(era: Era) -> None:
    state = {"taskId": "a", "status": "working"}
    for asked, made in (("later", False), ("later", True)):
        rig = Rig(era)
        sent = rig.call(1, name=asked)
        assert ("task" in sent["params"]) is (era == "legacy")
        if made:
            fact = rig.answer({"resultType": "task", **state} if era == "modern" else {"task": state}, sent["id"])
            assert isinstance(fact, CallLasts)
            rig.talk.tasks.due(1)
            sent = rig.take()[-1]
        id_ = b"%d" % sent["id"]
        lost = rig.talk.on_failure(Failure(id=id_, cause="expired", reason="gone"))
        assert lost == CallLost(1, Failure(id=id_, cause="crashed" if made else "expired", reason="gone"))
        assert 1 not in rig.talk.tasks
        rig.talk.tasks.due(1)
        assert rig.take() == []


def test_the_calls_of_clients_end_like_others() -> None:
    rig = Rig()
    rig.made(1, "a")
    id_ = b"%d" % rig.call(2, "tasks/get", "a")["id"]
    failure = Failure(id=id_, cause="crashed", reason="gone")
    assert rig.talk.on_failure(failure) == CallLost(2, failure)
    sent = rig.call(3, "tasks/get", "a")
    assert rig.receive(id=sent["id"], error={"code": 1, "message": "no"}) == Refused(3, ErrorObject(1, "no"))
    sent = rig.call(4, "tasks/get", "a")
    assert isinstance(rig.receive(id=sent["id"], result=5), Malformed)
    sent = rig.call(5, "tasks/get", "a")
    rig.talk.cancel(5, "enough")
    assert rig.take()[0]["params"]["requestId"] == sent["id"]
    assert 5 not in rig.talk.tasks


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_who_gives_a_driven_call_up_gives_its_task_up(era: Era) -> None:
    rig = Rig(era)
    sent = rig.call(1)
    rig.talk.cancel(1, "enough")
    assert [message["method"] for message in rig.take()] == ["notifications/cancelled"]
    assert isinstance(rig.answer({"task": {"taskId": "z", "status": "working"}}, sent["id"]), Answered)
    sent = rig.call(2)
    state = {"taskId": "a", "status": "working"}
    rig.answer({"resultType": "task", **state} if era == "modern" else {"task": state}, sent["id"])
    rig.take()
    rig.talk.cancel(2, "enough")
    cancelled = rig.take()
    waiting = ["notifications/cancelled"] if era == "legacy" else []
    assert [message["method"] for message in cancelled] == [*waiting, "tasks/cancel"]
    assert cancelled[-1]["params"]["taskId"] == "a"
    assert rig.answer({}, cancelled[-1]["id"]) is None


def test_a_question_of_a_modern_task_is_answered_by_an_update_unless_its_call_is_over() -> None:
    rig = Rig("modern")
    for number, over in ((1, False), (2, True)):
        sent = rig.call(number)
        rig.answer({"resultType": "task", "taskId": "a", "status": "working"}, sent["id"])
        rig.talk.tasks.due(number)
        requests = {"k": {"method": FORM, "params": {"message": "?"}}}
        asked = rig.answer({"taskId": "a", "status": "input_required", "inputRequests": requests}, rig.take()[-1]["id"])
        assert isinstance(asked, CallAsked)
        if over:
            rig.talk.cancel(number, "enough")
            rig.take()
        rig.talk.answer(asked.id, b'{"action":"accept"}')
        assert [message["method"] for message in rig.take()] == ([] if over else ["tasks/update"])


def test_a_question_of_a_driven_legacy_task_says_nothing_of_the_task() -> None:
    rig = Rig()
    sent = rig.call(1)
    rig.answer({"task": {"taskId": "a", "status": "working"}}, sent["id"])
    asked = rig.ask("q", "a")
    assert isinstance(asked, CallAsked)
    assert asked.call == 1
    assert RELATED not in bytes(asked.params).decode()
    assert msgspec.json.decode(asked.params)["message"] == "?"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_without_the_capability_nothing_is_a_task(era: Era) -> None:
    rig = Rig(era, {"tools": {}})
    sent = rig.call(1)
    assert "task" not in sent["params"]
    assert 1 not in rig.talk.tasks
    assert rig.receive(method="notifications/tasks/status", params={"taskId": "a", "status": "working"}) is None
    if era == "legacy":
        assert rig.ask("q", "a").call == 1
