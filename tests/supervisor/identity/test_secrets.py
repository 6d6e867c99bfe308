"""The text of a token: nothing else passes for one, and it is found by its digest alone."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.identity.tokens import (
    ID_CHARS,
    PREFIX,
    digest_of,
    id_of,
    new_token,
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
