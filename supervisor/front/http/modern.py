"""The modern era over HTTP: stateless requests and `subscriptions/listen`.

Rules of this file:
- Nothing is remembered between requests; a session id is neither read nor sent.
- The client that closes its connection has cancelled its request (MCP 2026-07-28, basic/patterns/cancellation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from actors.errors import SupervisorError
from supervisor.config import Settings
from supervisor.front.calls import STREAMS
from supervisor.front.edge.request import ClientGone, HttpRequest
from supervisor.front.http.elsewhere import RequestNodes
from supervisor.front.http.heads import Accepts, refusal_of
from supervisor.front.http.streams import EventStream, KeepAlive, cancel_when_set, notify
from supervisor.front.listen import ChangePace, StreamLimit, Subscription, Watch, read_subscription, subscribe_all
from supervisor.front.messages import ModernRequest
from supervisor.service.asking.exchange import Exchange, SessionState
from supervisor.service.client import Updates
from supervisor.service.drain import RequestDrain
from supervisor.service.port import Answer, failure

_LISTEN: Final = "subscriptions/listen"


class ModernFront:
    """Serves modern requests."""

    def __init__(
        self,
        drain: RequestDrain,
        *,
        settings: Settings,
        keep_alive: KeepAlive,
        limit: StreamLimit,
        nodes: RequestNodes | None = None,
    ) -> None:
        """`nodes` are those of a fleet."""
        self._nodes = nodes
        self._drain = drain
        self._service = drain.service
        self._settings = settings
        self._keep_alive = keep_alive
        self._limit = limit

    async def serve(self, message: ModernRequest, accepts: Accepts, request: HttpRequest) -> None:
        if message.method == _LISTEN:
            await self._listen(message, accepts, request)
        else:
            await self._perform(message, accepts, request)

    async def _perform(self, message: ModernRequest, accepts: Accepts, request: HttpRequest) -> None:
        if message.method in STREAMS:
            request.end_with_credential(None)
        late = self._keep_alive.add(request) if accepts.stream_named else None
        client = message.client(request.principal)
        exchange = Exchange(client, message.id, message.method, message.params, voice=late, retry=message.retry)
        exchange.lines = request.fields.lines
        answer: Answer | None = None
        try:
            with trio.CancelScope() as scope, request.leaving.ends(scope):
                answer = await self._drain.answer(scope, exchange)
        finally:
            if late is not None:
                self._keep_alive.remove(late)
        answer = answer or self._drain.last_answer(scope, exchange)
        if answer is None:
            raise ClientGone
        if late is not None and late.committed:
            await late.finish(answer.body)
        elif self._nodes is not None and await self._nodes.answer_elsewhere(answer.life, request, message.id):
            pass
        elif accepts.json or answer.status != 200:
            await request.answer(answer.status, answer.body)
        else:
            await EventStream(request).answer(answer.body)

    async def _listen(self, message: ModernRequest, accepts: Accepts, request: HttpRequest) -> None:
        if not accepts.stream:
            raise refusal_of(406, f"{_LISTEN} needs Accept: text/event-stream", message.id)
        try:
            subscription = read_subscription(message.id, message.params)
            with self._limit.place(request.principal):
                await self._follow(subscription, message, request)
        except SupervisorError as error:  # only ever raised before the stream is committed to
            answer = failure(message.id, error)
            await request.answer(answer.status, answer.body)

    async def _follow(self, subscription: Subscription, message: ModernRequest, request: HttpRequest) -> None:
        """Subscribe to the resources, then tell of everything, until the client is gone."""
        request.end_with_credential(None)
        updates = Updates()
        exchange = Exchange(
            message.client(request.principal),
            message.id,
            _LISTEN,
            message.params,
            session=SessionState(updates=updates),
        )
        uris: list[str] = []
        try:
            if subscription.uris:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel_when_set, self._drain.closing, nursery.cancel_scope)
                    with request.leaving.ends(nursery.cancel_scope):
                        uris.extend(await subscribe_all(self._service, exchange, subscription.uris))
                    nursery.cancel_scope.cancel()
            await self._stream(subscription, uris, updates, request)
        finally:
            updates.end()

    async def _stream(
        self, subscription: Subscription, uris: Sequence[str], updates: Updates, request: HttpRequest
    ) -> None:
        settings = self._settings
        watch = Watch(
            self._service,
            subscription.kinds,
            updates=updates,
            pace=ChangePace(settings.list_changed_min_interval_s),
        )
        stream = EventStream(request)
        await stream.open()
        await stream.event(subscription.acknowledge(uris))
        if subscription.kinds or uris:
            await notify(
                stream,
                watch,
                request.leaving,
                message=subscription.notification,
                go_on=lambda: True,
                closing=self._drain.closing,
                keepalive_s=settings.sse_keepalive_s,
            )
        # To a client that is gone this goes nowhere; everybody else learns that the end was meant.
        await stream.event(subscription.result())
        await stream.close()
