"""Carries an actor's facts upwards without making its handlers wait.

A fact goes into the other mailbox at once if there is room. If there is none, the newest fact of each kind waits: facts
are conflated, so nothing grows and the last one always arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from actors.errors import ActorStopped, MailboxFull
from actors.kit.mailbox import Address


class Reporter:
    """Reports to one address. `run` is a task of the actor that reports.

    Without an address nothing is reported: of an actor that works for another one, which reports for both. `wrap` makes
    of a fact what is put into the other mailbox.
    """

    def __init__(self, address: Address[Any] | None, wrap: Callable[[Any], Any] = lambda fact: fact) -> None:
        self._address = address
        self._wrap = wrap
        self._owed: dict[type, Any] = {}
        self._wake = trio.Event()

    def report(self, fact: Any) -> None:
        if self._address is None:
            return
        if not self._owed:
            try:
                self._address.tell_nowait(self._wrap(fact))
            except MailboxFull:
                pass
            except ActorStopped:
                return
            else:
                return
        self._owed[type(fact)] = fact
        self._wake.set()

    def redirect(self, address: Address[Any], wrap: Callable[[Any], Any]) -> None:
        """Report to another one from now on."""
        self._address, self._wrap = address, wrap

    def end(self) -> None:
        """Report nothing any more, also not what waits."""
        self._address = None
        self._owed.clear()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._owed and self._address is not None:
                kind, fact = next(iter(self._owed.items()))
                try:
                    await self._address.tell(self._wrap(fact))
                except ActorStopped:
                    return
                if self._owed.get(kind) is fact:
                    del self._owed[kind]
