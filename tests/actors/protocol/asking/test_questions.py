"""What a server may ask, and how often at a time."""

from __future__ import annotations

import msgspec
import pytest

from actors.protocol.asking.questions import (
    MAX_FORM_BYTES,
    MAX_OPEN,
    MAX_OPEN_BYTES,
    MAX_QUESTION_BYTES,
    Questions,
    cancelled_id,
)
from actors.protocol.facts import CallAsked, QuestionWithdrawn
from actors.protocol.wire.jsonrpc import ErrorObject

PARAMS = msgspec.Raw(b'{"message":"Sure?"}')
METHOD = "elicitation/create"


def questions() -> Questions:
    return Questions(frozenset({"elicitation", "roots"}))


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
        (METHOD, msgspec.Raw(b'{"mode":"voice"}'), 5, -32602, "only questions with a form"),
        (METHOD, msgspec.Raw(b"[]"), 5, -32602, "only questions with a form"),
        (METHOD, msgspec.Raw(b'{"mode":"url"}'), 5, -32602, "only addresses that begin with https or http"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"javascript:alert(1)"}'), 5, -32602, "only addresses that"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"file:///etc/passwd"}'), 5, -32602, "only addresses that"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"https://[x"}'), 5, -32602, "only addresses that"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"https://good.example@evil.example"}'), 5, -32602, "only addresses"),
        (METHOD, msgspec.Raw(b'{"mode":"url","url":"https://good.example\\\\.evil.example"}'), 5, -32602, "only addr"),
        (
            METHOD,
            msgspec.Raw('{"mode":"url","url":"https://a/\u202egpj.exe"}'.encode()),
            5,
            -32602,
            "only addresses that",
        ),
        (METHOD, msgspec.Raw(b'"' + b"x" * MAX_FORM_BYTES + b'"'), 5, -32602, "a question of over 65536 bytes"),
        ("roots/list", msgspec.Raw(b'"' + b"x" * MAX_QUESTION_BYTES + b'"'), 5, -32602, "a question of over 4194304"),
    ],
)
def test_what_is_not_asked_says_why(method: str, params: msgspec.Raw, call: int | None, code: int, text: str) -> None:
    refused = questions().take(b"1", method, params, call)
    assert isinstance(refused, ErrorObject)
    assert refused.code == code
    assert refused.message.startswith(text)


@pytest.mark.parametrize("url", ["https://example.com/pay", "HTTP://localhost:8000/x"])
def test_a_person_may_be_asked_to_open_an_address(url: str) -> None:
    params = msgspec.Raw(msgspec.json.encode({"mode": "url", "url": url, "message": "Pay", "elicitationId": "1"}))
    assert questions().take(b"1", METHOD, params, 5) == CallAsked(5, b"1", METHOD, params)


def test_a_question_may_be_of_one_of_several_calls_but_not_of_none() -> None:
    assert questions().take(b"1", METHOD, PARAMS, None) == CallAsked(None, b"1", METHOD, PARAMS)
    refused = questions().take(b"1", METHOD, PARAMS, None, known=False)
    assert isinstance(refused, ErrorObject)
    assert (refused.code, refused.message) == (-32601, "there is nobody to ask while no call is in flight")


def test_a_question_without_params_is_asked_with_empty_ones() -> None:
    asked = questions().take(b"1", "roots/list", msgspec.Raw(b""), 5)
    assert asked == CallAsked(5, b"1", "roots/list", msgspec.Raw(b"{}"))


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
    assert open_.withdraw(cancelled_id(msgspec.Raw(b'{"requestId":1}'))) is None
    assert open_.withdraw(cancelled_id(msgspec.Raw(b"[]"))) is None
    assert open_.withdraw(cancelled_id(msgspec.Raw(b'{"requestId":"q"}'))) == QuestionWithdrawn(b'"q"')
    assert open_.withdraw(cancelled_id(msgspec.Raw(b'{"requestId":"q"}'))) is None


def test_questions_of_many_bytes_that_wait_are_refused_and_make_room_when_they_are_settled() -> None:
    open_ = Questions(frozenset({"sampling"}))
    params = msgspec.Raw(b'{"messages":"' + b"x" * (MAX_QUESTION_BYTES - 100) + b'"}')
    most = MAX_OPEN_BYTES // len(params)
    for number in range(most):
        assert isinstance(open_.take(b"%d" % number, "sampling/createMessage", params, 5), CallAsked)
    refused = open_.take(b"99", "sampling/createMessage", params, 5)
    assert isinstance(refused, ErrorObject)
    assert "bytes of questions wait for answers already" in refused.message
    assert open_.settle(b"0")
    assert isinstance(open_.take(b"99", "sampling/createMessage", params, 5), CallAsked)
