"""The audit as pages: what people did (`/api/audit`), and that each of their orders is recorded.

A table has the action of each route that changes something, unless what it changes records itself; a test compares it
with the routes that there are. What a page alone knows of its action it says by `describe`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Annotated, Any, Final, cast

import msgspec
import trio
from quart import Response, g
from quart_trio import QuartTrio

from actors.errors import InvalidArguments, SupervisorError
from supervisor.config.keys import name_fault
from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, status_of, with_query
from supervisor.identity.audit import Audit, AuditQuery, Outcome, check_action

MAX_RECORDS: Final = 500
"""Of one page."""
AUDITED: Final[Mapping[str, str]] = {
    "POST /api/servers": "server.add",
    "PATCH /api/servers/<path:server>": "server.change",
    "DELETE /api/servers/<path:server>": "server.remove",
    "POST /api/servers/<server>/<order>": "server.{order}",
    "POST /api/servers/<server>/login": "login.begin",
    "POST /api/servers/<server>/logout": "login.forget",
    "POST /api/trust": "tool.approve",
    "DELETE /api/consents/<id_>": "tool.ask_again",
    "POST /api/nodes/drain": "node.drain",
    "POST /api/nodes/configuration": "configuration.publish",
    "POST /ui/changes": "tool.approve",
    "POST /ui/values": "value.give",
    "PUT /api/values/<tier>/<owner>/<server>/<name>": "value.give",
    "DELETE /api/values/<tier>/<owner>/<server>/<name>": "value.forget",
}
"""The action that a route is recorded as, of the server that it names."""

_Page = Callable[..., Awaitable[Any]]


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records: of a `user`, of an `action` or a group of them (`token`), `since` a moment in unix seconds.

    `before` is the `next` of the page before this one.
    """

    user: str = ""
    action: str = ""
    since: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    before: Annotated[int, msgspec.Meta(ge=1)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_RECORDS)] = 100


def add_audit_routes(view: View, app: QuartTrio) -> None:
    async def audit(wanted: AuditFilter) -> Response:
        """Show what people did: `records`, the newest first, and the `next` to go on before, null at the end.

        `dropped` counts by action those that were removed as they were too many; `lost` those that could not be
        written since the daemon was started.
        """
        check_action(wanted.action)
        if wanted.user and (fault := name_fault(wanted.user)):
            raise InvalidArguments(f"the parameter 'user': {fault}", details={"parameter": "user"})
        query = AuditQuery(user=wanted.user, action=wanted.action, since=wanted.since, before=wanted.before)
        assert view.trail is not None
        page = await view.trail.page(query, wanted.limit)
        records = [msgspec.structs.asdict(record) for record in page.records]
        status = msgspec.structs.asdict(view.trail.status())
        return json_response({"records": records, "next": page.next, "dropped": page.dropped, **status})

    app.add_url_rule("/api/audit", "audit", with_query(AuditFilter, audit))


def describe(target: str = "", detail: str = "") -> None:
    """Say of the page that is being made what it changes, where its path does not."""
    g.audit_target, g.audit_detail = target, detail


def record_orders(app: QuartTrio, audit: Audit) -> None:
    """Have every route of an application recorded that changes something; after all of them were added."""
    for rule in app.url_map.iter_rules():
        for method in rule.methods or ():
            action = AUDITED.get(f"{method} {_plain(rule.rule)}")
            if action is not None:
                page = cast("_Page", app.view_functions[rule.endpoint])
                app.view_functions[rule.endpoint] = _with_record(page, action, audit)


def _plain(rule: str) -> str:
    """Return a rule without the choices in it."""
    before, choice, after = rule.partition("<any(")
    return f"{before}<{after.partition('):')[2]}" if choice else rule


def _with_record(page: _Page, action: str, audit: Audit) -> _Page:
    @wraps(page)
    async def record_page(**path: str) -> Any:
        outcome: Outcome = "failed"
        try:
            answer = await page(**path)
            outcome = "done"
        except trio.Cancelled:
            outcome = "unknown"
            raise
        except SupervisorError as error:
            outcome = outcome_of(error)
            raise
        finally:
            target = g.get("audit_target", "") or path.get("server", "")
            audit.note(action.format(**path), target, outcome=outcome, detail=g.get("audit_detail", ""))
        return answer

    return record_page


def outcome_of(error: SupervisorError) -> Outcome:
    """Return how an action ended that was answered with an error."""
    if error.outcome == "unknown":
        return "unknown"
    return "refused" if status_of(error) < 500 else "failed"
