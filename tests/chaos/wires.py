"""Connections of clients over HTTP, as bare as they can be: one request at a time, and they can be torn."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from select import select
from time import monotonic
from typing import Any, Self

import h11
import trio

BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError, h11.ProtocolError)
"""What a connection raises that is gone."""
IDLE_S = 5.0
"""Far below the time after which the daemon closes a connection that nobody uses."""
RST = struct.pack("ii", 1, 0)


def tear(connection: Any) -> None:
    """Close a socket of trio so that its peer gets a reset, whoever uses it."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
    except OSError:
        return
    connection.close()


def tear_stream(stream: object) -> None:
    """Do so with the socket of a stream of trio, if it has one."""
    if isinstance(stream, trio.SocketStream):
        tear(stream.socket)


class HttpWire:
    """One connection to a port of this machine."""

    def __init__(self, stream: trio.SocketStream, port: int) -> None:
        self._stream = stream
        self._host = f"127.0.0.1:{port}"
        self._http = h11.Connection(h11.CLIENT)
        self.status = 0
        self.headers: dict[str, str] = {}
        self._used_s = monotonic()

    @classmethod
    async def opened(cls, port: int) -> Self:
        """Connect. Raises one of `BROKEN`."""
        # Not `trio.open_tcp_stream`: its nursery raises a cancellation in a group, which looks like another error.
        connection = trio.socket.socket()
        try:
            await connection.connect(("127.0.0.1", port))
        except BaseException:
            connection.close()
            raise
        return cls(trio.SocketStream(connection), port)

    def tear(self) -> None:
        tear(self._stream.socket)

    async def aclose(self) -> None:
        await trio.aclose_forcefully(self._stream)

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent: its peer closes a connection that is not used for a time.

        One that can be read between two requests has been closed: all clients look for that. Another task may have torn
        it meanwhile.
        """
        if self._stream.socket.fileno() < 0:
            return False
        fresh = monotonic() - self._used_s < IDLE_S and not select([self._stream.socket], [], [], 0)[0]
        return fresh and self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def post(self, path: str, headers: Mapping[str, str], message: Any) -> None:
        """Send a request and read the head of its answer. Raises one of `BROKEN`."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        fields = {"host": self._host, "content-length": str(len(body)), **headers}
        events = (
            h11.Request(method="POST", target=path, headers=list(fields.items())),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        await self._stream.send_all(b"".join(self._http.send(event) or b"" for event in events))
        answer = await self._event()
        while isinstance(answer, h11.InformationalResponse):
            answer = await self._event()
        if not isinstance(answer, h11.Response):
            raise trio.BrokenResourceError("the connection ended before the answer")
        self.status = answer.status_code
        self.headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}

    async def messages(self) -> AsyncIterator[Any]:
        """Give each message of the answer: one of JSON, or those of a stream. Raises one of `BROKEN`."""
        events = self.headers.get("content-type", "").startswith("text/event-stream")
        rest = b""
        while (data := await self._data()) is not None:
            rest += data
            while events and b"\n\n" in rest:
                event, _, rest = rest.partition(b"\n\n")
                text = b"".join(part[5:] for part in event.splitlines() if part.startswith(b"data:"))
                if text.strip():
                    yield json.loads(text)
        if not events and rest:
            yield json.loads(rest)

    async def read(self) -> str:
        """Return the whole answer as a text."""
        text = b""
        while (data := await self._data()) is not None:
            text += data
        return text.decode(errors="replace")

    async def _data(self) -> bytes | None:
        event = await self._event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            return None
        raise trio.BrokenResourceError("the connection ended in the middle of the answer")

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._stream.receive_some(65536))
            self._used_s = monotonic()
        return event
