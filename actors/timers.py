"""Named timers of an actor: child tasks that post a message when they fire. Starting one again replaces the older."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

Fire = Callable[[str], Awaitable[None]]


class Timers:
    """Timers by name; `fire(name)` is awaited in the timer's own task."""

    def __init__(self, fire: Fire) -> None:
        self._fire = fire
        self._scopes: dict[str, trio.CancelScope] = {}

    def start(self, nursery: trio.Nursery, name: str, seconds: float) -> None:
        """Fire `name` in that many seconds, instead of any earlier timer of that name."""
        self.cancel(name)
        scope = self._scopes[name] = trio.CancelScope()
        nursery.start_soon(self._run, name, seconds, scope)

    def cancel(self, name: str) -> None:
        """Stop a timer if it runs; one that has already posted its message cannot be taken back."""
        scope = self._scopes.pop(name, None)
        if scope is not None:
            scope.cancel()

    def running(self, name: str) -> bool:
        """Return whether a timer of that name runs."""
        return name in self._scopes

    async def _run(self, name: str, seconds: float, scope: trio.CancelScope) -> None:
        with scope:
            await trio.sleep(seconds)
            if self._scopes.get(name) is scope:
                del self._scopes[name]
            await self._fire(name)
