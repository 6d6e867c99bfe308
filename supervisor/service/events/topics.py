"""Topics that are followed, each once for all who hold it: opened by the first, and ended a while after the last.

- What happens is kept by topic; each reader has a place of its own in that, and nobody waits for another one.
- Who polls holds a topic for a moment only, so it is followed on until the next poll is overdue.
- Who may hold a topic is looked up for each, and again whenever something is delivered (`allowed`).
"""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain

import msgspec
import trio

from actors.errors import CallTimedOut, InvalidArguments, ShuttingDown, SupervisorError
from actors.kit import Shares
from actors.principal import Principal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.service.events.errors import REMOVED, TooManyEvents, UnknownEvent
from supervisor.service.events.journal import Kept, Reading, TopicLog
from supervisor.service.events.limits import (
    LINGER_S,
    MAX_ARGUMENTS_BYTES,
    MAX_CURSOR_CHARS,
    MAX_TOPICS,
    POLL_MS,
)
from supervisor.service.events.occurrences import Unusable, read_occurrence
from supervisor.service.events.sources import Origin, Source, Terminated, canonical
from supervisor.service.events.types import EventType, Viewpoint

log = logging.getLogger(__name__)


class Topic:
    """One that is followed; see `Told` for what its source says to it.

    `failures` counts what its source said could not be had, `failure` is the newest of it.
    """

    def __init__(self, origin: Origin, kept: TopicLog, topics: Topics) -> None:
        self.origin = origin
        self.ended: ErrorObject | None = None
        self.failures = 0
        self.failure: ErrorObject | None = None
        self.next_poll_ms = POLL_MS
        self._log = kept
        self._topics = topics
        self._bell = trio.lowlevel.ParkingLot()

    # For those who hold it ------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.origin.name

    @property
    def arguments(self) -> bytes:
        """A JSON object, in one form."""
        return self.origin.arguments

    @property
    def launch(self) -> str:
        """That of its server; empty for the daemon's own events."""
        return self.origin.launch

    @property
    def head(self) -> int:
        """The number up to which everything is known."""
        return self._log.head

    def cursor(self, number: int) -> str:
        """Return how a client knows a place in this topic."""
        return f"{self._topics.life}.{self.origin.id}.{number}"

    def position(self, cursor: str | None) -> int | None:
        """Return the number that a cursor means, for None that of now; None if nothing is known of that.

        Then everything that is kept is behind it, and it is `truncated`: read after -1.
        """
        if cursor is None:
            return self.head
        life, _, rest = cursor.partition(".")
        id_, _, number = rest.partition(".")
        known = life == self._topics.life and id_ == self.origin.id and number.isascii() and number.isdigit()
        return min(int(number[:20]), self.head) if known else None

    def after(self, number: int, limit: int, not_before: float = 0.0) -> Reading:
        """Return what is kept behind a number, so many at most; nothing from before a moment (unix s)."""
        return self._log.after(number, limit, not_before)

    async def wait_after(self, number: int, failures: int = -1) -> None:
        """Wait until there is something behind a number, or the topic has `ended`.

        Also until there were more than so many `failures`, if that is given. A checkpoint.
        """
        await trio.lowlevel.checkpoint()
        while self.head <= number and self.ended is None and (failures < 0 or self.failures <= failures):
            await self._bell.park()

    # What its source says -------------------------------------------------------------------------------------------

    def active(self, cursor: str | None, *, truncated: bool) -> None:
        if truncated or cursor is None or not self._topics.is_whole(self):
            self._log.mark_gap(self._topics.next_number())
        self._go_on(cursor)

    def event(self, occurrence: msgspec.Raw, cursor: str | None) -> None:
        now = self._topics.clock()
        try:
            read = read_occurrence(occurrence, self.name, now)
        except Unusable as reason:
            self.error(ErrorObject(-32603, str(reason)))
        else:
            if not self._log.knows(read.event_id):
                self._log.add(Kept(self._topics.next_number(), read.event_id, read.time, read.body))
        self._go_on(cursor)

    def checked(self, cursor: str | None) -> None:
        self._go_on(cursor)

    def error(self, error: ErrorObject) -> None:
        self.failures += 1
        self.failure = error
        self._bell.unpark_all()

    def asked_every(self, milliseconds: int) -> None:
        self.next_poll_ms = milliseconds

    def _go_on(self, cursor: str | None) -> None:
        if cursor is None or len(cursor) <= MAX_CURSOR_CHARS:
            self._topics.note_cursor(self, cursor)
        self._bell.unpark_all()

    def end(self, error: ErrorObject) -> None:
        """It is followed no more, for a reason that its readers are told."""
        self.ended = self.ended or error
        self._bell.unpark_all()


