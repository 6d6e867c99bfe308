"""What the operators' pages need to give orders: a port that the daemon implements. Pure."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from actors.messages import Refreshed
from actors.principal import Principal

Order = Literal["restart", "wake", "sleep", "refresh", "enable", "disable"]
"""What may be ordered of a server."""


class Done(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An order that was carried out. `message` is a sentence for people; `found` is what a refresh found."""

    message: str
    found: Refreshed | None = None


class Control(Protocol):
    """Carries out orders."""

    def check(self, server: str) -> None:
        """Raise `UnknownServer` with the nearest names if no server of exactly this name is configured."""

    async def order(self, server: str, order: Order, principal: Principal) -> Done:
        """Carry out an order of `principal` and wait until it is done. Cancelling it takes nothing back. A checkpoint.

        Raises `UnknownServer`, `ServerDisabled`, `ServerError` with why the server does not do it, `MailboxFull` and
        `ShuttingDown`.
        """
