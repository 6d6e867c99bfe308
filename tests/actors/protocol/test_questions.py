"""What a server may ask, and how often at a time."""

from __future__ import annotations

import msgspec
import pytest

from actors.protocol.facts import CallAsked, QuestionWithdrawn
from actors.protocol.jsonrpc import ErrorObject
from actors.protocol.questions import MAX_OPEN, MAX_QUESTION_BYTES, Questions, cancelled_id

PARAMS = msgspec.Raw(b'{"message":"Sure?"}')
METHOD = "elicitation/create"


def questions() -> Questions:
    return Questions(frozenset({"elicitation"}))


def test_a_question_about_a_call_is_for_its_client_until_it_is_settled() -> None:
    open_ = questions()
    assert open_.take(b"1", METHOD, PARAMS, 5) == CallAsked(5, b"1", METHOD, PARAMS)
    assert open_.settle(b"1")
    assert not open_.settle(b"1")


@pytest.mark.parametrize(
    ("method", "params", "call", "code", "text"),
    [
        ("sampling/createMessage", PARAMS, 5, -32601, "sampling/createMessage is not supported here"),
        ("x" * 1000, PARAMS, 5, -32601, "x" * 100 + " is not supported here"),
        (METHOD, PARAMS, None, -32601, "it is not known which call this is about"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"https://evil.example"}'), 5, -32602, "only questions with a form"),
        (METHOD, msgspec.Raw(b"[]"), 5, -32602, "only questions with a form"),
        (METHOD, msgspec.Raw(b'"' + b"x" * MAX_QUESTION_BYTES + b'"'), 5, -32602, "a question of over 262144 bytes"),
    ],
)
def test_what_is_not_asked_says_why(method: str, params: msgspec.Raw, call: int | None, code: int, text: str) -> None:
    refused = questions().take(b"1", method, params, call)
    assert isinstance(refused, ErrorObject)
    assert refused.code == code
    assert refused.message.startswith(text)


def test_a_server_that_was_told_that_it_may_not_ask_is_refused() -> None:
    assert isinstance(Questions(frozenset()).take(b"1", METHOD, PARAMS, 5), ErrorObject)


def test_questions_are_bounded_and_have_an_id_each() -> None:
    open_ = questions()
    for number in range(MAX_OPEN):
        assert isinstance(open_.take(b"%d" % number, METHOD, PARAMS, 5), CallAsked)
    assert isinstance(open_.take(b"99", METHOD, PARAMS, 5), ErrorObject)
    assert open_.settle(b"3")
    assert isinstance(open_.take(b"2", METHOD, PARAMS, 5), ErrorObject)
    assert isinstance(open_.take(b"99", METHOD, PARAMS, 5), CallAsked)


def test_a_server_may_take_its_own_questions_back() -> None:
    open_ = questions()
    open_.take(b'"q"', METHOD, PARAMS, 5)
    assert open_.withdrawn(cancelled_id(msgspec.Raw(b'{"requestId":1}'))) is None
    assert open_.withdrawn(cancelled_id(msgspec.Raw(b"[]"))) is None
    assert open_.withdrawn(cancelled_id(msgspec.Raw(b'{"requestId":"q"}'))) == QuestionWithdrawn(b'"q"')
    assert open_.withdrawn(cancelled_id(msgspec.Raw(b'{"requestId":"q"}'))) is None
