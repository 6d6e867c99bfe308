"""What is said of logins at servers, and who may make them. Pure; no library of OAuth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal
from urllib.parse import parse_qs, urlsplit

import msgspec

from actors.errors import LoginFailed
from actors.transport.redaction import Confidential
from supervisor.config.address import base_url
from supervisor.identity.people import Person
from supervisor.servers.deployment import Deployment
from supervisor.values.table import check_server

CALLBACK: Final = "/oauth/callback"
"""The path on the daemon's own listener."""

MAX_VALUE_CHARS: Final = 4096
"""Of one parameter that a browser brings."""
MAX_FIELDS: Final = 32

LoginState = Literal["pending", "done", "failed"]


def callback_uri(host: str, port: int, public_url: str = "") -> str:
    """Return where a browser comes back to from a login; `public_url` where nothing but that is encrypted as it
    says.
    """
    return f"{public_url.rstrip('/') or base_url(host, port)}{CALLBACK}"


class LoginStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a login is doing. `message` is for people.

    `url` is where its user says yes, as long as it is pending; `login` is what it is asked for by; `expires_s` is how
    many seconds there are for it. `confirms`: it takes the code that is shown in the browser.
    """

    server: str
    state: LoginState
    message: str
    login: str = ""
    url: str = ""
    expires_s: float = 0.0
    confirms: bool = False


class Confirmation(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """What is shown in the browser of whoever said yes: a `code`, for the command of the user who began the login.

    `user` is empty for the operator.
    """

    server: str
    user: str
    code: str


class CallbackQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What an authorization server sends a browser back with (RFC 6749 4.1.2, RFC 9207 2)."""

    state: str = ""
    code: str = ""
    error: str = ""
    iss: str | None = None


def query_of(given: Mapping[str, Sequence[str]]) -> CallbackQuery | None:
    """Return what a browser brings; None for what can be read in two ways, or is too long."""
    known = {name: given.get(name, ()) for name in CallbackQuery.__struct_fields__}
    if any(len(values) > 1 or len(value) > MAX_VALUE_CHARS for values in known.values() for value in values):
        return None
    single = {name: values[0] for name, values in known.items() if values}
    return CallbackQuery(**single) if single.get("state") else None


def query_in(address: str) -> CallbackQuery | None:
    """Return what an authorization server sent a browser to that address with; None if that cannot be read."""
    with suppress(ValueError):
        return query_of(parse_qs(urlsplit(address.strip()).query, keep_blank_values=True, max_num_fields=MAX_FIELDS))
    return None


# Whose login somebody makes at a server, and whether they may.

HINT = "mcpvisor me lists yours"


def login_user(deployment: Deployment, server: str, asker: Person) -> str:
    """Return the user whose login it is that somebody makes at a server; empty for that which all share.

    The operator has one of its own where each user logs in, which is kept as the shared one is.
    """
    config = deployment.entries.get(server)
    return asker.user if config is not None and config.logs_in_each else ""


def of_user(user: str) -> str:
    """Return whose a login is, as a record of the audit says it."""
    return f"of the user {user}" if user else ""


def check_asker(deployment: Deployment, asker: Person, server: str) -> None:
    """Raise `UnknownServer`, `LoginFailed` unless somebody may log in and out there: an admin, or each for themself.

    What is not theirs is answered as what there is not.
    """
    if asker.may("admin"):
        return
    check_server(deployment, asker, server, HINT)
    if not login_user(deployment, server, asker):
        text = f"{server}: users have no login of their own there; if it wants one, an admin logs in for all"
        raise LoginFailed(text, server=server)
