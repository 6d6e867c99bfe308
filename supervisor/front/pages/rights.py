"""Who may ask for which page: whoever the table of operations says.

- A page that somebody may not see answers as one that there is not: what a role lacks is no reason to log in, and no
  business of whoever lacks it.
- What is not in the table is for an admin.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from quart import abort, current_app, request

from supervisor.front.edge.request import HttpRequest
from supervisor.identity.audit import Audit
from supervisor.identity.requester import THE_OPERATOR, Requester
from supervisor.operations import role_for

REQUESTER: Final[ContextVar[Requester]] = ContextVar("requester", default=THE_OPERATOR)
"""Who asks for the page that is being made."""


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
    needed = role_for(method, rule)
    return needed is None or requester.person.may(needed)


def set_requester(request: HttpRequest) -> None:
    """Let the pages that are made in this task know who asks."""
    REQUESTER.set(request.requester)
