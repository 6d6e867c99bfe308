"""What must be done for a server, as data. Pure."""

from __future__ import annotations

import msgspec

from actors.life.states import State, Timer


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
