"""Nobody gets more than was wanted, nor more than another one who wants more; what is wanted and is there is given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.kit.fairness.quota import divide


@given(st.integers(0, 1000), st.lists(st.integers(0, 400), min_size=1, max_size=12))
def test_a_share_is_fair(amount: int, wanted: list[int]) -> None:
    shares = divide(amount, wanted)
    assert all(0 <= share <= want for share, want in zip(shares, wanted, strict=True))
    assert sum(shares) == min(amount, sum(wanted))
    least = min((share for share, want in zip(shares, wanted, strict=True) if share < want), default=max(shares))
    assert max(shares) - least <= 1, "whoever got less than was wanted got as much as anybody"


def test_what_one_does_not_want_goes_to_the_others() -> None:
    assert divide(100, [10, 200, 200]) == [10, 45, 45]
    assert divide(100, [200]) == [100]
