"""What a request shows of who sends it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.front.admission import MAX_BYTES, Credential, read_credential, read_ticket
from supervisor.front.edge.fields import fields_of

NAME = b"authorization"


@pytest.mark.case("I11")
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


@pytest.mark.case("W09")
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (b"", Credential(missing=True)),
        (b"x=1", Credential(missing=True)),
        (b"token=abc", Credential("abc")),
        (b"a=b&token=abc&c", Credential("abc")),
        (b"token=a%62c", Credential("abc")),
        (b"token=", Credential()),
        (b"token", Credential()),
        (b"token=abc&token=abc", Credential()),
        (b"token=abc&token=", Credential()),
        (b"token=%C3%A9", Credential()),
        (b"token=%FF", Credential()),
        (b"token=\xff", Credential()),
        (b"token=" + b"x" * (MAX_BYTES + 1), Credential()),
        (b"a&" * 30 + b"token=abc", Credential()),
    ],
)
def test_the_query_of_a_personal_address_shows_one_token_or_none(query: bytes, shown: Credential) -> None:
    assert read_credential(fields_of([]), query) == shown
    beside = read_credential(fields_of([(NAME, b"Bearer other")]), query)
    assert beside == (Credential("other") if shown.missing else Credential())


@given(query=st.binary(max_size=200), line=st.none() | st.binary(max_size=50))
def test_no_query_is_worse_than_a_wrong_token(query: bytes, line: bytes | None) -> None:
    read_credential(fields_of([] if line is None else [(NAME, line)]), query)


OFFERED = b"sec-websocket-protocol"


@pytest.mark.case("W09")
@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([(OFFERED, b"mcp")], Credential(missing=True)),
        ([(OFFERED, b"mcp, mcp.auth.abc")], Credential("abc")),
        ([(OFFERED, b"mcp.auth.abc,mcp")], Credential("abc")),
        ([(OFFERED, b"mcp"), (OFFERED, b"mcp.auth.a.b")], Credential("a.b")),
        ([(OFFERED, b"mcp.auth.")], Credential()),
        ([(OFFERED, b"mcp.auth.\xc3\xa9")], Credential()),
        ([(OFFERED, b"mcp.auth." + b"x" * (MAX_BYTES + 1))], Credential()),
        ([(OFFERED, b"mcp.auth.abc, mcp.auth.abc")], Credential()),
        ([(OFFERED, b"mcp.auth.abc"), (NAME, b"Bearer abc")], Credential()),
    ],
)
def test_a_handshake_shows_a_token_as_a_subprotocol(lines: list[tuple[bytes, bytes]], shown: Credential) -> None:
    fields = fields_of(lines)
    assert read_credential(fields, is_websocket=True) == shown
    assert read_credential(fields, b"profile=x", is_websocket=True) == shown
    named = any(b"mcp.auth." in line for _, line in lines)
    assert read_credential(fields, b"token=abc", is_websocket=True) == Credential("" if named else "abc")
    if NAME not in fields.lines:
        assert read_credential(fields) == Credential(missing=True), "no handshake of a WebSocket"


@pytest.mark.parametrize(
    ("target", "ticket"),
    [
        (b"/ws", ""),
        (b"/ws?ticket=abc", "abc"),
        (b"/ws?profile=x&ticket=abc", "abc"),
        (b"/ws?ticket=", ""),
        (b"/ws?ticket=abc&ticket=abc", ""),
        (b"/ws?ticket=\xff", ""),
    ],
)
def test_a_handshake_has_one_ticket_or_none(target: bytes, ticket: str) -> None:
    assert read_ticket(target) == ticket
