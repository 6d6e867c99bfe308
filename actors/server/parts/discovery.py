"""Reads the lists of a server: asks for them, has their pages read, tells what was found, and looks again in time.

`ChangeStream` keeps the subscription on which the server tells of changes.

A page of more than a few kilobytes is read in a worker thread and comes back as a message with the number of its walk;
all servers share the one place for that. What a long list has of differences is found out in a thread, too, before the
walk has ended for anybody. A walk that is over, or of a process that died, changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import trio

from actors.catalogue.lists import Draft, Drafted, ListPage, read_page
from actors.catalogue.offer import Offer
from actors.kit import Pauses, is_want
from actors.kit.decoding import decode_in_thread
from actors.life.breakers import Trial
from actors.life.lifecycle import Discovered, Expired, Sleep, Wake
from actors.life.states import State, Timer
from actors.protocol.changes import EVENTS_CHANGED, subscribable
from actors.protocol.facts import Fact
from actors.protocol.listing import Listed, PageArrived, PageSummary
from actors.server.inbox import ListsRead, PageRead
from actors.server.incarnation import Link
from actors.server.lists import Lists, ReadingCount
from actors.server.operators.record import refreshed
from actors.server.parts.context import ServerContext
from actors.server.parts.processes import Processes
from actors.server.settings import CATCH_UP_S, LIST_LIMITS, RELIST_INTERVAL_S

AT_ONCE_BYTES, AT_ONCE_PARTS = 16 * 1024, 320
"""A page of at most so many bytes and commas is read where it arrives: whatever is in it, that takes some 10 ms."""
LATE = "its lists could not be read in time"
STABLE_S = 60.0
"""A subscription that was open for so long ends for reasons of its own: the next pause is the shortest again."""


class Discovery:
    """The walks over the lists of one server.

    `looking`: the server was woken only to have its lists read, and had so many calls before that. `_put_off`: so often
    in a row it was asked for them too often. `_ended`: the process all of whose pages came, and are being compared.
    """

    def __init__(self, context: ServerContext, lists: Lists, processes: Processes) -> None:
        self._context = context
        self._settings = context.server.settings
        self._course = context.course
        self._timers = context.timers
        self._lists = lists
        self._processes = processes
        self.looking: int | None = None
        self.counted = ReadingCount(context.server.name, context.shared.facts)
        self._walk = self._put_off = 0
        self._ended: int | None = None
        self._draft = Draft(LIST_LIMITS, None)
        self._trial = Trial()
        self._reading: set[trio.CancelScope] = set()

    @property
    def offer(self) -> Offer | None:
        return self._lists.known

    @property
    def reading(self) -> bool:
        """Whether the lists are being read."""
        link = self._processes.link
        return link is not None and self._reads(link)

    def _reads(self, link: Link) -> bool:
        return link.talk.listing or self._ended == link.number

    def read(self) -> None:
        link = self._processes.link
        if link is None or not self._course.life.listable:
            return
        if not self._reads(link):
            self._context.orders.begin_reading()
        self._begin(link)
        self._processes.flush()

    def _begin(self, link: Link) -> None:
        if not self._settings.terms.reads_lists:
            return
        if self._reads(link):
            self._lists.owed = True
            return
        now = trio.current_time()
        if self._lists.known is not None and (refusal := self._context.breakers.all.refusal_to_read(now)) is not None:
            self._timers.start_by(Timer.RELIST, now + refusal.wait_s)
            return
        self._walk += 1
        self._stop_reading()
        self.counted.begin(now)
        self._draft = self._lists.begin(now)
        self._timers.start(Timer.LISTING, self._settings.discovery_timeout_s)
        self._trial = self._context.breakers.begin(now, reads=True)
        link.talk.list_all(now)

    def doubt(self) -> None:
        """There is another process: its lists were not read."""
        self._lists.doubt()

    def on_changed(self, link: Link) -> None:
        self._lists.doubt()
        if self._reads(link):
            self._lists.owed = True
        elif self._course.life.serving:
            self._timers.start_by(Timer.RELIST, self._lists.next_reading(trio.current_time()))

    def on_missed(self) -> None:
        """The server could not tell of changes for a while: read its lists, unless that was done lately."""
        guarded = self._context.calls.gate.guards
        if guarded:  # calls wait for it
            self._lists.doubt()
        if self._course.life.serving:
            interval_s = RELIST_INTERVAL_S if guarded else CATCH_UP_S
            self._timers.start_by(Timer.RELIST, self._lists.next_reading(trio.current_time(), interval_s))

    def take(self, arrived: PageArrived, link: Link) -> Fact | None:
        """Read a page, now or in a thread. Returns what the message means instead if it is no page."""
        line = arrived.line
        if len(line) > AT_ONCE_BYTES or line.count(b",") > AT_ONCE_PARTS:  # each entry but one has a comma
            self._context.start_soon(self._read_aside, self._walk, link.number, arrived, self._draft)
            return None
        page = read_page(arrived, self._draft.room(arrived.kind), self._draft.known)
        return self.on_read(PageRead(link.number, self._walk, arrived, page), link)

    def on_read(self, read: PageRead, link: Link) -> Fact | None:
        """Go on with a page that was read. Returns what the message means instead if it is no page."""
        if read.walk != self._walk or not link.talk.listing:
            return None
        kind, page = read.arrived.kind, read.page
        if page.foreign:
            return link.talk.receive_other(read.arrived.message, kind)
        fresh = self._draft.add(kind, page)
        summary = PageSummary(fresh=fresh, cursor=page.cursor, cut=page.cut, failure=page.failure)
        self._follow(link, link.talk.on_page(kind, summary, trio.current_time()))
        return None

    def on_late(self) -> None:
        """The walk takes too long. What is known stays, what was read counts, and the server can still answer calls."""
        now = trio.current_time()
        self.counted.fail(now)
        self._context.breakers.end(self._trial, now, LATE, reads=True)
        self._context.orders.fail_reading(LATE)
        link = self._processes.link
        if link is None:
            return
        if self._lists.known is None and link.talk.waits_for("tools") and not self._draft.count("tools"):
            self._course.step(Expired(link.number))  # that is nothing to begin with
            return
        self._stop_reading()
        self._follow(link, link.talk.stop_listing(self._settings.discovery_timeout_s), late=True)

    # Looking again --------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        self._lists.restore(trio.current_time(), self._context.shared.clock())
        self._watch(awake=False)

    def look(self) -> None:
        """The lists are old, or doubtful: read them again, waking the server for it if need be."""
        life, link = self._course.life, self._processes.link
        if not self._watch(awake=life.serving):
            return
        now = trio.current_time()
        self._timers.start(Timer.LOOK, self._settings.probe_interval_s)  # whatever becomes of it
        if life.serving and link is not None:
            if not self._reads(link):  # what is being read now will do
                self._begin(link)
                self._processes.flush()
        elif life.state is State.DORMANT and self._context.breakers.all.refusal("", now, reads=True) is None:
            self.looking = self._context.calls.total
            self._course.step(Wake())
        else:
            self._lists.put_off(now)

    def stop_looking(self) -> bool:
        """The server failed to start. True: it was woken for its lists alone, which are tried again later."""
        looked, self.looking = self.looking is not None, None
        if looked:
            self._lists.put_off(trio.current_time())
        return looked

    def _settled(self, link: Link) -> bool:
        """Do what is owed after a reading. True: the server was woken for that alone, nobody has called it since."""
        if self._lists.owed:
            self.on_changed(link)
        looked, self.looking = self.looking == self._context.calls.total, None
        self._timers.cancel(Timer.LOOK)
        self._watch(awake=self._course.life.serving and not looked)
        return looked and self._context.calls.state_loss.idle_s > 0

    def _watch(self, *, awake: bool) -> bool:
        """Return whether the lists are due to be read again; otherwise be told when they are.

        Only of the instance that leads it matters how old they are.
        """
        if not self._context.server.seat.leads:
            return False
        moment = self._lists.next_look(awake=awake)
        if moment <= trio.current_time():
            return True
        if not math.isinf(moment):
            self._timers.start_by(Timer.LOOK, moment)
        return False

    # Reading --------------------------------------------------------------------------------------------------------

    def _follow(self, link: Link, listed: Listed | None, *, late: bool = False) -> None:
        """See whether the walk has ended, and finish it: of a long list once that is compared with what was known."""
        agreement = link.talk.agreement
        if listed is not None:
            self._timers.cancel(Timer.LISTING)
        if listed is not None and agreement is not None:
            drafted = partial(self._lists.drafted, agreement, self._draft, listed)
            aside = self._lists.is_long(self._draft)
            self._draft = Draft(LIST_LIMITS, None)  # so that what it holds is free
            if aside:
                self._ended = link.number
                self._context.start_soon(self._compare_aside, link.number, listed, drafted, late)
            else:
                self.finish(ListsRead(link.number, listed, drafted(), late), link)
        elif late:
            self._context.record.last_error = LATE

    async def _compare_aside(
        self, incarnation: int, listed: Listed, drafted: Callable[[], Drafted], late: bool
    ) -> None:
        made = await decode_in_thread(partial(_compared, drafted))
        await self._context.post.tell(ListsRead(incarnation, listed, made, late))

    def finish(self, read: ListsRead, link: Link) -> None:
        """Take what a walk has brought, and tell of it."""
        self._ended = None
        listed = read.listed
        now, unix_now = trio.current_time(), self._context.shared.clock()
        if listed.failure:
            self.counted.fail(now)
        else:
            self.counted.end(now)
        self._context.breakers.end(self._trial, now, listed.lost, reads=True)
        before = self._lists.known.tools if self._lists.known is not None else ()
        offer = self._lists.take(now, unix_now, read.drafted)
        compared = read.drafted.compared.of(before, offer.tools)
        self._context.record.publish(
            link.number,
            offer,
            compared,
            ready=self._course.life.serving,
            seconds=self.counted.readings.last_s,
            failure=listed.failure,
        )
        if listed.failure:
            self._context.orders.fail_reading(f"its tools could not be listed: {listed.failure}")
        else:
            self._context.orders.end_reading(lambda: refreshed(offer, compared.change))
        if not self._lists.owed:
            self._context.calls.on_listed()
        self._course.step(Discovered(link.number))
        if listed.again_s is None:
            self._put_off = 0
        elif self._course.life.serving:
            self._put_off += 1
            pause_s = max(listed.again_s, self._context.server.restarts.pause_s(self._put_off))
            self._timers.start_by(Timer.RELIST, now + pause_s)
        if self._settled(link):
            self._course.step(Sleep())
        if read.late:
            self._context.record.last_error = LATE

    def _stop_reading(self) -> None:
        for scope in self._reading:
            scope.cancel()

    async def _read_aside(self, walk: int, incarnation: int, arrived: PageArrived, draft: Draft) -> None:
        room = draft.room(arrived.kind)
        with trio.CancelScope() as scope:
            self._reading.add(scope)
            page = await self._in_thread(lambda: read_page(arrived, room, draft.known))
            await self._context.post.tell(PageRead(incarnation, walk, arrived, page))
        self._reading.discard(scope)

    async def _in_thread(self, work: Callable[[], ListPage]) -> ListPage:
        """Run it in a thread, once there is one: until then, or until the deadline of the walk, it waits."""
        pauses = Pauses()
        while True:
            try:
                return await trio.to_thread.run_sync(work, limiter=self._context.shared.desk, abandon_on_cancel=True)
            except (RuntimeError, MemoryError) as error:
                if not is_want(error):
                    raise
            await trio.sleep(pauses.next())


def _compared(drafted: Callable[[], Drafted]) -> Drafted:
    made = drafted()
    _ = made.compared.change  # found out here, and kept
    return made


class ChangeStream:
    """The subscription to the changes of one server: opened, and opened again whenever it ends. No I/O.

    A modern server tells of its lists and of resources on one subscription. A legacy one tells of its lists on whatever
    it has, and of a resource once it was asked to: each new process is asked again for all that clients are subscribed
    to. What changed while there was none was not told, so the lists are read again once it is open, and who is
    subscribed to a resource is told that it may have changed.

    The restart log of the server says how long the pauses are before it is opened again.
    """

    def __init__(self, context: ServerContext, processes: Processes, discovery: Discovery) -> None:
        self._context = context
        self._server = context.server.name
        self._subscribers = context.shared.subscribers
        self._processes = processes
        self._discovery = discovery
        self._losses = 0
        self._useful = True
        self._opened_at: float | None = None
        self._unheard = False
        self._lost = set(self._subscribers.uris(self._server))
        self._succeeds = context.server.predecessor is not None

    @property
    def wanted(self) -> bool:
        return bool(self._subscribers.uris(self._server))

    def begin(self) -> None:
        self._losses, self._useful, self._opened_at, self._unheard = 0, True, None, False
        if self._succeeds:  # calls that were in flight at the predecessor may have subscribed that one
            self._succeeds = False
            self._lost.update(self._subscribers.uris(self._server))
        self.open()
        if (link := self._processes.link) is not None and link.talk.era == "legacy":
            self._tell_lost()

    def take_over(self) -> None:
        """Another instance told of resources until now: ask for all of them, which may have changed in between."""
        self._succeeds = True
        if self._context.course.life.serving:
            self.begin()

    def on_exit(self) -> None:
        """The process is: what it was subscribed to it does not tell of. Who wants to know has to wake the server."""
        self._lost.update(self._subscribers.uris(self._server))
        if self._context.course.life.state is State.DORMANT:
            self._subscribers.tell_missed(self._server, self._lost)

    def open(self) -> None:
        """Ask for one. A legacy server is asked for what the process before told of: others ask for theirs by calls."""
        if (link := self._processes.link) is not None:
            uris = self._subscribers.uris(self._server)
            agreement = link.talk.agreement
            if link.talk.era == "legacy":
                uris = tuple(uri for uri in uris if uri in self._lost)
            elif agreement is not None and subscribable(agreement.capabilities, EVENTS_CHANGED):
                uris = (*uris, EVENTS_CHANGED)  # its event types are read again then
            link.talk.listen(uris)
            self._processes.flush()

    def on_open(self, *, useful: bool) -> None:
        """It is open; `useful`: the server will tell of changes on it."""
        self._useful, self._opened_at = useful, trio.current_time()
        if self._unheard:
            self.on_missed()
        self._tell_lost()

    def _tell_lost(self) -> None:
        """What an earlier process was subscribed to is told of again, and may have changed in between."""
        self._subscribers.tell_missed(self._server, self._lost)
        self._lost = set()

    def on_missed(self) -> None:
        self._unheard = False
        self._discovery.on_missed()
        self._subscribers.tell_missed(self._server, self._subscribers.uris(self._server))

    def on_end(self) -> None:
        if not self._useful or not self._context.course.life.serving:
            return
        lasted = trio.current_time() - self._opened_at if self._opened_at is not None else 0.0
        self._losses = 1 if lasted >= STABLE_S else self._losses + 1
        self._opened_at, self._unheard = None, True
        self._context.timers.start(Timer.LISTEN, self._context.server.restarts.pause_s(self._losses))
