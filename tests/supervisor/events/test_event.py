"""Moments are written as every program reads them, also those that no calendar has."""

from __future__ import annotations

import math

import pytest

from supervisor.events.event import timestamp


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1_800_000_000.1239, "2027-01-15T08:00:00.123Z"),
        (1e300, "1970-01-01T00:00:00.000Z"),
        (math.nan, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_a_moment_is_in_utc(moment: float, text: str) -> None:
    assert timestamp(moment) == text
