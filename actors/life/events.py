"""What may happen to a server. Every event of a process carries its incarnation. Pure."""

from __future__ import annotations

import msgspec

from actors.life.states import Timer


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
