"""The text of a token: nothing else passes for one, and it is found by its digest alone."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.identity.secrets import (
    ID_CHARS,
    PASS_S,
    PREFIX,
    digest_of,
    endpoint,
    id_of,
    is_pass,
    new_token,
    sign_pass,
    token_of,
)

SECRETS = st.integers(min_value=0, max_value=2**256 - 1)


@given(SECRETS, SECRETS)
def test_tokens_are_as_different_as_their_secrets(one: int, other: int) -> None:
    assert (token_of(one) == token_of(other)) == (one == other)


@pytest.mark.case("I10")
@given(SECRETS)
def test_a_token_has_one_form_and_is_kept_as_its_digest(secret: int) -> None:
    token = token_of(secret)
    assert re.fullmatch(r"mcpv_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}", token)
    digest = digest_of(token)
    assert digest == hashlib.sha256(token.encode()).digest()
    assert id_of(digest) == digest.hex()[:ID_CHARS]


@given(SECRETS, st.integers(min_value=0, max_value=53), st.sampled_from("0Aaz_ \n"))
def test_a_token_with_another_character_is_none(secret: int, place: int, character: str) -> None:
    token = token_of(secret)
    mistyped = token[:place] + character + token[place + 1 :]
    assert (digest_of(mistyped) is None) == (mistyped != token)


@pytest.mark.parametrize(
    "text", ["", PREFIX, "mcpv_x", f"{token_of(1)} ", f" {token_of(1)}", token_of(1).upper(), "é" * 55]
)
def test_what_is_no_token_has_no_digest(text: str) -> None:
    assert digest_of(text) is None


def test_a_new_token_is_a_new_one() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert all(digest_of(token) for token in made)


KEY, PLACE, NOW = b"k" * 32, endpoint(("127.0.0.1", 3001)), 1_800_000_000.0


@given(
    st.floats(min_value=-PASS_S, max_value=PASS_S - 1),
    st.sampled_from([("127.0.0.1", 3001), ("::ffff:127.0.0.1", 80, 0, 0)]),
)
def test_a_pass_is_good_about_its_moment(later: float, place: tuple[Any, ...]) -> None:
    end = endpoint((place[0].removeprefix("::ffff:"), place[1]))
    assert is_pass(sign_pass(KEY, endpoint(place), NOW), KEY, end, NOW + later)


@given(st.integers(min_value=0, max_value=81), st.sampled_from("0a_ \n"))
def test_a_pass_of_another_key_place_or_moment_is_none(place: int, character: str) -> None:
    good = sign_pass(KEY, PLACE, NOW)
    assert not is_pass(good, b"j" * 32, PLACE, NOW)
    for other in (("127.0.0.1", 3002), ("127.0.0.2", 3001), ("::1", 3001, 0, 0)):
        assert not is_pass(good, KEY, endpoint(other), NOW)
    assert not is_pass(good, KEY, PLACE, NOW + PASS_S + 1)
    assert not is_pass(good, KEY, PLACE, NOW - PASS_S - 1)
    changed = good[:place] + character + good[place + 1 :]
    assert is_pass(changed, KEY, PLACE, NOW) == (changed == good)
    assert digest_of(good) is None
    assert KEY.hex() not in good
