"""The pages about tools: `/api/tools` selects by criteria, `/api/preflight` says whether tools can be called,
`/api/tokens` what each tool costs a model, and `/api/tools/history` what a tool was defined as before.

- Parameters are the fields of `Criteria`, `PreflightQuery`, `TokenQuery` and `HistoryQuery`. An unknown one or a bad
  value is 400 and says what is known.
- A page is bounded by `limit`, and says how many there are in total.
- Nothing here carries a payload of a call. Descriptions are the servers' own text: show it, never run it.
- In what changed of a definition the secrets of its server are hidden, and what cannot be seen is escaped, so that
  nothing is smuggled past whoever compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Annotated, Any

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.criteria import Criteria, Selection, Text, Texts, Treatment, select
from actors.catalogue.diff import MAX_PARTS, Part, excerpts, parts
from actors.catalogue.metadata import Metadata, reading
from actors.catalogue.names import tool_path
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import InvalidArguments, UnknownTool
from actors.launch import is_own, server_of
from supervisor import operations
from supervisor.config.call_rules import needs_yes
from supervisor.config.keys import nearest
from supervisor.front.pages.performing import performs
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.status import token_savings
from supervisor.front.pages.view import View
from supervisor.host.workbench import beside
from supervisor.identity.people import ConfirmRules
from supervisor.metatools.texts import escape
from supervisor.servers.deployment import Deployment
from supervisor.servers.safety import WHY, doubt
from supervisor.service.lookup import lookup
from supervisor.store import ReplacedDefinition

_MAX_SHOWN_CHARS = 400
"""Of a text of a definition that changed, in its history."""
MAX_TOKEN_ROWS = 1000
_MAX_REQUIRED = 100
"""So many tools are looked at with one request."""
_MAX_HIDDEN = 500
"""So many hidden tools of a server are named."""
Hide = Callable[[str], str]


class TokenQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose tools `/api/tokens` lists; the totals are always of all servers."""

    servers: Texts = ()
    name: Text = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_TOKEN_ROWS)] = 100
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool, as `server:tool`; also one that is not offered any more."""

    path: Annotated[str, msgspec.Meta(max_length=2000)]


class PreflightQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tools`: names of tools, in any form that a call takes."""

    tools: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=1000)], ...], msgspec.Meta(max_length=_MAX_REQUIRED)]


@performs(operations.TOOLS)
async def tools(view: View, query: Criteria) -> bytes:
    """List the tools that fit all criteria, also of your own launches; see `docs/reference/metadata.md`."""
    catalogue = await _catalogue_for_requester(view)
    _check_servers(view, catalogue, query.servers)
    described = await view.described.of(catalogue)
    usage = view.totals(None if REQUESTER.get().person.may("auditor") else view.principal)
    treat = partial(_treat, view.deployment.value, view.confirm_rules(), catalogue)
    return await beside(lambda: _encode(catalogue, query, select(catalogue, usage, query, described, treat)))


@performs(operations.PREFLIGHT)
async def preflight(view: View, query: PreflightQuery) -> Any:
    """Say of each of `tools` whether you can call it, and why not; nothing is called. `status` is `ready`,
    `unavailable`, `held` (it waits for approval), `hidden`, `renamed` or `missing`.
    """
    person = REQUESTER.get().person
    visible = await view.seen_by(person)
    seen, statuses, now = visible.catalogue, visible.statuses, trio.current_time()
    look = partial(lookup.preflight, seen, statuses, now=now, tells_hidden=person.may("auditor"))
    rows = await beside(lambda: [look(asked=each) for each in query.tools])
    return {"catalog_revision": seen.revision, "tools": rows}


async def _catalogue_for_requester(view: View) -> Catalogue:
    """Return what all share, and what is started for whoever asks alone, under the names of its servers. A checkpoint.

    Of the launches of others nothing is in there.
    """
    person = REQUESTER.get().person
    await view.seen_by(person)  # so that it is known who has which launch
    shared = view.catalogue.value
    own = {each.server: shared.own[each.name] for each in person.rights.launches if each.name in shared.own}
    return replace(shared, entries=dict(sorted({**shared.entries, **own}.items()))) if own else shared


