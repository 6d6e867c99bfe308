"""Search by criteria, for programs and the command line: exact, complete and deterministic, where `search` ranks.

Rules:
- A criterion that is empty or None excludes nothing; all others must hold at once.
- A hint that is None (neither declared nor suggested) matches neither `true` nor `false`.
- Rows without a value to sort by (never called, not counted) come last in either direction; ties go by path.
- `total` and `by_safety` count everything that fits; `rows` and `groups` are the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from actors.catalogue.documents import Source
from actors.catalogue.findings import quote
from actors.catalogue.inference import Complexity
from actors.catalogue.metadata import SAFETY, Metadata, Safety, describe_all
from actors.catalogue.names import tool_path
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.search.text import squash, words

SortBy = Literal["name", "calls", "success_rate", "avg_time", "tokens"]
Text = Annotated[str, msgspec.Meta(max_length=200)]
Texts = Annotated[tuple[Text, ...], msgspec.Meta(max_length=50)]

MAX_LIMIT = 500
_MAX_DESCRIPTION_CHARS = 500


class ToolTotals(NamedTuple):
    """All calls of one tool. `total_ms`: of the calls themselves; `waited_ms`: before, for the server."""

    calls: int = 0
    failures: int = 0
    total_ms: float = 0.0
    waited_ms: float = 0.0


Usage = Mapping[tuple[str, str], ToolTotals]
"""(server, tool) to calls, failed calls, and their summed time in milliseconds."""


class Treatment(NamedTuple):
    """What the daemon does with calls of a tool: it asks the user first, or clients are not shown it at all.

    `not_read_only`: why it is not run where tools only read, in words; empty if it is.
    """

    requires_confirmation: bool = False
    exposed: bool = True
    not_read_only: str = ""


Treat = Callable[[str, str, Metadata], Treatment]
"""Of a server's tool, by its own name, with what is known of it."""
Described = Mapping[str, Mapping[str, Metadata]]
"""Server to tool to what is known of it."""


