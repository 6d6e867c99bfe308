"""The life of one MCP server, as a pure state machine. No I/O, no clock, no trio.

Only `step` changes a state. It returns what must be done as data; the actor does that, and posts what became of it as
further events. `docs/generate.py` draws the table from `step` itself.

The states stand in three groups. Without a process are DORMANT (a call wakes it), RESPAWNING (a back-off runs), FAILED
(given up: one probe on demand, or a retry by itself) and STOPPED (the end). On the way up are SPAWNING, HANDSHAKING and
DISCOVERING; a server whose lists are known passes the last one by, as its calls need not wait for them. READY serves.
Every way from a living process to no process leads through DRAINING, unless the process ends by itself. DRAINING means
that this process gets no new call and will be killed; what follows is decided when it is gone, in `_down`, and orders
that come until then only change what is decided there.

What `state` does not say is in the other fields of a `Life`:

- `wanted` is what was asked for last, `state` what is. They differ while something is under way: a server that shall
  sleep still drains, one that shall stop may be in the middle of its start. "stopped" is never taken back.
- `reason` is why this process is to be ended, or why the last one failed. Empty in DRAINING: somebody has asked for the
  end, so that it is no failure.
- `permanent`: no further process would fare better before something is changed, so the next state is FAILED without
  asking the restart log. `barred`: what has to be changed is a login.
- `fallback`: the probe of the era ruined this process. That is our doing: the next one begins at once.
- `away_s`: a remote server could not be reached, and asks to be left alone for so long. None: it could be.
- `scarce`: there was no process, as we lacked what a start takes. The server is not at fault.

All but `wanted` and the incarnation are about the present process: a new one begins without them (`_spawn`).

A restart is *counted* by the restart log (`AskPolicy`) where a process failed by its own fault. Not counted are: an end
that somebody asked for, a session that is over (`renewable`), an exit with nothing to do (`normal`), a process that our
probe ruined. Want of resources and a server that is away go to the restart log, too, but only for the pause.

Events may be late, as they come from tasks that do not know what happened meanwhile:

- An event of a process carries its incarnation; that of an older one changes nothing.
- In DRAINING the process may still report that it was spawned, greeted or listed: too late. It may be refused its start
  (the end was asked for meanwhile), or break the protocol: then nothing is finished politely.
- `Drained` and `Expired` may both come, and twice: to kill what is being killed does nothing.
- `Prolonged` may be about a timer whose state has passed; `BackoffOver` may come when none runs.
- A pair that is not listed is a no-op by decision.

What always holds, and is tested by random lives:

- A process is started only by `_spawn`, which counts the incarnation up, and only when the one before is gone. `Kill`
  is an effect; `Exited` or `SpawnRefused` prove it.
- Calls in flight fail whenever a process is lost or gone. Calls that wait fail whenever a state is entered in which
  nobody will serve them without a new order; in RESPAWNING they wait.
- Timers that belong to a state end with it (`TIMERS`); to start and to cancel them are effects, too.
- STOPPED is final: the actor ends.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from actors.life import effects as ef
from actors.life import events as ev
from actors.life.states import ALIVE, ON_ENTRY, TIMERS, Life, State, Timer, Wanted

ASLEEP = "it was sent to sleep"

WANTED_AFTER: dict[type[ev.Event], Wanted] = {ev.Sleep: "dormant", ev.Restart: "up", ev.Stop: "stopped"}

Step = tuple[Life, tuple[ef.Effect, ...]]


def step(life: Life, event: ev.Event) -> Step:
    """Return the next life and what must be done; an event of an older incarnation changes nothing."""
    if isinstance(event, ev.OfProcess) and event.incarnation != life.incarnation:
        return life, ()
    if life.over:
        return life, ()
    after, effects = _with_process(life, event) if life.state in ALIVE else _without_process(life, event)
    if after.state is not life.state:
        effects = (*_passage(life.state, after.state), *effects)
    return after, effects


def _passage(before: State, after: State) -> tuple[ef.Effect, ...]:
    """What is due whenever one state follows another; it is told when the timers are those of the new one."""
    over = TIMERS.get(before, frozenset()) - TIMERS.get(after, frozenset())
    effects: list[ef.Effect] = [ef.CancelTimer(timer) for timer in Timer if timer in over]
    if after is State.FAILED:
        effects.append(ef.GiveUp())
    if after in ON_ENTRY:
        effects.append(ef.StartTimer(ON_ENTRY[after]))
    return *effects, ef.Report(before)


def _without_process(life: Life, event: ev.Event) -> Step:
    match life.state, event:
        case (State.DORMANT | State.FAILED, ev.Wake()) | (State.RESPAWNING, ev.BackoffOver()) | (_, ev.Restart()):
            return _spawn(life)
        case (State.RESPAWNING, ev.Admitted(delay_s=delay_s)):
            return life, (ef.StartTimer(Timer.BACKOFF, delay_s),)
        case (State.RESPAWNING, ev.GaveUp()):
            return replace(life, state=State.FAILED), (ef.FailWaiting(life.reason),)
        case (State.RESPAWNING, ev.Sleep()):
            return replace(life, state=State.DORMANT, wanted="dormant"), (ef.FailWaiting(ASLEEP),)
        case (_, ev.Stop()):
            return replace(life, state=State.STOPPED, wanted="stopped"), (ef.FailWaiting("stopped"),)
        case _:
            return life, ()


def _with_process(life: Life, event: ev.Event) -> Step:
    match life.state, event:
        case (State.SPAWNING | State.DRAINING, ev.SpawnRefused(reason=reason, permanent=permanent, scarce=scarce)):
            refused = replace(life, permanent=permanent, away_s=0.0 if event.away else None)
            return _down(refused, reason, scarce=scarce)
        case (State.READY, ev.Exited(reason=reason, renewable=True)):
            following, effects = _spawn(life)
            return following, (ef.FailInFlight(reason), *effects)
        case (State.READY, ev.Exited(reason=reason, normal=True)):
            return _down(replace(life, wanted="dormant"), reason)
        case (_, ev.Exited(reason=reason)):
            return _down(life, reason)
        case (State.SPAWNING, ev.Spawned()):
            return replace(life, state=State.HANDSHAKING), (ef.Greet(),)
        case (State.HANDSHAKING, ev.Agreed(known=True)):
            return replace(life, state=State.READY, reason=""), (ef.Serve(), ef.ListAll())
        case (State.HANDSHAKING, ev.Agreed()):
            return replace(life, state=State.DISCOVERING), (ef.ListAll(),)
        case (State.HANDSHAKING, ev.Fallback()):
            return _drain(life, ef.Kill(polite=False), fallback=True)
        case (State.HANDSHAKING, ev.NotAgreed(reason=reason)):
            return _drain(life, ef.Kill(), permanent=True, reason=reason)
        case (State.HANDSHAKING | State.DISCOVERING | State.READY, ev.Barred(reason=reason)):
            return _drain(life, _last(life), permanent=True, barred=True, reason=reason)
        case (State.DISCOVERING, ev.Discovered()):
            return replace(life, state=State.READY, reason=""), (ef.Serve(),)
        case (state, ev.Prolonged(timer=timer, seconds=seconds)):
            return life, (ef.StartTimer(timer, seconds),) if timer in TIMERS.get(state, ()) else ()
        case (State.DRAINING, _):
            return _during_drain(life, event)
        case (_, ev.Violated(reason=reason)):
            return _drain(life, ef.FailInFlight(reason), ef.Kill(polite=False), reason=reason)
        case (_, ev.Away(reason=reason, wait_s=wait_s)):
            return _drain(life, ef.FailInFlight(reason), ef.Kill(polite=False), reason=reason, away_s=wait_s)
        case (State.SPAWNING | State.HANDSHAKING | State.DISCOVERING, ev.Expired()):
            return _drain(life, ef.Kill(polite=False), reason=f"no progress while {life.state}")
        case (_, ev.Sleep() | ev.Restart() | ev.Stop()):
            return _drain(life, _last(life), wanted=WANTED_AFTER[type(event)])
        case _:
            return life, ()


def _during_drain(life: Life, event: ev.Event) -> Step:
    match event:
        case ev.Drained() | ev.Expired():
            return life, (ef.Kill(),)
        case ev.Violated(reason=reason):
            return life, (ef.FailInFlight(reason), ef.Kill(polite=False))
        case ev.Stop():
            return replace(life, wanted="stopped"), ()
        case ev.Restart() if life.wanted != "stopped":  # what the old process did wrong does not count any more
            return replace(life, wanted="up", permanent=False, barred=False, reason=""), ()
        case ev.Wake() if life.wanted == "dormant":
            return replace(life, wanted="up"), ()
        case ev.Sleep() if life.wanted == "up":
            return replace(life, wanted="dormant"), ()
        case _:
            return life, ()


def _drain(life: Life, *effects: ef.Effect, **changes: Any) -> Step:
    return replace(life, state=State.DRAINING, **changes), effects


def _last(life: Life) -> ef.Effect:
    """How an end in order begins: only who serves has calls that may be finished."""
    return ef.FinishCalls() if life.state is State.READY else ef.Kill()


def _spawn(life: Life) -> Step:
    number = life.incarnation + 1
    return Life(State.SPAWNING, "up", number), (ef.Spawn(number),)


def _down(life: Life, reason: str, *, scarce: bool = False) -> Step:
    """Decide what follows when nothing of a process is left, or there was none. The order of the questions matters."""
    # Why we wanted its end comes before how it ended: "killed by signal 9" is what we did.
    known = life.reason or reason
    fail = ef.FailInFlight(known)
    # 1. A stop comes before everything: the daemon waits for it.
    if life.wanted == "stopped":
        return replace(life, state=State.STOPPED, reason=""), (fail, ef.FailWaiting("stopped"))
    # 2. What only a change heals is shown as failed, also where it should have gone to sleep: a call would not wake it.
    if life.permanent:
        return replace(life, state=State.FAILED, reason=known), (fail, ef.FailWaiting(known))
    # 3. Nobody wants it now, so even a failure is no reason to start it again. Who waits was too late.
    if life.wanted == "dormant":
        waiting = ef.FailWaiting(life.reason or ASLEEP)
        return replace(life, state=State.DORMANT, reason="", fallback=False), (fail, waiting)
    # 4. It is wanted, and its end was no failure: our probe ruined it, or it was put to sleep and woken, or restarted,
    #    before it was down. The next one costs no restart and has no pause, unless we lack what a start takes.
    if not scarce and (life.fallback or (life.state is State.DRAINING and not life.reason)):
        following, effects = _spawn(life)
        return following, (fail, *effects)
    # 5. It failed. The restart log says when there is another one, if ever; who waits may get that.
    ask = ef.AskPolicy(known, scarce, life.away_s)
    return replace(life, state=State.RESPAWNING, reason=known, fallback=False, scarce=scarce), (fail, ask)
