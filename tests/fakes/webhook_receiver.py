"""An endpoint that events are posted to, over TLS with a certificate of its own: what came is verified as Standard
Webhooks' own library does it, and remembered."""

from __future__ import annotations

import base64
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import trio
from standardwebhooks import Webhook, WebhookVerificationError

from tests.fakes.certificates import certificate
from tests.fakes.remote_server import Request, read_request


def new_secret(size: int = 32) -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(size)).decode()}"


@dataclass
class Posted:
    """One message. `at` is a moment of the trio clock."""

    headers: dict[str, str]
    body: dict[str, Any]
    text: bytes
    path: str
    at: float

    @property
    def type(self) -> str:
        return str(self.body.get("type", "event"))

    def verified_by(self, secret: str) -> bool:
        """Say whether Standard Webhooks' own library takes it."""
        try:
            Webhook(secret).verify(self.text, self.headers)
        except WebhookVerificationError:
            return False
        return True


@dataclass
class WebhookReceiver:
    """`status` gives the answer to a message that is no challenge; `echo` the body of the one to a challenge.

    `headers` are those of every answer. A status of 0 is none: the connection is closed.
    """

    directory: Path
    names: tuple[str, ...] = ("localhost",)
    host: str = "127.0.0.1"
    status: Callable[[Posted], int] = lambda posted: 204
    echo: Callable[[str], bytes] = lambda challenge: json.dumps({"challenge": challenge}).encode()
    verification_status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    posted: list[Posted] = field(default_factory=list)
    port: int = 0
    pem: Path = Path()
    _bell: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    @property
    def origin(self) -> str:
        return f"https://{self.names[0]}:{self.port}"

    def of(self, type_: str) -> list[Posted]:
        return [each for each in self.posted if each.type == type_]

    @property
    def events(self) -> list[str]:
        return [each.body["eventId"] for each in self.of("event")]

    async def wait(self, wanted: Callable[[], object]) -> None:
        """Wait for something that can be true only after a message."""
        while not wanted():
            await self._bell.park()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        self.pem, context = certificate(self.directory, host=self.host, names=self.names)
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_ssl_over_tcp_listeners(self.port, context, host=self.host)
            socket_listener = listeners[0].transport_listener
            self.port = cast("trio.SocketListener", socket_listener).socket.getsockname()[1]
            await nursery.start(trio.serve_listeners, self._converse, listeners)
            yield self
            nursery.cancel_scope.cancel()

    async def _converse(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError, OSError):
            async with stream:
                while (request := await read_request(cast("trio.SocketStream", stream))) is not None:
                    await self._answer(request)

    async def _answer(self, request: Request) -> None:
        posted = Posted(
            dict(request.headers), json.loads(request.body), request.body, request.path, trio.current_time()
        )
        assert request.verb == "POST"
        self.posted.append(posted)
        try:
            if posted.type == "verification":
                await request.respond(self.verification_status, self.echo(posted.body["challenge"]), **self.headers)
            elif status := self.status(posted):
                await request.respond(status, b"", **self.headers)
            else:
                await request.stream.aclose()
        finally:
            self._bell.unpark_all()


def statuses(*first: int, then: int = 204) -> Callable[[Posted], int]:
    """Return what answers so at first."""
    rest: Iterator[int] = iter(first)
    return lambda posted: next(rest, then)
