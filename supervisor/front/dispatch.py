"""Where each request goes: the guard in front of everything, the doors of MCP, and pages for the rest."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from http import HTTPStatus
from time import perf_counter
from typing import Final

from supervisor.front.admission import METADATA, Admission, Unverified
from supervisor.front.edge.connection import Handler
from supervisor.front.edge.request import HttpRequest, NotAllowed
from supervisor.front.guard import CrossOrigin, Guard, TrustedProxies, is_preflight, preflight_lines
from supervisor.identity.requester import EXECUTE, ORIGIN, RequestOrigin
from supervisor.metrics.families import OTHER
from supervisor.metrics.meters import Meters
from supervisor.service.doors.addresses import PERSONAL_PATH, door_of
from supervisor.service.port import failure

log = logging.getLogger(__name__)

WEBSOCKET_PATH: Final = "/ws"
EVENTS_PATH: Final = "/api/events"

AtDoor = Callable[[str, HttpRequest], Awaitable[None]]
"""Serves a request at the door of a name."""

_SIGN_IN, _TOO_LARGE, _TOO_MANY = 303, 413, 429
_STATUSES: Final = {status.value: str(status.value) for status in HTTPStatus}
_REASONS: Final = {"host_refused": "host", "origin_refused": "origin"}
_LATER: Final = ((b"retry-after", b"1"),)
_ONLY_PROXIES: Final = b'{"error":{"code":421,"message":"only the proxies in \\"trusted_proxies\\" may connect here"}}'


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
        event_streams: Handler,
        *,
        cross_origin: CrossOrigin,
        meters: Meters,
        proxies: TrustedProxies | None = None,
        only_proxies: bool = False,
        pass_on: Callable[[HttpRequest], Awaitable[bool]] | None = None,
    ) -> None:
        """Without an `admission` nobody has to show who they are.

        Of `proxies` it is believed for whom they ask. `only_proxies`: nobody else may connect, as they encrypt, and
        what others send could be read on the way. `pass_on` has a request of a browser answered that has its pages from
        another node of a fleet; it is False for every other.
        """
        self._guard = guard
        self._admission = admission
        self._mcp_http = mcp_http
        self._mcp_websocket = mcp_websocket
        self._pages = pages
        self._page_sockets = page_sockets
        self._event_streams = event_streams
        self._cross_origin = cross_origin
        self._meters = meters
        self._proxies = proxies
        self._only_proxies = only_proxies
        self._pass_on = pass_on

    async def __call__(self, request: HttpRequest) -> None:
        request.told = self._count
        if request.path.startswith(PERSONAL_PATH):
            request.hide_query()
        if self._proxies is not None:
            request.forwarded_for = self._proxies.sender(request.address, request.fields)
            if self._only_proxies and not self._proxies.may_connect(request.address):
                self._meters.on_refusal("host")
                await request.refuse(421, _ONLY_PROXIES)
                return
        refusal = self._guard.check(request.fields, request.target)
        if refusal is not None and not (refusal.reason == "origin_refused" and request.path.startswith(METADATA)):
            log.debug("refused with %d: %s", refusal.status, refusal.reason)
            self._meters.on_refusal(_REASONS.get(refusal.reason, "malformed"))
            await request.refuse(refusal.status, refusal.body())
            return
        request.common = self._cross_origin.lines(request.fields) if b"origin" in request.fields.lines else ()
        if request.common and is_preflight(request.method, request.fields):
            await request.answer(204, lines=preflight_lines(request.fields))
        elif self._pass_on is None or not await self._pass_on(request):
            await self._receive(request)

    async def receive_visit(self, request: HttpRequest) -> None:
        """Serve a request that the guard of another node has let through."""
        request.told = self._count
        await self._receive(request)

    async def _receive(self, request: HttpRequest) -> None:
        if self._admission is None:
            await self._serve(request)
        else:
            await self._admit(request, self._admission)

    def _count(self, request: HttpRequest, status: int) -> None:
        labels = request.method, route_of(request.path), _STATUSES.get(status) or str(status)
        self._meters.http.add(labels, perf_counter() - request.began)
        if status == _TOO_LARGE:
            self._meters.on_refusal("size")

    async def _admit(self, request: HttpRequest, admission: Admission) -> None:
        if (told := admission.public_answer(request)) is not None:
            await request.answer(*told)
            return
        admitted = admission.admit(request)
        if isinstance(admitted, Unverified):
            admitted = await admission.ask(admitted, request)
        if isinstance(admitted, NotAllowed):
            if admitted.status != _SIGN_IN:
                self._meters.on_refusal("rate" if admitted.status == _TOO_MANY else "auth")
            await request.refuse(admitted.status, admitted.body, admitted.lines)
            return
        request.come_from(admitted)
        if not admitted.allows(EXECUTE):
            request.lacking = partial(admission.insufficient, request)
        if (full := admission.ongoing.refusal(request)) is not None:
            self._meters.on_refusal("rate")
            await request.refuse(_TOO_MANY, failure(b"null", full).body, _LATER)
            return
        with admission.ongoing.stay(request):
            await self._serve(request)

    async def _serve(self, request: HttpRequest) -> None:
        ORIGIN.set(RequestOrigin(request.requester, request.sender, request.path))
        door = door_of(request.path)
        if request.path == EVENTS_PATH:
            await self._event_streams(request)
        elif request.is_websocket:
            if door is not None or request.path == WEBSOCKET_PATH:
                await self._mcp_websocket(door or "", request)
            else:
                await self._page_sockets(request)
        elif door is not None:
            await self._mcp_http(door, request)
        else:
            await self._pages(request)


@lru_cache(maxsize=256)
def route_of(path: str) -> str:
    """Return the address of a door as metrics call it: without names."""
    door = door_of(path)
    if door is None:
        return OTHER
    if path.startswith(PERSONAL_PATH):
        return "/i/{server}/mcp"
    return "/mcp/servers/{server}" if "/" in door else f"/mcp/{door}" if door else "/mcp"
