"""Facts: what happens, each kind a struct of its own that is made where it happens, and the log that has the newest.

A fact has what its maker knows; what others know beside it is found by its readers. They go by its class:

- One that folds facts into something is a `Projection`: the log hands it each of its `kinds` at once, so none is lost.
- One that shows or tells facts reads the `FactLog` as a feed, in its own time: it may miss some, and is told how many.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from actors.catalogue.diff import Change
from actors.kit import Feed
from actors.life.breakers import BreakerScope, OpenBreaker
from actors.life.states import RAN, State
from actors.messages import InstanceStatus
from actors.principal import LOCAL, Principal

log = logging.getLogger(__name__)

MAX_CHANGES: Final = 200
"""Of one launch: some thirty times awake and asleep again."""
MAX_LAUNCHES: Final = 10_000
"""The one that was met first is forgotten for one more."""
MAX_REASON_CHARS: Final = 200


ExitReason = Literal["ordered", "idle", "exit", "signal", "silent"]
"""Why a process or connection ended: somebody ordered it; nobody needs it; by itself; by a signal that was not ours; we
ended it, as it did not do what it has to."""
InquiryVerdict = Literal["alive", "frozen", "deaf", "away", "unknown"]
"""What was found out about a server that was quiet: it says something; its process is stopped; it says nothing, though
it used to, and does nothing; it cannot be reached; it says nothing, which proves nothing."""


class Fact(Struct, frozen=True, kw_only=True):
    """Something that happened. `words` say what, for people. What is not `kept` is for projections alone."""

    words: ClassVar[str] = ""
    kept: ClassVar[bool] = True


class OfLaunch(Fact, frozen=True, kw_only=True):
    """Something that happened to a launch, and why, where there is more to say than that it did."""

    launch: str
    reason: str = ""


class StateChange(OfLaunch, frozen=True, kw_only=True):
    """A server is in another state, or its users may expect something else of it than before.

    `status` is what they may expect, or `disabled`.
    """

    state: State
    previous: State
    status: str
    previous_status: str = ""
    disabled: bool = False
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    """How its process ended, where that is the reason."""

    @property
    def row(self) -> dict[str, object]:
        """The state as a row of `/api/status` has it."""
        return {"state": self.state.value, "status": None if self.disabled else self.status}

    @property
    def is_crash(self) -> bool:
        """Whether it ended unasked."""
        return self.state in (State.RESPAWNING, State.FAILED) and self.previous in RAN

    @property
    def is_wake(self) -> bool:
        return self.state is State.SPAWNING and self.previous is State.DORMANT


class InstanceChanged(OfLaunch, frozen=True, kw_only=True):
    """One of several instances is in another state."""

    words = "instance state"
    instance: InstanceStatus
    previous: State


class ListsRead(OfLaunch, frozen=True, kw_only=True):
    """The lists of a server were read, which took so many `seconds`. `problems` are what is odd about them."""

    words = "discovery completed"
    tools: int
    problems: tuple[str, ...] = ()
    seconds: float | None = None


class ListsUnread(OfLaunch, frozen=True, kw_only=True):
    """There is no list of tools."""

    words = "discovery failed"


class Unavailable(OfLaunch, frozen=True, kw_only=True):
    """So many tools cannot be used any more."""

    words = "server away"
    tools: int


class Available(OfLaunch, frozen=True, kw_only=True):
    """So many tools can be used again."""

    words = "server back"
    tools: int


class BreakerTripped(OfLaunch, frozen=True, kw_only=True):
    """A breaker has opened, for the first time or again."""

    words = "breaker opened"
    breaker: OpenBreaker


class BreakerReset(OfLaunch, frozen=True, kw_only=True):
    """A breaker has closed; it is told as it was."""

    words = "breaker closed"
    breaker: OpenBreaker


class ListChange(OfLaunch, frozen=True, kw_only=True):
    """A list that clients see differs from before."""

    change: Change


class ToolsChange(ListChange, frozen=True, kw_only=True):
    """That of the tools."""

    words = "tools changed"


class ResourcesChange(ListChange, frozen=True, kw_only=True):
    """That of the resources, templates of them, or skills."""

    words = "resources changed"


class PromptsChange(ListChange, frozen=True, kw_only=True):
    """That of the prompts."""

    words = "prompts changed"


class ToolsCounted(OfLaunch, frozen=True, kw_only=True):
    """It is known what the definitions of its tools cost a model."""

    words = "tools counted"


class ApprovalsWanted(OfLaunch, frozen=True, kw_only=True):
    """Others than before of its tools wait for approval; `tools` has the first of them with why. `held`: clients do
    without them meanwhile."""

    words = "tools waiting"
    waiting: int
    held: bool
    tools: Mapping[str, str]


class Measured(OfLaunch, frozen=True, kw_only=True):
    """Something that is told by its server itself, and is only counted or timed."""

    kept = False


class StartEnded(Measured, frozen=True, kw_only=True):
    """The server is ready, or it has failed."""

    seconds: float
    good: bool


class StartedAgain(Measured, frozen=True, kw_only=True):
    """It is started after a failure."""


class RunEnded(Measured, frozen=True, kw_only=True):
    """Its process or connection ended."""

    by: ExitReason


class ReadingEnded(Measured, frozen=True, kw_only=True):
    """A reading of its lists is over."""

    seconds: float
    good: bool


class InquiryEnded(Measured, frozen=True, kw_only=True):
    """It is known whether it lives, as far as that can be known."""

    verdict: InquiryVerdict


class RefusedByBreaker(Measured, frozen=True, kw_only=True):
    """Something was refused, as a breaker is open."""

    breaker: BreakerScope


class ConfigurationLoaded(Fact, frozen=True, kw_only=True):
    """A changed configuration was taken over: its servers came, went, got a new process (`replaced`) or another entry
    (`adjusted`), its settings changed at once, or will at the next start (`restart`)."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    adjusted: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


