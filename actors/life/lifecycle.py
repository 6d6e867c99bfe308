"""The life of one MCP server, as a pure state machine. No I/O, no clock, no trio.

Rules:
- Only `step` changes a state; it returns what must be done as data, and the actor does it.
- `wanted` (what was asked for) is a field beside `state` (what is): a server stopped while it restarts stays stopped.
- Every event of a process carries its incarnation; an event of an older process changes nothing.
- A kill is an effect; only `Exited` proves it. `wanted = stopped` is never taken back.
- A pair that is not listed is a no-op by decision. `python -m actors.life.diagram` draws the table.
"""

from __future__ import annotations

import enum
from typing import Literal

import msgspec
from msgspec.structs import replace


class State(enum.StrEnum):
    """Where a server is in its life."""

    DORMANT = "dormant"
    """No process; its tools are known and a call wakes it."""
    SPAWNING = "spawning"
    """A process is being started."""
    HANDSHAKING = "handshaking"
    """The process runs; the era is being negotiated."""
    DISCOVERING = "discovering"
    """Tools, resources and prompts are being listed."""
    READY = "ready"
    """Calls go through."""
    DRAINING = "draining"
    """Calls in flight end, then the process is stopped."""
    RESPAWNING = "respawning"
    """The process died; a back-off runs before the next one."""
    FAILED = "failed"
    """It cannot be started, or failed too often."""
    STOPPED = "stopped"
    """Terminal: the server was removed or the daemon ends."""


Wanted = Literal["up", "dormant", "stopped"]


class Event(msgspec.Struct, frozen=True, tag=True):
    """Something that happened."""


class OfProcess(Event, frozen=True, tag=True):
    """Something that happened to one incarnation."""

    incarnation: int


class Wake(Event, frozen=True, tag=True):
    """A call, a discovery, a retry of a server never listed, or an operator wants the server up."""


class Sleep(Event, frozen=True, tag=True):
    """The server was idle long enough, or an operator sends it to sleep."""


class Restart(Event, frozen=True, tag=True):
    """An operator wants a fresh process, whatever became of the present one."""


class Stop(Event, frozen=True, tag=True):
    """The server is removed or the daemon ends."""


class Spawned(OfProcess, frozen=True, tag=True):
    """The process runs."""


class SpawnRefused(OfProcess, frozen=True, tag=True):
    """There is no process. `permanent`: only a change heals it. `scarce`: we lack something; it is not at fault."""

    reason: str
    permanent: bool = False
    scarce: bool = False


class Greeted(OfProcess, frozen=True, tag=True):
    """Both sides agree on a protocol revision. `known`: its lists are known, so no call waits for their reading."""

    known: bool = False


class Rejected(OfProcess, frozen=True, tag=True):
    """There is no mutual protocol revision: permanent."""

    reason: str


class Fallback(OfProcess, frozen=True, tag=True):
    """The era probe ruined this process (silence or exit): a fresh one is needed, which is not a failure."""


class Listed(OfProcess, frozen=True, tag=True):
    """Everything was listed."""


class Violated(OfProcess, frozen=True, tag=True):
    """The process cannot be trusted any more (not MCP, deaf, torn write)."""

    reason: str


class Expired(OfProcess, frozen=True, tag=True):
    """The deadline of the present stage passed."""


class Drained(OfProcess, frozen=True, tag=True):
    """The last call in flight ended."""


class Exited(OfProcess, frozen=True, tag=True):
    """The process is gone, with everything it started. `normal`: it ended by itself with nothing to do, no failure."""

    reason: str
    normal: bool = False


class BackoffOver(Event, frozen=True, tag=True):
    """The delay before the next process is over."""


class GaveUp(Event, frozen=True, tag=True):
    """The restart log admits no further process."""


class Effect(msgspec.Struct, frozen=True, tag=True):
    """Something the actor must do."""


class Spawn(Effect, frozen=True, tag=True):
    """Start a process of this incarnation."""

    incarnation: int


class Greet(Effect, frozen=True, tag=True):
    """Negotiate the era."""


class ListAll(Effect, frozen=True, tag=True):
    """List tools, resources, templates and prompts."""


class Serve(Effect, frozen=True, tag=True):
    """Send the calls that waited, start the idle timer."""


class Drain(Effect, frozen=True, tag=True):
    """Take no new calls; report `Drained` when the last one ended."""


class Kill(Effect, frozen=True, tag=True):
    """End the process: by the polite stop sequence, or at once if it cannot be trusted. Only `Exited` proves it."""

    polite: bool = True


class FailPending(Effect, frozen=True, tag=True):
    """Calls that were sent to a process that is dead, or lost, get a typed error at once."""

    reason: str


class FailWaiting(Effect, frozen=True, tag=True):
    """Calls that wait for the server to come up get a typed error."""

    reason: str


class AskPolicy(Effect, frozen=True, tag=True):
    """Ask the restart log; answer with `BackoffOver` after its delay, or, unless `scarce`, with `GaveUp`."""

    reason: str
    scarce: bool = False


class Life(msgspec.Struct, frozen=True):
    """All that `step` knows about a server. `permanent`: the failure heals only by a change."""

    state: State = State.DORMANT
    wanted: Wanted = "dormant"
    incarnation: int = 0
    permanent: bool = False
    fallback: bool = False
    reason: str = ""


