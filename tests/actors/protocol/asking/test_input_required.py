"""Incomplete results, and requests that are made again: what can be read of them, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.errors import MalformedRequest, ProtocolViolation
from actors.protocol.asking import input_required
from actors.protocol.asking.input_required import MAX_BYTES, MAX_REQUESTS, InputRequest, Retry


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("result", "incomplete"),
    [
        ({"resultType": "input_required"}, True),
        ({"resultType": "complete", "content": ["input_required"]}, False),
        ({"content": "input_required"}, False),
        ({"content": []}, False),
        (["input_required"], False),
    ],
)
def test_only_its_type_makes_a_result_incomplete(result: Any, incomplete: bool) -> None:
    assert input_required.is_incomplete(raw(result)) is incomplete


def test_what_a_server_asks_is_read_as_it_was_written() -> None:
    asked = b'{"a b":{"method":"x/y","params":{"n":1.0,"u":"\\u00e9"}},"c":{"method":"z"}}'
    text = b'{"inputRequests":%b,"requestState":"s"}' % asked
    required = input_required.read(msgspec.Raw(text))
    assert bytes(required.requests["a b"].params) == b'{"n":1.0,"u":"\\u00e9"}'
    assert required.requests["c"] == InputRequest("z", msgspec.Raw(b"{}"))
    assert bytes(required.state) == b'"s"'


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"resultType": "input_required"}, "without saying for which"),
        ({"inputRequests": [1]}, "cannot be read"),
        ({"inputRequests": {"a": {}}}, "cannot be read"),
        ({"inputRequests": {str(n): {"method": "m"} for n in range(MAX_REQUESTS + 1)}}, "33 inputs at once"),
        ({"requestState": "x" * MAX_BYTES}, "are the most"),
    ],
)
def test_what_cannot_be_asked_says_why(result: Any, said: str) -> None:
    with pytest.raises(ProtocolViolation, match=said):
        input_required.read(raw(result))


def test_what_is_asked_is_written_as_it_was_read() -> None:
    written = input_required.incomplete_result({"k": InputRequest("m", msgspec.Raw(b'{"n":1e2}'))}, "state")
    assert written == (
        b'{"resultType":"input_required","inputRequests":{"k":{"method":"m","params":{"n":1e2}}},"requestState":"state"}'
    )
    assert input_required.is_incomplete(msgspec.Raw(written))


def test_a_retry_is_passed_on_as_it_came() -> None:
    retry = Retry(msgspec.Raw(b'{"a": {}}'), msgspec.Raw(b'"s"'))
    assert retry.members() == b'"inputResponses":{"a": {}},"requestState":"s"'
    assert Retry(state=msgspec.Raw(b'"s"')).members() == b'"requestState":"s"'
    assert input_required.state_of(retry) == "s"
    assert input_required.answers(retry) == {"a": msgspec.Raw(b"{}")}


def test_a_retry_may_lack_either() -> None:
    assert input_required.answers(Retry(state=msgspec.Raw(b'"s"'))) == {}
    assert input_required.state_of(Retry(msgspec.Raw(b"{}"))) == ""


@pytest.mark.parametrize(
    "responses", [b"[]", b"7", b'{"a":null}', b'{"a":7}', b'{"a":[]}', b'"' + b"x" * MAX_BYTES + b'"']
)
def test_answers_that_cannot_be_any_are_refused(responses: bytes) -> None:
    with pytest.raises(MalformedRequest, match="inputResponses"):
        input_required.answers(Retry(msgspec.Raw(responses)))


def test_a_state_is_a_text() -> None:
    with pytest.raises(MalformedRequest, match="requestState"):
        input_required.state_of(Retry(state=msgspec.Raw(b"7")))
