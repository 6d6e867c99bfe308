"""Who may ask for which page: a table with every route, which a test compares with those that there are.

- A page that somebody may not see answers as one that there is not: what a role lacks is no reason to log in, and no
  business of whoever lacks it.
- What is not in the table is for an admin.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from quart import abort, current_app, request

from supervisor.front.edge.request import HttpRequest
from supervisor.identity.audit import Audit
from supervisor.identity.people import Role
from supervisor.identity.requester import THE_OPERATOR, Requester

REQUESTER: Final[ContextVar[Requester]] = ContextVar("requester", default=THE_OPERATOR)
"""Who asks for the page that is being made."""
ANYBODY: Final = (
    *("GET /", "GET /healthz", "GET /readyz", "GET /oauth/callback"),
    *("GET /ui/static/<mark>/<name>", "GET /ui/sign-in", "POST /ui/sign-in"),
    *("GET /.well-known/ai-catalog.json", "GET /mcp/server-card", "GET /mcp/all/server-card"),
)
AUDITORS: Final = (
    *(
        "GET /api/status",
        "GET /api/status/debug",
        "GET /api/tools",
        "GET /api/tools/history",
        "GET /api/tokens",
        "GET /api/phrases",
        "GET /api/trust",
        "GET /metrics",
    ),
    *("GET /api/servers/<server>", "GET /api/configuration", "GET /api/events/kept"),
    *("GET /api/audit", "GET /api/nodes"),
    *("GET /ui/servers", "GET /ui/servers/<server>", "GET /ui/tools", "GET /ui/tool"),
    *("POST /ui/tool", "POST /ui/tool/answer"),
    *("GET /ui/changes", "GET /ui/people"),
)
_VALUE: Final = "/api/values/<tier>/<owner>/<server>/<name>"
_VERSIONS: Final = "GET /v0.1/servers/<namespace>/<entry>/versions"
MEMBERS: Final = (
    *("GET /ui", "GET /ui/calls", "GET /ui/usage", "POST /ui/values", "POST /ui/sign-out"),
    *("GET /questions", "GET /questions/<question>", "POST /questions/<question>"),
    *("GET /api/questions", "GET /api/questions/<question>", "POST /api/questions/<question>"),
    *("GET /api/consents", "DELETE /api/consents/<id_>"),
    *("GET /api/usage", "GET /api/usage/timeline", "GET /api/calls", "GET /api/events"),
    *("GET /mcp/servers/<server>/server-card", "GET /v0.1/servers", _VERSIONS, f"{_VERSIONS}/<version>"),
    *("GET /api/me", "GET /api/preflight", "POST /api/tickets", "GET /api/values", f"PUT {_VALUE}", f"DELETE {_VALUE}"),
    *("POST /api/servers/<server>/login", "POST /api/servers/<server>/logout", "GET /api/logins/<login>"),
    *("POST /api/logins/<login>/answer", "GET /api/servers/<server>/logs", "GET /api/logs"),
)
"""What a member may do for what is their own: the page itself looks whose it is."""
NEEDED: Final[Mapping[str, Role | None]] = {
    **dict.fromkeys(ANYBODY, None),
    **dict.fromkeys(MEMBERS, "member"),
    **dict.fromkeys(AUDITORS, "auditor"),
}
"""The least role for a route, as `METHOD /rule`, or `WS /rule` for a WebSocket that is otherwise; None: no credential
is needed."""


async def check_right(audit: Audit) -> None:
    """Answer 404 for a page that whoever asks may not see."""
    rule = request.url_rule
    if rule is not None and not admits(audit, REQUESTER.get(), request.method, rule.rule):
        abort(404)
    if getattr(request.routing_exception, "code", 0) == 405 and not _may_ask_otherwise():
        abort(404)


def _may_ask_otherwise() -> bool:
    """Say whether somebody may ask for the page at this address by another method than by this one."""
    adapter = current_app.create_url_adapter(request)
    assert adapter is not None, "inside of a request there is one"
    rules = {method: adapter.match(method=method, return_rule=True)[0] for method in adapter.allowed_methods()}
    return any(may_ask(REQUESTER.get(), method, rule.rule) for method, rule in rules.items())


def admits(audit: Audit, requester: Requester, method: str, rule: str) -> bool:
    """Say whether somebody may ask for a page; that they may not is recorded."""
    if may_ask(requester, method, rule):
        return True
    audit.tally("page.ask", f"{method} {rule}", outcome="refused", detail="not for this role")
    return False


def may_ask(requester: Requester, method: str, rule: str) -> bool:
    needed = needed_role(f"{'GET' if method == 'HEAD' else method} {rule}")
    return needed is None or requester.person.may(needed)


def needed_role(route: str) -> Role | None:
    """Return the least role for a route, None where no credential is needed."""
    return NEEDED.get(route if route in NEEDED else route.replace("WS ", "GET ", 1), "admin")


def set_requester(request: HttpRequest) -> None:
    """Let the pages that are made in this task know who asks."""
    REQUESTER.set(request.requester)