class Logged(Struct, frozen=True, kw_only=True):
    """A fact as noted at `time` (unix s), at a `revision` of the catalogue; `principal` is whose call it is about."""

    time: float
    fact: Fact
    revision: int | None = None
    principal: Principal = LOCAL


class Projection(Protocol):
    """Something that facts are folded into."""

    @property
    def kinds(self) -> tuple[type[Fact], ...]:
        """What it is made of."""

    def fold(self, noted: Logged) -> None:
        """Take one of these. It neither waits nor raises."""


class StateHistory:
    """The newest changes of state of each launch.

    The newest thousand facts of 200 servers may have none of one that was started an hour ago. So who draws the life of
    one has a memory of that one, which no other can push out.
    """

    kinds = (StateChange,)

    def __init__(self) -> None:
        self._of: dict[str, deque[tuple[float, StateChange]]] = {}

    def fold(self, noted: Logged) -> None:
        change = noted.fact
        assert isinstance(change, StateChange)
        if change.launch not in self._of and len(self._of) >= MAX_LAUNCHES:
            del self._of[next(iter(self._of))]
        kept = replace(change, reason=change.reason[:MAX_REASON_CHARS])
        self._of.setdefault(change.launch, deque(maxlen=MAX_CHANGES)).append((noted.time, kept))

    def of(self, launch: str) -> Sequence[tuple[float, StateChange]]:
        """Return those of one launch with their times (unix s), the oldest first."""
        return tuple(self._of.get(launch, ()))

    def forget(self, launch: str) -> None:
        self._of.pop(launch, None)


class FactLog(Feed[Logged]):
    """What happened last, for whoever reads it, and the `projections` of all that happens. `clock` gives unix time."""

    def __init__(self, clock: Callable[[], float], size: int = 1000) -> None:
        super().__init__(size)
        self._clock = clock
        self.states = StateHistory()
        self.projections: list[Projection] = [self.states]

    def note(self, fact: Fact, *, revision: int | None = None, principal: Principal = LOCAL) -> None:
        """Note what happened just now."""
        noted = Logged(time=self._clock(), fact=fact, revision=revision, principal=principal)
        if fact.kept:
            self.append(noted)
        for each in self.projections:
            if isinstance(fact, each.kinds):
                try:
                    each.fold(noted)
                except Exception:  # a bug in what is made of a fact is no trouble of those to whom it happens
                    log.exception("a bug while counting %s", type(fact).__name__)
