"""The life of one MCP server, as a pure state machine. No I/O, no clock, no trio.

Rules:
- Only `step` changes a state; it returns what must be done as data, and the actor does it.
- `wanted` (what was asked for) is a field beside `state` (what is): a server stopped while it restarts stays stopped.
- Every event of a process carries its incarnation; an event of an older process changes nothing.
- A kill is an effect; only `Exited` proves it. `wanted = stopped` is never taken back.
- Timers that belong to a state end with it; what starts and cancels them are effects, too.
- A pair that is not listed is a no-op by decision. `python -m actors.life.diagram` draws the table.
"""

from __future__ import annotations

from msgspec.structs import replace

from actors.life.effects import (
    AskPolicy,
    CancelTimer,
    Effect,
    FailInFlight,
    FailWaiting,
    Finish,
    FinishCalls,
    GiveUp,
    Greet,
    Kill,
    ListAll,
    Report,
    Serve,
    Spawn,
    StartTimer,
)
from actors.life.events import (
    Admitted,
    Agreed,
    Away,
    BackoffOver,
    Barred,
    Discovered,
    Drained,
    Event,
    Exited,
    Expired,
    Fallback,
    GaveUp,
    NotAgreed,
    OfProcess,
    Prolonged,
    Restart,
    Sleep,
    Spawned,
    SpawnRefused,
    Stop,
    Violated,
    Wake,
)
from actors.life.states import Life, State, Wanted
from actors.life.timers import ON_ENTRY, TIMERS, Timer

ASLEEP = "it was sent to sleep"

WANTED_AFTER: dict[type[Event], Wanted] = {Sleep: "dormant", Restart: "up", Stop: "stopped"}

Step = tuple[Life, tuple[Effect, ...]]


def step(life: Life, event: Event) -> Step:
    """Return the next life and what must be done; an event of an older incarnation changes nothing."""
    if isinstance(event, OfProcess) and event.incarnation != life.incarnation:
        return life, ()
    if life.over:
        return life, ()
    after, effects = _alive(life, event) if life.alive else _without_process(life, event)
    if after.state is not life.state:
        effects = (*_passage(life.state, after.state), *effects)
    return after, effects


def _passage(before: State, after: State) -> tuple[Effect, ...]:
    """What is due whenever one state follows another; it is told when the timers are those of the new one."""
    over = TIMERS.get(before, frozenset()) - TIMERS.get(after, frozenset())
    effects: list[Effect] = [CancelTimer(timer) for timer in Timer if timer in over]
    if after is State.FAILED:
        effects.append(GiveUp())
    if after in ON_ENTRY:
        effects.append(StartTimer(ON_ENTRY[after]))
    effects.append(Report(before))
    if after is State.STOPPED:
        effects.append(Finish())
    return tuple(effects)


def _without_process(life: Life, event: Event) -> Step:
    match life.state, event:
        case (State.DORMANT | State.FAILED, Wake()) | (State.RESPAWNING, BackoffOver()) | (_, Restart()):
            return _spawn(life)
        case (State.RESPAWNING, Admitted(delay_s=delay_s)):
            return life, (StartTimer(Timer.BACKOFF, delay_s),)
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
            refused = replace(life, permanent=permanent, away_s=0.0 if event.away else None)
            return _down(refused, reason, scarce=scarce)
        case (State.READY, Exited(reason=reason, renewable=True)):
            following, effects = _spawn(life)
            return following, (FailInFlight(reason), *effects)
        case (State.READY, Exited(reason=reason, normal=True)):
            return _down(replace(life, wanted="dormant"), reason)
        case (_, Exited(reason=reason)):
            return _down(life, reason)
        case (State.SPAWNING, Spawned()):
            return replace(life, state=State.HANDSHAKING), (Greet(),)
        case (State.HANDSHAKING, Agreed(known=True)):
            return replace(life, state=State.READY, reason=""), (Serve(), ListAll())
        case (State.HANDSHAKING, Agreed()):
            return replace(life, state=State.DISCOVERING), (ListAll(),)
        case (State.HANDSHAKING, Fallback()):
            return replace(life, state=State.DRAINING, fallback=True), (Kill(polite=False),)
        case (State.HANDSHAKING, NotAgreed(reason=reason)):
            return replace(life, state=State.DRAINING, permanent=True, reason=reason), (Kill(),)
        case (State.HANDSHAKING | State.DISCOVERING | State.READY, Barred(reason=reason)):
            last = FinishCalls() if life.state is State.READY else Kill()
            return replace(life, state=State.DRAINING, permanent=True, barred=True, reason=reason), (last,)
        case (State.DISCOVERING, Discovered()):
            return replace(life, state=State.READY, reason=""), (Serve(),)
        case (state, Prolonged(timer=timer, seconds=seconds)):
            return life, (StartTimer(timer, seconds),) if timer in TIMERS.get(state, ()) else ()
        case (State.DRAINING, _):
            return _draining(life, event)
        case (_, Violated(reason=reason)):
            return replace(life, state=State.DRAINING, reason=reason), (FailInFlight(reason), Kill(polite=False))
        case (_, Away(reason=reason, wait_s=wait_s)):
            end = (FailInFlight(reason), Kill(polite=False))
            return replace(life, state=State.DRAINING, reason=reason, away_s=wait_s), end
        case (State.SPAWNING | State.HANDSHAKING | State.DISCOVERING, Expired()):
            return replace(life, state=State.DRAINING, reason=f"no progress while {life.state}"), (Kill(polite=False),)
        case (_, Sleep() | Restart() | Stop()):
            last = FinishCalls() if life.state is State.READY else Kill()
            return replace(life, state=State.DRAINING, wanted=WANTED_AFTER[type(event)]), (last,)
        case _:
            return life, ()


def _draining(life: Life, event: Event) -> Step:
    match event:
        case Drained() | Expired():
            return life, (Kill(),)
        case Violated(reason=reason):
            return life, (FailInFlight(reason), Kill(polite=False))
        case Stop():
            return replace(life, wanted="stopped"), ()
        case Restart() if life.wanted != "stopped":  # what the old process did wrong does not count any more
            return replace(life, wanted="up", permanent=False, barred=False, reason=""), ()
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
    fail = FailInFlight(known)
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
    ask = AskPolicy(known, scarce, life.away_s)
    return replace(life, state=State.RESPAWNING, reason=known, fallback=False), (fail, ask)
