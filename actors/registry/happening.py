"""What is told in the event feed."""

from __future__ import annotations

from typing import Any

import msgspec


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the event feed. `time` is unix seconds."""

    type: str
    time: float
    server: str | None = None
    revision: int | None = None
    data: dict[str, Any] = {}
