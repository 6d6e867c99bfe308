"""Addresses as people have them, read to a door."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.bridge.address import DEFAULT_URL, read_address


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (DEFAULT_URL, "http://127.0.0.1:3001/mcp"),
        ("127.0.0.1:3001", "http://127.0.0.1:3001/mcp"),
        (" localhost:4000/mcp/ ", "http://localhost:4000/mcp"),
        ("ws://[::1]:3001/ws", "http://[::1]:3001/ws"),
        ("https://mcp.example.com", "https://mcp.example.com:443/mcp"),
        ("WSS://mcp.example.com/mcp/servers/git", "https://mcp.example.com:443/mcp/servers/git"),
        ("http://127.0.0.1:3001/api/status", "http://127.0.0.1:3001/mcp"),
        ("http://127.0.0.1:3001/mcp?profile=work", "http://127.0.0.1:3001/mcp?..."),
    ],
)
def test_an_address_is_read_to_a_door(text: str, shown: str) -> None:
    assert str(read_address(text)) == shown


def test_what_follows_the_question_mark_is_sent_and_not_shown() -> None:
    address = read_address("http://127.0.0.1:3001/mcp?profile=work")
    assert address.target == "/mcp?profile=work"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("ftp://127.0.0.1", "begins with http://"),
        ("http://me:hidden@127.0.0.1/mcp", "no user name"),
        ("http://:hidden@127.0.0.1/mcp", "no user name"),
        ("http://", "has a host"),
        ("nonsense", "is HOST:PORT, or begins with http://"),
        ("http://127.0.0.1:hidden/", "the port a number"),
        ("http://127.0.0.1:99999/", "the port a number"),
        ("http://[::1/", "the host is"),
        ("http://127.0.0.1:1/a b", "no blanks"),
        ("http://127.0.0.1:1/é", "no blanks"),
    ],
)
def test_what_is_no_address_is_refused_without_being_shown(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong) as raised:
        read_address(text)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("a.b", False),
    ],
)
def test_the_loopback_interface_is_here(host: str, is_here: bool) -> None:
    assert read_address(f"http://{host}:1").is_here is is_here


@given(st.text())
def test_any_text_is_an_address_or_is_refused(text: str) -> None:
    try:
        address = read_address(text)
    except ValueError:
        return
    again = read_address(f"{'https' if address.secure else 'http'}://{address.authority}{address.target}")
    assert again == address
