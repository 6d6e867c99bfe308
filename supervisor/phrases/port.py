"""What is said of the model that is asked for sentences."""

from __future__ import annotations

import msgspec


class DescribingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How it goes on. `waiting`: definitions that are still to be asked for; `asked`: those of the last 24 hours."""

    model: str
    waiting: int
    asked: int
    tools_per_day: int
    failures: int
    last_failure: str
