"""What is not MCP: one request at a time goes to an application of Quart on hypercorn, as both are published.

hypercorn gets a stream of its own for each request. On it comes what our parser has understood, under the limits of
our edge, and nothing else; what it answers goes to the client as it is. So nothing has to be known of its insides, and
no byte of a client reaches it that we would have read in another way. The connection ends with the answer.
"""

from __future__ import annotations

import logging
from typing import Final

import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app
from quart_trio import QuartTrio

from actors.errors import MailboxFull, SupervisorError
from supervisor.front.edge.request import BodyLimits, HttpRequest, TooLate
from supervisor.front.edge.wire import Wire
from supervisor.front.pages.rights import set_requester
from supervisor.identity.requester import ANYBODY

log = logging.getLogger(__name__)

MAX_BYTES_OF_STRANGERS: Final = 32 * 1024
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
        self._of_strangers = BodyLimits(MAX_BYTES_OF_STRANGERS, limits.timeout_s)
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
