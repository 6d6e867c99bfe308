"""What the operators' pages need for logins: a port that the daemon implements. Pure; no library of OAuth."""

from __future__ import annotations

from typing import Final, Literal, Protocol

import msgspec

from actors.principal import Principal
from supervisor.config.syntax.address import base_url

CALLBACK: Final = "/oauth/callback"
"""The path on the daemon's own listener."""

LoginState = Literal["pending", "done", "failed"]


def callback_uri(host: str, port: int, public_url: str = "") -> str:
    """Return where a browser comes back to from a login; `public_url` where nothing but that is encrypted as it
    says.
    """
    return f"{public_url.rstrip('/') or base_url(host, port)}{CALLBACK}"


class LoginStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a login is doing. `message` is for people.

    `url` is where its user says yes, as long as it is pending; `login` is what it is asked for by; `expires_s` is how
    many seconds there are for it.
    """

    server: str
    state: LoginState
    message: str
    login: str = ""
    url: str = ""
    expires_s: float = 0.0


class CallbackQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What an authorization server sends a browser back with (RFC 6749 4.1.2, RFC 9207 2)."""

    state: str = ""
    code: str = ""
    error: str = ""
    iss: str | None = None


class Accounts(Protocol):
    """The logins of a daemon at servers."""

    async def login(self, server: str, principal: Principal) -> LoginStatus:
        """Begin a login, or do it where no user is needed. Raises `LoginFailed`."""

    async def progress(self, login: str, wait_s: float) -> LoginStatus | None:
        """Return how a login is doing, when it is over or after so long; None if there is none. A checkpoint."""

    async def callback(self, query: CallbackQuery) -> LoginStatus | None:
        """Take what a browser brings back; None if nobody waits for it. A checkpoint."""

    async def logout(self, server: str, principal: Principal) -> str:
        """Have the tokens of a server taken back, and forget them; return a sentence. Raises `LoginFailed`."""
