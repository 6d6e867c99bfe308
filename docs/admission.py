"""Who is answered where: every address of the daemon, and what becomes of each kind of credential there.

A page for operators shows it, and `tests/supervisor/test_admission_of_daemon.py` asks a running daemon each of these.
Every page, WebSocket and door that there is has to be in one of the rows; that test complains otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

from supervisor.reference.configuration import bullet

Answer = Literal["yes", "404", "403", "401", "303"]
"""`yes`: what the address is there for. 404: as what does not exist. 403: the token was not issued for that. 401: show
who you are. 303: sign in there."""
Shown = Literal["nothing", "wrong", "member", "auditor", "admin", "reader", "one server"]
"""What is shown: no token; one that is wrong, expired, revoked or for another address; one of a role; one of an admin
by an identity provider, with the scope `mcp:read` alone; one for a single server, of a personal address."""
COLUMNS: Final = get_args(Shown)


class Row(Struct, frozen=True):
    """Addresses that are alike. `answers` go with `COLUMNS`."""

    title: str
    routes: tuple[str, ...]
    answers: str

    @property
    def cells(self) -> Mapping[str, str]:
        return dict(zip(COLUMNS, self.answers.split(), strict=True))


_VALUE: Final = "/api/values/{tier}/{owner}/{server}/{name}"
_ORDERS: Final = ("restart", "wake", "sleep", "refresh", "enable", "disable")
LOGS: Final = ("GET /api/servers/{server}/logs", "WS /api/servers/{server}/logs")
"""A member sees that of a server which is started for them alone."""
DOORS: Final = ("/mcp", "/mcp/all", "/mcp/servers/{server}", "/ws")
PERSONAL: Final = "/i/{server}/mcp"
ROWS: Final = (
    Row(
        "what anybody may know",
        (
            *("GET /", "GET /healthz", "GET /readyz", "GET /oauth/callback"),
            *("GET /ui/static/{mark}/{name}", "GET /ui/sign-in"),
            *("GET /.well-known/ai-catalog.json", "GET /mcp/server-card", "GET /mcp/all/server-card"),
        ),
        "yes 401 yes yes yes yes 401",
    ),
    Row(
        "where to sign in",
        ("GET /.well-known/{anything}", "POST /register"),
        "yes yes yes yes yes yes yes",
    ),
    Row(
        "what is yours",
        (
            *("GET /mcp/servers/{server}/server-card", "GET /v0.1/servers"),
            "GET /v0.1/servers/{namespace}/{entry}/versions",
            "GET /v0.1/servers/{namespace}/{entry}/versions/{version}",
            *("GET /api/me", "GET /api/operations", "GET /api/preflight", "GET /api/values", "GET /api/logins/{login}"),
            *("GET /api/logs", "WS /api/logs"),  # a member sees lines of what is started for them alone
            *("GET /api/usage", "GET /api/usage/timeline", "GET /api/calls", "GET /api/consents"),
            *("GET /api/events", "WS /api/events"),
            *("GET /api/questions", "GET /api/questions/{question}"),
        ),
        "401 401 yes yes yes yes 401",
    ),
    Row("to sign in with a browser", ("POST /ui/sign-in",), "yes 401 yes yes yes 403 401"),
    Row("your part of the dashboard", ("GET /ui", "GET /ui/calls", "GET /ui/usage"), "303 401 yes yes yes yes 401"),
    Row("forms in it", ("POST /ui/values", "POST /ui/sign-out"), "303 401 yes yes yes 403 401"),
    Row(
        "the rest of the dashboard",
        (
            *("GET /ui/servers", "GET /ui/servers/{server}", "GET /ui/tools", "GET /ui/tool"),
            *("GET /ui/changes", "GET /ui/people"),
        ),
        "303 401 404 yes yes yes 401",
    ),
    Row("questions as pages", ("GET /questions", "GET /questions/{question}"), "303 401 yes yes yes yes 401"),
    Row("answers there", ("POST /questions/{question}",), "303 401 yes yes yes 403 401"),
    Row("a call there", ("POST /ui/tool", "POST /ui/tool/answer"), "303 401 404 yes yes 403 401"),
    Row(
        "orders there",
        (
            *("POST /ui/servers/{server}/{order}", "POST /ui/changes"),
            *("POST /ui/tokens", "POST /ui/tokens/{id_}/revoke"),
        ),
        "303 401 404 404 yes 403 401",
    ),
    Row(
        "logins, tickets and answers of yours",
        (
            "POST /api/questions/{question}",
            *("POST /api/servers/{server}/login", "POST /api/servers/{server}/logout"),
            *("POST /api/logins/{login}/answer", "POST /api/tickets", "DELETE /api/consents/{id_}"),
        ),
        "401 401 yes yes yes 403 401",
    ),
    Row("values of yours", (f"PUT {_VALUE}", f"DELETE {_VALUE}"), "401 401 yes yes yes 403 401"),
    Row("values of others", (f"PUT {_VALUE}", f"DELETE {_VALUE}"), "401 401 404 404 yes 403 401"),
    Row(
        "status, logs, tools, audit",
        (
            *("GET /metrics", "GET /api/status", "GET /api/status/debug", "GET /api/configuration", "GET /api/audit"),
            *("GET /api/events/kept", "GET /api/nodes"),
            *("GET /api/servers/{server}", *LOGS),
            *("GET /api/tools", "GET /api/tools/history", "GET /api/tokens", "GET /api/trust", "GET /api/phrases"),
        ),
        "401 401 404 yes yes yes 401",
    ),
    Row(
        "tokens",
        ("GET /api/access-tokens",),
        "401 401 404 404 yes yes 401",
    ),
    Row(
        "orders and changes",
        (
            *(f"POST /api/servers/{{server}}/{order}" for order in _ORDERS),
            *("POST /api/servers", "PATCH /api/servers/{server}", "DELETE /api/servers/{server}", "POST /api/reload"),
            *("POST /api/trust", "POST /api/access-tokens", "DELETE /api/access-tokens/{id_}"),
            *("POST /api/nodes/drain", "POST /api/nodes/configuration"),
        ),
        "401 401 404 404 yes 403 401",
    ),
    Row("a page that does not exist", ("GET /api/nothing",), "401 401 404 404 404 404 401"),
    Row("doors: all but calls", DOORS, "401 401 yes yes yes yes 401"),
    Row("doors: calls of tools", DOORS, "401 401 yes yes yes 403 401"),
    Row("the door of a server of others", ("/mcp/servers/{server}",), "401 401 404 404 404 404 401"),
    Row("a personal address", (PERSONAL,), "401 401 401 401 401 401 yes"),
)
WITH_THE_KEY: Final = frozenset(
    {
        *("POST /api/servers", "PATCH /api/servers/{server}", "DELETE /api/servers/{server}", "POST /api/trust"),
        "POST /api/nodes/configuration",
    }
)
"""What takes the key of the daemon where nobody has to show who they are."""


def row(title: str) -> Row:
    return next(each for each in ROWS if each.title == title)


def admission_list() -> str:
    """Return the rows as a list: a table of so many columns fits no phone."""
    items = []
    for each in ROWS:
        by_answer = {
            answer: [name for name, told in each.cells.items() if told == answer] for answer in get_args(Answer)
        }
        told = "; ".join(f"{answer} to {', '.join(names)}" for answer, names in by_answer.items() if names)
        items.append(bullet(f"**{each.title}:** {told}"))
    return "\n".join(items)
