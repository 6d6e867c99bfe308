"""What the head of a request says of its message, and what is taken from the head of an answer."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.wire.mirrors import Mirror
from actors.protocol.wire.peer import Outgoing
from actors.transport.http.head import (
    MAX_MIRRORED_CHARS,
    answers,
    field_value,
    head_of,
    head_of_session,
    media_type,
    mirrored_fields,
    retry_after_s,
    session_of,
)


def message(version: str, name: str = "") -> Outgoing:
    return Outgoing(parts=(b"{}",), method="tools/call", id=b'"a-1"', name=name, version=version)


def test_a_modern_request_says_what_it_is_about() -> None:
    head = head_of(message("2026-07-28", "echo"), "")
    assert head == {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "echo",
    }
    assert "mcp-name" not in head_of(message("2026-07-28"), "")


def test_a_legacy_request_says_its_session_and_since_when_there_is_a_word_for_it_its_version() -> None:
    assert head_of_session("2025-11-25", "s") == {"mcp-session-id": "s", "mcp-protocol-version": "2025-11-25"}
    assert head_of_session("2025-03-26", "s") == {"mcp-session-id": "s"}
    assert head_of_session("", "") == {}
    assert "mcp-method" not in head_of(message("2025-11-25"), "s")


@pytest.mark.case("H22")
@given(st.text(max_size=20))
def test_a_name_arrives_as_it_is_or_encoded_and_never_as_two_fields(text: str) -> None:
    value = field_value(text)
    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()
    if value != text:
        assert base64.b64decode(value.removeprefix("=?base64?").removesuffix("?=")).decode() == text


@pytest.mark.case("H22")
def test_mirrored_arguments_are_no_fields_of_their_own_and_fit_into_a_head() -> None:
    mirrors = (Mirror("mcp-param-a", ("a",)), Mirror("mcp-param-b", ("b",)))
    call = Outgoing(parts=(), method="tools/call", version="2026-07-28", mirrors=mirrors)

    def fields(**arguments: object) -> dict[str, str] | None:
        return mirrored_fields(call, json.dumps({"params": {"arguments": arguments}}).encode())

    assert fields(a="a\r\nX-Evil: 1", b="us west") == {
        "mcp-param-a": "=?base64?YQ0KWC1FdmlsOiAx?=",
        "mcp-param-b": "us west",
    }
    assert fields(a="x" * (MAX_MIRRORED_CHARS - 1), b=1) is not None
    assert fields(a="x" * (MAX_MIRRORED_CHARS - 1), b=10) is None
    assert fields(a="é" * (MAX_MIRRORED_CHARS // 2)) is None


@pytest.mark.parametrize("text", ["a\r\nX-Evil: 1", " a", "é", "=?base64?eA==?=", ""])
def test_what_would_not_arrive_as_it_is_is_encoded(text: str) -> None:
    assert field_value(text).startswith("=?base64?")


@pytest.mark.case("H17")
@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1", "abc-1"), (None, ""), ("", ""), ("a b", ""), ("evil\tid", ""), ("x" * 1025, ""), ("é", "")],
)
def test_a_session_that_may_not_be_sent_back_is_none(given: str | None, kept: str) -> None:
    assert session_of(given) == kept


def test_a_media_type_is_without_parameters_and_case() -> None:
    assert media_type("Application/JSON; charset=utf-8") == "application/json"
    assert media_type("") == ""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("3600", 300.0), ("-1", None), ("Wed, 21 Oct 2026", None), ("²", None), (None, None)],
)
def test_a_server_is_not_waited_for_longer_than_five_minutes(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value) == seconds


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        (b'{"jsonrpc":"2.0","id":71,"result":{}}', True),
        (b'{"jsonrpc":"2.0","id":"71","result":{}}', True),
        (b'{"jsonrpc":"2.0","id":72,"result":{"id":71}}', False),
        (b'{"jsonrpc":"2.0","method":"ping","id":71}', False),
        (b'{"id":71', False),
        (b'{"id":"b"}', False),
    ],
)
def test_an_answer_is_known_by_its_id(text: bytes, answered: bool) -> None:
    assert answers(text, b"71") is answered
