"""A page that many may ask for at once, and that is made for few of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio


class SharedPage:
    """A page that takes a while: everybody gets one whose making began after they asked, and few are made."""

    def __init__(self, make: Callable[[], Awaitable[bytes]]) -> None:
        self._make = make
        self._turn = trio.Lock()
        self._begun = 0
        self._made = 0
        self._page = b""

    async def get(self) -> bytes:
        """Return the page, made for all who asked before it was begun. A checkpoint."""
        wanted = self._begun + 1
        async with self._turn:
            if self._made < wanted:
                self._begun += 1
                number = self._begun
                self._page = await self._make()
                self._made = number
            return self._page
