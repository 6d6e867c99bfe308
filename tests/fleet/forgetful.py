"""An engine in memory that can lose what it knows while it runs, whole tables at a time, as a server loses keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from tests.fleet.memory_engine import MemoryEngine

KEYS: Final = (
    *("nodes", "leases", "names", "owners", "offers", "texts", "uses", "feed", "state", "over", "records", "claims"),
)
"""What a server keeps, by the ends of the names of its keys."""
UNSEEN: Final = frozenset({"offers", "texts", "uses", "claims"})
"""What nothing is granted by, and nobody notices to be gone."""


class ForgetfulEngine(MemoryEngine):
    def restart(self) -> None:
        """Be another run of the server, with what it knew."""
        self._is_whole = False

    def copy(self, tables: Mapping[str, Any]) -> None:
        """Be another server, with what this one knew earlier."""
        vars(self).update({name: type(value)(value) for name, value in tables.items()})
        self.restart()

    def tables(self) -> dict[str, Any]:
        """Return what it knows now, for `copy`."""
        kept = (dict, list, int, Counter)
        return {name: type(value)(value) for name, value in vars(self).items() if type(value) in kept}

    def lose(self, *keys: str) -> None:
        """Lose what these keys have."""
        tables: dict[str, Any] = {
            "nodes": self._nodes,
            "leases": self._ends,
            "owners": self._owners,
            "offers": self._offers,
            "texts": self._texts,
            "uses": self._uses,
            "over": self._over,
            "records": self._records,
            "claims": self._claims,
            "feed": self._feed,
        }
        for key in keys:
            if key in tables:
                tables[key].clear()
        if "state" in keys:
            self._fence = self._last = 0
        self._is_whole = self._is_whole and UNSEEN.issuperset(keys)
