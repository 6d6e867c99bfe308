"""Secrets that nobody configured, in what a server prints: those that give themselves away, and what is none."""

from __future__ import annotations

import time

import pytest

from actors.transport.stderr_tail import StderrTail
from actors.transport.telltale import MAX_PLACES, without_secrets

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7a\n" * 3 + "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("printed", "secret"),
    [
        ("Authorization: Bearer sk-live-0123456789abcdef", "sk-live"),
        ("'authorization': 'Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("using bearer a1b2c3d4e5f6", "a1b2c3d4e5f6"),
        ("Set-Cookie: sid=abc; Path=/", "sid=abc"),
        ("key sk-ant-api03-abcdefghijklmnop is wrong", "abcdefghijklmnop"),
        ("ghp_" + "a1B2" * 9, "a1B2"),
        ("github_pat_" + "11ABCDE_" * 5, "11ABCDE"),
        ("glpat-" + "x1" * 10, "x1x1"),
        ("xoxb-123456789012-abcdefGHIJ", "abcdefGHIJ"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("AIza" + "Sy0" * 12, "Sy0Sy0"),
        (f"got {JWT}", "eyJ"),
        (PEM, "MIIEow"),
        (PEM.partition("-----END")[0], "MIIEow"),
        ("MIIEowIBAAKCAQEA7aabcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ\n-----END", "MIIEow"),
        ("cannot reach postgres://me:op3n-sesame@db:5432/x", "op3n-sesame"),
        ("GET /?token=abcdef&x=1", "abcdef"),
        ("GET /?key=a1b2c3d4e5", "a1b2c3d4e5"),
        ("password=x", "=x"),
        ("DB_PASSWORD: corr3ct-horse", "corr3ct"),
        ('{"client_secret": "a1b2c3d4"}', "a1b2c3d4"),
        ("npx server --api-key hunter2", "hunter2"),
    ],
)
def test_what_gives_itself_away_is_hidden(printed: str, secret: str) -> None:
    shown = without_secrets(f"before {printed} after" if "\n" not in printed else printed)
    assert secret not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "printed",
    [
        "Unexpected token } in JSON at position 4",
        "Invalid token: expired",
        "basic authentication is required, or a bearer token",
        "key=user_id max_tokens=4096 tokens: 12",
        "password: required",
        "token=null",
        "listening on http://localhost:3000/mcp?x=1",
        "see https://example.com:8080/docs",
        "Missing credentials: set GITHUB_TOKEN",
        "import sk-learn; a cookie jar; keyboard=us",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "",
    ],
)
def test_what_is_no_secret_is_shown(printed: str) -> None:
    assert without_secrets(printed) == printed


def test_a_debug_page_shows_no_token_that_a_server_printed_of_its_own() -> None:
    tail = StderrTail(256 * 1024)
    tail.feed(b"request failed: {'Authorization': 'Bearer sk-proj-abcdefghijklmnopqrst'}\n")
    assert tail.text(20) == "request failed: {'Authorization': 'Bearer ***'}"


def test_a_secret_where_a_line_is_cut_does_not_show_its_beginning() -> None:
    tail = StderrTail(256 * 1024)
    tail.feed(b"x" * 980 + b" ghp_" + b"a1B2" * 9 + b"\n")
    assert "ghp_" not in tail.text(1)


def test_a_text_that_is_nothing_but_hints_is_hidden_from_some_place_on() -> None:
    shown = without_secrets("token " * (MAX_PLACES + 5) + "the end")
    assert shown == "token " * MAX_PLACES + "***"


@pytest.mark.parametrize(
    "piece",
    [
        "token: ",
        "token:a",
        "key=",
        "bearer ",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "eyJaaaaaaaa.",
        "sk-",
        "--a-",
    ],
)
def test_a_hostile_text_takes_no_longer_than_a_few_passes(piece: str) -> None:
    short, long = (piece * (size // len(piece)) for size in (25_000, 400_000))
    assert _seconds(long) < 60 * _seconds(short) + 0.05


def _seconds(text: str) -> float:
    begun = time.process_time()
    without_secrets(text)
    return time.process_time() - begun
