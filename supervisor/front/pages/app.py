"""The application of the pages, by Quart on hypercorn: its errors, its answers, the page at `/`, and how it is served.

- Nothing is global and nothing runs in the application: no lifespan, no `app.nursery`, no background task. A daemon may
  have any number of these.
- A page raises what is wrong, and here it becomes JSON with its status, or for a browser a few words. None carries the
  text of a bug.
- One request at a time goes to the application. hypercorn gets a stream of its own for each. On it comes what our
  parser has understood, under the limits of our edge, and nothing else; what it answers goes to the client as it is. So
  nothing has to be known of its insides, and no byte of a client reaches it that we would have read in another way. The
  connection ends with the answer.
"""

from __future__ import annotations

import html
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app
from quart import Response, make_response, request
from quart.routing import QuartRule
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, NotFound

from actors.errors import (
    CallTimedOut,
    ConfigError,
    InvalidArguments,
    LoginFailed,
    MailboxFull,
    ServerDisabled,
    ServerError,
    ShuttingDown,
    SupervisorError,
    UnknownServer,
    UnknownTool,
)
from actors.kit import is_want, reason_of
from supervisor.front.edge.request import BodyLimits, HttpRequest, TooLate
from supervisor.front.edge.wire import Wire
from supervisor.front.pages.requests import FromElsewhere, NoKey, check_right, set_requester
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.requester import ANYBODY
from supervisor.identity.tokens import NotKept, TooManyTokens
from supervisor.servers.approvals import NotAsSeen
from supervisor.values.table import TooManyValues, UnknownValue, ValueNotTaken

log = logging.getLogger(__name__)

_HARDENING = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
_KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")

NO_PAGE: Final = (
    "there is no such page, or it is not for your role; "
    "MCP is served at /mcp (Streamable HTTP or WebSocket), and nowhere by HTTP+SSE: "
    "a client that speaks nothing newer can start `mcpvisor stdio`"
)
"""The same at every address: what somebody may not see is told of as what there is not."""
STATUSES: tuple[tuple[type[SupervisorError], int], ...] = (
    (FromElsewhere, 403),
    (NoKey, 401),
    (UnknownServer, 404),
    (UnknownTool, 404),
    (UnknownValue, 404),
    (ValueNotTaken, 409),
    (ServerDisabled, 409),
    (InvalidArguments, 400),
    (ConfigError, 422),
    (MailboxFull, 503),
    (NotKept, 503),
    (TooManyTokens, 409),
    (TooManyValues, 409),
    (NotAsSeen, 409),
    (ShuttingDown, 503),
    (CallTimedOut, 504),
    (ServerError, 502),
    (LoginFailed, 502),
)
"""The HTTP status of each error; the first that fits."""

_NAME: Final = "mcpvisor"
_WHAT: Final = "Many MCP servers behind one address, supervised, with four tools in front of all of theirs."
_PLACES: Final = {
    "/mcp": "MCP: Streamable HTTP (POST) and WebSocket, every revision; the address for a client's configuration",
    "/mcp/all": "MCP: every tool of every server, for clients that choose by themselves",
    "/mcp/servers/NAME": "MCP: one server by itself, as if a client had connected to it",
    "/ws": "MCP over WebSocket only",
    "/.well-known/ai-catalog.json": "which MCP servers there are here; /v0.1/servers is the same as a registry",
    "/ui": "the dashboard, for browsers",
    "/api/status": "how each server is doing",
    "/api/tools": "what is known of every tool",
    "/api/usage": "what was called, by tool, server, client or user; /api/calls has the newest calls",
    "/metrics": "metrics for Prometheus",
    "/questions": "what servers ask of you, where your client cannot be asked",
    "/api/tokens": "what the tools would cost a model",
    "/api/events": "what happens, as it happens (event stream, or WebSocket)",
    "/healthz": "whether the daemon lives",
    "/readyz": "whether every server was tried once",
}
_HELP: Final = "On the command line: mcpvisor --help, mcpvisor status. The documents are in docs/ of the source."

_BY_ACCEPT: Final = {"Content-Security-Policy": "default-src 'none'", "Vary": "Accept"}
_ERROR_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{status} · mcpvisor</title></head>
<body><h1>That did not work</h1><p>{message}</p><p><a href="/ui">Dashboard</a></p></body></html>
"""
"""Of an address that is no page of the dashboard; it loads nothing."""


class _Rule(QuartRule):
    """A route that no address is built of: no page asks for one, and the code for that costs a start 50 ms."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        return _build_nothing


def _build_nothing(*_: object, **__: object) -> tuple[str, str]:
    raise RuntimeError("no address is built of a route here; write it")


