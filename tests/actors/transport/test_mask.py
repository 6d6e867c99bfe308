"""Secrets in what a server says, in the forms programs print them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.transport.redaction import MIN_CHARACTERS, Mask

SECRET = 's3cr3t/+"key" ü'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        repr(SECRET)[1:-1],
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_secret_is_hidden_in_every_form(written: str) -> None:
    shown = Mask({"KEY": SECRET})(f"<{written}>")
    assert "***" in shown
    assert "s3cr3t" not in shown
    assert written not in shown


def test_parts_that_are_secrets_themselves_are_hidden() -> None:
    mask = Mask({"AUTH": "Bearer abcd-efgh", "B": "postgres://user:hunter22@db/x", "KEY": "line one\nline two"})
    assert mask("abcd-efgh hunter22 [line two]") == "*** *** [***]"


def test_the_longest_secret_wins() -> None:
    assert Mask({"KEY": "abcd", "OLD_KEY": "abcdefgh"})("abcdefgh abcd") == "*** ***"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "true"),
        ("PORT", "3000"),
        ("LOG_LEVEL", "info"),
        ("NODE_ENV", "production"),
        ("HOME", "/home/me"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/service.json"),
        ("AUTH_URL", "https://auth.example.com/realms/main"),
        ("BASE_URL", "http://localhost:3000/api/v1"),
        ("USE_AUTH", "false"),
        ("MAX_TOKENS", "4096"),
        ("AWS_REGION", "eu-central-1"),
        ("MODEL", "claude-3-5-sonnet-20241022"),
        ("KEY", "abc"),
        ("KEY", "  \n "),
        ("EMPTY", ""),
    ],
)
def test_what_operators_need_to_see_is_no_secret(name: str, value: str) -> None:
    mask = Mask({name: value})
    assert mask(f"<{value}> true 3000 /home/me") == f"<{value}> true 3000 /home/me"
    assert mask.longest == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "hunter2"),
        ("apiKey", "hunter2"),
        ("githubToken", "hunter2"),
        ("DB_PASSWORD", "12345"),
        ("DB_PASS", "production"),
        ("header Authorization", "Bearer hunter2"),
        ("header Cookie", "sid=hunter2"),
        ("CLIENT_CREDENTIALS", "me:hunter2"),
        ("ANYTHING", "a8f3k2m9q1z7"),
        ("ANYTHING", "6f1c2c1e-5b1f-4d0a-9a47-0d9f0c7a1b2c"),
        ("ANYTHING", "sk-abcdefghijklmnop-abcdef"),
        ("ANYTHING", "wJalrXUtnFEMIKMDENGbPxRfiCYEXAMPLEKEY"),
        ("SLACK_URL", "https://hooks.example.com/services/T0/B0/x8Kf02mAqPz71LwQ"),
    ],
)
def test_a_secret_is_known_by_its_name_or_by_its_look(name: str, value: str) -> None:
    assert value not in Mask({name: value})(f"it is {value} !")


def test_secrets_on_the_command_line_are_hidden() -> None:
    mask = Mask(
        {}, ["--api-key", "hunter2", "--token=s3same", "--verbose", "postgres://u:open1@db/x", "--port", "8080"]
    )
    assert mask("hunter2 s3same open1 --verbose 8080 db") == "*** *** *** --verbose 8080 db"


def test_a_pattern_is_taken_literally() -> None:
    assert Mask({"KEY": "(a+)+$", "AUTH": "http://[bad"})("aaaa (a+)+$") == "aaaa ***"


def test_joined_masks_hide_what_either_hides_the_longer_one_first() -> None:
    one, two = Mask({"TOKEN": "canary-value"}), Mask({"KEY": "canary-value-that-is-longer", "PASSWORD": "other-canary"})
    both = one.join(two)
    assert both("canary-value-that-is-longer, other-canary, canary-value") == "***, ***, ***"
    assert both.longest == two.longest
    assert (both.hides(one), both.hides(two), both.hides(both)) == (True, True, True)
    assert (one.hides(two), two.hides(one), one.hides(Mask({}))) == (False, False, True)
    assert one("other-canary") == "other-canary"
    assert Mask({}).join(Mask({}))("text") == "text"


@given(st.text("ab", max_size=30), st.text("ab", min_size=4, max_size=12))
def test_a_text_may_end_with_the_beginning_of_a_secret(text: str, secret: str) -> None:
    lengths = range(MIN_CHARACTERS, len(secret))
    expected = max((length for length in lengths if text.endswith(secret[:length])), default=0)
    assert Mask({"KEY": secret}).begun_at_end(text) >= expected, "other forms of it may be longer"
    assert Mask({}).begun_at_end(text) == 0
