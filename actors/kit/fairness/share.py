"""The share of the loop that reading what one server sends may take, over all its connections.

The loop of trio runs whatever can run once in each of its passes. A server with twenty connections has twenty tasks
that read, so a turn of two milliseconds each would be forty in every pass, and an answer to somebody else takes a dozen
passes. So the tasks of a server have one turn together in several passes: when it is used up, all of them wait until
these are over, or until nobody else has anything to do.

Beside that each task has a little of its own, about what an honest call computes: else sixteen calls at once would
wait for each other through dozens of passes. It is used up once, so a server that does its worst gains nothing by it
for long, and all tasks together have no more of it in a turn than the loop can spare.

What a task computes is measured from one moment where it waits to the next: a number of bytes or lines says little, as
whoever sends them chooses what is expensive.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Hashable
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar
from weakref import WeakValueDictionary

import trio

T = TypeVar("T")

TURN_S: Final = 0.001
"""How long the tasks of a server may compute in one turn."""
OWN_S: Final = 0.001
"""How long each task may compute beside that, once."""
ALL_OWN_S: Final = 0.010
"""How long all tasks of a server may compute in one turn of what each has of its own."""
PASSES: Final = 8
"""In so many passes of the loop a server has one turn; a task that waits for its socket lets them pass, too."""
IDLE_PASSES: Final = 2
"""So many passes in which nobody else has anything to do end a rest. In one a task may stand behind who looks."""
LONGEST_REST_S: Final = 1.0
"""A task goes on after that, however many wait before it: it may have been cancelled meanwhile."""
PER_PASS: Final = 2
Who = tuple[Hashable, Hashable]
"""A person, or the address that somebody comes from, and which of their clients it is."""


class _Passes(trio.abc.Instrument):
    """Counts the passes of the loop."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


class _Others(trio.abc.Instrument):
    """Sees for a block whether any task but the present one goes on."""

    def __init__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self._seen = False
        self._idle = 0

    def __enter__(self) -> Self:
        trio.lowlevel.add_instrument(self)
        return self

    def __exit__(self, *_: object) -> None:
        trio.lowlevel.remove_instrument(self)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._seen |= task is not self._task

    async def idle(self) -> bool:
        """Let others go on; say whether there were none for `IDLE_PASSES`. A checkpoint."""
        await trio.lowlevel.checkpoint()
        self._idle, self._seen = 0 if self._seen else self._idle + 1, False
        return self._idle >= IDLE_PASSES


class LoopShare:
    """The tasks of one server: `run` each of them, and call `turn` wherever one computes for long without waiting."""

    def __init__(self) -> None:
        self._passes = _counted_passes()
        self._first = self._ended = 0
        self._spent = self._own_spent = 0.0
        self._began = 0.0
        self._line = trio.Lock()

    async def run(self, work: Callable[..., Awaitable[T]], *args: Any, **named: Any) -> T:
        return await _Metered(_whole(work, args, named), self)

    async def turn(self) -> None:
        """Wait for the next turn, if this one is over. A checkpoint, if so."""
        if self._spent + time.perf_counter() - self._began >= TURN_S:
            await trio.lowlevel.checkpoint()

    def over(self) -> bool:
        """Say whether the turn is over, and no other one has begun."""
        since = self._ended if self._spent >= TURN_S else self._first
        if self._passes.count - since >= PASSES:
            self._renew()
        return self._spent >= TURN_S

    def begin(self) -> None:
        """Take that a task goes on."""
        self._began = time.perf_counter()

    def end(self, own: float) -> float:
        """Take that a task with so many seconds of its own waits, or is done; return how many of these are left."""
        was_over = self._spent >= TURN_S
        took = time.perf_counter() - self._began
        paid = min(took, own, ALL_OWN_S - self._own_spent)
        self._own_spent += paid
        self._spent += took - paid
        if self._spent >= TURN_S and not was_over:
            self._ended = self._passes.count
        return own - paid

    async def rest(self) -> None:
        """Wait for the next turn, in a line with the other tasks of the server."""
        with trio.move_on_after(LONGEST_REST_S, shield=True):
            async with self._line:
                with _Others() as others:
                    while self.over():
                        if await others.idle():
                            self._renew()

    def _renew(self) -> None:
        self._first, self._spent, self._own_spent = self._passes.count, 0.0, 0.0


async def _whole(work: Callable[..., Awaitable[T]], args: tuple[Any, ...], named: dict[str, Any]) -> T:
    return await work(*args, **named)


