"""The documented keys of clients: what each means here, and its unit. Pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Meaning = Literal["ours", "renamed", "time", "enabled", "allow", "deny", "approve", "variable", "unused", "label"]
"""What a key is here.

`ours`: our key of that name. `renamed`: our key `to`. `time`: our key `to`, from another unit. `enabled`: the opposite
of `disabled`. `allow`, `deny`: of `tools`. `approve`: added to `confirm_except`. `variable`: names variables that `to`
gets its values from. `unused`: without effect, which is noted. `label`: without effect, and nobody misses one.
"""


class ClientKey(msgspec.Struct, frozen=True):
    """One key. A dot leads into an object: `oauth.clientId`. `unit_s`: the unit of a time, in seconds."""

    name: str
    meaning: Meaning = "ours"
    to: str = ""
    unit_s: float = 1.0
    why: str = ""
    """What is lost, or what does the same here; of `unused` and `label`."""


MS: Final = 0.001


def ours(*names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name) for name in names)


def unused(why: str, *names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, "unused", why=why) for name in names)


def label(why: str, *names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, "label", why=why) for name in names)


def timeout(unit_s: float, name: str = "timeout", to: str = "call_timeout_s") -> ClientKey:
    return ClientKey(name, "time", to, unit_s)


def logins(*names: str) -> tuple[ClientKey, ...]:
    """Return the keys of `oauth` that are ours in another spelling."""
    return tuple(ClientKey(f"oauth.{name}", "renamed", _LOGINS[name]) for name in names)


_LOGINS: Final = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "redirectUri": "redirect_uri",
    "scopes": "scope",
}
PROGRAM: Final = ours("command", "args", "env")
REMOTE: Final = ours("url", "headers")
TYPE: Final = ours("type")
USUAL: Final = (*PROGRAM, *REMOTE, *TYPE)
