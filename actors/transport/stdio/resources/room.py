"""Room for one more process: descriptors to start it with, and memory for what it will take.

- A server that starts counts with what it took at most when it ran last, `UNKNOWN_BYTES` where that is not known, until
  it has had the time to take it; see `Claims`. So servers that start together do not all see the same free memory.
- What has to stay free, and what all servers may take together, are settings: see `MemoryBounds`.
- Whoever finds too little waits, and `Conditions` has that, so that others can make room.
"""

from __future__ import annotations

import errno
import os
import resource
import select
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import trio

from actors.errors import SpawnFailed
from actors.kit import Conditions, Pauses, is_want, reason_of
from actors.transport.stdio.resources.allotment import Allotment, MemoryBounds, MemoryLook, ProcessFigures, size
from actors.transport.stdio.resources.groups import Groups, look_at_memory

GROWTH_S: Final = 10.0
"""So long after its start a process counts with what it is expected to take, as it has not taken it yet."""
LOOKED_AT = 256
"""So many of the highest numbers are looked at: the lowest free one is always taken first, so they are free longest."""
START = 11
"""A server takes so many while it starts."""
RUNNING = 5
"""And so many as long as it runs: three pipes, the shim's socket, the pidfd."""
SPAWN = 20
"""Free ones without which no server is started: what that takes, and the rest stays for clients and files."""
WHAT: Final = "starting servers"
"""How the condition is called while none can be started."""
ROOM_S: Final = 5.0
"""How long a start waits for room before it has failed."""
ROOM_PAUSE_S: Final = 0.1
UNKNOWN_BYTES: Final = 80 << 20
"""What a server on Node.js takes, give or take; one on Python takes half of it."""
MAX_PEAKS: Final = 10_000


class Claim(msgspec.Struct):
    """What one process counts with, in bytes: `expected` when it began, `seen` when somebody looked last.

    `grown_at`: when it has had its time to grow, in seconds of the clock that all moments here are of.
    """

    launch: str
    expected: int
    grown_at: float
    seen: int | None = None

    def counts(self, now: float) -> int:
        """Return how many bytes it counts with."""
        if self.seen is None:
            return self.expected
        return self.seen if now >= self.grown_at else max(self.seen, self.expected)

    def to_come(self, now: float) -> int:
        """Return how many bytes of them the machine does not show as taken yet."""
        return 0 if now >= self.grown_at else max(0, self.expected - (self.seen or 0))


class Claims:
    """What the processes of servers count with, of the memory: each by what it was seen to take, or is expected to.

    There is one account. A start has a claim from the moment it finds room, its process has the same claim, and with
    the process the claim is gone: what ended takes nothing, whenever somebody looks at the processes again. Whoever
    wants room and whoever makes it reckon by the same claims, so what is given back is what was missing.

    The claims of all servers: of those that are starting, and of processes by their ids.
    """

    def __init__(self) -> None:
        self._starting: list[Claim] = []
        self._running: dict[int, Claim] = {}

    def start(self, launch: str, expected: int, now: float) -> Claim:
        """Begin the claim of a start."""
        claim = Claim(launch, expected, now + GROWTH_S)
        self._starting.append(claim)
        return claim

    def fail(self, claim: Claim) -> None:
        """End the claim of a start that came to nothing."""
        self._starting = [each for each in self._starting if each is not claim]

    def run(self, pid: int, launch: str, expected: int, now: float) -> Claim:
        """Have the process that a start led to take over its claim; one without a start begins its own."""
        claim = next((each for each in self._starting if each.launch == launch), None)
        claim = self.start(launch, expected, now) if claim is None else claim
        self.fail(claim)
        self._running[pid] = claim
        return claim

    def end(self, pid: int, claim: Claim) -> None:
        """End the claim of a process that is gone; another one may have its number by now."""
        if self._running.get(pid) is claim:
            del self._running[pid]

    def see(self, pid: int, taken: int) -> None:
        """Note what a process was seen to take, in bytes."""
        if (claim := self._running.get(pid)) is not None:
            claim.seen = taken

    @property
    def seen(self) -> int:
        """What all processes that run were seen to take."""
        return sum(claim.seen or 0 for claim in self._running.values())

    def of(self, launch: str, now: float) -> int:
        """Return what the processes of a launch count with: so much its end gives back."""
        return sum(claim.counts(now) for claim in self._running.values() if claim.launch == launch)

    def lack(self, expected: int, now: float, bounds: MemoryBounds, memory: MemoryLook) -> tuple[int, str]:
        """Return how many bytes are missing for one more that will take so many, 0 or less if none are; and why."""
        # A start whose process nobody ever saw was cut off between the two: it keeps nothing from others for ever.
        self._starting = [each for each in self._starting if each.grown_at > now]
        every = [*self._starting, *self._running.values()]
        limit, taken = bounds.limit_bytes, sum(claim.counts(now) for claim in every)
        if limit is not None and every and taken + expected > limit:  # a limit below one server lets that one run
            why = f"the servers take {size(taken)} of memory, one more about {size(expected)}, and {size(limit)} is"
            return taken + expected - limit, f"{why} the limit (memory.limit_mib)"
        if memory.available is None:
            return 0, ""
        reserve, starting = bounds.reserve_of(memory.total), expected + sum(claim.to_come(now) for claim in every)
        why = f"{size(memory.available)} of memory is free, what starts takes about {size(starting)}, and"
        return reserve + starting - memory.available, f"{why} {size(reserve)} has to stay free (memory.reserve_mib)"


