"""The application: the guard in front of everything, the MCP endpoints, and Quart for the rest.

Rules of this file:
- Nothing is global and nothing runs in the application: no lifespan, no `app.nursery`, no background task. A daemon
  may have any number of these.
- The guard sees every HTTP request and every WebSocket handshake before any route does, whatever the path.
- MCP is plain ASGI, not Quart: its handlers need the moment of the disconnect and raw bytes, not request objects.
- Every error Quart makes by itself is JSON, and none carries the text of an exception.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from quart import make_response
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from actors.kit import is_want, reason_of
from supervisor.front.edge.asgi import JSON, Application, Receive, Scope, Send, respond
from supervisor.front.edge.guard import Guard
from supervisor.front.mcp.doors import door_of

log = logging.getLogger(__name__)

WEBSOCKET_PATH = "/ws"

_HARDENING = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)
_KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")


def create_app(
    *,
    guard: Guard,
    mcp_http: Application,
    mcp_websocket: Application,
    register: Callable[[QuartTrio], None],
    max_body_bytes: int = 4 * 1024 * 1024,
    body_timeout_s: float = 30.0,
) -> QuartTrio:
    """Return the ASGI application of the front.

    `mcp_http` answers HTTP on `/mcp` and below, `mcp_websocket` WebSockets there and on `/ws`; `register` adds the
    routes of everything else. The two limits bind the bodies Quart reads; `mcp_http` has its own.
    """
    app = QuartTrio(__name__, static_folder=None)
    # Quart's own logger would get a handler that writes to stderr, which may be a pipe that nobody reads.
    app.logger = log
    app.config.update(
        RESPONSE_TIMEOUT=None,  # the default cuts every stream after 60 s
        BODY_TIMEOUT=body_timeout_s,
        MAX_CONTENT_LENGTH=max_body_bytes,
        PROVIDE_AUTOMATIC_OPTIONS=False,  # there is no CORS: a preflight gets 405
    )
    app.register_error_handler(HTTPException, _as_json)
    for kind in (OSError, RuntimeError, MemoryError):
        app.register_error_handler(kind, _as_busy)
    register(app)
    app.asgi_app = _Front(guard, mcp_http, mcp_websocket, app.asgi_app)  # type: ignore[method-assign]  # Quart's own way to add middleware
    return app


class _Front:
    """Guards and dispatches."""

    def __init__(self, guard: Guard, mcp_http: Application, mcp_websocket: Application, rest: Application) -> None:
        self._guard = guard
        self._mcp_http = mcp_http
        self._mcp_websocket = mcp_websocket
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind in {"http", "websocket"}:
            refusal = self._guard.check(scope["headers"], scope.get("raw_path") or b"/")
            if refusal is not None:
                log.debug("refused with %d: %s", refusal.status, refusal.reason)
                await respond(scope, send, refusal.status, refusal.body())
                return
        try:
            await self._chosen(kind, scope.get("path", ""))(scope, receive, _hardened(send))
        except (OSError, RuntimeError, MemoryError) as error:
            if not is_want(error):
                raise
            log.debug("a request was lost for want: %s", reason_of(error))
            with suppress(Exception):  # it may have been answered in part
                await respond(scope, send, 503, b'{"error":{"code":503,"message":"the daemon lacks resources"}}')

    def _chosen(self, kind: str, path: str) -> Application:
        mcp = door_of(path) is not None
        if kind == "http" and mcp:
            return self._mcp_http
        if kind == "websocket" and (mcp or path == WEBSOCKET_PATH):
            return self._mcp_websocket
        return self._rest


async def _as_json(error: HTTPException) -> Any:
    status = error.code or 500
    if status < 400 or error.response is not None:  # a redirect, or a response a route made by itself
        return await make_response(error.get_response())
    message = "internal error; the daemon's log says more" if status >= 500 else error.description or error.name
    headers = {name: value for name, value in error.get_headers() if name in _KEPT_HEADERS}
    body = msgspec.json.encode({"error": {"code": status, "message": message}})
    return await make_response(body, status, {**headers, "Content-Type": JSON.decode()})


async def _as_busy(error: Exception) -> Any:
    """Answer 503 for want of resources; any other exception is the bug that it was."""
    if not is_want(error):
        raise error
    log.debug("a page was not made for want: %s", reason_of(error))
    message = f"the daemon lacks what this page needs ({reason_of(error)}); /api/status says what is degraded"
    body = msgspec.json.encode({"error": {"code": 503, "message": message}})
    return await make_response(body, 503, {"Retry-After": "1", "Content-Type": JSON.decode()})


def _hardened(send: Send) -> Send:
    """Return a `send` that adds to every HTTP answer what keeps a browser from misusing it."""

    async def harden(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            missing = dict(_HARDENING)
            for name, _ in headers:
                missing.pop(bytes(name).lower(), None)
            message = {**message, "headers": [*headers, *missing.items()]}
        await send(message)

    return harden
