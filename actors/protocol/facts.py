"""What a conversation with a server brings about: small values, each the meaning of one message."""

from __future__ import annotations

from typing import Final

import msgspec

from actors.protocol.agreement.era import Agreement, NoAgreement
from actors.protocol.listing import Listed, PageArrived
from actors.protocol.wire.peer import Answered, Failure, Malformed, Refused


class CallLost(msgspec.Struct, frozen=True):
    """A call has no answer, and the transport knows why."""

    tag: int
    failure: Failure


CallEnd = Answered[int] | Refused[int] | Malformed[int] | CallLost
"""What has become of a call, whose number is the `tag`."""
ENDS: Final = (Answered, Refused, Malformed, CallLost)


class CallLasts(msgspec.Struct, frozen=True):
    """The server works on a call as a task, so it may take long; in `pause_s` it is to be asked how far it is."""

    call: int
    pause_s: float | None = None


class CallNoted(msgspec.Struct, frozen=True):
    """The server tells something while it works on a call; `params` is JSON text, as the call's client may read it.

    `streamed`: the call is a stream, and this a part of what it is for.
    """

    call: int
    method: str
    params: bytes
    streamed: bool = False


class CallAsked(msgspec.Struct, frozen=True):
    """The server asks something of the client of a call; `id` is the JSON text of its request's id.

    `call` is None where several calls are in flight, and it is not known yet which one this is about.
    """

    call: int | None
    id: bytes
    method: str
    params: msgspec.Raw


class QuestionWithdrawn(msgspec.Struct, frozen=True):
    """The server does not want the answer to its request any more."""

    id: bytes


class VisitCompleted(msgspec.Struct, frozen=True):
    """The server says that a person is done at an address that it asked to be opened; `id` is the one it gave then."""

    id: str


class Unreachable(msgspec.Struct, frozen=True):
    """Nobody could be asked; that may be over in a while, after `wait_s` seconds if the server says so."""

    reason: str
    wait_s: float = 0.0


class LoginWanted(msgspec.Struct, frozen=True):
    """The server takes nothing before its operator has logged in there."""

    reason: str


class ListsChanged(msgspec.Struct, frozen=True):
    """The server says that a list changed. `missed`: it may have said so when nobody could hear it."""

    missed: bool = False


class ResourceUpdated(msgspec.Struct, frozen=True):
    """The server says that a resource changed."""

    uri: str


class Listening(msgspec.Struct, frozen=True):
    """A subscription is open. `useful`: the server will tell of changes on it. `calls`: what waited for it has that."""

    useful: bool = True
    calls: tuple[Answered[int] | Refused[int], ...] = ()


class ListenEnded(msgspec.Struct, frozen=True):
    """A subscription has ended. `again`: it is to be opened again. `calls`: what waited for it, in vain."""

    again: bool = True
    calls: tuple[CallLost | Refused[int], ...] = ()


Fact = (
    Agreement
    | NoAgreement
    | PageArrived
    | Listed
    | CallEnd
    | CallLasts
    | CallNoted
    | CallAsked
    | QuestionWithdrawn
    | VisitCompleted
    | Unreachable
    | LoginWanted
    | ListsChanged
    | ResourceUpdated
    | Listening
    | ListenEnded
)
