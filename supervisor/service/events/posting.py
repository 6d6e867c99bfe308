"""Brings the events of one topic to one address: each by itself, again and again until it is taken or given up.

What is told to be safe to keep (the watermark) never is ahead of an event that is neither (SEP-3415, "Webhook event
delivery"): a subscription that begins again there misses nothing.
"""

from __future__ import annotations

import hashlib
import logging
import random
import re
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec
import trio

from actors.protocol.wire.jsonrpc import ErrorObject, encode
from supervisor.events.event import timestamp
from supervisor.service.events.callbacks import Callbacks, Receiver, message_id
from supervisor.service.events.limits import (
    MAX_ATTEMPTS,
    MAX_BODY_BYTES,
    MAX_IN_FLIGHT,
    RETRY_S,
    Reason,
    Undelivered,
    members_of,
)
from supervisor.service.events.topics import Topic
from supervisor.service.fitting.relay import with_member

log = logging.getLogger(__name__)

PAUSES_S: Final = (5.0, 30.0, 120.0, 300.0)
"""Before each attempt but the first, a tenth more or less."""
WINDOW_S: Final = 3600.0
BUCKET_S: Final = 60.0
MIN_SAMPLE: Final = 100
HOPELESS: Final = 0.95
"""Nothing is posted any more where in `WINDOW_S` more than this part of at least `MIN_SAMPLE` attempts failed: what the
extension gives as guidance ("Suspension")."""
_HEADER_ID: Final = re.compile(r"[!-~]{1,256}")


class Watermark:
    """The number up to which everything is settled: taken by the endpoint, or given up. Pure.

    Numbers begin in order; they settle in any.
    """

    def __init__(self, number: int) -> None:
        self._reached = number
        self._open: dict[int, None] = {}  # the oldest first

    def begin(self, number: int) -> None:
        self._open[number] = None
        self._reached = max(self._reached, number)

    def settle(self, number: int) -> None:
        self._open.pop(number, None)

    def reach(self, number: int) -> None:
        """Everything up to there has begun."""
        self._reached = max(self._reached, number)

    def __len__(self) -> int:
        """How many are not settled."""
        return len(self._open)

    @property
    def number(self) -> int:
        return next(iter(self._open)) - 1 if self._open else self._reached

    def with_(self, number: int) -> int:
        """Return what it will be at least once this number, which is not settled, is taken, too."""
        return number if self._open and next(iter(self._open)) == number else self.number


class FailureRate:
    """Whether there is any hope, by the attempts of the last hour. Moments are of a clock that never goes back."""

    def __init__(self) -> None:
        self._buckets: deque[tuple[float, int, int]] = deque()

    def note(self, now: float, *, failed: bool) -> None:
        begun = now - now % BUCKET_S
        count, failures = (0, 0)
        if self._buckets and self._buckets[-1][0] == begun:
            _, count, failures = self._buckets.pop()
        self._buckets.append((begun, count + 1, failures + failed))

    def is_hopeless(self, now: float) -> bool:
        while self._buckets and self._buckets[0][0] <= now - WINDOW_S:
            self._buckets.popleft()
        attempts = sum(count for _, count, _ in self._buckets)
        return attempts >= MIN_SAMPLE and sum(failures for *_, failures in self._buckets) > HOPELESS * attempts

    def clear(self) -> None:
        self._buckets.clear()


Body = Callable[[], tuple[str, bytes]]
"""Makes a message for each attempt: its id, and a JSON object."""


class DeliveryStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How it goes, as a client is told (SEP-3415, "Webhook delivery status")."""

    active: bool
    last_delivery_at: str | None
    last_error: Reason | None
    failed_since: str | msgspec.UnsetType = msgspec.UNSET


class Health:
    """What became of the attempts for one subscription. `clock` gives unix seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rate = FailureRate()
        self._active = trio.Event()
        self._active.set()
        self._last_delivery: float | None = None
        self._last_error: Reason | None = None
        self._failed_since: float | None = None

    @property
    def is_active(self) -> bool:
        return self._active.is_set()

    async def wait_active(self) -> None:
        await self._active.wait()

    def take(self, failure: Undelivered | None) -> None:
        """Note an attempt. One message that its endpoint refuses for good says nothing of how that is."""
        if failure is not None and failure.final:
            return
        now = self._clock()
        if failure is None:
            self._last_delivery, self._last_error, self._failed_since = now, None, None
        else:
            self._last_error = failure.reason
            self._failed_since = self._failed_since or now
        self._rate.note(trio.current_time(), failed=failure is not None)
        if self.is_active and self._rate.is_hopeless(trio.current_time()):
            self._active = trio.Event()

    def resume(self) -> None:
        if not self.is_active:
            self._rate.clear()
            self._active.set()

    def status(self) -> DeliveryStatus:
        return DeliveryStatus(
            active=self.is_active,
            last_delivery_at=None if self._last_delivery is None else timestamp(self._last_delivery),
            last_error=self._last_error,
            failed_since=msgspec.UNSET if self._failed_since is None else timestamp(self._failed_since),
        )