def limit() -> int:
    """Return how many descriptors we may have now; it may be changed from outside at any time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def free() -> int:
    """Return how many descriptors are free, counted up to 256; takes none itself, and tens of microseconds."""
    most = limit()
    asked = select.poll()
    for fd in range(max(0, most - LOOKED_AT), most):
        asked.register(fd, 0)
    return sum(1 for _, event in asked.poll(0) if event & select.POLLNVAL)


class Peak(msgspec.Struct):
    """The most memory that a launch was seen to take: in its present process, and in the one before."""

    pid: int
    present: int = 0
    before: int = 0


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A process that runs. `group`: its control group, if it has one; `end` kills it, for a reason."""

    allotment: Allotment
    group: Path | None = None
    end: Callable[[str], None] = lambda why: None

    @property
    def watched(self) -> bool:
        """Whether nobody but us keeps one of its limits."""
        return self.group is None and self.allotment.watchable


class Room:
    """The room of one daemon; for the loop's thread only. `conditions` is told while no server can be started."""

    def __init__(
        self,
        conditions: Conditions | None = None,
        look: Callable[[], MemoryLook] = look_at_memory,
        groups: Groups | None = None,
        free: Callable[[], int] = free,
    ) -> None:
        """`look` and `free` tell what there is of memory and descriptors."""
        self.conditions = conditions or Conditions()
        self.look = look
        self._free = free
        self.groups = Groups() if groups is None else groups
        self.bounds: Callable[[], MemoryBounds] = MemoryBounds
        """The newest setting."""
        self.running: dict[int, Running] = {}
        """The processes of servers that run, by their ids."""
        self._claims = Claims()
        self._peaks: dict[str, Peak] = {}
        self._starting = 0
        self._waiting: list[int] = []

    # Starts -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def start(self, launch: str) -> AsyncIterator[None]:
        """Wait for room, and hold what one start takes. Raises `OSError` or `SpawnFailed` if there is none for long.

        Half a start is worse than none: it takes what clients and files need, and without its pidfd trio would need a
        thread to wait for the process.
        """
        expected = self.expectation_of(launch)
        try:
            await self._room(expected)
            claim = self._claims.start(launch, expected, trio.current_time())  # at once: nobody else sees this room
            self._starting += 1
            try:
                yield
            except BaseException:
                self._claims.fail(claim)
                raise
            finally:
                self._starting -= 1
        except (OSError, SpawnFailed, RuntimeError, MemoryError) as error:
            cause = error.__cause__ or error
            if is_want(cause):
                self.conditions.begin(WHAT, reason_of(cause))
            raise
        self.conditions.end(WHAT)

    def missing_descriptors(self) -> int:
        """Return how many more descriptors have to be free for one more start, 0 or less if enough are."""
        return SPAWN + START * self._starting - self._free()

    def missing_memory(self) -> int:
        """Return how many more bytes have to be free for the largest start that waits, 0 or less if enough are."""
        return max((self._lack(expected)[0] for expected in self._waiting), default=0)

    def expectation_of(self, launch: str) -> int:
        """Return how much memory a launch will take, as far as is known, in bytes."""
        peak = self._peaks.get(launch)
        return (max(peak.present, peak.before) if peak is not None else 0) or UNKNOWN_BYTES

    async def _room(self, expected: int) -> None:
        """Wait for enough, for half of the caller's time at most: at its end it would look like the server's fault."""
        pauses = Pauses(max_s=ROOM_PAUSE_S)
        left = trio.current_effective_deadline() - trio.current_time()
        self._waiting.append(expected)
        try:
            with trio.move_on_after(max(0.0, min(ROOM_S, left / 2))):
                while (want := self._want(expected)) is not None:
                    self.conditions.begin(WHAT, want[0])
                    await trio.sleep(pauses.next())
                return
            want = self._want(expected)
        finally:
            self._waiting.remove(expected)
        if want is not None:
            raise want[1]

    def _want(self, expected: int) -> tuple[str, Exception] | None:
        """Return what is missing for a start, and the error that says so."""
        if self.missing_descriptors() > 0:
            error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return reason_of(error), error
        lack, why = self._lack(expected)
        return (why, SpawnFailed(why, scarce=True)) if lack > 0 else None

    def _lack(self, expected: int) -> tuple[int, str]:
        """Return how many bytes are missing for a server that will take so many, and why they are needed."""
        return self._claims.lack(expected, trio.current_time(), self.bounds(), self.look())

    # Processes that run -------------------------------------------------------------------------------------------

    @contextmanager
    def keep(self, pid: int, running: Running) -> Iterator[None]:
        """Have a process among those that run, for the block."""
        claim = self._claims.run(
            pid, launch := running.allotment.name, self.expectation_of(launch), trio.current_time()
        )
        self.running[pid] = running
        try:
            yield
        finally:
            self._claims.end(pid, claim)
            if self.running.get(pid) is running:
                del self.running[pid]

    @property
    def taken(self) -> int:
        """What all servers that run took when somebody looked last, in bytes."""
        return self._claims.seen

    def claim_of(self, launch: str) -> int:
        """Return how many bytes of memory the end of a launch gives back."""
        return self._claims.of(launch, trio.current_time())

    def note(self, figures: Mapping[int, ProcessFigures]) -> None:
        """Take what the servers took when somebody looked."""
        for pid, running in self.running.items():
            if (taken := figures.get(pid)) is None:
                continue
            self._claims.see(pid, taken.memory_bytes)
            peak = self._peaks.get(running.allotment.name)
            if peak is None or peak.pid != pid:
                before = 0 if peak is None else peak.present
                peak = self._peaks[running.allotment.name] = Peak(pid, before=before)
                if len(self._peaks) > MAX_PEAKS:
                    del self._peaks[next(iter(self._peaks))]
            peak.present = max(peak.present, taken.memory_bytes)