ALIVE = frozenset({State.SPAWNING, State.HANDSHAKING, State.DISCOVERING, State.READY, State.DRAINING})
RESTING = frozenset({State.DORMANT, State.STOPPED, State.FAILED})

ASLEEP = "it was sent to sleep"

WANTED_AFTER: dict[type[Event], Wanted] = {Sleep: "dormant", Restart: "up", Stop: "stopped"}

Step = tuple[Life, tuple[Effect, ...]]


def step(life: Life, event: Event) -> Step:
    """Return the next life and what must be done; an event of an older incarnation changes nothing."""
    if isinstance(event, OfProcess) and event.incarnation != life.incarnation:
        return life, ()
    if life.state is State.STOPPED:
        return life, ()
    if life.state in ALIVE:
        return _alive(life, event)
    return _without_process(life, event)


def _without_process(life: Life, event: Event) -> Step:
    match life.state, event:
        case (State.DORMANT | State.FAILED, Wake()) | (State.RESPAWNING, BackoffOver()) | (_, Restart()):
            return _spawn(life)
        case (State.RESPAWNING, GaveUp()):
            return replace(life, state=State.FAILED), (FailWaiting(life.reason),)
        case (State.RESPAWNING, Sleep()):
            return replace(life, state=State.DORMANT, wanted="dormant"), (FailWaiting(ASLEEP),)
        case (_, Stop()):
            return replace(life, state=State.STOPPED, wanted="stopped"), (FailWaiting("stopped"),)
        case _:
            return life, ()


def _alive(life: Life, event: Event) -> Step:
    match life.state, event:
        case (State.SPAWNING | State.DRAINING, SpawnRefused(reason=reason, permanent=permanent, scarce=scarce)):
            return _down(replace(life, permanent=permanent), reason, scarce=scarce)
        case (State.READY, Exited(reason=reason, normal=True)):
            return _down(replace(life, wanted="dormant"), reason)
        case (_, Exited(reason=reason)):
            return _down(life, reason)
        case (State.SPAWNING, Spawned()):
            return replace(life, state=State.HANDSHAKING), (Greet(),)
        case (State.HANDSHAKING, Greeted(known=True)):
            return replace(life, state=State.READY, reason=""), (Serve(), ListAll())
        case (State.HANDSHAKING, Greeted()):
            return replace(life, state=State.DISCOVERING), (ListAll(),)
        case (State.HANDSHAKING, Fallback()):
            return replace(life, state=State.DRAINING, fallback=True), (Kill(polite=False),)
        case (State.HANDSHAKING, Rejected(reason=reason)):
            return replace(life, state=State.DRAINING, permanent=True, reason=reason), (Kill(),)
        case (State.DISCOVERING, Listed()):
            return replace(life, state=State.READY, reason=""), (Serve(),)
        case (State.DRAINING, _):
            return _draining(life, event)
        case (_, Violated(reason=reason)):
            return replace(life, state=State.DRAINING, reason=reason), (FailPending(reason), Kill(polite=False))
        case (State.SPAWNING | State.HANDSHAKING | State.DISCOVERING, Expired()):
            return replace(life, state=State.DRAINING, reason=f"no progress while {life.state}"), (Kill(polite=False),)
        case (_, Sleep() | Restart() | Stop()):
            end = Drain() if life.state is State.READY else Kill()
            return replace(life, state=State.DRAINING, wanted=WANTED_AFTER[type(event)]), (end,)
        case _:
            return life, ()


def _draining(life: Life, event: Event) -> Step:
    match event:
        case Drained() | Expired():
            return life, (Kill(),)
        case Violated(reason=reason):
            return life, (FailPending(reason), Kill(polite=False))
        case Stop():
            return replace(life, wanted="stopped"), ()
        case Restart() if life.wanted != "stopped":  # what the old process did wrong does not count any more
            return replace(life, wanted="up", permanent=False, reason=""), ()
        case Wake() if life.wanted == "dormant":
            return replace(life, wanted="up"), ()
        case Sleep() if life.wanted == "up":
            return replace(life, wanted="dormant"), ()
        case _:
            return life, ()


def _spawn(life: Life) -> Step:
    number = life.incarnation + 1
    return Life(State.SPAWNING, "up", number), (Spawn(number),)


def _down(life: Life, reason: str, *, scarce: bool = False) -> Step:
    """Leave a state with a process: calls in flight fail always, what comes next depends on what is wanted."""
    known = life.reason or reason
    fail = FailPending(known)
    if life.wanted == "stopped":
        return replace(life, state=State.STOPPED, reason=""), (fail, FailWaiting("stopped"))
    if life.permanent:
        return replace(life, state=State.FAILED, reason=known), (fail, FailWaiting(known))
    if life.wanted == "dormant":
        return replace(life, state=State.DORMANT, reason="", fallback=False), (fail, FailWaiting(life.reason or ASLEEP))
    if not scarce and (life.fallback or (life.state is State.DRAINING and not life.reason)):
        # Ruined by the probe, or put to sleep and woken again before it was down: no failure, it costs no restart.
        following, effects = _spawn(life)
        return following, (fail, *effects)
    return replace(life, state=State.RESPAWNING, reason=known, fallback=False), (fail, AskPolicy(known, scarce))
