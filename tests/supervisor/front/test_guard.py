"""Who may talk to the front, decided from headers alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.front.edge.fields import fields_of
from supervisor.front.guard import MAX_KNOWN, Guard, Refusal

LOCAL = Guard("127.0.0.1", [3001])


def refused(guard: Guard, *headers: tuple[str, str], target: bytes = b"/mcp") -> int | None:
    verdict = guard.check(fields_of((name.encode(), value.encode("latin-1")) for name, value in headers), target)
    return None if verdict is None else verdict.status


@pytest.mark.parametrize(
    "host", ["127.0.0.1:3001", "localhost:3001", "LocalHost", "localhost", "[::1]:3001", "127.9.9.9", "localhost:9"]
)
def test_loopback_names_are_ours_with_any_port(host: str) -> None:
    assert refused(LOCAL, ("host", host)) is None


@pytest.mark.case("I21")
@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.com", "localhost.evil.com", "localhost.", "192.168.1.4:3001", "[::2]", "0.0.0.0"],
)
def test_a_foreign_host_is_misdirected(host: str) -> None:
    assert refused(LOCAL, ("host", host)) == 421


@pytest.mark.case("C07", "I14")
@pytest.mark.parametrize(
    "host",
    ["x/?", "x#", "a b", "", ":80", "localhost:", "localhost:99999", "localhost:-1", "u@localhost", "loc\xe4l", "[::1"],
)
def test_a_malformed_host_is_a_bad_request(host: str) -> None:
    assert refused(LOCAL, ("host", host)) == 400


@pytest.mark.case("C07")
def test_a_missing_host_is_a_bad_request() -> None:
    assert refused(LOCAL) == 400


@pytest.mark.case("C07")
def test_two_hosts_are_a_bad_request_even_if_both_are_ours() -> None:
    assert refused(LOCAL, ("host", "localhost"), ("host", "localhost")) == 400


@pytest.mark.parametrize("target", [b"http://localhost/mcp", b"*", b"localhost:3001", b""])
def test_a_target_that_is_no_path_is_a_bad_request(target: bytes) -> None:
    assert refused(LOCAL, ("host", "localhost"), target=target) == 400


def test_a_host_that_was_found_good_excuses_nothing_else() -> None:
    guard = Guard("127.0.0.1", [3001])
    for port in range(2 * MAX_KNOWN + 1):  # some of them are forgotten on the way
        host = ("host", f"localhost:{port}")
        for _ in range(2):
            assert refused(guard, host) is None
            assert refused(guard, host, ("host", "evil.example")) == 400
            assert refused(guard, host, ("origin", "https://evil.example")) == 403
            assert refused(guard, host, target=b"*") == 400
            assert refused(guard, ("host", f"evil.example:{port}")) == 421
    assert len(guard._known) <= MAX_KNOWN


@pytest.mark.parametrize("origin", ["http://localhost:3001", "http://127.0.0.1:3001", "http://[::1]:3001"])
def test_a_page_of_our_own_may_call(origin: str) -> None:
    assert refused(LOCAL, ("host", "localhost:3001"), ("origin", origin)) is None


def test_a_page_seen_through_a_forwarded_port_may_call() -> None:
    assert refused(LOCAL, ("host", "localhost:9000"), ("origin", "http://localhost:9000")) is None


@pytest.mark.case("C06")
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil.com",
        "http://localhost:5173",
        "http://localhost:3001/",
        "http://user@localhost:3001",
        "file://localhost:3001",
        "ws://localhost:3001",
        "",
        "http://localhost:3001, http://localhost:3001",
    ],
)
def test_any_other_page_is_forbidden(origin: str) -> None:
    assert refused(LOCAL, ("host", "localhost:3001"), ("origin", origin)) == 403


def test_two_origins_are_forbidden() -> None:
    ours = ("origin", "http://localhost:3001")
    assert refused(LOCAL, ("host", "localhost:3001"), ours, ours) == 403


def test_an_allowed_origin_may_call() -> None:
    guard = Guard("127.0.0.1", [3001], allowed_origins=["https://Tools.example", "http://localhost:6274"])
    for origin in ("https://tools.example", "http://localhost:6274"):
        assert refused(guard, ("host", "localhost:3001"), ("origin", origin)) is None
    for origin in ("http://tools.example", "https://tools.example:8443"):
        assert refused(guard, ("host", "localhost:3001"), ("origin", origin)) == 403


def test_an_allowed_host_is_ours_and_so_is_its_page() -> None:
    guard = Guard("0.0.0.0", [3001], allowed_hosts=["mcp.example", "[fd00::1]:81"])
    assert refused(guard, ("host", "mcp.example:3001")) is None
    assert refused(guard, ("host", "MCP.example"), ("origin", "https://mcp.example")) is None
    assert refused(guard, ("host", "[fd00::1]:81")) is None
    assert refused(guard, ("host", "[fd00::1]")) == 421
    assert refused(guard, ("host", "localhost:3001")) is None


def test_an_address_that_is_not_loopback_answers_to_itself_only() -> None:
    guard = Guard("192.168.1.4", [3001])
    assert refused(guard, ("host", "192.168.1.4:3001")) is None
    assert refused(guard, ("host", "192.168.1.4:3002")) == 421
    assert refused(guard, ("host", "localhost:3001")) == 421


def test_a_wildcard_address_does_not_answer_to_every_address() -> None:
    assert refused(Guard("::", [3001]), ("host", "192.168.1.4:3001")) == 421


def test_a_refusal_says_which_setting_would_change_it() -> None:
    found = LOCAL.check(fields_of([(b"host", b"mcp.example")]))
    assert isinstance(found, Refusal)
    body = json.loads(found.body())
    assert body["id"] is None
    assert "mcp.example" in body["error"]["message"]
    assert body["error"]["data"] == {"type": "host_refused", "setting": "allowed_hosts"}


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_header_makes_the_guard_raise_or_repeat_markup(host: bytes, origin: bytes) -> None:
    for headers in ([(b"host", host)], [(b"host", b"localhost"), (b"origin", origin)]):
        found = LOCAL.check(fields_of(headers))
        if found is not None:
            body = found.body()
            assert body.isascii()
            assert b"<" not in body
            json.loads(body)
