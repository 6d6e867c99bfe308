"""Waiting for a server of which nothing is known yet: it is woken, and whoever named it gets an answer in time."""

from __future__ import annotations

import trio

from actors.errors import SupervisorError, UnknownServer
from actors.kit import Address
from actors.messages import WakeServer
from actors.principal import Principal
from actors.router import Message as RouterMessage
from supervisor.metatools.servers.availability import late, refusal, respawn_after_s
from supervisor.service.lookup.visible import Visible


class Arrival:
    """Brings undiscovered servers into the catalogue."""

    def __init__(self, router: Address[RouterMessage], visible: Visible) -> None:
        self._router = router
        self._visible = visible

    async def of(self, server: str, principal: Principal, by: float) -> None:
        """Wake a server and wait until it is known what it offers; `by` is a moment of the trio clock.

        Raises `ServerStarting` if it is not ready by then, or cannot be because its next start comes later;
        `ServerGaveUp` and `ServerDisabled` if it does not come up at all; what the router raises. A checkpoint.
        """
        failure: SupervisorError | None = None

        async def wake(scope: trio.CancelScope) -> None:
            nonlocal failure
            try:
                await self._wake(server, principal)
            except SupervisorError as error:
                failure = error
                scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = by
            nursery.start_soon(wake, nursery.cancel_scope)
            nursery.start_soon(self._end_if_too_late, server, principal, by, nursery.cancel_scope)
            await self._visible.listing(principal, server)
            nursery.cancel_scope.cancel()
        if server in self._visible.now(principal).entries:
            return
        raise failure or late(server, self._visible.statuses(principal).get(server), trio.current_time())

    async def _wake(self, server: str, principal: Principal) -> None:
        """Wake a server that has an actor, or as soon as it has one. Raises `SupervisorError`."""
        while True:
            seen = self._visible.reports
            if (refused := refusal(server, self._visible.statuses(principal).get(server))) is not None:
                raise refused
            try:
                await self._router.ask(WakeServer(server=server, principal=principal))
            except UnknownServer:  # at the start, and after a crash of its actor, there is none for a moment
                await self._visible.wait_for_report(seen)
            else:
                return

    async def _end_if_too_late(self, server: str, principal: Principal, by: float, scope: trio.CancelScope) -> None:
        """Cancel `scope` once it is known that the next start of a failing server comes after the deadline."""
        while True:
            status = self._visible.statuses(principal).get(server)
            now = trio.current_time()
            wait = respawn_after_s(status, now)
            if wait is not None and now + wait > by:
                scope.cancel()
            await self._visible.wait_for_report(self._visible.reports)