def _treat(
    deployment: Deployment, person: ConfirmRules, catalogue: Catalogue, server: str, tool: str, metadata: Metadata
) -> Treatment:
    rules, judged, entry = deployment.rules_of(server), metadata.judgement, catalogue.entries[server]
    needs = needs_yes(rules, person, server, tool, judged)
    reads = reading(entry.by_own_name[tool])
    why = doubt(tool, entry.standing, rules, judged, reads, needs_yes=needs)
    return Treatment(needs, rules.exposes(judged), WHY[why] if why is not None else "")


def _encode(catalogue: Catalogue, criteria: Criteria, selection: Selection) -> bytes:
    page = {
        "catalog_revision": catalogue.revision,
        "total": selection.total,
        "offset": criteria.offset,
        "limit": criteria.limit,
        "by_safety": selection.by_safety,
        "groups": selection.groups,
        "tools": selection.rows,
        "hidden": _hidden_tools(catalogue, criteria),
        "held": _held_tools(catalogue, criteria),
    }
    return msgspec.json.encode(page)


def _hidden_tools(catalogue: Catalogue, criteria: Criteria) -> dict[str, list[str]]:
    """Return the tools that the configuration hides, by server, of the servers and names that are asked for."""
    hidden = {
        name: [tool for tool in entry.hidden_tools if criteria.name.lower() in tool.lower()][:_MAX_HIDDEN]
        for name, entry in catalogue.entries.items()
        if not criteria.servers or name in criteria.servers
    }
    return {name: tools for name, tools in hidden.items() if tools}


def _held_tools(catalogue: Catalogue, criteria: Criteria) -> dict[str, dict[str, str]]:
    """Return the tools that wait for approval and are held, and why, by server, of those that are asked for."""
    held = {
        name: {tool: why for tool, why in entry.standing.hold.items() if criteria.name.lower() in tool.lower()}
        for name, entry in catalogue.entries.items()
        if not criteria.servers or name in criteria.servers
    }
    return {name: dict([*tools.items()][:_MAX_HIDDEN]) for name, tools in held.items() if tools}


@performs(operations.TOOL_TOKENS)
async def tool_tokens(view: View, query: TokenQuery) -> bytes:
    """Show what each tool costs a model in tokens; the totals are always of all servers."""
    catalogue = view.catalogue.value
    _check_servers(view, catalogue, query.servers)
    return await beside(lambda: msgspec.json.encode(_token_page(catalogue, query)))


def _check_servers(view: View, catalogue: Catalogue, asked: Iterable[str]) -> None:
    """Raise `InvalidArguments` for a name that no server has: "none" would be taken for an answer."""
    known = {name for name in view.reports() if not is_own(name)} | catalogue.entries.keys()
    for name in asked:
        if name not in known:
            likely = of if (of := server_of(name)) in known else nearest(name, known)
            hint = f"did you mean {likely!r}?" if likely else "`mcpvisor status` lists them"
            raise InvalidArguments(f"there is no server {name[:80]!a}; {hint}", details={"nearest": likely})


def _token_page(catalogue: Catalogue, asked: TokenQuery) -> dict[str, Any]:
    servers = _per_server(catalogue)
    rows = _per_tool(catalogue, asked)
    total = token_savings(catalogue)
    return {
        "catalog_revision": catalogue.revision,
        "method": "cl100k_base" if total["exact"] else "estimate",
        "savings": total,
        "servers": servers,
        "total": len(rows),
        "offset": asked.offset,
        "limit": asked.limit,
        "tools": rows[asked.offset : asked.offset + asked.limit],
    }


