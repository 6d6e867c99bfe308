"""What a server may ask, how often at a time, whose it is, and what is answered without asking anybody."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import msgspec
import pytest

from actors.messages import CallServer
from actors.protocol.asking.questions import (
    MAX_FORM_BYTES,
    MAX_QUESTION_BYTES,
)
from actors.protocol.conversation import MAX_OPEN, MAX_OPEN_BYTES, OpenQuestions
from actors.protocol.exchanges import Exchanges
from actors.protocol.facts import CallAsked
from actors.protocol.outbound import Outbound
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.jsonrpc import ErrorObject
from actors.protocol.wire.peer import Asked
from tests.fakes.clock import Clock

PARAMS = msgspec.Raw(b'{"message":"Sure?"}')
METHOD = "elicitation/create"


ALL = frozenset({"elicitation", "sampling", "roots"})


class Rig:
    """A server with the test for its mouth."""

    def __init__(self, allowed: frozenset[str] = ALL, roots: bytes = b"") -> None:
        self.out = Outbound(count(1), lambda _: ())
        self.exchanges = Exchanges(Clock())
        self.questions = OpenQuestions(self.out, self.exchanges, allowed, roots)
        self._ids: dict[int, bytes] = {}

    def call(self, number: int, method: str = "tools/call") -> bytes:
        asked = CallServer(server="s", method=method, members=b"")
        id_ = self._ids[number] = self.out.call(number, asked)
        self.exchanges.begin(number, id_, asked.interest, method)
        self.out.messages.clear()
        return id_

    def take(self, id_: bytes, method: str, params: msgspec.Raw) -> CallAsked | ErrorObject:
        """Return the question that is open now, or why there is none."""
        if (question := self.questions.take(Asked(id_, method, params), b"")) is not None:
            return question
        return jsonrpc.decode_error(jsonrpc.decode(self.out.messages.pop().body).error)

    def ask(self, method: str = "elicitation/create", stream: bytes = b"", **params: Any) -> Any:
        """Return the call that is asked, "several", or what was answered instead."""
        asked = Asked(b"9", method, msgspec.Raw(json.dumps(params).encode()))
        match self.questions.take(asked, stream):
            case CallAsked(call=None):
                return "several"
            case CallAsked(call=call):
                return call
        (message,) = self.out.messages
        self.out.messages.clear()
        answer = json.loads(message.body)
        return answer.get("result", answer.get("error", {}).get("code"))


def about(*calls: int, allowed: frozenset[str] = frozenset({"elicitation", "roots"})) -> Rig:
    """Return a server that is at work on these calls."""
    rig = Rig(allowed)
    for call in calls:
        rig.call(call)
    rig.exchanges.at_work = True
    return rig


@pytest.mark.case("X09")
@pytest.mark.parametrize(
    ("method", "params", "code", "text"),
    [
        ("sampling/createMessage", PARAMS, -32601, "sampling/createMessage is not supported here"),
        ("x" * 1000, PARAMS, -32601, "x" * 100 + " is not supported here"),
        (METHOD, msgspec.Raw(b'{"mode":"voice"}'), -32602, "only questions with a form"),
        (METHOD, msgspec.Raw(b"[]"), -32602, "only questions with a form"),
        (METHOD, msgspec.Raw(b'{"mode":"url"}'), -32602, "only addresses that begin with https or http"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"javascript:alert(1)"}'), -32602, "only addresses that"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"file:///etc/passwd"}'), -32602, "only addresses that"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"https://[x"}'), -32602, "only addresses that"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"https://good.example@evil.example"}'), -32602, "only addresses"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"https://good.example\\\\.evil.example"}'), -32602, "only addr"),
        (
            METHOD,
            msgspec.Raw('{"mode":"url","url":"https://a/\u202egpj.exe"}'.encode()),
            -32602,
            "only addresses that",
        ),
        (METHOD, msgspec.Raw(b'"' + b"x" * MAX_FORM_BYTES + b'"'), -32602, "a question of over 65536 bytes"),
        ("roots/list", msgspec.Raw(b'"' + b"x" * MAX_QUESTION_BYTES + b'"'), -32602, "a question of over 4194304"),
    ],
)
def test_what_is_not_asked_says_why(method: str, params: msgspec.Raw, code: int, text: str) -> None:
    refused = about(5).take(b"1", method, params)
    assert isinstance(refused, ErrorObject)
    assert refused.code == code
    assert refused.message.startswith(text)


@pytest.mark.parametrize("url", ["https://example.com/pay", "HTTP://localhost:8000/x"])
def test_a_person_may_be_asked_to_open_an_address(url: str) -> None:
    params = msgspec.Raw(msgspec.json.encode({"mode": "url", "url": url, "message": "Pay", "elicitationId": "1"}))
    assert about(5).take(b"1", METHOD, params) == CallAsked(5, b"1", METHOD, params)


def test_a_question_may_be_of_one_of_several_calls_but_not_of_none() -> None:
    assert about(4, 5).take(b"1", METHOD, PARAMS) == CallAsked(None, b"1", METHOD, PARAMS)
    refused = about().take(b"1", METHOD, PARAMS)
    assert isinstance(refused, ErrorObject)
    assert (refused.code, refused.message) == (-32601, "there is nobody to ask while no call is in flight")


def test_a_question_without_params_is_asked_with_empty_ones() -> None:
    asked = about(5).take(b"1", "roots/list", msgspec.Raw(b""))
    assert asked == CallAsked(5, b"1", "roots/list", msgspec.Raw(b"{}"))


def test_questions_are_bounded_and_have_an_id_each() -> None:
    open_ = about(5)
    for number in range(MAX_OPEN):
        assert isinstance(open_.take(b"%d" % number, METHOD, PARAMS), CallAsked)
    assert isinstance(open_.take(b"99", METHOD, PARAMS), ErrorObject)
    assert open_.questions.close(b"3")
    assert isinstance(open_.take(b"2", METHOD, PARAMS), ErrorObject)
    assert isinstance(open_.take(b"99", METHOD, PARAMS), CallAsked)


def test_a_server_may_take_its_own_questions_back() -> None:
    open_ = about(5)
    open_.take(b'"q"', METHOD, PARAMS)
    assert not open_.questions.close(b"1")
    assert not open_.questions.close(b"")
    assert open_.questions.close(b'"q"')
    assert not open_.questions.close(b'"q"')


def test_questions_of_many_bytes_that_wait_are_refused_and_make_room_when_they_are_settled() -> None:
    open_ = about(5, allowed=frozenset({"sampling"}))
    params = msgspec.Raw(b'{"messages":"' + b"x" * (MAX_QUESTION_BYTES - 100) + b'"}')
    most = MAX_OPEN_BYTES // len(params)
    for number in range(most):
        assert isinstance(open_.take(b"%d" % number, "sampling/createMessage", params), CallAsked)
    refused = open_.take(b"99", "sampling/createMessage", params)
    assert isinstance(refused, ErrorObject)
    assert "bytes of questions wait for answers already" in refused.message
    assert open_.questions.close(b"0")
    assert isinstance(open_.take(b"99", "sampling/createMessage", params), CallAsked)


# Whose they are, and what is answered without asking anybody ---------------------------------------------------------


def test_of_several_calls_the_one_is_meant_on_whose_stream_it_comes() -> None:
    rig = Rig()
    first, second = rig.call(1), rig.call(2)
    assert (rig.ask(stream=first)) == 1
    rig.questions.answer(b"9", b"{}")
    assert (rig.ask(stream=second)) == 2
    rig.questions.answer(b"9", b"{}")
    rig.out.messages.clear()
    assert rig.ask(stream=b"799") == -32601


def test_or_whose_progress_token_it_repeats() -> None:
    rig = Rig()
    rig.call(1)
    token = json.loads(rig.call(2))
    assert rig.ask(_meta={"progressToken": token}) == 2


@pytest.mark.parametrize("meta", [{"progressToken": 7}, {"progressToken": 799}, {"progressToken": ""}, []])
def test_a_token_that_is_not_ours_says_nothing(meta: Any) -> None:
    rig = Rig()
    rig.call(1)
    rig.call(2)
    assert rig.ask(_meta=meta) == "several"


def test_methods_that_lead_to_no_questions_are_not_meant() -> None:
    rig = Rig()
    rig.call(1, "completion/complete")
    rig.call(2)
    assert rig.ask() == 2


def test_what_was_not_declared_is_refused_whoever_it_is_about() -> None:
    rig = Rig(frozenset())
    rig.call(1)
    assert [rig.ask(method) for method in ("elicitation/create", "roots/list", "x/y")] == [-32601] * 3
    assert rig.ask("ping") == {}


def test_roots_outside_of_calls_and_before_the_first_answer_are_none() -> None:
    rig = Rig()
    assert rig.ask("roots/list") == {"roots": []}
    id_ = rig.call(1)
    assert rig.ask("roots/list") == {"roots": []}  # perhaps because it is initialized: all calls would share them
    assert rig.ask("roots/list", stream=id_) == 1
    rig.questions.answer(b"9", b"{}")
    rig.out.messages.clear()
    rig.exchanges.at_work = True
    assert rig.ask("roots/list") == 1


def test_a_call_that_was_answered_shows_that_it_is_at_work_one_taken_back_does_not() -> None:
    rig = Rig()
    rig.call(1)
    rig.exchanges.leave(1)
    rig.call(2)
    assert rig.ask("roots/list") == {"roots": []}
    rig.exchanges.end(2)
    rig.call(3)
    assert rig.ask("roots/list") == 3


def test_configured_roots_are_told_whoever_calls() -> None:
    rig = Rig(roots=b'{"roots":[{"uri":"file:///a"}]}')
    assert rig.ask("roots/list", stream=rig.call(1)) == {"roots": [{"uri": "file:///a"}]}
