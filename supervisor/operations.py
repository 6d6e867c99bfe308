"""The operations: what people and programs can ask of a daemon over HTTP, beside MCP. One table.

An operation says who may ask, what is recorded of it, and how its answer is known. From the table come the routes, the
rights, the audit and the reference (`supervisor/front/pages/`), and the requests of our own commands
(`supervisor/daemon_client/`), which load nothing of a daemon for it. `supervisor/front/pages/` has a function for each,
marked with `performs`, and `supervisor/commands/` a command for most.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import quote

from msgspec import Struct

Role = Literal["member", "auditor", "admin"]
"""A member uses what is theirs; an auditor also reads what others did and how all servers are doing; an admin may also
change servers, tokens and the values of others."""
ROLES: Final[tuple[Role, ...]] = ("member", "auditor", "admin")

_ARGUMENT: Final = re.compile(r"<(?:(?:path|any\([a-z,]+\)):)?(\w+)>")
LONG_S: Final = 40.0
"""For what reads a configuration: the daemon gives up after 30 s."""
CHANGES: Final = "changing the configuration"
LOGIN_S: Final = 120.0
"""For a login: the daemon asks several servers before it knows where a user says yes, each with a deadline."""


class Operation(Struct, frozen=True, kw_only=True):
    """One thing that can be asked for.

    - `route`: method and path, with arguments as werkzeug writes them; `WS` stands for a WebSocket;
    - `role`: the least that may ask; None: no credential is needed. A member may do what it is for what is their own,
      which the function looks at. Whoever may not is answered as for a page that does not exist;
    - `answers`: a member that each answer has. Without it something else than a daemon has answered;
    - `audit`: the action that is recorded, of the server that the path names or that is told by `describe`. None:
      nothing is changed, or what changes records itself;
    - `local`: an order, which is taken from this machine, or from who has shown who they are;
    - `keyed`: what takes the daemon's key from who has not, in words; a client proves first that it has it;
    - `command`: the command for it;
    - `status`: of an answer;
    - `timeout_s`: how long a client waits.
    """

    route: str
    role: Role | None = "admin"
    answers: str = ""
    audit: str = ""
    local: bool = False
    keyed: str = ""
    command: str = ""
    status: int = 200
    timeout_s: float = 10.0

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def rule(self) -> str:
        """The path, with its arguments as werkzeug writes them."""
        return self.route.partition(" ")[2]

    def path(self, arguments: Mapping[str, str]) -> str:
        """Return the path with these arguments in it, escaped."""
        return _ARGUMENT.sub(lambda found: quote(arguments[found[1]], safe=""), self.rule)


HEALTH: Final = Operation(route="GET /healthz", role=None, answers="status")
READINESS: Final = Operation(route="GET /readyz", role=None, answers="ready")
STATUS: Final = Operation(route="GET /api/status", command="status", role="auditor", answers="servers")
STATUS_DEBUG: Final = Operation(route="GET /api/status/debug", role="auditor")

ME: Final = Operation(route="GET /api/me", command="me", role="member", answers="servers")
OPERATIONS: Final = Operation(route="GET /api/operations", command="operations", role="member", answers="operations")
MAKE_TICKET: Final = Operation(route="POST /api/tickets", role="member", answers="ticket", status=201)

AI_CATALOG: Final = Operation(route="GET /.well-known/ai-catalog.json", role=None)
CARD: Final = Operation(route="GET /mcp/server-card", role=None)
CARD_OF_ALL: Final = Operation(route="GET /mcp/all/server-card", role=None)
CARD_OF_SERVER: Final = Operation(route="GET /mcp/servers/<server>/server-card", role="member")
REGISTRY: Final = Operation(route="GET /v0.1/servers", role="member")
REGISTRY_VERSIONS: Final = Operation(route="GET /v0.1/servers/<namespace>/<entry>/versions", role="member")
REGISTRY_VERSION: Final = Operation(route="GET /v0.1/servers/<namespace>/<entry>/versions/<version>", role="member")

TOOLS: Final = Operation(route="GET /api/tools", command="tools", role="auditor", answers="tools")
PREFLIGHT: Final = Operation(route="GET /api/preflight", command="tools", role="member", answers="tools")
TOOL_HISTORY: Final = Operation(route="GET /api/tools/history", command="history", role="auditor", answers="revisions")
TOOL_TOKENS: Final = Operation(route="GET /api/tokens", command="tokens", role="auditor", answers="tools")
PHRASES: Final = Operation(route="GET /api/phrases", command="describe", role="auditor", answers="servers")

USAGE: Final = Operation(route="GET /api/usage", command="usage", role="member", answers="rows")
USAGE_TIMELINE: Final = Operation(route="GET /api/usage/timeline", role="member", answers="buckets")
CALLS: Final = Operation(route="GET /api/calls", role="member", answers="calls")
KEPT_EVENTS: Final = Operation(route="GET /api/events/kept", role="auditor", answers="events")
METRICS: Final = Operation(route="GET /metrics", role="auditor")

TRUST: Final = Operation(route="GET /api/trust", command="approve", role="auditor", answers="tools")
APPROVE: Final = Operation(
    route="POST /api/trust",
    answers="approved",
    audit="tool.approve",
    keyed="approving tools",
    command="approve",
    timeout_s=20.0,
)

SERVER_LOGS: Final = Operation(route="GET /api/servers/<server>/logs", command="logs", role="member", answers="lines")
LOGS: Final = Operation(route="GET /api/logs", command="logs", role="member", answers="lines")
SERVER: Final = Operation(route="GET /api/servers/<server>", role="auditor", answers="server")
ORDER_SERVER: Final = Operation(
    route="POST /api/servers/<server>/<any(restart,wake,sleep,refresh,enable,disable):order>",
    local=True,
    answers="message",
    audit="server.{order}",
)

CONFIGURATION: Final = Operation(route="GET /api/configuration", role="auditor", answers="loaded_at")
RELOAD: Final = Operation(route="POST /api/reload", command="reload", local=True, answers="message", timeout_s=LONG_S)
ADD_SERVER: Final = Operation(
    route="POST /api/servers",
    answers="message",
    audit="server.add",
    status=201,
    keyed=CHANGES,
    command="add",
    timeout_s=LONG_S,
)
CHANGE_SERVER: Final = Operation(
    route="PATCH /api/servers/<path:server>",
    answers="message",
    audit="server.change",
    keyed=CHANGES,
    command="edit",
    timeout_s=LONG_S,
)
REMOVE_SERVER: Final = Operation(
    route="DELETE /api/servers/<path:server>",
    answers="message",
    audit="server.remove",
    keyed=CHANGES,
    command="remove",
    timeout_s=LONG_S,
)

LOGIN_CALLBACK: Final = Operation(route="GET /oauth/callback", role=None)
LOGIN: Final = Operation(route="GET /api/logins/<login>", role="member", answers="state")
ANSWER_LOGIN: Final = Operation(
    route="POST /api/logins/<login>/answer", local=True, role="member", answers="state", timeout_s=LOGIN_S
)
BEGIN_LOGIN: Final = Operation(
    route="POST /api/servers/<server>/login",
    command="login",
    local=True,
    role="member",
    answers="state",
    audit="login.begin",
    timeout_s=LOGIN_S,
)
LOGOUT: Final = Operation(
    route="POST /api/servers/<server>/logout",
    command="logout",
    local=True,
    role="member",
    answers="message",
    audit="login.forget",
    timeout_s=70.0,
)

QUESTIONS: Final = Operation(route="GET /api/questions", command="questions", role="member", answers="questions")
QUESTION: Final = Operation(route="GET /api/questions/<question>", role="member", answers="id")
ANSWER_QUESTION: Final = Operation(
    route="POST /api/questions/<question>", command="questions", role="member", answers="action"
)

CONSENTS: Final = Operation(route="GET /api/consents", command="consents", role="member", answers="consents")
REVOKE_CONSENT: Final = Operation(
    route="DELETE /api/consents/<id_>", command="consents", role="member", answers="revoked", audit="tool.ask_again"
)

NODES: Final = Operation(route="GET /api/nodes", command="nodes", role="auditor", answers="nodes")
PUBLISH: Final = Operation(
    route="POST /api/nodes/configuration",
    answers="digest",
    audit="configuration.publish",
    keyed="publishing a configuration",
    command="fleet publish",
    timeout_s=LONG_S,
)
DRAIN: Final = Operation(
    route="POST /api/nodes/drain", command="drain", local=True, answers="moved", audit="node.drain"
)

ACCESS_TOKENS: Final = Operation(route="GET /api/access-tokens", command="token list", answers="tokens")
MAKE_TOKEN: Final = Operation(route="POST /api/access-tokens", command="token create", answers="token", status=201)
REVOKE_TOKEN: Final = Operation(route="DELETE /api/access-tokens/<id_>", command="token revoke", answers="revoked")

_VALUE: Final = "/api/values/<tier>/<owner>/<server>/<name>"
VALUES: Final = Operation(route="GET /api/values", command="config list", role="member", answers="values")
GIVE_VALUE: Final = Operation(
    route=f"PUT {_VALUE}",
    role="member",
    answers="given",
    audit="value.give",
    keyed="changing values",
    command="config set",
)
FORGET_VALUE: Final = Operation(
    route=f"DELETE {_VALUE}",
    role="member",
    answers="forgotten",
    audit="value.forget",
    keyed="changing values",
    command="config unset",
)

AUDIT: Final = Operation(route="GET /api/audit", command="audit", role="auditor", answers="records")

EVENTS: Final = Operation(route="GET /api/events", role="member")
EVENTS_SOCKET: Final = Operation(route="WS /api/events", command="watch", role="member")
SERVER_LOGS_SOCKET: Final = Operation(route="WS /api/servers/<server>/logs", role="member")
LOGS_SOCKET: Final = Operation(route="WS /api/logs", role="member")

SUBJECTS: Final[Mapping[str, tuple[Operation, ...]]] = {
    "Health and status": (HEALTH, READINESS, STATUS, STATUS_DEBUG),
    "What is yours": (ME, OPERATIONS, MAKE_TICKET),
    "What is served here": (
        *(AI_CATALOG, CARD, CARD_OF_ALL, CARD_OF_SERVER),
        *(REGISTRY, REGISTRY_VERSIONS, REGISTRY_VERSION),
    ),
    "Tools": (TOOLS, PREFLIGHT, TOOL_HISTORY, TOOL_TOKENS),
    "Sentences for tools": (PHRASES,),
    "Usage": (USAGE, USAGE_TIMELINE, CALLS),
    "Events": (KEPT_EVENTS,),
    "Metrics": (METRICS,),
    "Trust": (TRUST, APPROVE),
    "Servers": (SERVER_LOGS, LOGS, SERVER, ORDER_SERVER),
    "Configuration": (CONFIGURATION, RELOAD, ADD_SERVER, CHANGE_SERVER, REMOVE_SERVER),
    "Logins": (LOGIN_CALLBACK, LOGIN, ANSWER_LOGIN, BEGIN_LOGIN, LOGOUT),
    "Questions": (QUESTIONS, QUESTION, ANSWER_QUESTION),
    "What was said yes to": (CONSENTS, REVOKE_CONSENT),
    "Nodes of a fleet": (NODES, PUBLISH, DRAIN),
    "Tokens": (ACCESS_TOKENS, MAKE_TOKEN, REVOKE_TOKEN),
    "Values of teams and users": (VALUES, GIVE_VALUE, FORGET_VALUE),
    "Audit": (AUDIT,),
}
"""What has a function in `supervisor/front/pages/`, by its subject in the documentation."""
LIVE: Final = (EVENTS, EVENTS_SOCKET, SERVER_LOGS_SOCKET, LOGS_SOCKET)
"""What lasts: event streams and WebSockets."""
DASHBOARD: Final = {
    operation.route: operation
    for operation in (
        Operation(route="GET /", role=None),
        Operation(route="GET /ui", role="member"),
        Operation(route="GET /ui/servers", role="auditor"),
        Operation(route="GET /ui/servers/<server>", role="auditor"),
        Operation(route="GET /ui/tools", role="auditor"),
        Operation(route="GET /ui/tool", role="auditor"),
        Operation(route="POST /ui/tool", role="auditor"),
        Operation(route="POST /ui/tool/answer", role="auditor"),
        Operation(route="GET /ui/calls", role="member"),
        Operation(route="GET /ui/usage", role="member"),
        Operation(route="GET /ui/changes", role="auditor"),
        Operation(route="POST /ui/changes", audit="tool.approve"),
        Operation(route="POST /ui/servers/<server>/<order>"),
        Operation(route="POST /ui/values", role="member", audit="value.give"),
        Operation(route="GET /ui/people", role="auditor"),
        Operation(route="POST /ui/tokens"),
        Operation(route="POST /ui/tokens/<id_>/revoke"),
        Operation(route="GET /ui/sign-in", role=None),
        Operation(route="POST /ui/sign-in", role=None),
        Operation(route="POST /ui/sign-out", role="member"),
        Operation(route="GET /ui/static/<mark>/<name>", role=None),
        Operation(route="GET /questions", role="member"),
        Operation(route="GET /questions/<question>", role="member"),
        Operation(route="POST /questions/<question>", role="member"),
    )
}
"""The pages for browsers, by their routes: each shows or gives what operations do, as the same person."""


def role_for(method: str, rule: str) -> Role | None:
    """Return the least role that may ask, None where no credential is needed. What is not in the table: an admin."""
    return _ROLES.get(f"{'GET' if method == 'HEAD' else method} {rule}", "admin")


_ROLES: Final[Mapping[str, Role | None]] = {
    each.route: each.role for each in (*(one for some in SUBJECTS.values() for one in some), *LIVE, *DASHBOARD.values())
}
