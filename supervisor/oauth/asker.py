"""Whose login somebody makes at a server, and whether they may. Pure."""

from __future__ import annotations

from actors.errors import LoginFailed
from supervisor.identity.people import Person
from supervisor.servers.deployment import Deployment
from supervisor.values.checks import check_server

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