class Criteria(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to select.

    `name`: a part of the name, whatever its case and separators. `description`: a part of the description, or words
    that are all in it. Of `servers` any may fit, of `tags` all must. `version`: one the server's must be compatible
    with. `requires_confirmation`: what the daemon does, see `Treatment`. `limit` and `offset` count tools.
    """

    name: Text = ""
    description: Text = ""
    servers: Texts = ()
    version: Text = ""
    category: Text = ""
    tags: Texts = ()
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    safety: Safety | None = None
    requires_confirmation: bool | None = None
    complexity: Complexity | None = None
    include_unavailable: bool = False
    sort_by: SortBy = "name"
    descending: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)] = 50
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0


class SelectedTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool that fits; its description may be cut.

    `success_rate` is 0 to 1, `avg_ms` how many milliseconds a call takes, `avg_wait_ms` how many it waited before that,
    for its server to wake or for its turn; None before the first call. `tokens` is None until counted.
    `requires_confirmation`, `exposed`, `not_read_only`: see `Treatment`; `metadata` has what the tool itself says.
    `own_name` is what its server calls it. `phrases_from`: where the sentences come from by which people ask for it, a
    `file` of the operator's, the phrase `book`, or a `model`; empty if it has none.
    """

    path: str
    server: str
    name: str
    own_name: str
    description: str
    available: bool
    exposed: bool
    requires_confirmation: bool
    not_read_only: str
    tokens: int | None
    calls: int
    failures: int
    success_rate: float | None
    avg_ms: float | None
    avg_wait_ms: float | None
    metadata: Metadata
    phrases_from: Source = ""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """One page of what fits. `groups`: the paths of the page by safety level."""

    rows: tuple[SelectedTool, ...]
    total: int
    by_safety: dict[Safety, int]
    groups: dict[Safety, tuple[str, ...]]


def select(
    catalogue: Catalogue,
    usage: Usage,
    criteria: Criteria,
    described: Described | None = None,
    treat: Treat = lambda server, tool, metadata: Treatment(),
) -> Selection:
    """Return the tools that fit. `described` saves the work of describing every tool again."""
    rows = sorted(_rows(catalogue, usage, criteria, described, treat), key=lambda row: row.path)
    value = _SORTED_BY[criteria.sort_by]
    with_value = sorted((row for row in rows if value(row) is not None), key=value, reverse=criteria.descending)
    ordered = [*with_value, *(row for row in rows if value(row) is None)]
    page = tuple(_with_source(catalogue, row) for row in ordered[criteria.offset : criteria.offset + criteria.limit])
    return Selection(
        rows=page,
        total=len(rows),
        by_safety={level: sum(row.metadata.safety == level for row in rows) for level in SAFETY},
        groups={level: tuple(row.path for row in page if row.metadata.safety == level) for level in SAFETY},
    )


_SORTED_BY: Mapping[SortBy, Callable[[SelectedTool], Any]] = {
    "name": lambda row: (row.name.lower(), row.path),
    "calls": lambda row: row.calls,
    "success_rate": lambda row: row.success_rate,
    "avg_time": lambda row: row.avg_ms,
    "tokens": lambda row: row.tokens,
}


def _rows(
    catalogue: Catalogue, usage: Usage, criteria: Criteria, described: Described | None, treat: Treat
) -> Iterator[SelectedTool]:
    known = described if described is not None else {}
    for server, entry in catalogue.entries.items():
        if not _server_fits(entry, criteria):
            continue
        metadata = known[server] if server in known else describe_all(server, entry.offer.tools)
        for tool in entry.offer.tools:
            if tool.name in metadata and _fits(tool, metadata[tool.name], criteria):
                used = usage.get((server, (tool.own or tool).name), ToolTotals())
                row = _row(entry, tool, metadata[tool.name], used, treat)
                if criteria.requires_confirmation in (None, row.requires_confirmation):
                    yield row


def _server_fits(entry: Entry, criteria: Criteria) -> bool:
    if not entry.available and not criteria.include_unavailable:
        return False
    if criteria.servers and entry.server not in criteria.servers:
        return False
    return not criteria.version or not incompatible(criteria.version, entry.offer.server_version)


def _fits(tool: Tool, metadata: Metadata, criteria: Criteria) -> bool:
    hints = metadata.annotations
    exact = (
        (criteria.read_only, hints.read_only_hint),
        (criteria.destructive, hints.destructive_hint),
        (criteria.idempotent, hints.idempotent_hint),
        (criteria.open_world, hints.open_world_hint),
        (criteria.safety, metadata.safety),
        (criteria.complexity, metadata.complexity),
        (criteria.category.lower() or None, metadata.category),
    )
    if not all(wanted is None or wanted == known for wanted, known in exact):
        return False
    if not all(tag.lower() in metadata.tags for tag in criteria.tags):
        return False
    return _named(criteria.name, tool.name) and _tells(criteria.description, tool.description)


def _named(wanted: str, name: str) -> bool:
    return wanted.lower() in name.lower() or bool(squash(wanted) and squash(wanted) in squash(name))


def _tells(wanted: str, description: str) -> bool:
    if wanted.lower() in description.lower():
        return True
    asked = frozenset(words(wanted))
    return bool(asked) and asked <= frozenset(words(description))


def _with_source(catalogue: Catalogue, row: SelectedTool) -> SelectedTool:
    """Return a row of the page with where its sentences come from: to find that costs more than all the rest of it."""
    entry = catalogue.entries[row.server]
    tool = entry.tools[row.name]
    return replace(row, phrases_from=entry.phrases(row.server, tool.own or tool).source)


def _row(entry: Entry, tool: Tool, metadata: Metadata, used: ToolTotals, treat: Treat) -> SelectedTool:
    calls, failures, total_ms, waited_ms = used
    own_name = (tool.own or tool).name
    treatment = treat(entry.server, own_name, metadata)
    return SelectedTool(
        path=tool_path(entry.server, tool.name),
        server=entry.server,
        name=tool.name,
        own_name=own_name,
        description=tool.description[:_MAX_DESCRIPTION_CHARS],
        available=entry.available,
        exposed=treatment.exposed,
        requires_confirmation=treatment.requires_confirmation,
        not_read_only=treatment.not_read_only,
        tokens=entry.offer.token_counts.get(tool.name),
        calls=calls,
        failures=failures,
        success_rate=round((calls - failures) / calls, 4) if calls else None,
        avg_ms=round(total_ms / calls, 1) if calls else None,
        avg_wait_ms=round(waited_ms / calls, 1) if calls else None,
        metadata=metadata,
    )


# Versions -------------------------------------------------------------------------------------------------------------

_VERSION = re.compile(r"[vV=]?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-+.].*)?")


def incompatible(wanted: str, offered: str) -> str:
    """Return why version `offered` does not do for who was made for `wanted`, or nothing if it does.

    Semantic Versioning 2.0.0: the same major version and not older; below 1.0.0 the minor version must be the same too
    (item 4). Members of `wanted` that are not written are free: `1` means any 1.x. Pre-release and
    build are not compared. Anything that is no version must be equal.
    """
    wanted, offered = wanted.strip(), offered.strip()
    asked, got = _VERSION.fullmatch(wanted), _VERSION.fullmatch(offered)
    if asked is None or got is None:
        return "" if wanted == offered else f"{quote(offered)} and {quote(wanted)} can only be compared as versions"
    need, have = (tuple(int(part or 0) for part in match.groups()) for match in (asked, got))
    if need[0] != have[0]:
        return f"the major version is {have[0]}, not {need[0]}"
    if need[0] == 0 and asked.group(2) is not None and need[1] != have[1]:
        return f"below 1.0.0 minor versions differ in kind: it is 0.{have[1]}, not 0.{need[1]}"
    return "" if have >= need else "it is older"
