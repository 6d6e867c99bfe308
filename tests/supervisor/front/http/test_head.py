"""What the headers of a request say before its body."""

from __future__ import annotations

import pytest

from supervisor.front.edge.fields import fields_of
from supervisor.front.http.heads import Head, header_text, read_accept, scan


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, (True, False, False)),
        (b"", (True, False, False)),
        (b"application/json", (True, False, False)),
        (b"*/*", (True, True, False)),
        (b"application/*", (True, False, False)),
        (b"text/*", (False, True, True)),
        (b"text/event-stream", (False, True, True)),
        (b"Application/JSON; charset=utf-8, text/event-stream;q=0.5", (True, True, True)),
        (b"application/json, text/event-stream;q=0", (True, False, False)),
        (b"application/json;q=0.0", (False, False, False)),
        (b"text/html", (False, False, False)),
    ],
)
def test_accept_is_read_leniently(accept: bytes | None, expected: tuple[bool, bool, bool]) -> None:
    accepts = read_accept(accept)
    assert (accepts.json, accepts.stream, accepts.stream_named) == expected


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (b"application/json", True),
        (b"Application/JSON;charset=utf-8", True),
        (b"application/json-patch+json", False),
        (b"text/plain", False),
        (b"", False),
        (None, False),
    ],
)
def test_only_json_bodies_are_json(value: bytes | None, json: bool) -> None:
    assert Head(content_type=value).is_json is json


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"plain", "plain"),
        (b"SGVsbG8=", "SGVsbG8="),
        (b"=?base64?SGVsbG8=?=", "Hello"),
        (b"=?base64??=", ""),
        (b"=?base64?SGVsbG8?=", None),
        (b"=?base64?SGVs!!!bG8=?=", None),
        (b"=?base64?SGVsbG9=?=", None),
        (b"=?base64?/w==?=", None),
        (b"=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
    ],
)
def test_wrapped_header_values_must_be_canonical(value: bytes, text: str | None) -> None:
    assert header_text(value) == text


def test_several_accept_lines_are_one_list() -> None:
    found = scan(fields_of([(b"accept", b"application/json"), (b"accept", b"text/event-stream")]))
    assert found.accepts.stream_named
