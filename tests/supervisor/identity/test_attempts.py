"""Guessing is slow, for whoever guesses: a few attempts at once, then one in a while, and never all that there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.identity import requester
from supervisor.identity.requester import BURST, EVERY_S, FailedAttempts

HERE = "192.0.2.1"


def test_a_few_may_fail_at_once_then_one_in_a_while() -> None:
    attempts = FailedAttempts()
    assert [attempts.fail(HERE, 0.0) for _ in range(BURST)] == [0.0] * BURST
    assert attempts.fail(HERE, 0.0) == EVERY_S
    assert attempts.fail(HERE, 0.0) == EVERY_S, "whoever goes on waits no longer than whoever stops"
    assert attempts.fail(HERE, 2 * EVERY_S) == 0.0
    assert attempts.total == BURST + 3


def test_all_is_forgiven_after_a_time() -> None:
    attempts = FailedAttempts()
    for _ in range(100):
        attempts.fail(HERE, 0.0)
    assert [attempts.fail(HERE, (BURST + 1) * EVERY_S) for _ in range(BURST)] == [0.0] * BURST


@given(st.lists(st.floats(min_value=0, max_value=20), max_size=200))
def test_no_more_are_let_by_than_there_is_time_for(pauses: list[float]) -> None:
    attempts, now, answered = FailedAttempts(), 0.0, 0
    for pause in pauses:
        now += pause
        answered += attempts.fail(HERE, now) == 0.0
    assert answered <= BURST + now / EVERY_S + 1


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (HERE, "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", HERE, True),
        ("fe80::1%eth0", "fe80::2", True),
        ("", "no address", True),
    ],
)
def test_an_address_is_counted_by_what_its_owner_can_have(one: str, other: str, alike: bool) -> None:
    attempts = FailedAttempts()
    for _ in range(BURST):
        attempts.fail(one, 0.0)
    assert (attempts.fail(other, 0.0) > 0) == alike


def test_so_many_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requester, "MAX_ADDRESSES", 3)
    attempts = FailedAttempts()
    for _ in range(BURST):
        attempts.fail(HERE, 0.0)
    for number in range(3):
        attempts.fail(f"198.51.100.{number}", 0.0)
    assert attempts.fail(HERE, 0.0) == 0.0
