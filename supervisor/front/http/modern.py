"""The modern era over HTTP: stateless requests and `subscriptions/listen`.

Rules of this file:
- Nothing is remembered between requests; a session id is neither read nor sent.
- The client that closes its connection has cancelled its request (MCP 2026-07-28, basic/patterns/cancellation).
- What this revision took away does not exist: 404 and -32601, whatever the service thinks of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from actors.errors import SupervisorError
from actors.principal import Principal
from actors.protocol.jsonrpc import INVALID_REQUEST
from supervisor.front.edge.asgi import Receive, Send
from supervisor.front.http.answer_stream import KeepAlive
from supervisor.front.http.exchange import EventStream, cancel_when_gone, cancel_when_set, reply
from supervisor.front.http.head import Accepts
from supervisor.front.http.refusal import refuse
from supervisor.front.http.settings import HttpSettings
from supervisor.front.http.streams import notify
from supervisor.front.mcp.listen import StreamLimit, Subscription, Watch, read_subscription, subscribed
from supervisor.front.mcp.messages import ModernRequest
from supervisor.front.mcp.modern import client_of, removed
from supervisor.service.drain import RequestDrain
from supervisor.service.exchange import Exchange
from supervisor.service.port import Answer, failure
from supervisor.service.updates import Updates

LISTEN: Final = "subscriptions/listen"


class ModernFront:
    """Serves modern requests."""

    def __init__(
        self,
        drain: RequestDrain,
        *,
        settings: HttpSettings,
        keep_alive: KeepAlive,
        limit: StreamLimit,
    ) -> None:
        self._drain = drain
        self._service = drain.service
        self._settings = settings
        self._keep_alive = keep_alive
        self._limit = limit

    async def request(
        self,
        request: ModernRequest,
        accepts: Accepts,
        principal: Principal,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer one request. A checkpoint."""
        if request.method == LISTEN:
            await self._listen(request, accepts, principal, receive, send)
        elif (error := removed(request)) is not None:
            answer = failure(request.id, error)
            await reply(send, answer.status, answer.body)
        else:
            await self._perform(request, accepts, principal, receive, send)

    async def _perform(
        self, request: ModernRequest, accepts: Accepts, principal: Principal, receive: Receive, send: Send
    ) -> None:
        late = self._keep_alive.add(send, None) if accepts.stream_named else None
        client = client_of(request, principal)
        exchange = Exchange(client, request.id, request.method, request.params, voice=late, retry=request.retry)
        answers: list[Answer] = []
        try:
            async with trio.open_nursery() as nursery:
                scope = nursery.cancel_scope
                nursery.start_soon(cancel_when_gone, receive, scope)
                answers.append(await self._drain.answer(scope, exchange))
                scope.cancel()
        finally:
            if late is not None:
                self._keep_alive.remove(late)
        answer = answers[0] if answers else self._drain.last_answer(scope, exchange)
        if answer is None:
            return  # the client is gone
        if late is not None and late.committed:
            await late.finish(answer.body)
        elif accepts.json or answer.status != 200:
            await reply(send, answer.status, answer.body)
        else:
            await EventStream(send).answer(answer.body)

    async def _listen(
        self, request: ModernRequest, accepts: Accepts, principal: Principal, receive: Receive, send: Send
    ) -> None:
        if not accepts.stream:
            refused = refuse(406, request.id, INVALID_REQUEST, f"{LISTEN} needs Accept: text/event-stream")
            await reply(send, refused.status, refused.body)
            return
        try:
            subscription = read_subscription(request.id, request.params)
            with self._limit.place():
                await self._follow(subscription, request, principal, receive, send)
        except SupervisorError as error:  # only ever raised before the stream is committed to
            answer = failure(request.id, error)
            await reply(send, answer.status, answer.body)

    async def _follow(
        self, subscription: Subscription, request: ModernRequest, principal: Principal, receive: Receive, send: Send
    ) -> None:
        """Subscribe to the resources, then tell of everything, until the client is gone."""
        client, updates = client_of(request, principal), Updates()
        exchange = Exchange(client, request.id, LISTEN, request.params, updates=updates)
        uris: list[str] = []
        try:
            if subscription.uris:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel_when_gone, receive, nursery.cancel_scope)
                    nursery.start_soon(cancel_when_set, self._drain.closing, nursery.cancel_scope)
                    uris.extend(await subscribed(self._service, exchange, subscription.uris))
                    nursery.cancel_scope.cancel()
            await self._stream(subscription, uris, updates, principal, receive, send)
        finally:
            updates.end()

    async def _stream(
        self,
        subscription: Subscription,
        uris: Sequence[str],
        updates: Updates,
        principal: Principal,
        receive: Receive,
        send: Send,
    ) -> None:
        settings = self._settings
        watch = Watch(
            self._service,
            principal,
            subscription.kinds,
            updates=updates,
            min_interval_s=settings.list_changed_min_interval_s,
            debounce_s=settings.list_changed_debounce_s,
        )
        stream = EventStream(send)
        await stream.open()
        await stream.event(subscription.acknowledged(uris))
        if subscription.kinds or uris:
            await notify(
                stream,
                watch,
                receive,
                message=subscription.changed,
                go_on=lambda: True,
                closing=self._drain.closing,
                keepalive_s=settings.sse_keepalive_s,
            )
        # To a client that is gone this goes nowhere; everybody else learns that the end was meant.
        await stream.event(subscription.complete())
        await stream.close()