class _Kept:
    """Keeps what is raised in its block, for whoever waits inside."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        self.error = None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


class _Metered(Generic[T]):
    """Awaits something: what it computes between two waits is counted, and it goes on in its turn."""

    def __init__(self, work: Coroutine[Any, Any, T], share: LoopShare) -> None:
        self._work = work
        self._share = share

    def __await__(self) -> Generator[Any, Any, T]:
        step, own = partial(self._work.send, None), OWN_S
        while True:
            self._share.begin()
            try:
                trap = step()
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                own = self._share.end(own)
            kept = _Kept()
            with kept:
                step = partial(self._work.send, (yield trap))
            if kept.error is not None:
                step = partial(self._work.throw, kept.error)
            if self._share.over():
                yield from self._share.rest().__await__()


_passes = trio.lowlevel.RunVar[_Passes]("passes of the loop")


def _counted_passes() -> _Passes:
    try:
        return _passes.get()
    except LookupError:
        passes = _Passes()
        _passes.set(passes)
        trio.lowlevel.add_instrument(passes)
        return passes


def pass_counter() -> Callable[[], int]:
    """Return what says how many passes of the loop there were, from the first on that anybody counted."""
    passes = _counted_passes()
    return lambda: passes.count


_shares = trio.lowlevel.RunVar[WeakValueDictionary[str, LoopShare]]("shares of servers")


def share_of(server: str) -> LoopShare:
    """Return the share of a server: the same one for all that is done for it, as long as anything is."""
    try:
        shares = _shares.get()
    except LookupError:
        shares = WeakValueDictionary()
        _shares.set(shares)
    share = shares.get(server)
    if share is None:
        shares[server] = share = LoopShare()
    return share


class Turnstile:
    """Who may go on now, where more arrives than can be done: so many in each pass of the loop, and clients in turns.

    The loop of trio runs whatever can run once in each of its passes, and a request takes half a dozen of them. So four
    hundred requests of one client that are read together make the one request of another client wait for half a dozen
    times four hundred. Here `PER_PASS` go on in a pass; where more arrive, one of each person goes on in turn, and of
    theirs one of each of their clients, whose names they choose themselves. Nothing is refused here: whoever waits has
    not been read, so its client is held up, and cannot send more.

    Where nobody waits it costs a few attribute reads.

    The turnstile of one daemon. `run` has to run as long as it is used; until then nobody waits.
    """

    def __init__(self, per_pass: int = PER_PASS) -> None:
        self._per_pass = per_pass
        self._count: Callable[[], int] | None = None
        self._pass = self._gone_on = 0
        self._queues: dict[Hashable, dict[Hashable, deque[trio.Event]]] = {}  # the first one has its turn
        self._arrived = trio.lowlevel.ParkingLot()

    async def run(self) -> None:
        """Let those go on who wait, until it is cancelled."""
        self._count = pass_counter()
        try:
            while True:
                while not self._queues:
                    await self._arrived.park()
                while self._queues and self._has_room():
                    self._call_next()
                await trio.lowlevel.checkpoint()
        finally:
            self._count = None
            while self._queues:
                self._call_next()

    async def enter(self, who: Who) -> None:
        """Return when something of somebody may go on. A checkpoint only if it waits."""
        if not self._queues and self._has_room():
            return
        person, client = who
        clients = self._queues.get(person)
        if clients is None:
            clients = self._queues[person] = {}
            self._arrived.unpark()
        queue = clients.setdefault(client, deque())
        turn = trio.Event()
        queue.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if not turn.is_set():
                queue.remove(turn)
                if not queue:
                    del clients[client]
                if not clients:
                    del self._queues[person]
            raise

    def _has_room(self) -> bool:
        """Say whether one more may go on in this pass, and count it if so."""
        if self._count is None:
            return True
        if (number := self._count()) != self._pass:
            self._pass, self._gone_on = number, 0
        if self._gone_on >= self._per_pass:
            return False
        self._gone_on += 1
        return True

    def _call_next(self) -> None:
        """Let the oldest one of the client go on whose turn it is, who then is the last, as whose client it is."""
        person, clients = next(iter(self._queues.items()))
        client, queue = next(iter(clients.items()))
        del self._queues[person], clients[client]
        queue.popleft().set()
        if queue:
            clients[client] = queue
        if clients:
            self._queues[person] = clients


class LinePace:
    """How fast is taken what somebody sends without being asked: a rate, and a burst that may come at once. Pure.

    The generic cell rate algorithm (ITU-T I.371): one moment is all that is kept.

    At most `per_s` a second, but for `burst` after a time in which less came. Moments are seconds of one clock.

    Who took more all the same rests for as long as `burst` takes, and no longer.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._credit_s = burst / per_s
        self._paid_until = -math.inf

    def take(self, count: float, now: float) -> None:
        """Take that so many came."""
        paid_until = max(self._paid_until, now - self._credit_s) + count / self._per_s
        self._paid_until = min(paid_until, now + self._credit_s)

    def rest_s(self, now: float) -> float:
        """Return for how many seconds no more is to be taken."""
        return max(0.0, self._paid_until - now)
