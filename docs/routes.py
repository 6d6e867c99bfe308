"""The HTTP routes of the daemon, as its documentation lists them: from the table of operations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from textwrap import indent
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from supervisor.cli import GROUPS
from supervisor.front.application import application
from supervisor.front.pages.events import STREAMS
from supervisor.front.pages.logs import PATHS
from supervisor.front.pages.performing import PERFORMERS
from supervisor.front.pages.view import View
from supervisor.identity.audit import NO_AUDIT
from supervisor.operations import DASHBOARD, LIVE, SUBJECTS, Operation, Role
from supervisor.reference.configuration import paragraph, with_links

_NOTHING = cast("View", SimpleNamespace(elicitations=None, version="", audit=NO_AUDIT))
"""What pages are shown of where none is asked for."""
_LIVE = {**STREAMS, **{f"WS {path}": told for path, told in PATHS.items()}}
Parameters = type[msgspec.Struct] | None


def route_list() -> str:
    """Return all routes but those of MCP by their subjects: each with what it does, and its parameters."""
    parts = [f"### {title}\n\n" + "\n".join(_items(operations)) for title, operations in SUBJECTS.items()]
    live = [_live(operation) for operation in LIVE]
    return "\n\n".join([*parts, "### Event streams and WebSockets\n\n" + "\n".join(live)])


def dashboard_list() -> str:
    """Return the routes of the dashboard, in the same way."""
    pages = application(_NOTHING).view_functions
    return "\n".join(
        _item([*_requests(operation)], inspect.getdoc(_innermost(pages[route])) or "", None, operation.role)
        for route, operation in DASHBOARD.items()
        if route != "GET /"
    )


def page_routes() -> Mapping[str, Operation]:
    """Return every request that a page answers, as `METHOD /path`, with its operation; `WS` stands for a WebSocket."""
    every = (*(each for some in SUBJECTS.values() for each in some), *DASHBOARD.values(), *LIVE)
    return {request: each for each in every for request in _requests(each)}


def _innermost(page: Any) -> Any:
    while True:
        inner = getattr(page, "args", (None,))[0] if hasattr(page, "func") else getattr(page, "__wrapped__", None)
        if inner is None:
            return page
        page = inner


def _items(operations: Iterable[Operation]) -> Iterator[str]:
    """Yield an item for each function; one may perform several operations."""
    by_function: dict[Any, list[Operation]] = {}
    for operation in operations:
        by_function.setdefault(PERFORMERS[operation].function, []).append(operation)
    for function, performed in by_function.items():
        requests = [request for each in performed for request in _requests(each)]
        roles = {each.role for each in performed}
        assert len(roles) == 1, "who may ask is said of a function as a whole"
        yield _item(
            requests, inspect.getdoc(function) or "", PERFORMERS[performed[0]].query, roles.pop(), performed[0].command
        )


def _live(operation: Operation) -> str:
    (request,) = _requests(operation)
    text, parameters = _LIVE[request]
    return _item([request.replace("WS ", "WebSocket ")], text, parameters, operation.role)


def _requests(operation: Operation) -> Iterator[str]:
    """Yield the requests of an operation; a path with a choice stands for several."""
    before, _, choice = operation.rule.partition("<any(")
    names, _, after = choice.partition("):order>")
    for name in names.split(","):
        yield f"{operation.method} " + re.sub(r"<(?:path:)?(\w+)>", r"{\1}", f"{before}{name}{after}")


def _item(requests: list[str], text: str, parameters: Parameters, role: Role | None, command: str = "") -> str:
    named = [f"**`{request}`** ({role or 'anybody'})" + _command_link(request, command) for request in requests]
    lines = [*named, with_links(" ".join(text.split())), *([_told(parameters)] if parameters else [])]
    item = "\\\n".join(map(paragraph, lines))
    return f"- {indent(item, '  ').lstrip()}"


def _command_link(request: str, command: str) -> str:
    """Return a link to the command that asks for the same, if there is one."""
    name = command or request.rpartition("/")[2]
    group = next((group for group, names in GROUPS.items() if name.partition(" ")[0] in names), "")
    is_order = request.startswith("POST /api/servers/{server}/")
    return f" ([{name}](commands/{group}.md#{name.replace(' ', '-')}))" if group and (command or is_order) else ""


def _told(parameters: type[msgspec.Struct]) -> str:
    return "Parameters: " + ", ".join(_parameter(field) for field in msgspec.structs.fields(parameters)) + "."


def _parameter(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return f"`{field.encode_name}` (needed)"
    default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    return f"`{field.encode_name}`" + ("" if field.default in (None, "", (), False) else f" (default `{default}`)")
