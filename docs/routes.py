"""The HTTP routes of the daemon, as its documentation lists them: from the application itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from textwrap import indent
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from supervisor.cli import GROUPS
from supervisor.front.pages.api import View
from supervisor.front.pages.app import add_welcome, create_app
from supervisor.front.pages.event_streams import STREAMS
from supervisor.front.pages.rights import needed_role
from supervisor.front.pages.sockets import PATHS
from supervisor.front.ui.pages import add_ui_routes
from supervisor.front.wiring import ROUTES
from supervisor.identity.people import Role
from supervisor.reference.configuration import paragraph, with_links

_ANGLES = str.maketrans("{}", "<>")
_NOTHING = cast("View", SimpleNamespace(elicitations=None))
"""What pages are shown of where none is asked for."""
LIVE = {**STREAMS, **{f"WS {path}": told for path, told in PATHS.items()}}
Parameters = type[msgspec.Struct] | None


def route_list() -> str:
    """Return all routes but those of MCP by their subjects: each with what it does, and its parameters."""
    parts = [f"### {title}\n\n" + "\n".join(_pages(add)) for title, add in ROUTES.items()]
    live = [
        _item([route.replace("WS ", "WebSocket ")], text, parameters, needed_role(route.translate(_ANGLES)))
        for route, (text, parameters) in LIVE.items()
    ]
    return "\n\n".join([*parts, "### Event streams and WebSockets\n\n" + "\n".join(live)])


def dashboard_list() -> str:
    """Return the routes of the dashboard, in the same way."""
    return "\n".join(_pages(add_ui_routes))


@cache
def page_routes() -> frozenset[str]:
    """Return every request that a page answers, as `METHOD /rule`; `WS` stands for a WebSocket."""
    app = create_app()
    add_welcome("", app)
    for add in (*ROUTES.values(), add_ui_routes):
        add(_NOTHING, app)
    pages = {f"{method} {path}" for rule in app.url_map.iter_rules() for method, path in _requests(rule)}
    return frozenset(pages | LIVE.keys())


def _requests(rule: Any) -> Iterator[tuple[str, str]]:
    for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
        yield from ((method, path) for path in _paths(rule.rule))


def _pages(add: Callable[..., None]) -> Iterator[str]:
    app = create_app()
    add(_NOTHING, app)
    for rule in app.url_map.iter_rules():
        page, parameters = app.view_functions[rule.endpoint], None
        if isinstance(page, partial):
            parameters, page = page.args
        requests = [*_requests(rule)]
        roles = {needed_role(f"{method} {rule.rule}") for method, _ in requests}
        assert len(roles) == 1, "who may ask is said of a page as a whole"
        named = [f"{method} {path}" for method, path in requests]
        yield _item(named, inspect.getdoc(page) or "", cast("Parameters", parameters), roles.pop())


def _paths(rule: str) -> Iterator[str]:
    """Yield the paths of a rule of werkzeug; one with a choice has several."""
    before, _, choice = rule.partition("<any(")
    names, _, after = choice.partition("):order>")
    for name in names.split(","):
        yield re.sub(r"<(?:path:)?(\w+)>", r"{\1}", f"{before}{name}{after}")


def _item(requests: list[str], text: str, parameters: Parameters, role: Role | None) -> str:
    named = [f"**`{request}`** ({role or 'anybody'})" + _command_link(request) for request in requests]
    lines = [*named, with_links(" ".join(text.split())), *([_told(parameters)] if parameters else [])]
    item = "\\\n".join(map(paragraph, lines))
    return f"- {indent(item, '  ').lstrip()}"


def _command_link(request: str) -> str:
    """Return a link to the command that gives the same order, if there is one."""
    order = request.rpartition("/")[2]
    is_order = request.startswith("POST /api/servers/{server}/") and order in GROUPS["servers"]
    return f" ([{order}](commands/servers.md#{order}))" if is_order else ""


def _told(parameters: type[msgspec.Struct]) -> str:
    return "Parameters: " + ", ".join(_parameter(field) for field in msgspec.structs.fields(parameters)) + "."


def _parameter(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return f"`{field.encode_name}` (needed)"
    default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    return f"`{field.encode_name}`" + ("" if field.default in (None, "", (), False) else f" (default `{default}`)")