def _per_server(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return each server with tools, the most expensive first. `counted`: how many of its tools have a count."""
    rows = [
        {
            "server": name,
            "tools": len(entry.offer.tools),
            "counted": len(entry.offer.token_counts),
            "tokens": sum(entry.offer.token_counts.values()),
            "exact": entry.offer.tokens_exact,
        }
        for name, entry in catalogue.entries.items()
        if entry.offer.tools
    ]
    return sorted(rows, key=lambda row: (-row["tokens"], row["server"]))


def _per_tool(catalogue: Catalogue, asked: TokenQuery) -> list[dict[str, Any]]:
    """Return each tool asked for, the most expensive first, those without a count last."""
    rows = [
        {
            "path": tool_path(server, tool.name),
            "server": server,
            "name": tool.name,
            "tokens": entry.offer.token_counts.get(tool.name),
            "exact": entry.offer.tokens_exact,
        }
        for server, entry in catalogue.entries.items()
        if not asked.servers or server in asked.servers
        for tool in entry.offer.tools
        if asked.name.lower() in tool.name.lower()
    ]
    return sorted(rows, key=lambda row: (row["tokens"] is None, -(row["tokens"] or 0), row["path"]))


@performs(operations.TOOL_HISTORY)
async def tool_history(view: View, query: HistoryQuery) -> bytes:
    """Show the definitions that a tool had, also one that is not offered any more. `path` is its `server:tool`."""
    # The tool is as its server has it, under the name that clients see or its own. A server that is not started for all
    # alike is as it is for whoever asks, or as the launch that is named.
    path = query.path
    server, _, name = path.partition(":")
    launch, entry = await _launch_of(view, server)
    tool = _tool_of(entry, name) if entry is not None else None
    replaced = await view.definitions(launch, name if tool is None else tool.name)
    if tool is None and not replaced:
        nearest = await beside(lambda: view.catalogue.value.nearest(path))
        hint = f"did you mean {escape(nearest[0])!r}?" if nearest else "`mcpvisor tools` lists them"
        if launch == server and server in view.deployment.value.own_launchers:
            hint = "its server is not started for all alike: name one of its launches, which `mcpvisor status` lists"
        raise UnknownTool(f"there is no tool {path[:100]!a}, and none was; {hint}", details={"nearest": nearest})
    now = bytes(tool.definition) if tool is not None else None
    hide = view.launches.mask_of(launch) if is_own(launch) else view.deployment.value.mask(server)
    page = {"path": tool_path(server, name), "server": server, "name": name, "own": is_own(launch)}
    page["offered"] = tool is not None
    return await beside(lambda: msgspec.json.encode({**page, "revisions": [*revisions(replaced, now, hide)]}))


async def _launch_of(view: View, server: str) -> tuple[str, Entry | None]:
    """Return what is started of a server for whoever asks, or the launch of this name, and its entry. A checkpoint."""
    person = REQUESTER.get().person
    await view.seen_by(person)  # so that it is known who has which launch
    own = next((each.name for each in person.rights.launches if each.server == server and each.name), server)
    catalogue = view.catalogue.value
    return own, (catalogue.own if is_own(own) else catalogue.entries).get(own)


def _tool_of(entry: Entry, name: str) -> Tool | None:
    """Return a tool as its server has it."""
    shown = entry.tools.get(name)
    return (shown.own or shown) if shown is not None else next((t for t in entry.own.tools if t.name == name), None)


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
    return changes(before, after, hide) if before and after else None


def changes(before: bytes, after: bytes, hide: Hide, most: int = _MAX_SHOWN_CHARS) -> list[dict[str, Any]]:
    """Return what differs, place by place, of each text at most so many characters around what differs in it."""
    told = [_change(part, hide, most) for part in parts(before, after)]
    return [*told, {"place": "...", "before": None, "after": None}] if len(told) == MAX_PARTS else told


def _change(part: Part, hide: Hide, most: int) -> dict[str, Any]:
    before, after = (None if text is None else escape(hide(text)) for text in (part.before, part.after))
    if before is not None and after is not None:
        before, after = excerpts(before, after, most)
    else:
        before, after = (None if text is None else excerpts("", text, most)[1] for text in (before, after))
    return {"place": escape(hide(part.place))[:400], "before": before, "after": after}
