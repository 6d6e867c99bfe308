"""HTTP/1.1 of one connection: hypercorn's protocol, fed and watched by us.

Rules of this file:
- The parser gets what it needs for its next event. What a client sends ahead of its turn waits in a bounded inbox, so
  that the end of a connection is noticed while a request is under way.
- A client that sends without pause takes turns with everybody else, whatever its bytes are cut into.
- HTTP/1.1 only and no WebSocket compression: what is not spoken cannot be abused.
- A request costs no task but the application's; head and body of an answer leave in one packet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import h11
import trio
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import events as stream_events
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol, H11WSConnection
from hypercorn.protocol.http_stream import HTTPStream

from supervisor.front.edge.budget import Budget
from supervisor.front.edge.turns import Turns
from supervisor.front.edge.websocket_frames import FrameSettings, WebSocketStream

MAX_HEADERS = 128
"""Header lines of one request; more are answered with 431."""

SLICE_BYTES = 8 * 1024
"""What the parser gets at once where lines are looked for: it reads them all before it says anything."""

MAX_AHEAD_BYTES = 16 * 1024
"""What may wait behind a request that is under way."""


_BEFORE_THE_END = frozenset({h11.IDLE, h11.SEND_BODY, None})
_OF_A_BODY = (stream_events.Body, stream_events.EndBody)
"""A tuple: a union would be made anew for each event."""


class UnspokenProtocol(Exception):
    """The peer speaks HTTP/2 without having been asked."""


class RefusedHandshake(Exception):
    """hypercorn has refused a handshake by itself, which it tells neither the application nor the connection."""


class Http11(H11Protocol):
    """HTTP/1.1 and WebSocket without compression; HTTP/2 is answered with 505."""

    def __init__(self, *arguments: Any, frames: FrameSettings, budget: Budget) -> None:
        super().__init__(*arguments)
        self._frames = frames
        self._budget = budget
        self._turns = Turns()
        self._inbox = bytearray()
        self._body_left = 0
        self._head_lines = 0
        self._refused = False
        self._last = False
        self._websocket: WebSocketStream | None = None
        self._hungry = True
        self._ahead = False
        self._holding = False
        self._held = b""
        self._pass_on = self.send
        self.send = self._gather

    @property
    def answering(self) -> bool:
        """True from the first byte of an application's HTTP answer until the application has finished it."""
        state = repr(self.connection.our_state)
        return self.stream is not None and not self._refused and state in {"SEND_BODY", "DONE", "MUST_CLOSE"}

    @property
    def waiting_bytes(self) -> int:
        """How much waits for the end of the request that is under way."""
        return len(self._inbox)

    @property
    def next_is_here(self) -> bool:
        """True if there are bytes nobody has processed: the next request's, once all of this one is here."""
        return self._ahead or bool(self._inbox)

    @property
    def paused(self) -> bool:
        """True while a request is under way whose body is here: what comes now is ahead of its turn."""
        return self.connection.their_state not in _BEFORE_THE_END

    async def handle(self, event: Event) -> None:
        """Process what arrived, as far as it is its turn; no bytes mean that nothing more comes."""
        if not isinstance(event, RawData):
            await super().handle(event)
            return
        if self._websocket is not None and not self._inbox:
            if event.data:  # it takes all, and has turns of its own
                await self._websocket.handle(stream_events.Data(stream_id=STREAM_ID, data=event.data))
            if self.stream is not None and self.stream.closed:
                raise RefusedHandshake
            return
        if event.data and not self._last:
            self._inbox += event.data
        elif not event.data:
            self._inbox.clear()  # who has gone gets what is under way and no more
            self.connection.receive_data(b"")
            self._hungry = False
        await self.go_on()

    async def go_on(self) -> None:
        """Process what waits, event by event, as far as it is its turn. A checkpoint now and then."""
        if self._hungry:  # the parser has used up what it had: it is not asked again before it has got more
            self._hungry = not self._feed()
            if self._hungry and self._head_lines <= MAX_HEADERS + 1:
                return
        more = True
        while more:
            if self.connection.they_are_waiting_for_100_continue:
                await self._send_h11_event(h11.InformationalResponse(status_code=100, headers=[]))
            try:
                event = self.connection.next_event()
            except h11.RemoteProtocolError as error:
                await self._break_off(error.error_status_hint)
                break
            if event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                break
            if event is h11.NEED_DATA:
                more = self._feed()
                if not more:
                    self._hungry = not self._inbox
                    if self._head_lines > MAX_HEADERS + 1:
                        await self._break_off(431)
            elif isinstance(event, h11.Request):
                more = await self._begin(event)
            else:
                more = await self._continue(event)
            if more and self._turns.used_up():
                await trio.lowlevel.checkpoint()
        if self.stream is not None and self.stream.closed:
            raise RefusedHandshake

    def let_go(self) -> None:
        """The connection is over: let go of all that knows us, so that nobody has to search for us to free us."""
        self.send = self._pass_on = _nowhere
        self.stream = self._websocket = None

    def refuse_more(self) -> None:
        """Throw away what waits; the answer under way is the last one."""
        self._last = True
        self._inbox.clear()

    def _feed(self) -> bool:
        """Give the parser what it needs next; False if there is nothing, it is not its turn, or a head has no end."""
        state = self.connection.their_state
        if not self._inbox or self._last or state not in _BEFORE_THE_END:
            return False
        size = len(self._inbox)
        if state is not None:  # else it is a WebSocket, which takes all
            size = self._body_left or SLICE_BYTES
        data = bytes(self._inbox[:size])
        if state is h11.IDLE:
            self._head_lines += data.partition(b"\r\n\r\n")[0].count(b"\n")
            if self._head_lines > MAX_HEADERS + 1:  # not worth parsing: that is done at once for all of its lines
                return False
        self.connection.receive_data(data)
        del self._inbox[:size]
        return True

    async def _begin(self, request: h11.Request) -> bool:
        """Start a request; return whether there may be another event now."""
        self._head_lines = 0
        self._ahead = False
        headers = list(request.headers)
        await self._pass_on(Updated(idle=False))
        # hypercorn changes to HTTP/2 here. An `Upgrade: h2c` may be ignored (RFC 9110 7.8), a preface may not.
        if request.http_version not in {b"1.0", b"1.1"}:
            await self._send_error_response(505)
            raise UnspokenProtocol
        if len(headers) > MAX_HEADERS:
            await self._break_off(431)
            return False
        self._body_left = 0
        for name, value in headers:
            if name == b"content-length":
                self._body_left = int(value)
        await self._open_stream(request, headers)
        return True

    async def _continue(self, event: Any) -> bool:
        """Hand on a part of a request; return whether there may be another event now."""
        if self.stream is None:
            return False
        if isinstance(event, h11.Data):
            self._body_left = max(0, self._body_left - len(event.data))
            await self.stream.handle(stream_events.Body(stream_id=STREAM_ID, data=bytes(event.data)))
        elif isinstance(event, h11.EndOfMessage):
            await self.stream.handle(stream_events.EndBody(stream_id=STREAM_ID))
            self._ahead = bool(self.connection.trailing_data[0])
            self._hungry = not self._ahead
            return False  # the parser pauses until this one is answered, or the connection ends
        else:
            await self.stream.handle(event)  # what a WebSocket passes through
        return True

    async def _break_off(self, status: int) -> None:
        self._last = True
        if self.connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            await self._send_error_response(status)
        await self.send(Closed())

    async def _maybe_recycle(self) -> None:
        if self._last:
            await self._close_stream()
            await self.send(Closed())
        else:
            await super()._maybe_recycle()

    async def stream_send(self, event: stream_events.Event) -> None:
        """Send; the head of an answer says so if it is the last one."""
        if isinstance(event, stream_events.Response):
            # The body follows at once where its length is known: both leave in one packet.
            self._holding = b"content-length" in dict(event.headers)
            if event.status_code >= 200 and (self._last or self.context.terminated.is_set()):
                event.headers.append((b"connection", b"close"))
        await super().stream_send(event)
        if self._holding and isinstance(event, _OF_A_BODY):
            data, self._held, self._holding = self._held, b"", False
            await self._pass_on(RawData(data=data))

    async def _gather(self, event: Event) -> None:
        if isinstance(event, RawData):
            if self._holding:
                self._held += event.data
                return
            if not event.data:  # what h11 makes of the end of a body whose length was announced
                return
        await self._pass_on(event)

    async def _send_error_response(self, status_code: int) -> None:
        self._refused = True
        await super()._send_error_response(status_code)

    async def _open_stream(self, request: h11.Request, headers: list[tuple[bytes, bytes]]) -> None:
        method = request.method.decode("ascii").upper()
        common = (
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        if method == "GET" and _opens_websocket(headers):
            headers = [(name, value) for name, value in headers if name != b"sec-websocket-extensions"]
            self.connection = H11WSConnection(self.connection)  # type: ignore[arg-type]  # it is no WebSocket yet
            self.stream = self._websocket = WebSocketStream(
                *common, settings=self._frames, budget=self._budget, turns=self._turns
            )
        else:
            self.stream = HTTPStream(*common)
        opening = stream_events.Request(
            stream_id=STREAM_ID,
            headers=headers,
            http_version=request.http_version.decode(),
            method=method,
            raw_path=request.target,
            state=self.connection_state,
        )
        await self.stream.handle(opening)


async def _nowhere(event: Event) -> None:
    """Send what nobody is there for."""


def _opens_websocket(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Say whether a GET asks for a WebSocket (RFC 6455 4.2.1); what is wrong with it is found out later."""
    upgrade = connection = b""
    for name, value in headers:
        if name == b"upgrade":
            upgrade = value
        elif name == b"connection":
            connection = value
    tokens = {token.strip() for token in connection.lower().split(b",")}
    return b"upgrade" in tokens and upgrade.lower() == b"websocket"
