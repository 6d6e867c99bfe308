"""What a run of chaos has seen: what was asked, what servers ran, what was done to whom. Pure.

All times are seconds of the system's monotonic clock, which all processes share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

How = Literal["", "result", "tool error", "error", "untyped", "refused", "gone", "left"]
"""How a request ended. `untyped`: by an answer that does not say what it is. `refused`: by a status of HTTP, as for
one who may not come in. `gone`: its connection broke. `left`: its client went away. Nothing: it has no answer."""
USERS = ("ana", "ben", "cem", "dan")
KEY = re.compile(rf"\b(?:{'|'.join(USERS)})/[a-z]+\d*/\d+\b")
"""What each request says and has in its answer: user, client and number."""


class Request(Struct, kw_only=True):
    """One call of a tool. `own`: its answer has its key. `foreign`: what was in the answer that is somebody else's."""

    key: str
    server: str
    asked_s: float
    limit_s: float
    ended_s: float | None = None
    how: How = ""
    type: str = ""
    outcome: str = ""
    answers: int = 0
    own: bool = True
    foreign: tuple[str, ...] = ()
    text: str = ""

    @property
    def user(self) -> str:
        return self.key.partition("/")[0]


class Start(Struct, frozen=True):
    """A process of a server began."""

    server: str
    pid: int
    at_s: float


class Disturbance(Struct, kw_only=True):
    """Something that was done: `what` to `whom`, from when until when. `whom` is "" for the daemon itself.

    It is a server, or a user, where it was not the daemon.
    """

    what: str
    whom: str
    from_s: float
    to_s: float


class Sample(Struct, frozen=True, kw_only=True):
    """The daemon at one moment. `awake`: servers that were up.

    `doubles`: servers that had two processes; `zombies`: children that nobody reaped.
    """

    at_s: float
    rss_mib: float
    descriptors: int
    threads: int
    tasks: int
    awake: int = 0
    doubles: tuple[str, ...] = ()
    zombies: tuple[int, ...] = ()


class Change(Struct, frozen=True):
    """What clients should see was changed, and `took_s` later they saw it; None: they did not."""

    what: str
    at_s: float
    took_s: float | None


class Budget(Struct, frozen=True):
    """How often a server that fails is started: pauses from `initial_s` that double, so many within `period_s`."""

    initial_s: float = 1.0
    most_s: float = 60.0
    max_restarts: int = 4
    probe_s: float = 300.0


class End(Struct, kw_only=True):
    """What was found at the end. `leaks`: places where a secret was found; `left`: processes that were there still.

    `deaths`: exit codes of daemons that nobody had ended. `complaints`: lines of the log that are about a bug.
    """

    leaks: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    deaths: tuple[int, ...] = ()
    complaints: tuple[str, ...] = ()
    gauges: dict[str, float] = field(default_factory=dict)


class History(Struct, kw_only=True):
    """All of it. `healthy`: the server that nothing is done to. `ledgered`: servers that keep the ledger `ran`.

    `quiet_s`: when faults began; what was before is what the rest is compared with. `lives`: when each daemon began.
    `heard`: what somebody was told besides answers, and must not have been. `done`: faults by name.
    """

    healthy: str = ""
    ledgered: frozenset[str] = frozenset()
    budgets: dict[str, Budget] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    ran: dict[str, int] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    lives: list[float] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    quiet_s: float = 0.0
    end: End = field(default_factory=End)

    def of_daemon(self, *kinds: str) -> list[Disturbance]:
        """Return what was done to the daemon itself; only of these kinds, if there are any."""
        return [each for each in self.disturbances if not each.whom and (not kinds or each.what in kinds)]

    def delayed_s(self, from_s: float, to_s: float) -> float:
        """Return for how long the daemon could do nothing in that time, as it was stopped or not there."""
        held = self.of_daemon("stop daemon", "kill daemon")
        return sum(max(0.0, min(each.to_s, to_s) - max(each.from_s, from_s)) for each in held)


def keys_in(text: str) -> set[str]:
    """Return the keys of all requests that a text is about."""
    return set(KEY.findall(text))


def foreign_in(text: str, key: str, marks: Iterable[str]) -> tuple[str, ...]:
    """Return what is in the answer to a request and belongs to others: keys but its own, and `marks` of others."""
    return (*sorted(keys_in(text) - {key}), *(mark for mark in marks if mark in text))
