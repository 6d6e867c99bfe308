"""Whether tools that somebody names can be called, and why not, without a call: for scripts, before they begin. Pure.

What a name means, and what is said of one that means nothing, is what a call would hear (`lookup`). A server that
sleeps can be called: the call wakes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from actors.catalogue.names.naming import tool_path
from actors.catalogue.names.resolution import Absent, Ambiguous, Resolved, Undiscovered
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import ToolHeld
from actors.messages import ServerStatus
from supervisor.metatools.servers.availability import availability_of, refusal, status_words
from supervisor.metatools.texts import clean
from supervisor.service.lookup.lookup import ambiguous, unknown_tool

Readiness = Literal["ready", "unavailable", "held", "hidden", "renamed", "missing"]


class Preflight(msgspec.Struct, frozen=True):
    """What became of one name. `path` is that of the tool it means, `reason` why it cannot be called.

    - `unavailable`: its server cannot be used now, or calls of it keep failing.
    - `held`: it waits for approval.
    - `hidden`: the operator does not show it to clients.
    - `renamed`: it is called `path` now.
    - `missing`: there is none, or the name can mean several.
    """

    asked: str
    status: Readiness
    path: str = ""
    reason: str = ""


def preflight(
    seen: Catalogue, statuses: Mapping[str, ServerStatus], asked: str, now: float, *, tells_hidden: bool
) -> Preflight:
    """Return what would become of a call. `now` is a moment of the trio clock.

    `tells_hidden`: whether whoever asks may know what a rule of the operator hides; otherwise there is no such tool.
    Takes milliseconds for a name that means nothing.
    """
    resolution = seen.tool(asked)
    match resolution:
        case Resolved(server=server, name=name):
            entry = seen.entries[server]
            reason = _why_unavailable(entry, entry.tools[name], statuses.get(server), now)
            return Preflight(asked, "unavailable" if reason else "ready", tool_path(server, name), reason)
        case Undiscovered(server=server, name=name):
            return Preflight(asked, "unavailable", tool_path(server, name), status_words(server, statuses.get(server)))
        case Ambiguous(readings=readings):
            return Preflight(asked, "missing", "", ambiguous(asked, readings, tool_path).message)
    absent = resolution if isinstance(resolution, Absent) else None
    error = unknown_tool(seen, asked, absent)
    if absent is None:
        return Preflight(asked, "missing", "", error.message)
    path, entry_named = tool_path(absent.server, absent.name), seen.entries.get(absent.server)
    if isinstance(error, ToolHeld):
        return Preflight(asked, "held", path, error.message)
    if renamed := (error.details or {}).get("renamed"):
        return Preflight(asked, "renamed", renamed, error.message)
    if entry_named is not None and absent.name in entry_named.hidden:  # a call hears that, too
        return Preflight(asked, "hidden", path, error.message)
    why = entry_named.hidden_tools.get(absent.name) if entry_named is not None and tells_hidden else None
    if why is not None:
        return Preflight(asked, "hidden", path, f"server {absent.server!r} has it; it is {why}")
    return Preflight(asked, "missing", "", error.message)


def _why_unavailable(entry: Entry, tool: Tool, status: ServerStatus | None, now: float) -> str:
    """Return why a tool that is known cannot be called now; empty if it can be."""
    if (refused := refusal(entry.server, status)) is not None:
        return refused.message
    if status is None:
        return "" if entry.available else f"{clean(entry.server)} is not available"
    told = availability_of(status, (tool.own or tool).name, now)
    return str(told.get("reason") or status_words(entry.server, status)) if told else ""
