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
        self._texts: dict[int, str] = {}

    def keep(self, turn: int, record: CallRecord, given: CallArguments) -> None:
        """Keep the arguments of the first, second, ... call, short and masked."""
        if self.hide_for is not None:
            self._texts[turn] = show_arguments(given.arguments, self.hide_for(record.principal), given.schema)
            while len(self._texts) > self._keep:
                del self._texts[next(iter(self._texts))]

    def of(self, turn: int) -> str | None:
        """Return the arguments of the first, second, ... call as JSON; None if they are not kept."""
        self.drop_unwanted()
        return self._texts.get(turn)

    def drop_unwanted(self) -> None:
        """Keep none any more, where they are not wanted now."""
        if self._texts and not self.wanted():
            self._texts.clear()
