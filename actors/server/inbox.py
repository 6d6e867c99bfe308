"""Everything a server's actor is sent: by others, by its own tasks, by itself."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.catalogue.lists import Drafted, ListPage
from actors.life.lifecycle import Spawned, SpawnRefused, Violated
from actors.life.states import Timer
from actors.messages import (
    CallServer,
    CloseBreakers,
    ReadServer,
    RefreshServer,
    RestartServer,
    SleepServer,
    StopServer,
    WakeServer,
)
from actors.protocol.listing import Listed, PageArrived
from actors.protocol.wire.fragment import Message
from actors.protocol.wire.jsonrpc import ErrorObject
from actors.protocol.wire.peer import Failure
from actors.transport.base import Exit, Work


class Received(msgspec.Struct, frozen=True):
    """Whole lines arrived: messages, or what is kept of those over the limit; see `Incoming`."""

    incarnation: int
    lines: Sequence[Message]
    stream: bytes = b""
    failure: Failure | None = None


class OutputClosed(msgspec.Struct, frozen=True):
    """Nothing can come any more, though the process lives on."""

    incarnation: int


class Written(msgspec.Struct, frozen=True):
    """There is room for those who waited to write."""

    incarnation: int


class ProcessExit(msgspec.Struct, frozen=True):
    """Nothing of the process is left."""

    incarnation: int
    exit: Exit


class CallAbandoned(msgspec.Struct, frozen=True):
    """Nobody waits for a call any more, for a `reason` if its client gave one."""

    call: int
    reason: str = ""


class TimerFired(msgspec.Struct, frozen=True):
    """A timer fired; `number` says which one of that name."""

    name: Timer
    number: int


class PageRead(msgspec.Struct, frozen=True):
    """A page of a list was read in a thread; `walk` says for which reading of the lists."""

    incarnation: int
    walk: int
    arrived: PageArrived
    page: ListPage


class ListsRead(msgspec.Struct, frozen=True):
    """A walk over the lists has ended, and what it brought was compared with what was known. `late`: it took too long.

    `listed` is what the conversation says of the walk.
    """

    incarnation: int
    listed: Listed
    drafted: Drafted
    late: bool = False


class QuestionAnswered(msgspec.Struct, frozen=True):
    """The client of a call has answered what the server asked, or nobody has; see `Conversation.answer`.

    `result` is None where the server took its question back: nothing is to be sent, but the deadline of the call counts
    again.
    """

    incarnation: int
    call: int
    id: bytes
    result: bytes | ErrorObject | None


class QuestionProgressed(msgspec.Struct, frozen=True):
    """The client of a call tells how far it is with an answer; what it told last is in `Dialogue`."""

    incarnation: int
    id: bytes


class PauseOver(msgspec.Struct, frozen=True):
    """A call whose server works on it as a task may be asked for again."""

    incarnation: int
    call: int


class WorkSeen(msgspec.Struct, frozen=True):
    """What the processes of the server have done so far was looked at; `work` is None where nobody can tell."""

    incarnation: int
    work: Work | None


class HoldEnded(msgspec.Struct, frozen=True):
    """A question of the server was held for as long as is sensible, and it is still not known whose it is."""

    incarnation: int
    id: bytes


OfIncarnation = (
    Written
    | OutputClosed
    | PageRead
    | ListsRead
    | QuestionAnswered
    | QuestionProgressed
    | HoldEnded
    | PauseOver
    | WorkSeen
    | Spawned
    | SpawnRefused
    | Violated
    | ProcessExit
)
"""What comes of one process, and counts only while that is the present one."""


class SessionEnded(msgspec.Struct, frozen=True):
    """The session of the legacy era beside the conversation is over."""


class Lead(msgspec.Struct, frozen=True):
    """This instance of its launch leads from now on; see `Seat`. `reads`: what it lists is not known yet."""

    reads: bool = True


Order = ReadServer | WakeServer | RestartServer | RefreshServer | SleepServer | StopServer
"""What operators and the daemon ask for."""

ServerMessage = (
    CallServer | Order | CloseBreakers | CallAbandoned | TimerFired | Received | SessionEnded | Lead | OfIncarnation
)


class Seat(msgspec.Struct):
    """What an instance of a launch is among the others: a cell between its actor and who chooses among them.

    Who chooses among instances writes it, and the actor of the instance reads it.

    `leads`: what it lists is what the launch offers, and it tells of resources. `replaceable`: others can take the
    calls that were not sent, so these do not wait for its next process. `expected_until`: a client may go on with what
    only its process knows until that moment of the trio clock, so it does not sleep before. `run` is the other way
    round: the name of its present process, empty if there is none.
    """

    leads: bool = True
    replaceable: bool = False
    expected_until: float = 0.0
    run: str = ""
