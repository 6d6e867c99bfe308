"""The pages about tools that wait for approval (`/api/trust`): which they are and what differs; and their approval.

- A tool is named as its server names it, and approved by the digest that was shown: what is another one by then is
  refused, so nobody approves what they have not seen.
- Texts are shown whole up to `_MAX_TEXT_CHARS`, escaped and without secrets of the server's entry; `cut` says of a tool
  that something is left out. There is nothing in what is approved that was not shown, unless it says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec

from actors.catalogue import metadata
from actors.catalogue.criteria import Texts
from actors.catalogue.diff import MAX_PARTS
from actors.catalogue.marks import digest
from actors.catalogue.names import tool_path
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Entry
from actors.catalogue.trust import Reason
from supervisor import operations
from supervisor.front.pages.performing import describe, performs
from supervisor.front.pages.tools import changes
from supervisor.front.pages.view import View
from supervisor.host.workbench import beside

_MAX_ROWS: Final = 100
MAX_APPROVED: Final = 500
_MAX_TEXT_CHARS: Final = 65_536
_MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
"""Of definitions that one page shows; tools that have no room there are on the next."""
_NOTHING: Final = b"{}"


class TrustQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose tools are listed, by the names that the servers give them."""

    servers: Texts = ()
    tools: Texts = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MAX_ROWS)] = _MAX_ROWS
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0


class Approval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `POST /api/trust` takes: digests in hexadecimal, by the server's own names of its tools."""

    server: str
    tools: Annotated[
        dict[str, Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]],
        msgspec.Meta(min_length=1, max_length=MAX_APPROVED),
    ]


_Waiting = tuple[str, Entry, Tool, Reason]
"""The launch whose tool waits: the server's name where all share one."""


@performs(operations.APPROVE)
async def approve(view: View, body: Approval) -> Any:
    """Approve tools of a server by the digests that were shown; 409 if any of them is another one now.

    It takes the key that changes of the configuration take: `{"server": "notes", "tools": {"add_note": "..."}}`.
    """
    return await approve_tools(view, body)


async def approve_tools(view: View, wanted: Approval) -> Any:
    """Approve tools as they were shown. Raises `UnknownServer`, and `NotAsSeen` if any of them is another one now."""
    describe(wanted.server, ", ".join(sorted(wanted.tools)))
    view.control.check(wanted.server)
    assert view.approvals is not None
    await view.approvals.approve(wanted.server, {name: bytes.fromhex(each) for name, each in wanted.tools.items()})
    return {"server": wanted.server, "approved": sorted(wanted.tools)}


@performs(operations.TRUST)
async def trust(view: View, query: TrustQuery) -> bytes:
    """List the tools that wait for approval, each with what differs from what was approved, and its digest."""
    for name in query.servers:
        view.control.check(name)
    every = [*_find_waiting(view, query)]
    shown: list[tuple[_Waiting, bytes | None]] = []
    size = 0
    for launch, entry, tool, reason in every[query.offset : query.offset + query.limit]:
        size += len(tool.definition)
        if shown and size > _MAX_PAGE_BYTES:
            break
        base = await view.approvals.find_base(entry.server, tool) if reason != "added" and view.approvals else None
        shown.append(((launch, entry, tool, reason), base))
    page = {"total": len(every), "offset": query.offset, "following": query.offset + len(shown)}
    return await beside(
        lambda: msgspec.json.encode(
            {**page, "tools": [_row(*each, base, view.launches.mask_of(each[0])) for each, base in shown]}
        )
    )


def _find_waiting(view: View, asked: TrustQuery) -> Iterator[_Waiting]:
    """Yield what waits; of launches that offer the same once, as it is approved for all of them."""
    catalogue = view.catalogue.value
    alike = {id(entry): (launch, entry) for launch, entry in [*catalogue.own.items()][::-1]}
    for launch, entry in (*catalogue.entries.items(), *sorted(alike.values(), key=lambda each: each[0])):
        if entry.standing.waiting and (not asked.servers or {launch, entry.server} & set(asked.servers)):
            for tool in entry.own.tools:
                reason = entry.standing.waiting.get(tool.name)
                if reason is not None and (not asked.tools or tool.name in asked.tools):
                    yield launch, entry, tool, reason


def _row(launch: str, entry: Entry, tool: Tool, reason: Reason, base: bytes | None, hide: Any) -> dict[str, Any]:
    definition = bytes(tool.definition)
    differing = changes(base or _NOTHING, definition, hide, _MAX_TEXT_CHARS)
    texts = [each[member] for each in differing for member in ("before", "after") if each[member] is not None]
    doubles = entry.standing.lookalikes.get(tool.name)
    findings = [
        finding.message for finding in metadata.describe(entry.server, tool).findings if finding.code in tool.alarms
    ]
    return {
        "server": launch,
        "tool": tool.name,
        "path": tool_path(entry.server, tool.name),
        "reason": reason,
        "held": entry.standing.holds,
        "digest": digest(tool).hex(),
        "findings": findings + ([f"its name can be taken for that of {doubles[0].path[:200]!a}"] if doubles else []),
        "against": "approved" if base is not None else "nothing",
        "changes": differing,
        "cut": len(differing) > MAX_PARTS or any(len(text) >= _MAX_TEXT_CHARS for text in texts),
    }
