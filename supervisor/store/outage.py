"""Times in which nothing can be saved: the disk refuses, or the system lacks what saving needs."""

from __future__ import annotations

import sqlite3

from actors.errors import ConfigError
from actors.kit import Conditions, is_want

WHAT = "store"
"""How the condition is called."""

OUTAGES = (sqlite3.Error, OSError, ConfigError, RuntimeError, MemoryError, ImportError)
"""What an outage may look like; the last three only if they are want of resources."""


class Outage:
    """Whether there is one now, and why; told to `conditions`."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self.reason = ""
        """Empty while all is well."""

    def begin(self, reason: str) -> None:
        """Note that the disk fails us, or still does."""
        self.reason = reason or "unknown error"
        self._conditions.begin(WHAT, f"nothing is saved until the disk recovers: {self.reason}")

    def take(self, error: Exception) -> None:
        """Begin with one of `OUTAGES`. Raises it instead if it is a bug."""
        if isinstance(error, RuntimeError | ImportError) and not is_want(error):
            raise error
        self.begin(str(error))

    def end(self) -> None:
        """Note that the last use of the disk succeeded."""
        self.reason = ""
        self._conditions.end(WHAT)
