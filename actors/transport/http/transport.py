"""The transports over HTTP: one connection is one session, with sockets of its own."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2
import trio
from msgspec.structs import replace

from actors.errors import ServerExited, SpawnFailed
from actors.kit.decoding import decode_in_thread
from actors.kit.nursery import background
from actors.protocol.agreement.versions import MODERN_VERSIONS
from actors.protocol.outbound import LISTEN, SIGNS_OF_LIFE
from actors.protocol.wire.peer import Failure, Outgoing
from actors.protocol.wire.weight import LARGE_BYTES
from actors.transport.border import Border
from actors.transport.http.authorization import AuthorizedClient, Authorizer
from actors.transport.http.client.client import proxy_before, way_to
from actors.transport.http.client.verdict import SESSION_OVER, context_for, expiry
from actors.transport.http.head import ENCODING
from actors.transport.http.remote import HttpKind, HttpLimits, Remote, server_of
from actors.transport.http.site import Site
from actors.transport.http.sse import HttpSse
from actors.transport.http.streamable import StreamableHttp
from actors.transport.session import Session

_NAMES: dict[HttpKind, str] = {"http": "Streamable HTTP", "sse": "HTTP+SSE"}
Channel = StreamableHttp | HttpSse
_KEEP_ALIVE_S: Final = 4.0
"""Many servers close what was idle for five seconds (Node, uvicorn, hypercorn, Apache, as they come). What is sent at
that moment is lost, and nobody knows whether it was read (RFC 9112 §9.3.1)."""
_POOL: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=_KEEP_ALIVE_S)


class HttpConnection(Session):
    """A session over HTTP: over the transport of MCP that its server turns out to speak.

    - A request has a task, which ends with its answer or with a `Failure`: what comes of it is never left open.
    - One incarnation is one session. It is over when the server does not know it any more; then whoever was refused for
      that waits for the next one, as nothing of it was done. No message is ever sent twice on one connection, but
      `initialize` to a server that did not take it.
    - Nothing the server says leads anywhere else: redirects are followed within the origin only, cookies are not kept.
    - Which transport it is, is known when `initialize` is taken. (MCP 2025-11-25, basic/transports "Backwards
      Compatibility".)

    `kind` is the transport to begin with; `learn` is told of the other, if the server speaks that. `hide` takes out of
    a message of the server what nobody may read; None: there is nothing.
    """

    def __init__(
        self,
        site: Site,
        nursery: trio.Nursery,
        kind: HttpKind,
        learn: Callable[[HttpKind], None],
        hide: Callable[[bytes], bytes] | None = None,
    ) -> None:
        super().__init__(site.limits.stop_s)
        self._hide = hide
        self._limits = site.limits
        self._share = site.share
        self._nursery = nursery
        self._learn = learn
        self._channel: Channel = StreamableHttp(site, self, nursery)
        self._other: Channel | None = HttpSse(site, self, nursery)
        if kind == "sse":
            self._channel, self._other = self._other, self._channel
        self._open: dict[bytes, trio.CancelScope] = {}
        self._expired = False
        self._settled = trio.lowlevel.ParkingLot()

    async def send(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        """Send each message in a task of its own; what ends the handshake arrives before anything else is sent."""
        for message in messages:
            if self.over:
                raise ServerExited(SESSION_OVER)
            if message.cancels and (scope := self._open.pop(message.cancels, None)) is not None:
                scope.cancel()  # to close the stream of a request is how it is taken back in the modern era
                self._settled.unpark_all()
            self.count(message)
            left(1)
            if message.id:
                self._open[message.id] = scope = trio.CancelScope()
                self._nursery.start_soon(self._share.run, self._ask, message, scope)
            elif message.method == "notifications/initialized":
                await self._share.run(self._channel.tell, message)
                self._channel.begin(message.version)
            elif not (message.cancels and message.version in MODERN_VERSIONS):
                self._nursery.start_soon(self._share.run, self._channel.tell, message)
        return True

    async def hand_on(self, text: bytes, stream: bytes) -> None:
        await super().hand_on(await self._hidden(text), stream)

    async def _hidden(self, text: bytes) -> bytes:
        if self._hide is None:
            return text
        hide = partial(self._hide, text)
        return hide() if len(text) < LARGE_BYTES else await decode_in_thread(hide)

    async def _ask(self, message: Outgoing, scope: trio.CancelScope) -> None:
        longest = self._limits.call_max_s
        reason = f"it did not end its answer within {longest:g} s"
        failure: Failure | None = Failure(id=message.id, cause="crashed", reason=reason)
        if message.method != LISTEN:  # that ends when nobody listens any more
            scope.deadline = trio.current_time() + longest
        with scope:
            failure = expiry(message.id) if self._expired else await self._ask_either(message)
        if failure is not None and failure.stale:
            failure = self._judge(message, replace(failure, said=await self._hidden(failure.said)))
        if message.id not in self._open:
            return  # nobody waits for it any more
        if failure is not None:
            await self.fail(failure)
        self._open.pop(message.id, None)  # only now: the session may end when nothing is open
        self._settled.unpark_all()
        if failure is not None and failure.cause == "expired" and not self._expired:
            self._expired = True
            self._nursery.start_soon(self._finish, failure.reason)

    def _judge(self, message: Outgoing, failure: Failure) -> Failure:
        """Say what it means that a server refuses a request: while it is greeted that, and nothing else.

        Else whoever sent it asks for a sign of life. Who refuses that, too, knows the session no more.
        """
        if not self.greeted:
            return replace(failure, stale=False)
        return expiry(message.id, failure.reason) if message.method in SIGNS_OF_LIFE else failure

    async def _ask_either(self, message: Outgoing) -> Failure | None:
        """Ask over the transport that the server speaks; whether it does is seen by its answer to `initialize`."""
        failure = await self._channel.ask(message)
        if message.method != "initialize" or not self._channel.missing or self._other is None or failure is None:
            return failure
        channel, other = self._channel, self._other
        self._channel, self._other = other, None  # what follows from the answer is said there, too
        second = await other.ask(message)
        if other.missing and second is not None:
            self._channel = channel
            seen = ", ".join(f"{_NAMES[each.kind]}: {each.missing}" for each in (channel, other))
            return replace(failure, reason=f"there is no MCP server at its address ({seen})")
        self._learn(other.kind)
        return second

    async def _finish(self, reason: str) -> None:
        """End a session that is over, when the other requests have their answers: they may be refused as well.

        A server that knows the session no more may still carry out what it took in it. As long as answers come there
        is time for the next one. What was sent before its sender heard of the end is refused at once, and counts like
        them.
        """
        waits = True
        while self._open and waits:
            with trio.move_on_after(self._limits.settle_s) as patience:
                await self._settled.park()
            waits = not patience.cancelled_caught
        self.expire(reason)

    async def _say_goodbye(self) -> None:
        await self._share.run(self._channel.close)

    def kill(self) -> None:
        for scope in self._open.values():
            scope.cancel()
        super().kill()


class HttpTransport:
    """Reaches a server by Streamable HTTP or HTTP+SSE: `kind` is what is tried first, then what it speaks."""

    def __init__(
        self,
        remote: Remote,
        limits: HttpLimits | None = None,
        kind: HttpKind = "http",
        authorizer: Authorizer | None = None,
    ) -> None:
        self.kind: str = kind
        self._kind: HttpKind = kind
        self._remote = remote
        self._limits = limits or HttpLimits()
        self._authorizer = authorizer
        self._border = Border(server_of(remote.url))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[HttpConnection]:
        """Give one session; its first message opens it. Entering raises `SpawnFailed` if nothing can be asked there."""
        client, site = self._open(await context_for(self._remote.url))
        try:
            async with background() as nursery:
                hide = None if self._authorizer is None else client.without_tokens
                connection = HttpConnection(site, nursery, self._kind, self._learn, hide)
                try:
                    yield connection
                finally:
                    connection.kill()
                    nursery.cancel_scope.cancel()
        finally:  # when no task uses it any more
            with trio.move_on_after(self._limits.stop_s, shield=True):
                await client.aclose()

    def _open(self, trusted: ssl.SSLContext) -> tuple[AuthorizedClient, Site]:
        """Return a client, and what is asked by it. Raises `SpawnFailed` if nothing can be asked there."""
        limits, url = self._limits, self._remote.url
        try:
            client = AuthorizedClient(
                self._authorizer,
                transport=way_to(url, trusted, _POOL),
                trust_env=False,
                headers={**self._remote.headers, "user-agent": "mcpvisor", "accept-encoding": ENCODING},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=httpx2.Timeout(None, connect=limits.connect_timeout_s, write=limits.write_timeout_s),
            )
            return client, Site(url, limits, client, self._border, proxy_before(url))
        except UnicodeEncodeError as error:
            text = 'what would be sent to it is no HTTP: look at its "headers"'
            raise SpawnFailed(text, permanent=True) from error
        except (httpx2.InvalidURL, ValueError) as error:
            raise SpawnFailed('what is at "url" is no address', permanent=True) from error

    def _learn(self, kind: HttpKind) -> None:
        self.kind = self._kind = kind