def create_app(audit: Audit = NO_AUDIT) -> QuartTrio:
    """Return the application of all pages, yet without routes. Who hands bodies over bounds them.

    `audit` is told of pages that a role does not allow.
    """
    app = QuartTrio(__name__, static_folder=None)
    app.url_rule_class = _Rule
    # Quart's own logger would get a handler that writes to stderr, which may be a pipe that nobody reads.
    app.logger = log
    app.config.update(
        RESPONSE_TIMEOUT=None,  # the default cuts every stream after 60 s
        BODY_TIMEOUT=None,  # it is here when a page is asked for
        PROVIDE_AUTOMATIC_OPTIONS=False,  # there is no CORS: a preflight gets 405
    )
    app.register_error_handler(HTTPException, _on_http_error)
    app.register_error_handler(SupervisorError, _on_error)
    for kind in (OSError, RuntimeError, MemoryError):
        app.register_error_handler(kind, _on_want)
    app.before_request(partial(check_right, audit))
    app.after_request(_harden)
    return app


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`body` is JSON text (bytes), or a value that becomes it."""
    text = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Response(text, status=status, content_type="application/json", headers=dict(headers or {}))


def _error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return json_response({"error": {"code": status, "message": message}}, status, headers)


def status_of(error: SupervisorError) -> int:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def error_body(error: SupervisorError) -> tuple[int, bytes]:
    status = status_of(error)
    message = str(error) if isinstance(error, ConfigError) else error.message  # its place is in the file
    return status, msgspec.json.encode({"error": {"code": status, "message": message, "data": error.data()}})


async def _on_error(error: SupervisorError) -> Response:
    status, body = error_body(error)
    return json_response(body, status, {"WWW-Authenticate": "Bearer"} if isinstance(error, NoKey) else None)


async def _on_http_error(error: HTTPException) -> Any:
    status = error.code or 500
    if status < 400 or error.response is not None:  # a redirect, or a response a route made by itself
        return await make_response(error.get_response())
    message = "internal error; the daemon's log says more" if status >= 500 else error.description or error.name
    if message == NotFound.description:
        message = NO_PAGE
    headers = {name: value for name, value in error.get_headers() if name in _KEPT_HEADERS}
    if allowed := headers.get("Allow"):
        headers["Allow"] = ", ".join(sorted(allowed.split(", ")))  # which come from a set
    if _wants_page():
        page = _ERROR_PAGE.format(status=status, message=html.escape(message))
        return Response(page, status=status, content_type="text/html; charset=utf-8", headers={**headers, **_BY_ACCEPT})
    return _error_response(status, message, {**headers, "Vary": "Accept"})


def _wants_page() -> bool:
    """Say whether whoever asks would rather have HTML than JSON, as browsers would."""
    best = request.accept_mimetypes.best_match(["application/json", "text/html"], default="application/json")
    return best == "text/html"


async def _on_want(error: Exception) -> Response:
    """Answer 503 for want of resources; any other exception is the bug that it was."""
    if not is_want(error):
        raise error
    log.debug("a page was not made for want: %s", reason_of(error))
    message = f"the daemon lacks what this page needs ({reason_of(error)}); /api/status says what is degraded"
    return _error_response(503, message, {"Retry-After": "1"})


async def _harden(response: Response) -> Response:
    for name, value in _HARDENING.items():
        response.headers.setdefault(name, value)
    return response


def add_welcome(version: str, app: QuartTrio) -> None:
    """The dashboard for browsers, JSON for everybody else."""

    async def welcome() -> Response:
        if _wants_page():
            return Response("", status=303, headers={**_BY_ACCEPT, "Location": "/ui"})
        body = {"name": _NAME, "version": version, "what": _WHAT, "places": _PLACES, "help": _HELP}
        return json_response(body, headers=_BY_ACCEPT)

    app.add_url_rule("/", view_func=welcome)


_MAX_BYTES_OF_STRANGERS: Final = 32 * 1024
"""Of somebody who has yet to sign in: a token, and where they wanted to go."""

_OF_THE_CONNECTION: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"http2-settings", b"transfer-encoding"}
    | {b"content-length", b"expect", b"te", b"trailer"}
)
"""What one hop says to the next (RFC 9110 7.6.1), and what is said anew."""


class Pages:
    """Serves requests with an application of Quart."""

    def __init__(self, app: QuartTrio, limits: BodyLimits) -> None:
        self._limits = limits
        self._of_strangers = BodyLimits(_MAX_BYTES_OF_STRANGERS, limits.timeout_s)
        self._config = config = Config()
        config.include_server_header = False
        config.accesslog = None
        config.errorlog = log  # through the daemon's queue, never to stderr: a full pipe there would stop the loop
        self._app = wrap_app(app, config.wsgi_max_body_size, "asgi")
        self._context = WorkerContext(None)

    async def __call__(self, request: HttpRequest) -> None:
        try:
            body = await request.body(self._limits if request.requester is not ANYBODY else self._of_strangers)
        except TooLate as error:
            await request.fail(408, str(error))
            return
        except SupervisorError as error:
            await request.fail(503 if isinstance(error, MailboxFull) else error.http_status, str(error))
            return
        set_requester(request)
        stream = _Stream(request.hand_over(), _as_bytes(request, body))
        await TCPServer(self._app, self._config, self._context, ConnectionState({}), stream).run()  # type: ignore[arg-type]  # it says TLS and takes any stream


def _as_bytes(request: HttpRequest, body: bytes) -> bytes:
    lines = [b"%s: %s\r\n" % line for line in request.headers if line[0] not in _OF_THE_CONNECTION]
    length = b"content-length: %d\r\n" % len(body) if body else b""
    head = b"%s %s HTTP/%s\r\n" % (request.method.encode("ascii"), request.target, request.version.encode("ascii"))
    return b"".join((head, *lines, length, b"connection: close\r\n\r\n", body))


class _Stream:
    """The end of a stream of bytes that hypercorn sees: one request, and then the end when the client leaves."""

    def __init__(self, connection: Wire, request: bytes) -> None:
        self.socket = connection.socket  # for the addresses of both sides
        self._connection = connection
        self._request = request
        self._closed = trio.CancelScope()

    async def receive_some(self, most: int) -> bytes:
        if self._request:
            data, self._request = self._request[:most], self._request[most:]
            return data
        with self._closed:
            await self._connection.leaving.wait()
            return b""
        raise trio.ClosedResourceError

    async def send_all(self, data: bytes) -> None:
        await self._connection.write(data)

    async def send_eof(self) -> None:
        # No checkpoint: hypercorn calls this in the task of a request of which Quart has cancelled the rest.
        self._closed.cancel()

    async def aclose(self) -> None:
        self._closed.cancel()
