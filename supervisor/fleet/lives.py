"""Names of what lives in the memory of a daemon, and in a fleet of which one. Pure but for what the fleet says."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from actors.errors import SupervisorError

LIFE_BYTES: Final = 8


class DaemonLife(msgspec.Struct, frozen=True):
    """The process that names are given in; empty outside of a fleet. `is_elsewhere`: another node's process is that.

    `older_keys` seal names that are still good, while a fleet changes its key.
    """

    own: bytes = b""
    is_elsewhere: Callable[[bytes], bool] = lambda life: False
    older_keys: tuple[bytes, ...] = ()

    def make_name(self, size: int) -> str:
        """Return a random name of so many bytes, which says whose it is in a fleet."""
        return base64.urlsafe_b64encode(self.own + secrets.token_bytes(size)).rstrip(b"=").decode()

    def check_here(self, life: bytes | None, error: SupervisorError) -> None:
        """Raise `HeldElsewhere` for what lives at another node, with the error for whoever cannot be sent there."""
        if life and life != self.own and self.is_elsewhere(life):
            raise HeldElsewhere(life.hex(), error)


class HeldElsewhere(Exception):
    """What a request is about is at another node, which has to perform it: nothing was done. `life` is in hex."""

    def __init__(self, life: str, error: SupervisorError) -> None:
        super().__init__(life)
        self.life = life
        self.error = error


def life_in(name: str) -> bytes:
    """Return what life a name may say that it is of, which `make_name` has made."""
    try:
        return base64.urlsafe_b64decode(name[:11].encode() + b"=")[:LIFE_BYTES]
    except ValueError:
        return b""
