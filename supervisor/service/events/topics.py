"""Topics that are followed, each once for all who hold it: opened by the first, and ended a while after the last.

- What happens is kept by topic; each reader has a place of its own in that, and nobody waits for another one.
- Who polls holds a topic for a moment only, so it is followed on until the next poll is overdue.
- What nobody holds gives way where there is no room for what somebody wants now.
- Who may hold a topic is looked up for each, and again whenever something is delivered (`allowed`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain

import msgspec
import trio

from actors.codes import INTERNAL_ERROR
from actors.errors import CallTimedOut, InvalidArguments, ShuttingDown, SupervisorError, forget_frames
from actors.kit import Shares
from actors.principal import Principal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.host.pauses import Bell
from supervisor.service.events.journal import Journal, Reading, TopicLog
from supervisor.service.events.limits import (
    LINGER_S,
    MAX_ARGUMENTS_BYTES,
    MAX_TOPICS,
    MAX_TOPICS_OF_SERVER,
    POLL_MS,
    TooManyEvents,
    UnknownEvent,
)
from supervisor.service.events.sources import (
    EventType,
    Origin,
    Source,
    Terminated,
    Unusable,
    Viewpoint,
    canonical,
    read_occurrence,
)

log = logging.getLogger(__name__)


class Topic:
    """One that is followed; see `Told` for what its source says to it.

    `ended`: why there is no such topic any more. `closed`: it is followed no more for a reason of ours, such as the end
    of the daemon; whoever reads it asks for it again later. `failures` counts what its source said could not be had,
    `failure` is the newest of it, and `failing` is it as long as nothing else has come since.
    """

    def __init__(self, origin: Origin, kept: TopicLog, journal: Journal) -> None:
        self.origin = origin
        self.ended: ErrorObject | None = None
        self.closed = False
        self.failures = 0
        self.failure: ErrorObject | None = None
        self.failing: ErrorObject | None = None
        self.next_poll_ms = POLL_MS
        self._log = kept
        self._journal = journal
        self._bells: set[Bell] = set()

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
        return self._journal.cursor(self.origin.id, number)

    def position(self, cursor: str | None) -> int | None:
        """Return the number that a cursor means, for None that of now; None if nothing is known of that.

        Then everything that is kept is behind it, and it is `truncated`: read after -1.
        """
        if cursor is None:
            return self.head
        number = self._journal.position(self.origin.id, cursor)
        return None if number is None else min(number, self.head)

    def after(self, number: int, limit: int, not_before: float = 0.0) -> Reading:
        """Return what is kept behind a number, so many at most; nothing from before a moment (unix s)."""
        return self._log.after(number, limit, not_before)

    async def wait_after(self, number: int, failures: int = -1) -> None:
        """Wait until there is something behind a number, or the topic has `ended` or is `closed`.

        Also until there were more than so many `failures`, if that is given. A checkpoint.
        """
        await trio.lowlevel.checkpoint()
        bell = Bell()
        self._bells.add(bell)
        try:
            while self.head <= number and not self.over and (failures < 0 or self.failures <= failures):
                await bell.rings()
        finally:
            self._bells.discard(bell)

    # What its source says -------------------------------------------------------------------------------------------

    def active(self, cursor: str | None, *, truncated: bool) -> None:
        self.failing = None
        if truncated or cursor is None or self._log.cursor is None:
            self._journal.mark_gap(self._log, cursor)
        else:
            self._journal.note_cursor(self._log, cursor)
        self._ring()

    def event(self, occurrence: msgspec.Raw, cursor: str | None) -> None:
        try:
            read = read_occurrence(occurrence, self.name, self._journal.clock())
        except Unusable as reason:
            self.error(ErrorObject(INTERNAL_ERROR, str(reason)))
            self.checked(cursor)
        else:
            self.failing = None
            self._journal.add(self._log, read.event_id, read.time, read.body, cursor)
            self._ring()

    def checked(self, cursor: str | None) -> None:
        self.failing = None
        self._journal.note_cursor(self._log, cursor)

    def error(self, error: ErrorObject) -> None:
        self.failures += 1
        self.failure = self.failing = error
        self._ring()

    def asked_every(self, milliseconds: int) -> None:
        self.next_poll_ms = milliseconds

    def _ring(self) -> None:
        """Wake who waits, in turns."""
        for bell in self._bells:
            bell.ring()

    @property
    def over(self) -> bool:
        return self.closed or self.ended is not None

    def close(self) -> None:
        self.closed = True
        self._ring()

    def end(self, error: ErrorObject) -> None:
        """It is followed no more, for a reason that its readers are told."""
        self.ended = self.ended or error
        self._ring()


class _Held:
    """A topic that is followed, and by whom it is held. `opened` is set once it is confirmed, or cannot be (`failed`).

    `opener`: who began it, and has its `places` until it ends. `left_at`: since when nobody holds it; `until` then it
    is followed on.
    """

    def __init__(self, topic: Topic, kept: TopicLog, opener: Principal, places: Sequence[Shares]) -> None:
        self.topic = topic
        self.places = places
        self.kept = kept
        kept.followed = True
        self.opener = opener
        self.holders = 0
        self.until = self.left_at = 0.0
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
    """All topics of the daemon. `sources` are asked in their order.

    `run` has to run as long as anybody holds one.
    """

    def __init__(self, sources: Sequence[Source], journal: Journal) -> None:
        self.sources = sources
        self.journal = journal
        self.large = trio.Lock()
        """Who holds it sends something large, and has let others go on before."""
        self._held: dict[str, _Held] = {}
        self._shares = Shares(MAX_TOPICS)
        self._of_servers: dict[str, Shares] = {}
        self._begun = trio.Event()
        self._nursery: trio.Nursery | None = None

    def types(self, at: Viewpoint) -> Iterator[EventType]:
        """Yield the types that somebody sees; of those with one name the one that is found."""
        known = set[str]()
        for each in chain.from_iterable(source.types(at) for source in self.sources):
            if each.name not in known:
                known.add(each.name)
                yield each

    def has_types(self, at: Viewpoint) -> bool:
        """Say whether somebody sees any event type."""
        return next(self.types(at), None) is not None

    def allowed(self, at: Viewpoint, topic: Topic) -> bool:
        """Say whether somebody may (still) have what happens in a topic."""
        return self._id_for(at, topic) == topic.origin.id

    def moved(self, at: Viewpoint, topic: Topic) -> bool:
        """Say whether what somebody has instead is another topic by now, as they have another login of its server."""
        return self._id_for(at, topic) not in (None, topic.origin.id)

    def _id_for(self, at: Viewpoint, topic: Topic) -> str | None:
        try:
            return self._find(at, topic.name, topic.arguments)[1].id
        except SupervisorError:
            return None

    @property
    def ending(self) -> bool:
        """Whether the daemon ends, so that nothing is followed any more."""
        return self._begun.is_set() and self._nursery is None

    @asynccontextmanager
    async def hold(self, at: Viewpoint, name: str, arguments: msgspec.Raw) -> AsyncIterator[Topic]:
        """Hold the topic of a type with arguments (a JSON object; empty: none), which is followed meanwhile.

        Raises `RemoteError` with what its server says of it (NotFound, Forbidden, InvalidParams, Unsupported),
        `UnknownEvent`, `TooManyEvents`, `InvalidArguments`, and why a server cannot be asked. A checkpoint.
        """
        arguments_ = checked(arguments)
        await self._begun.wait()
        source, origin = self._find(at, name, arguments_)
        kept = await self.journal.open(origin.id)
        held = self._held.get(origin.id) or self._begin(source, origin, kept, at.principal)
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
            held.left_at = trio.current_time()
            held.until = held.left_at + max(LINGER_S, 3 * held.topic.next_poll_ms / 1000)
            held.changed.set()

    def _find(self, at: Viewpoint, name: str, arguments: bytes) -> tuple[Source, Origin]:
        for source in self.sources:
            if (origin := source.find(at, name, arguments)) is not None:
                return source, origin
        raise UnknownEvent(name)

    def _begin(self, source: Source, origin: Origin, kept: TopicLog, principal: Principal) -> _Held:
        if self._nursery is None:
            raise ShuttingDown
        places = self._places(origin.launch)
        for shares in reversed(places):  # what gives way at the server gives way among all
            while not shares.has_place(principal):
                if (idle := self._idle(shares, principal)) is None:
                    raise TooManyEvents(shares.why_not(principal, "subscriptions"), "subscriptions", shares.limit)
                self._leave(idle)
        for shares in places:
            shares.add(principal)
        if origin.launch:
            self._of_servers[origin.launch] = places[-1]
        held = self._held[origin.id] = _Held(Topic(origin, kept, self.journal), kept, principal, places)
        self._nursery.start_soon(self._run, source, held, kept.cursor)
        return held

    def _places(self, launch: str) -> list[Shares]:
        """Return what has to have a place for a topic of a launch: all topics, and those of one server."""
        return (
            [self._shares, self._of_servers.get(launch) or Shares(MAX_TOPICS_OF_SERVER)] if launch else [self._shares]
        )

    def _idle(self, shares: Shares, principal: Principal) -> _Held | None:
        """Return what gives way to somebody: what they left first themselves, or else who has more places."""
        idle = [each for each in self._held.values() if not each.holders and shares in each.places]
        own = [each for each in idle if each.opener == principal]
        more = [each for each in idle if shares.amount_of(each.opener) > shares.amount_of(principal)]
        return min(own or more, key=lambda each: each.left_at, default=None)

    def _leave(self, held: _Held) -> None:
        """Have a topic end that nobody holds; its places are free at once."""
        self._forget(held)
        self._vacate(held)
        held.until = 0.0
        held.changed.set()

    def _vacate(self, held: _Held) -> None:
        for shares in held.places:
            shares.remove(held.opener)
        if held.places and not held.places[-1].used:
            self._of_servers.pop(held.topic.launch, None)
        held.places = ()

    # Running --------------------------------------------------------------------------------------------------------

    async def run(self, closing: trio.Event) -> None:
        """Run until the daemon begins to end: then topics are followed no more, and all who hold one are told."""
        await self.journal.begin()
        async with trio.open_nursery() as self._nursery:
            self._begun.set()
            await closing.wait()
            nursery, self._nursery = self._nursery, None
            nursery.cancel_scope.cancel()

    async def _run(self, source: Source, held: _Held, cursor: str | None) -> None:
        """Follow a topic as long as anybody wants it."""
        topic = held.topic
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow, source, held, cursor, nursery.cancel_scope)
                await _unwanted(held)
                self._forget(held)
                nursery.cancel_scope.cancel()
        finally:
            self._forget(held)
            self._vacate(held)
            held.settle(ShuttingDown())
            topic.close()

    def _forget(self, held: _Held) -> None:
        """Give it to nobody any more."""
        if self._held.get(held.topic.origin.id) is held:
            held.kept.followed = False
            del self._held[held.topic.origin.id]

    async def _follow(self, source: Source, held: _Held, cursor: str | None, scope: trio.CancelScope) -> None:
        topic = held.topic
        try:
            await source.follow(topic.origin, cursor, _Opening(held))
        except Terminated as terminated:
            forget_frames(terminated)
            held.settle(RemoteError(terminated.error))
            topic.end(terminated.error)
        except (RemoteError, SupervisorError) as error:
            forget_frames(error)
            held.settle(error)
        except Exception as bug:  # the border: a bug costs one topic
            log.exception("a bug while following events")
            held.settle(bug)
        self._forget(held)
        topic.close()
        scope.cancel()


async def _unwanted(held: _Held) -> None:
    """Wait until nobody holds it, nor is expected to again."""
    while held.holders or trio.current_time() < held.until:
        held.changed = trio.Event()
        with trio.move_on_at(held.until) if not held.holders else trio.CancelScope():
            await held.changed.wait()


def checked(arguments: msgspec.Raw) -> bytes:
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
