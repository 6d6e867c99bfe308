"""What is known of how a client treats the tools of a server. Pure: the rows are in `table.py`.

A fact is there only if the client's own documentation or source says it, or if the client was seen to do it. None is a
state of its own: nothing says it. Whoever decides by facts takes what does least harm then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")

Searching = Literal["always", "many", "never"]
"""When a client keeps the definitions of tools from its model and searches them itself."""
SideBySide = Literal["all", "read-only", "none"]
"""Which calls of one turn a client runs at the same time; `read-only`: those of tools with `readOnlyHint`."""
Above = Literal["left out", "warned of", "grouped"]
"""What becomes of tools above a limit."""


class Fact(msgspec.Struct, Generic[T], frozen=True):
    """A fact, and where it is from: an address, or the version that was seen to do it."""

    value: T
    source: str


class Limit(msgspec.Struct, frozen=True):
    """How many tools a client bears at once, and what becomes of more."""

    tools: int
    above: Above


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one client; None where nothing says it."""

    searches: Fact[Searching] | None = None
    heeds_hint: Fact[bool] | None = None
    """Whether it keeps a tool loaded that has `anthropic/alwaysLoad` in its `_meta`."""
    keeps_loaded: Fact[Mapping[str, Any]] | None = None
    """What in its own entry of a server keeps the tools of that server loaded."""
    side_by_side: Fact[SideBySide] | None = None
    heeds_changes: Fact[bool] | None = None
    """Whether it reads the list again after `notifications/tools/list_changed`."""
    limit: Fact[Limit] | None = None


def value_of(fact: Fact[T] | None) -> T | None:
    """Return what is known, None if nothing is."""
    return None if fact is None else fact.value
