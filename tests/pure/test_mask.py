"""Secrets in what a server says, in the forms programs print them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from actors.transport.mask import Mask

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
    mask = Mask({"A": "Bearer abcd-efgh", "B": "postgres://user:hunter22@db/x", "C": "line one\nline two"})
    assert mask("abcd-efgh hunter22 [line two]") == "*** *** [***]"


def test_the_longest_secret_wins() -> None:
    assert Mask({"A": "abcd", "B": "abcdefgh"})("abcdefgh abcd") == "*** ***"


def test_short_values_and_the_path_are_shown() -> None:
    mask = Mask({"A": "abc", "B": "", "C": "  \n ", "PATH": "/usr/bin"})
    assert mask("abc /usr/bin") == "abc /usr/bin"
    assert mask.longest == 0


def test_a_pattern_is_taken_literally() -> None:
    assert Mask({"A": "(a+)+$", "B": "http://[bad"})("aaaa (a+)+$ http://[bad") == "aaaa *** ***"
