"""The life of one MCP server, as a pure state machine. No I/O, no clock, no trio.

Only `step` changes a state. What may happen to a server is an `Event`; each of a process carries its incarnation.
`step` returns what must be done as data, each an `Effect`; the actor does that, and posts what became of it as further
events. `docs/generate.py` draws the table from `step` itself.

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

import msgspec
from msgspec.structs import replace

from actors.life.states import ALIVE, ON_ENTRY, TIMERS, Life, State, Timer, Wanted

ASLEEP = "it was sent to sleep"


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
    """There is no process. `permanent`: only a change heals it. `scarce`: we lack something; it is not at fault.
    `away`: see `Away`.

    `reason` may reach clients, `detail` is for operators.
    """

    reason: str
    permanent: bool = False
    scarce: bool = False
    detail: str = ""
    away: bool = False


class Agreed(OfProcess, frozen=True, tag=True):
    """Both sides agree on a protocol revision. `known`: its lists are known, so no call waits for their reading."""

    known: bool = False


class NotAgreed(OfProcess, frozen=True, tag=True):
    """There is no mutual protocol revision: permanent."""

    reason: str


class Barred(OfProcess, frozen=True, tag=True):
    """The server takes nothing before its operator has logged in there: permanent, until that is done."""

    reason: str


class Fallback(OfProcess, frozen=True, tag=True):
    """The era probe ruined this process (silence or exit): a fresh one is needed, which is not a failure."""


class Discovered(OfProcess, frozen=True, tag=True):
    """Everything was listed."""


class Violated(OfProcess, frozen=True, tag=True):
    """The process cannot be trusted any more (not MCP, deaf, torn write)."""

    reason: str


class Away(OfProcess, frozen=True, tag=True):
    """A remote server cannot be reached: no failure that counts. It asks to be left alone for `wait_s` seconds."""

    reason: str
    wait_s: float = 0.0


class Expired(OfProcess, frozen=True, tag=True):
    """The deadline of the present stage passed."""


class Drained(OfProcess, frozen=True, tag=True):
    """The last call in flight ended."""


class Exited(OfProcess, frozen=True, tag=True):
    """The process is gone, with everything it started. `normal`: it ended by itself with nothing to do, no failure.

    `renewable`: only its session is over, which is no failure either; a new one may begin at once.
    """

    reason: str
    normal: bool = False
    renewable: bool = False


class Prolonged(OfProcess, frozen=True, tag=True):
    """A timer of the present state fires that many seconds from now instead."""

    timer: Timer
    seconds: float


class Admitted(Event, frozen=True, tag=True):
    """The restart log admits a further process after a delay, in seconds."""

    delay_s: float


class BackoffOver(Event, frozen=True, tag=True):
    """The delay before the next process is over."""


class GaveUp(Event, frozen=True, tag=True):
    """The restart log admits no further process."""


class Effect(msgspec.Struct, frozen=True, tag=True):
    """Something the actor must do."""


class StartTimer(Effect, frozen=True, tag=True):
    """Start a timer, in place of any of that name. Without `seconds` the actor knows them, or that it needs none."""

    timer: Timer
    seconds: float | None = None


class CancelTimer(Effect, frozen=True, tag=True):
    """The state that this timer belongs to is over."""

    timer: Timer


class Report(Effect, frozen=True, tag=True):
    """Note and tell that the state has changed."""

    previous: State


class GiveUp(Effect, frozen=True, tag=True):
    """Note that the server failed for good, or too often; it may be probed on demand."""


class Spawn(Effect, frozen=True, tag=True):
    """Start a process of this incarnation."""

    incarnation: int


class Greet(Effect, frozen=True, tag=True):
    """Negotiate the era."""


class ListAll(Effect, frozen=True, tag=True):
    """List tools, resources, templates and prompts."""


class Serve(Effect, frozen=True, tag=True):
    """Send the calls that waited, and listen to what the server tells."""


class FinishCalls(Effect, frozen=True, tag=True):
    """Take no new calls; report `Drained` when the last one ended."""


class Kill(Effect, frozen=True, tag=True):
    """End the process: by the polite stop sequence, or at once if it cannot be trusted. Only `Exited` proves it."""

    polite: bool = True


class FailInFlight(Effect, frozen=True, tag=True):
    """Calls that were sent to a process that is dead, or lost, get a typed error at once.

    Those that certainly did not leave wait for the next one.
    """

    reason: str


class FailWaiting(Effect, frozen=True, tag=True):
    """Calls that wait for the server to come up get a typed error."""

    reason: str


class AskPolicy(Effect, frozen=True, tag=True):
    """Ask the restart log; answer with `Admitted` or, unless `scarce` or away, with `GaveUp`.

    `away_s`: the server cannot be reached, and is to be left alone for so many seconds.
    """

    reason: str
    scarce: bool = False
    away_s: float | None = None


WANTED_AFTER: dict[type[Event], Wanted] = {Sleep: "dormant", Restart: "up", Stop: "stopped"}

Step = tuple[Life, tuple[Effect, ...]]


def step(life: Life, event: Event) -> Step:
    """Return the next life and what must be done; an event of an older incarnation changes nothing."""
    if isinstance(event, OfProcess) and event.incarnation != life.incarnation:
        return life, ()
    if life.over:
        return life, ()
    after, effects = _with_process(life, event) if life.state in ALIVE else _without_process(life, event)
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
    return *effects, Report(before)


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


def _with_process(life: Life, event: Event) -> Step:
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
            return _drain(life, Kill(polite=False), fallback=True)
        case (State.HANDSHAKING, NotAgreed(reason=reason)):
            return _drain(life, Kill(), permanent=True, reason=reason)
        case (State.HANDSHAKING | State.DISCOVERING | State.READY, Barred(reason=reason)):
            return _drain(life, _last(life), permanent=True, barred=True, reason=reason)
        case (State.DISCOVERING, Discovered()):
            return replace(life, state=State.READY, reason=""), (Serve(),)
        case (state, Prolonged(timer=timer, seconds=seconds)):
            return life, (StartTimer(timer, seconds),) if timer in TIMERS.get(state, ()) else ()
        case (State.DRAINING, _):
            return _during_drain(life, event)
        case (_, Violated(reason=reason)):
            return _drain(life, FailInFlight(reason), Kill(polite=False), reason=reason)
        case (_, Away(reason=reason, wait_s=wait_s)):
            return _drain(life, FailInFlight(reason), Kill(polite=False), reason=reason, away_s=wait_s)
        case (State.SPAWNING | State.HANDSHAKING | State.DISCOVERING, Expired()):
            return _drain(life, Kill(polite=False), reason=f"no progress while {life.state}")
        case (_, Sleep() | Restart() | Stop()):
            return _drain(life, _last(life), wanted=WANTED_AFTER[type(event)])
        case _:
            return life, ()


def _during_drain(life: Life, event: Event) -> Step:
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


def _drain(life: Life, *effects: Effect, **changes: Any) -> Step:
    return replace(life, state=State.DRAINING, **changes), effects


def _last(life: Life) -> Effect:
    """How an end in order begins: only who serves has calls that may be finished."""
    return FinishCalls() if life.state is State.READY else Kill()


def _spawn(life: Life) -> Step:
    number = life.incarnation + 1
    return Life(State.SPAWNING, "up", number), (Spawn(number),)


def _down(life: Life, reason: str, *, scarce: bool = False) -> Step:
    """Decide what follows when nothing of a process is left, or there was none. The order of the questions matters."""
    # Why we wanted its end comes before how it ended: "killed by signal 9" is what we did.
    known = life.reason or reason
    fail = FailInFlight(known)
    # 1. A stop comes before everything: the daemon waits for it.
    if life.wanted == "stopped":
        return replace(life, state=State.STOPPED, reason=""), (fail, FailWaiting("stopped"))
    # 2. What only a change heals is shown as failed, also where it should have gone to sleep: a call would not wake it.
    if life.permanent:
        return replace(life, state=State.FAILED, reason=known), (fail, FailWaiting(known))
    # 3. Nobody wants it now, so even a failure is no reason to start it again. Who waits was too late.
    if life.wanted == "dormant":
        waiting = FailWaiting(life.reason or ASLEEP)
        return replace(life, state=State.DORMANT, reason="", fallback=False), (fail, waiting)
    # 4. It is wanted, and its end was no failure: our probe ruined it, or it was put to sleep and woken, or restarted,
    #    before it was down. The next one costs no restart and has no pause, unless we lack what a start takes.
    if not scarce and (life.fallback or (life.state is State.DRAINING and not life.reason)):
        following, effects = _spawn(life)
        return following, (fail, *effects)
    # 5. It failed. The restart log says when there is another one, if ever; who waits may get that.
    ask = AskPolicy(known, scarce, life.away_s)
    return replace(life, state=State.RESPAWNING, reason=known, fallback=False, scarce=scarce), (fail, ask)
