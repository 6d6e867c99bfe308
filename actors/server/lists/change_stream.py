"""The subscription to the changes of a server: opened, and opened again whenever it ends. No I/O.

A modern server tells of its lists and of resources on one subscription. A legacy one tells of its lists on whatever it
has, and of a resource once it was asked to: each new process is asked again for all that clients are subscribed to.
What changed while there was none was not told, so the lists are read again once it is open, and who is subscribed to a
resource is told that it may have changed.
"""

from __future__ import annotations

import trio

from actors.life.states import State, Timer
from actors.protocol.changes import EVENTS_CHANGED, subscribable
from actors.server.context import ServerContext
from actors.server.lists.discovery import Discovery
from actors.server.processes import Processes

STABLE_S = 60.0
"""One that was open for so long ends for reasons of its own: the next pause is the shortest again."""


class ChangeStream:
    """The subscription to one server. Its restart log says how long the pauses are before it is opened again."""

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
