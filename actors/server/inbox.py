"""Everything a server's actor is sent: by others, by its own tasks, by itself."""

from __future__ import annotations

import msgspec

from actors.incarnation import Broken, Ended, NotStarted, Received, Started, Written
from actors.messages import CallServer, ReadServer, SleepServer, StopServer, WakeServer


class CallAbandoned(msgspec.Struct, frozen=True):
    """Nobody waits for a call any more."""

    call: int


class TimerFired(msgspec.Struct, frozen=True):
    """A timer fired; `number` says which one of that name."""

    name: str
    number: int


Message = (
    CallServer
    | WakeServer
    | SleepServer
    | StopServer
    | ReadServer
    | CallAbandoned
    | TimerFired
    | Started
    | NotStarted
    | Received
    | Written
    | Broken
    | Ended
)
