"""Who may ask for which page: a table with every route, which a test compares with those that there are.

- A page that somebody may not see answers as one that there is not: what a role lacks is no reason to log in, and no
  business of whoever lacks it.
- What is not in the table is for an admin.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from quart import abort, request

from supervisor.front.edge.request import HttpRequest
from supervisor.identity.people import Role
from supervisor.identity.requester import THE_OPERATOR, Requester

REQUESTER: Final[ContextVar[Requester]] = ContextVar("requester", default=THE_OPERATOR)
"""Who asks for the page that is being made."""
ANYBODY: Final = ("GET /", "GET /healthz", "GET /readyz", "GET /oauth/callback")
AUDITORS: Final = (
    *(
        "GET /api/status",
        "GET /api/status/debug",
        "GET /api/tools",
        "GET /api/tools/history",
        "GET /api/tokens",
        "GET /api/trust",
    ),
    *("GET /api/servers/<server>", "GET /api/servers/<server>/logs", "GET /api/configuration", "GET /api/events"),
)
NEEDED: Final[Mapping[str, Role | None]] = {**dict.fromkeys(ANYBODY, None), **dict.fromkeys(AUDITORS, "auditor")}
"""The least role for a route, as `METHOD /rule`; None: no credential is needed."""


async def check_right() -> None:
    """Answer 404 for a page that whoever asks may not see."""
    rule = request.url_rule
    if rule is not None and not may_ask(REQUESTER.get(), request.method, rule.rule):
        abort(404)


def may_ask(requester: Requester, method: str, rule: str) -> bool:
    needed = needed_role(f"{'GET' if method == 'HEAD' else method} {rule}")
    return needed is None or requester.person.may(needed)


def needed_role(route: str) -> Role | None:
    """Return the least role for a route, None where no credential is needed."""
    return NEEDED.get(route, "admin")


def set_requester(request: HttpRequest) -> None:
    """Let the pages that are made in this task know who asks."""
    REQUESTER.set(request.requester)
