"""What the form for a token may ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import InvalidArguments
from supervisor.front.pages.tokens import MAX_EXPIRES_S, NewToken
from supervisor.front.ui.people import MAX_DAYS, _new_token

FORM = {"token": "of the page", "user": " ben ", "team": "", "role": "auditor", "label": "laptop", "server": "desk"}


@given(st.integers(1, MAX_DAYS))
def test_days_become_seconds_and_what_is_empty_is_left_out(days: int) -> None:
    wanted = NewToken(user="ben", role="auditor", label="laptop", expires_in_s=days * 86_400.0)
    assert _new_token({**FORM, "days": str(days)}) == wanted
    assert (wanted.expires_in_s or 0) <= MAX_EXPIRES_S


def test_without_days_it_lasts_for_ever() -> None:
    assert _new_token({**FORM, "days": ""}).expires_in_s is None
    assert _new_token({"user": "ben"}) == NewToken(user="ben")


@pytest.mark.parametrize("days", ["0", "-1", "3661", "9" * 5000, "1.5", "x", "٣", "1e3"])
def test_other_days_are_refused(days: str) -> None:
    with pytest.raises(InvalidArguments, match="1 to 3660 days"):
        _new_token({**FORM, "days": days})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"role": "king"}, "role: is none of the values that it can have"),
        ({"user": ""}, 'the key "user" is missing'),
        ({"label": "x" * 201}, "label: must be a string of at most"),
    ],
)
def test_a_form_that_no_page_has_is_refused(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArguments, match=f"the form cannot be used: {said}"):
        _new_token({**FORM, **wrong})
