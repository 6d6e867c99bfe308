"""Whether an operator lets a server run."""

from __future__ import annotations

import trio


class Switch:
    """On or off. `settled` once what follows from it is done: the server is found, or it has stopped."""

    def __init__(self, *, on: bool) -> None:
        self._turned_on = trio.Event()
        self.settled = trio.Event()
        self.on = on
        if on:
            self._turned_on.set()
        else:
            self.settled.set()

    def turn(self, *, on: bool) -> None:
        """Turn it; what follows from it is not settled yet."""
        self.on = on
        self.settled = trio.Event()
        if on:
            self._turned_on.set()
        else:
            self._turned_on = trio.Event()

    async def wait_on(self) -> None:
        await self._turned_on.wait()
