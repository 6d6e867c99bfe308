"""The page about a tool's definitions: what it was defined as before, and what each change changed.

Texts are the server's own, with its secrets hidden; what cannot be seen is escaped, so that nothing is smuggled past
whoever compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Annotated, Any

import msgspec
from quart import Response
from quart_trio import QuartTrio

from actors.catalogue.names.naming import tool_path
from actors.catalogue.redefinition import MAX_PARTS, Part, excerpts, parts
from actors.errors import UnknownTool
from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, query
from supervisor.host.loop.workbench import beside
from supervisor.metatools.texts import escape
from supervisor.store import ReplacedDefinition

Hide = Callable[[str], str]


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool, as `server:tool`; also one that is not offered any more."""

    path: Annotated[str, msgspec.Meta(max_length=2000)]


def add_history_routes(view: View, app: QuartTrio) -> None:
    async def history() -> Response:
        return json_response(await _history(view, query(HistoryQuery).path))

    app.add_url_rule("/api/tools/history", view_func=history)


async def _history(view: View, path: str) -> bytes:
    """Raises `UnknownTool` for a path that never meant anything, as far as is kept."""
    server, _, name = path.partition(":")
    entry = view.visible_catalogue().entries.get(server)
    tool = entry.tools.get(name) if entry is not None else None
    replaced = await view.definitions(server, name)
    if tool is None and not replaced:
        nearest = await beside(lambda: view.visible_catalogue().nearest(path))
        hint = f"did you mean {escape(nearest[0])!r}?" if nearest else "`mcpvisor tools` lists them"
        raise UnknownTool(f"there is no tool {path[:100]!a}, and none was; {hint}", details={"nearest": nearest})
    now = bytes(tool.definition) if tool is not None else None
    hide = view.deployment.value.mask(server)
    page = {"path": tool_path(server, name), "server": server, "name": name, "offered": tool is not None}
    return await beside(lambda: msgspec.json.encode({**page, "revisions": [*revisions(replaced, now, hide)]}))


def revisions(replaced: Sequence[ReplacedDefinition], now: bytes | None, hide: Hide) -> Iterator[dict[str, Any]]:
    """Yield what is known of each definition, the oldest first; `now` is the present one, if the tool is offered.

    `since` and `until` are unix seconds, None where they are not known, or not over. `changes`: against the one before;
    None if that, or this, was too long to be kept.
    """
    since: float | None = None
    for earlier, each in pairwise(chain([None], replaced)):
        assert each is not None
        changes = [] if earlier is None else _changes(earlier.definition, each.definition, hide)
        yield _revision(each.number, each.definition, changes, since, each.replaced_at)
        since = each.replaced_at
    if now is not None:
        last = replaced[-1] if replaced else None
        changes = [] if last is None else _changes(last.definition, now, hide)
        yield _revision(last.number + 1 if last is not None else 1, now, changes, since, None)


def _revision(
    number: int, definition: bytes, changes: list[dict[str, Any]] | None, since: float | None, until: float | None
) -> dict[str, Any]:
    size = len(definition) or None
    return {"number": number, "since": since, "until": until, "bytes": size, "changes": changes}


def _changes(before: bytes, after: bytes, hide: Hide) -> list[dict[str, Any]] | None:
    if not before or not after:
        return None
    told = [_change(part, hide) for part in parts(before, after)]
    return [*told, {"place": "...", "before": None, "after": None}] if len(told) == MAX_PARTS else told


def _change(part: Part, hide: Hide) -> dict[str, Any]:
    before, after = (None if text is None else escape(hide(text)) for text in (part.before, part.after))
    if before is not None and after is not None:
        before, after = excerpts(before, after)
    else:
        before, after = (None if text is None else excerpts("", text)[1] for text in (before, after))
    return {"place": escape(hide(part.place))[:400], "before": before, "after": after}
