"""Where each request goes: the guard in front of everything, the doors of MCP, and pages for the rest."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from supervisor.front.admission import Admission, NotAdmitted
from supervisor.front.edge.connection import Handler
from supervisor.front.edge.request import HttpRequest
from supervisor.front.guard import Guard
from supervisor.identity.requester import ORIGIN, RequestOrigin
from supervisor.service.doors.addresses import PERSONAL_PATH, door_of

log = logging.getLogger(__name__)

WEBSOCKET_PATH: Final = "/ws"

AtDoor = Callable[[str, HttpRequest], Awaitable[None]]
"""Serves a request at the door of a name."""


class Dispatch:
    """The handler of all connections."""

    def __init__(
        self,
        guard: Guard,
        admission: Admission | None,
        mcp_http: AtDoor,
        mcp_websocket: AtDoor,
        pages: Handler,
        page_sockets: Handler,
    ) -> None:
        """Without an `admission` nobody has to show who they are."""
        self._guard = guard
        self._admission = admission
        self._mcp_http = mcp_http
        self._mcp_websocket = mcp_websocket
        self._pages = pages
        self._page_sockets = page_sockets

    async def __call__(self, request: HttpRequest) -> None:
        if request.path.startswith(PERSONAL_PATH):
            request.hide_query()
        refusal = self._guard.check(request.fields, request.target)
        if refusal is not None:
            log.debug("refused with %d: %s", refusal.status, refusal.reason)
            await request.refuse(refusal.status, refusal.body())
            return
        if self._admission is not None:
            admitted = self._admission.admit(request)
            if isinstance(admitted, NotAdmitted):
                await request.refuse(admitted.status, admitted.body, admitted.lines)
                return
            request.come_from(admitted)
            with self._admission.stay(admitted):
                await self._serve(request)
            return
        await self._serve(request)

    async def _serve(self, request: HttpRequest) -> None:
        ORIGIN.set(RequestOrigin(request.requester, request.address, request.path))
        door = door_of(request.path)
        if request.is_websocket:
            if door is not None or request.path == WEBSOCKET_PATH:
                await self._mcp_websocket(door or "", request)
            else:
                await self._page_sockets(request)
        elif door is not None:
            await self._mcp_http(door, request)
        else:
            await self._pages(request)
