"""Secrets that nobody configured, in what a server prints: those that give themselves away, and what is none."""

from __future__ import annotations

import time
from itertools import product

import pytest

from actors.transport.redaction import MAX_PLACES, KeyLines, without_secrets
from actors.transport.side_output import Tail

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
        ("fieldghp_" + "a1B2" * 9, "a1B2"),
        ("GITHUB_ghp_" + "a1B2" * 9, "a1B2"),
        ("MY_sk-ant-api03-abcdefghijklmnop", "abcdefghijklmnop"),
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
        ("npx server --api-key hunter", "hunter"),
        ("npx server --token flagpole", "flagpole"),
        ("npx server --token flag.x", "flag.x"),
        ("npx server --token options/7", "options/7"),
        ("npx server --token  flag-1", "flag-1"),
    ],
)
def test_what_gives_itself_away_is_hidden(printed: str, secret: str) -> None:
    shown = without_secrets(f"before {printed} after" if "\n" not in printed else printed)
    assert secret not in shown
    assert "***" in shown


LINE = "MIIEowIBAAKCAQEA7aabcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"
OPENSSH_LINE = LINE + "b3Bl+/"


@pytest.mark.parametrize("last", ["Qx9d", "kT3uAw==", "a" + LINE[:62]])
def test_of_a_key_whose_beginning_is_out_of_sight_nothing_is_shown(last: str) -> None:
    for full, count, end in product((LINE, OPENSSH_LINE), range(4), ("\n", "\r\n")):
        shown = without_secrets(end.join([*[full] * count, last, "-----END RSA PRIVATE KEY-----", "next"]))
        assert shown.split("\n")[: count + 1] == ["***"] * (count + 1), (full, count, end)
        assert shown.endswith("next"), (full, count, end)
        cut = without_secrets(end.join([*[full] * (count + 1), last]))
        assert cut.split("\n") == ["***"] * (count + 2), (full, count, end)


def test_lines_of_digests_are_shown_with_what_follows_them() -> None:
    printed = "\n".join(["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"] * 3 + ["done"])
    assert without_secrets(printed) == printed


def test_lines_that_come_one_by_one_are_known_to_be_in_a_key() -> None:
    lines = ["start", *PEM.split("\n"), "Ready", "-----BEGIN PUBLIC KEY-----", "MIIB"]
    keys = KeyLines()
    assert [keys.inside(line.encode()) for line in lines] == [
        False, False, True, True, True, False, False, False, False,
    ]  # fmt: skip
    encrypted = ["-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "MIIE", "it goes on"]
    assert [keys.inside(line.encode()) for line in encrypted] == [False, True, True, False]


def test_words_do_not_stay_hidden_for_ever_where_a_key_never_ends() -> None:
    keys = KeyLines()
    hidden = [keys.inside(line) for line in [b"-----BEGIN PRIVATE KEY-----", *[b"word"] * 1000]]
    assert 200 < sum(hidden) < 300
    assert not any(hidden[300:])


@pytest.mark.parametrize(
    "printed",
    [
        "Unexpected token } in JSON at position 4",
        "Invalid token: expired",
        "basic authentication is required, or a bearer token",
        "key=user_id max_tokens=4096 tokens: 12",
        "password: required",
        "use the --access-token flag",
        "the --token option, or (with the --api-key argument) another one; no --password switches.",
        "token=null",
        "password=",
        "password=*** token: ***",
        "-----BEGIN CERTIFICATE-----",
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


def test_a_secret_where_a_line_is_cut_does_not_show_its_beginning() -> None:
    tail = Tail()
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
        "aB" * 32 + "\n",
    ],
)
def test_a_hostile_text_takes_no_longer_than_a_few_passes(piece: str) -> None:
    short, long = (piece * (size // len(piece)) for size in (25_000, 400_000))
    assert min(_seconds(long) for _ in range(3)) < 60 * _seconds(short) + 0.05


def _seconds(text: str) -> float:
    begun = time.process_time()
    without_secrets(text)
    return time.process_time() - begun
