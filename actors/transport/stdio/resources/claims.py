"""What the processes of servers count with, of the memory: each by what it was seen to take, or is expected to. Pure.

There is one account. A start has a claim from the moment it finds room, its process has the same claim, and with the
process the claim is gone: what ended takes nothing, whenever somebody looks at the processes again. Whoever wants room
and whoever makes it reckon by the same claims, so what is given back is what was missing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.transport.stdio.resources.allotment import size
from actors.transport.stdio.resources.bounds import MemoryBounds, MemoryLook

GROWTH_S: Final = 10.0
"""So long after its start a process counts with what it is expected to take, as it has not taken it yet."""


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
    """The claims of all servers: of those that are starting, and of processes by their ids."""

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
