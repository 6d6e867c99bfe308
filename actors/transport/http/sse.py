"""HTTP+SSE, the remote transport of 2024-11-05: one stream brings every message, and names where to post to.

The session is the stream. (MCP 2024-11-05, basic/transports "HTTP with SSE".)
"""

from __future__ import annotations

import math
from typing import Literal

import httpx2
import trio
from msgspec.structs import replace

from actors.protocol.agreement.versions import MODERN_VERSIONS
from actors.protocol.wire.peer import Failure, Outgoing
from actors.transport.http.client.pieces import StreamEvent, events, frozen
from actors.transport.http.client.verdict import expiry
from actors.transport.http.head import EVENTS, head_of, media_type
from actors.transport.http.site import Site
from actors.transport.session import Session

ENDPOINT_S = 5.0
"""How long after its head a stream may take to name the address for messages: that comes first."""
_OF_OTHERS = (400, 404, 405, 406)
"""How who does not know HTTP+SSE answers the GET that opens its stream."""


class HttpSse:
    """One session, which is lost when its stream has ended; see `StreamableHttp`."""

    kind: Literal["sse"] = "sse"

    def __init__(self, site: Site, incoming: Session, nursery: trio.Nursery) -> None:
        self.missing = ""
        self._site = site
        self._incoming = incoming
        self._nursery = nursery
        self._endpoint: httpx2.URL | None = None
        self._scope = trio.CancelScope()

    def begin(self, version: str) -> None:
        """Nothing follows from that."""

    async def ask(self, message: Outgoing) -> Failure | None:
        """Post a request, opening the stream first; the answer comes on that."""
        if message.version in MODERN_VERSIONS:
            return Failure(id=message.id, cause="refused", reason="HTTP+SSE is older than this", sent=False)
        if self._endpoint is None:
            refused: Failure | None = await self._nursery.start(self._site.share.run, self._listen, message.id)
            if refused is not None:
                return refused
        try:
            async with self._site.request("POST", head_of(message, ""), message.body, at=self._endpoint) as response:
                status = response.status_code
                if 200 <= status < 300:
                    return None
                if status == 404 and message.method != "initialize":
                    return expiry(message.id)
                return self._refusal_of_message(message.id, response)
        except httpx2.HTTPError as error:
            return self._site.failure(message.id, error)

    def _refusal_of_message(self, id_: bytes, response: httpx2.Response) -> Failure:
        """Say that what was refused was sent to the address that the stream names, which is another one than ours.

        Behind a proxy that puts a path before those of its server, the server names one that leads past the proxy's.
        """
        failure = self._site.refusal(id_, response)
        if failure.cause != "refused" or self._endpoint is None:
            return failure
        return replace(
            failure,
            reason=f"its stream names {self._endpoint.path} for messages, where nobody takes them "
            f"(HTTP {response.status_code}); behind a proxy that adds a path, the server has to be told that path",
        )

    async def tell(self, message: Outgoing) -> None:
        if self._endpoint is not None:
            await self._site.tell(head_of(message, ""), message.body, at=self._endpoint)

    async def close(self) -> None:
        self._scope.cancel()

    async def _listen(self, id_: bytes, *, task_status: trio.TaskStatus[Failure | None]) -> None:
        """Hear everything that is said; started with why that is not possible, or None."""
        refused: Failure | None = expiry(id_)
        try:
            with trio.CancelScope() as self._scope:
                async with self._site.request("GET", {"accept": EVENTS}) as response:
                    refused = self._refusal(id_, response)
                    if refused is None:
                        refused = await self._read(id_, response, task_status)
        except httpx2.HTTPError as error:
            refused = self._site.failure(id_, error)
        if self._endpoint is None:
            task_status.started(refused)
        else:
            self._incoming.lose("the stream of its messages ended")

    def _refusal(self, id_: bytes, response: httpx2.Response) -> Failure | None:
        status, kind = response.status_code, media_type(response.headers.get("content-type", ""))
        if status == 200:
            return None if kind == EVENTS else self._silence(id_)
        self.missing = f"HTTP {status}" if status in _OF_OTHERS else ""
        return self._site.refusal(id_, response)

    def _silence(self, id_: bytes) -> Failure:
        self.missing = "no stream of that"
        return Failure(id=id_, cause="refused", reason="its address gives no stream of HTTP+SSE", sent=False)

    async def _read(
        self, id_: bytes, response: httpx2.Response, task_status: trio.TaskStatus[Failure | None]
    ) -> Failure | None:
        """Hand on what the stream brings; return why it cannot be used."""
        located: httpx2.URL | Failure | None = None
        with trio.CancelScope(deadline=trio.current_time() + ENDPOINT_S) as reading:
            async with events(response, self._site.limits.event_bytes, self._site.share) as told:
                async for event in told:
                    if self._endpoint is not None:
                        if event.data and event.event == "message":
                            await self._incoming.hand_on(await frozen(event.data), b"")
                        continue
                    located = self._endpoint_in(id_, event)
                    if isinstance(located, Failure):
                        return located
                    if located is not None:
                        self._endpoint = located
                        reading.deadline = math.inf
                        task_status.started(None)
        return self._silence(id_) if located is None else None

    def _endpoint_in(self, id_: bytes, event: StreamEvent) -> httpx2.URL | Failure | None:
        """Return the address for messages, or why it cannot be used; None for another event, which says nothing yet."""
        if event.event != "endpoint":
            return None
        address = self._site.within(self._site.url, event.data.decode())
        other = "it names an address of another origin for its messages, where nothing is sent"
        return address or Failure(id=id_, cause="protocol", reason=other, sent=False)