class _Held:
    """A topic that is followed, and by whom it is held. `opened` is set once it is confirmed, or cannot be (`failed`).

    `opener`: who began it, and has its place until it ends.
    """

    def __init__(self, topic: Topic, opener: Principal) -> None:
        self.topic = topic
        self.opener = opener
        self.holders = 0
        self.until = 0.0
        self.opened = trio.Event()
        self.failed: Exception | None = None
        self.changed = trio.Event()

    def settle(self, failed: Exception | None = None) -> None:
        self.failed = self.failed or (failed if not self.opened.is_set() else None)
        self.opened.set()


class _Opening:
    """Who is told of a topic, until it is confirmed and afterwards; implements `Told`."""

    def __init__(self, held: _Held) -> None:
        self._held = held
        topic = held.topic
        self.event, self.checked, self.error, self.asked_every = (
            topic.event,
            topic.checked,
            topic.error,
            topic.asked_every,
        )

    def active(self, cursor: str | None, *, truncated: bool) -> None:
        self._held.topic.active(cursor, truncated=truncated)
        self._held.settle()


class Topics:
    """All topics of the daemon. `sources` are asked in their order; `clock` gives unix seconds.

    `run` has to run as long as anybody holds one.
    """

    def __init__(self, sources: Sequence[Source], clock: Callable[[], float]) -> None:
        self.sources = sources
        self.clock = clock
        self.life = secrets.token_urlsafe(8)
        self._number = 0
        self._held: dict[str, _Held] = {}
        self._logs: OrderedDict[str, tuple[TopicLog, str | None]] = OrderedDict()
        self._shares = Shares(MAX_TOPICS)
        self._nursery: trio.Nursery | None = None

    def types(self, at: Viewpoint) -> Iterator[EventType]:
        """Yield the types that somebody sees."""
        return chain.from_iterable(source.types(at) for source in self.sources)

    def allowed(self, at: Viewpoint, topic: Topic) -> bool:
        """Say whether somebody may (still) have what happens in a topic."""
        try:
            return self._find(at, topic.name, topic.arguments)[1].id == topic.origin.id
        except SupervisorError:
            return False

    @asynccontextmanager
    async def hold(self, at: Viewpoint, name: str, arguments: msgspec.Raw) -> AsyncIterator[Topic]:
        """Hold the topic of a type with arguments (a JSON object; empty: none), which is followed meanwhile.

        Raises `RemoteError` with what its server says of it (NotFound, Forbidden, InvalidParams, Unsupported),
        `UnknownEvent`, `TooManyEvents`, `InvalidArguments`, and why a server cannot be asked. A checkpoint.
        """
        source, origin = self._find(at, name, _checked(arguments))
        held = self._held.get(origin.id) or self._begin(source, origin, at.principal)
        held.holders += 1
        held.changed.set()
        try:
            with trio.move_on_after(origin.timeout_s):
                await held.opened.wait()
            if not held.opened.is_set():
                server = origin.name.partition(":")[0]
                raise CallTimedOut(f"{name!r} was not confirmed within {origin.timeout_s:g} s", server=server)
            if held.failed is not None:
                raise held.failed
            yield held.topic
        finally:
            held.holders -= 1
            held.until = trio.current_time() + max(LINGER_S, 3 * held.topic.next_poll_ms / 1000)
            held.changed.set()

    def _find(self, at: Viewpoint, name: str, arguments: bytes) -> tuple[Source, Origin]:
        for source in self.sources:
            if (origin := source.find(at, name, arguments)) is not None:
                return source, origin
        raise UnknownEvent(name)

    def _begin(self, source: Source, origin: Origin, principal: Principal) -> _Held:
        if self._nursery is None:
            raise ShuttingDown
        if not self._shares.has_place(principal):
            raise TooManyEvents(self._shares.why_not(principal, "subscriptions"), "subscriptions", MAX_TOPICS)
        self._shares.add(principal)
        kept, _ = self._logs.setdefault(origin.id, (TopicLog(), None))
        self._logs.move_to_end(origin.id)
        while len(self._logs) > 2 * MAX_TOPICS:
            self._logs.popitem(last=False)
        held = self._held[origin.id] = _Held(Topic(origin, kept, self), principal)
        self._nursery.start_soon(self._run, source, held)
        return held

    # Running --------------------------------------------------------------------------------------------------------

    async def run(self, closing: trio.Event) -> None:
        """Run until the daemon begins to end: then topics are followed no more, and all who hold one are told."""
        async with trio.open_nursery() as self._nursery:
            await closing.wait()
            nursery, self._nursery = self._nursery, None
            nursery.cancel_scope.cancel()

    async def _run(self, source: Source, held: _Held) -> None:
        """Follow a topic as long as anybody wants it."""
        topic = held.topic
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow, source, held, nursery.cancel_scope)
                await _unwanted(held)
                nursery.cancel_scope.cancel()
        finally:
            if self._held.get(topic.origin.id) is held:
                del self._held[topic.origin.id]
            self._shares.remove(held.opener)
            held.settle(ShuttingDown())
            topic.end(REMOVED)

    async def _follow(self, source: Source, held: _Held, scope: trio.CancelScope) -> None:
        topic = held.topic
        _, cursor = self._logs[topic.origin.id]
        try:
            await source.follow(topic.origin, cursor, _Opening(held))
        except Terminated as terminated:
            held.settle(RemoteError(terminated.error))
            topic.end(terminated.error)
        except (RemoteError, SupervisorError) as error:
            held.settle(error)
        except Exception as bug:  # the border: a bug costs one topic
            log.exception("a bug while following events")
            held.settle(bug)
        topic.end(REMOVED)
        scope.cancel()

    # What topics need -----------------------------------------------------------------------------------------------

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def is_whole(self, topic: Topic) -> bool:
        """Say whether a topic goes on from where it was left, so that nothing is missing."""
        return self._logs[topic.origin.id][1] is not None

    def note_cursor(self, topic: Topic, cursor: str | None) -> None:
        kept, _ = self._logs.get(topic.origin.id, (TopicLog(), None))
        self._logs[topic.origin.id] = kept, cursor


async def _unwanted(held: _Held) -> None:
    """Wait until nobody holds it, nor is expected to again."""
    while held.holders or trio.current_time() < held.until:
        held.changed = trio.Event()
        with trio.move_on_at(held.until) if not held.holders else trio.CancelScope():
            await held.changed.wait()


def _checked(arguments: msgspec.Raw) -> bytes:
    """Return arguments in one form. Raises `InvalidArguments`."""
    if len(arguments) > MAX_ARGUMENTS_BYTES:
        raise InvalidArguments(f"'arguments' have over {MAX_ARGUMENTS_BYTES} bytes")
    try:
        made = canonical(arguments) if bytes(arguments) else b"{}"
    except (json.UnreadableJson, RecursionError):
        made = b""
    if made[:1] != b"{":
        raise InvalidArguments("'arguments' must be an object")
    return made