class Poster:
    """Posts messages to one receiver: each until it is taken, refused, or was tried often enough.

    `receiver` is as it is at each attempt; `may` says whether its principal may still have what is posted.
    """

    def __init__(self, callbacks: Callbacks, receiver: Callable[[], Receiver], health: Health) -> None:
        self.health = health
        self._callbacks = callbacks
        self._receiver = receiver

    async def post(self, body: Body, may: Callable[[], Awaitable[bool]]) -> None:
        """Return when it is settled. Waiting while nothing is posted at all does not count."""
        spent, asked_s = 0.0, 0.0
        for attempt in range(MAX_ATTEMPTS):
            if attempt:
                pause_s = max(asked_s, PAUSES_S[attempt - 1] * random.uniform(0.9, 1.1))
                if spent + pause_s > RETRY_S:
                    return
                await trio.sleep(pause_s)
                spent += pause_s
            await self.health.wait_active()
            if not await may():
                return
            since = trio.current_time()
            failure = await self._attempt(*body())
            spent += trio.current_time() - since
            if failure is None or failure.final:
                return
            asked_s = failure.retry_after_s

    async def _attempt(self, id_: str, body: bytes) -> Undelivered | None:
        try:
            await self._callbacks.deliver(self._receiver(), id_, body)
        except Undelivered as failure:
            before = self.health.is_active
            self.health.take(failure)
            if before and not self.health.is_active:
                receiver = self._receiver()
                text = "nothing is posted to %s for %s until that is refreshed: nearly all of an hour failed (%s)"
                log.warning(text, receiver.host, receiver.id, failure.reason)
            return failure
        self.health.take(None)
        return None

    async def terminate(self, error: ErrorObject, may: Callable[[], Awaitable[bool]]) -> None:
        """Tell that there is no subscription any more."""
        self.health.resume()
        await self.post(partial(_control, "terminated", message_id("terminated"), error=members_of(error)), may)


def _control(type_: str, id_: str, **members: object) -> tuple[str, bytes]:
    """Return what is posted that is no event (SEP-3415, "Non-event webhook bodies")."""
    return id_, encode({"type": type_, **members})


class Posting:
    """Posts what happens in a topic behind a number. `moved` is told whenever the watermark may have moved.

    Only numbers are held meanwhile: what the topic does not keep any more when its turn comes is given up.
    """

    def __init__(self, topic: Topic, number: int, poster: Poster, moved: Callable[[], None]) -> None:
        self.watermark = Watermark(number)
        self._topic = topic
        self._read = number
        self._poster = poster
        self._moved = moved
        self._settled = trio.Event()

    @property
    def cursor(self) -> str:
        """Where a client can begin again without missing anything."""
        return self._topic.cursor(self.watermark.number)

    async def run(self, may: Callable[[], Awaitable[bool]]) -> None:
        """Return when the topic has ended and all of it is settled.

        At once where it is only closed, or its principal may not have it: what is not settled then comes again.
        """

        async with trio.open_nursery() as nursery:

            async def checked() -> bool:
                if not (allowed := await may()):
                    nursery.cancel_scope.cancel()
                return allowed

            await self._read_on(nursery, checked)

    async def _read_on(self, nursery: trio.Nursery, may: Callable[[], Awaitable[bool]]) -> None:
        topic, watermark = self._topic, self.watermark
        while True:
            await self._wait_for_room()
            reading = topic.after(self._read, MAX_IN_FLIGHT - len(watermark))
            if reading.truncated:
                before = reading.events[0].number - 1 if reading.events else reading.head
                self._begin(nursery, before, partial(self._gap, message_id("gap")), may)
            for kept in reading.events:
                self._begin(nursery, kept.number, self._event, may)
            self._read = reading.head
            watermark.reach(reading.head)
            self._moved()
            if not reading.more:
                if topic.ended is not None:
                    return
                if topic.closed:
                    nursery.cancel_scope.cancel()
                    return
                await topic.wait_after(reading.head)

    async def _wait_for_room(self) -> None:
        await self._poster.health.wait_active()
        while len(self.watermark) >= MAX_IN_FLIGHT:
            self._settled = trio.Event()
            await self._settled.wait()

    def _begin(
        self,
        nursery: trio.Nursery,
        number: int,
        body: Callable[[int], tuple[str, bytes]],
        may: Callable[[], Awaitable[bool]],
    ) -> None:
        self.watermark.begin(number)
        nursery.start_soon(self._bring, number, partial(body, number), may)

    async def _bring(self, number: int, body: Body, may: Callable[[], Awaitable[bool]]) -> None:
        await self._poster.post(body, may)
        self.watermark.settle(number)
        self._settled.set()
        self._moved()

    def _gap(self, id_: str, number: int) -> tuple[str, bytes]:
        return _control("gap", id_, cursor=self._topic.cursor(self.watermark.with_(number)))

    def _event(self, number: int) -> tuple[str, bytes]:
        kept = next(iter(self._topic.after(number - 1, 1).events), None)
        cursor = self._topic.cursor(self.watermark.with_(number))
        if kept is not None and kept.number == number:
            body = with_member(kept.body, b'"cursor":' + encode(cursor))
            if len(body) <= MAX_BODY_BYTES:
                return _header_id(kept.event_id), body
        return self._gap(f"msg_gap_{number}", number)  # it is not kept any more, or too large with its cursor


def _header_id(event_id: str) -> str:
    """Return an id as `webhook-id` has it: itself, or what stands for one that no header can have."""
    if _HEADER_ID.fullmatch(event_id):
        return event_id
    return f"evt_{hashlib.sha256(event_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
