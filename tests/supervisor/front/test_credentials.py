"""What a request shows of who sends it."""

from __future__ import annotations

import pytest

from supervisor.front.credentials import MAX_BYTES, Credential, read_credential
from supervisor.front.edge.fields import fields_of

NAME = b"authorization"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], Credential(missing=True)),
        ([(NAME, b"Bearer abc")], Credential("abc")),
        ([(NAME, b"bearer   abc ")], Credential("abc")),
        ([(NAME, b"BEARER a b")], Credential("a b")),
        ([(NAME, b"Bearer ")], Credential()),
        ([(NAME, b"Bearer")], Credential()),
        ([(NAME, b"")], Credential()),
        ([(NAME, b"Basic YTpi")], Credential()),
        ([(NAME, b"abc")], Credential()),
        ([(NAME, b"Bearer \xc3\xa9")], Credential()),
        ([(NAME, b"Bearer " + b"x" * MAX_BYTES)], Credential("x" * MAX_BYTES)),
        ([(NAME, b"Bearer " + b"x" * (MAX_BYTES + 1))], Credential()),
        ([(NAME, b"Bearer abc"), (NAME, b"Bearer abc")], Credential()),
        ([(b"proxy-authorization", b"Bearer abc")], Credential(missing=True)),
    ],
)
def test_one_bearer_token_is_shown_or_none(lines: list[tuple[bytes, bytes]], expected: Credential) -> None:
    assert read_credential(fields_of(lines)) == expected
