"""The arguments of the newest calls, in memory alone: nothing of them reaches the disk, a log, an event or a metric."""

from __future__ import annotations

from collections.abc import Callable

from actors.principal import Principal
from supervisor.usage.arguments import Hide, show_arguments
from supervisor.usage.records import CallArguments, CallRecord

HideFor = Callable[[Principal], Hide]
"""Gives what masks the secrets that are configured, those of somebody among them."""


class KeptArguments:
    """Keeps them while `wanted` says so, of `keep` calls; when it says so no more they are gone."""

    def __init__(self, keep: int) -> None:
        self.wanted: Callable[[], bool] = lambda: False
        self.hide_for: HideFor | None = None
        """Without it nothing is kept."""
        self._keep = keep
        self._made = 0
        self._texts: dict[int, str] = {}

    def add(self, record: CallRecord, given: CallArguments | None) -> None:
        """Keep the arguments of the next call, if it had any, short and masked. Each call is told of, in its turn."""
        self._made += 1
        if self._are_wanted() and given is not None and self.hide_for is not None:
            hide = self.hide_for(record.principal)
            self._texts[self._made] = show_arguments(given.arguments, hide, given.schema)
            while len(self._texts) > self._keep:
                del self._texts[next(iter(self._texts))]

    def of(self, turn: int) -> str | None:
        """Return the arguments of the first, second, ... call as JSON; None if they are not kept."""
        return self._texts.get(turn) if self._are_wanted() else None

    def _are_wanted(self) -> bool:
        wanted = self.wanted()
        if self._texts and not wanted:
            self._texts.clear()
        return wanted
