"""What is sent to who chooses among the instances of a launch, beside what a server is sent."""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.instances.settings import InstanceSettings
from actors.kit import Ask
from actors.messages import EraLearned, ServerChanged, ServerListed
from actors.principal import ClientKey
from actors.server import ServerMessage

InstanceFact = ServerChanged | ServerListed | EraLearned


class InstanceReport(msgspec.Struct, frozen=True):
    """What an instance reports."""

    number: int
    fact: InstanceFact


class InstanceFree(msgspec.Struct, frozen=True):
    """A call has settled, or a start is over, while others wait."""


class InstanceGone(msgspec.Struct, frozen=True):
    """Nothing is left of an instance."""

    number: int


class ClientLeft(msgspec.Struct, frozen=True):
    """The session of a client is over; see `Caller.identity`."""

    client: ClientKey


class WaitOver(msgspec.Struct, frozen=True):
    """Something is to be done of the calls that wait; `number` says for which timer."""

    name: Literal["waiting"]
    number: int


class Resize(Ask[None], frozen=True):
    """Have as many instances as this says; those that stay are not disturbed. Answered when that has begun."""

    wanted: InstanceSettings
    drain_s: float


GroupMessage = ServerMessage | InstanceReport | InstanceFree | InstanceGone | ClientLeft | WaitOver | Resize
