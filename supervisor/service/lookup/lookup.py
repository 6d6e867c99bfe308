"""Finding what a client names: a tool, a prompt, a resource. Nothing runs on a server that was not named.

What a name means is in `actors.catalogue.names`; here a server of which nothing is known yet is waited for,
and what cannot be found is answered with the reason, about the server that was named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, Protocol, TypeVar

import msgspec

from actors.catalogue.names import (
    Absent,
    Ambiguous,
    Meaning,
    Resolution,
    Resolved,
    Undiscovered,
    resolve_bare,
    resolve_named,
    resource_path,
    tool_path,
)
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.catalogue.trust import held_error
from actors.errors import (
    AmbiguousName,
    ToolHeld,
    UnknownPrompt,
    UnknownTool,
)
from actors.messages import ServerStatus
from supervisor.host.workbench import beside
from supervisor.metatools.definitions import EXECUTE, READ_ONLY, SCHEMAS
from supervisor.metatools.servers import (
    availability_of,
    refusal,
    status_words,
    unlisted_of,
)
from supervisor.metatools.texts import clean
from supervisor.servers.safety import WithheldTool, exposure_error
from supervisor.service.client import Client
from supervisor.service.fitting.relay import not_found
from supervisor.service.forward import Forwarder
from supervisor.service.lookup.visible import ClientView

R = TypeVar("R", Resolution, Resolution | None)

_MAX_URI_SHOWN = 200
_MAX_READINGS_SHOWN = 10
_WHY_BARRED = "marks its parameters for headers wrongly, and cannot be called over HTTP"
"""The one reason for which tools are left out, of servers of the modern era; see `Offer.barred`."""
_SPACE = re.compile(r"\s")
_PATH_PARTS = re.compile(r"[:/.|]|__|-(?=[a-z]+_mcp_)")


class Lookup:
    """Finds things by name. `since` is when the request came, by the trio clock: its deadline counts from there."""

    def __init__(self, view: ClientView, forward: Forwarder) -> None:
        self._visible = view.visible
        self._arrival = view.arrival
        self._looks = view.looks
        self._forward = forward

    async def tool(self, client: Client, path: str, server: str, since: float) -> tuple[Entry, Tool]:
        """Return the tool that a path means; `server` is what stood beside the path, mostly nothing.

        Whether its server can be used now, `refuse` says. Raises `UnknownTool`, `ToolHeld`, `AmbiguousName`, and what
        `Arrival.of` and `Looks.find` raise. A checkpoint unless it is found at once.
        """
        seen = self._visible.catalogue
        resolution = seen.tool(path, server=server)
        if not isinstance(resolution, Resolved):  # as hardly ever: it costs a call more than all else here
            seen, resolution = await self._resolve(client, lambda seen: seen.tool(path, server=server), since)
            if isinstance(resolution, Absent) and resolution.certain and not _is_hidden(seen, resolution):
                seen, resolution = await self._look_again(client, resolution, since)
        match resolution:
            case Resolved(server=name, name=tool):
                return seen.entries[name], seen.entries[name].tools[tool]
            case Ambiguous(readings=readings):
                raise ambiguous(path, readings, tool_path)
            case Absent():
                raise await beside(partial(unknown_tool, seen, path, resolution))
        raise await beside(partial(unknown_tool, seen, f"{server}:{path}" if server else path))

    async def prompt(self, client: Client, name: str, since: float) -> tuple[str, str]:
        """Return server and own name of a prompt. Raises `UnknownPrompt`, `AmbiguousName`, what `Arrival.of` raises."""
        _, resolution = await self._resolve(client, lambda seen: seen.prompt(name), since)
        match resolution:
            case Resolved(server=server, name=own):
                return server, own
            case Ambiguous(readings=readings):
                raise ambiguous(name, readings, tool_path)
            case Absent(server=server, name=own):
                raise UnknownPrompt(f"server {server!r} has no prompt {clean(own[:100])!r}", server=server)
        raise UnknownPrompt(f"there is no prompt {clean(name[:100])!r}; prompts/list tells which there are")

    async def resource(self, client: Client, uri: str, since: float) -> tuple[str, str]:
        """Return the server that a URI means, and its own URI of the resource.

        Raises `RemoteError` in the codes of the client's era if there is none, `AmbiguousName`, and what `Arrival.of`
        raises.
        """
        seen, resolution = await self._resolve(client, lambda seen: resolve_named(uri, seen.names, seen.entries), since)
        if resolution is None:
            offers = {server: entry.offer for server, entry in seen.entries.items()}
            resolution = await beside(partial(resolve_bare, uri, offers))
            self._refuse(resolution)
        match resolution:
            case Resolved(server=server, name=own):
                return server, own
            case Ambiguous(readings=readings):
                raise ambiguous(uri, readings, resource_path)
        text = f"there is no resource {clean(uri[:_MAX_URI_SHOWN])!r}; list_mcp_resources tells which there are"
        raise not_found(client.era, text, uri)

    async def _look_again(self, client: Client, absent: Absent, since: float) -> tuple[Catalogue, Resolved | Absent]:
        """Look at a server again that sleeps: it has exactly that name, or nothing. Raises what `Looks.find` raises."""
        server, name = absent.server, absent.name
        await self._looks.find(server, name, client.principal, since + self._forward.timeout_s(server))
        seen = self._visible.catalogue
        entry = seen.entries.get(server)
        return seen, Resolved(server, name) if entry is not None and name in entry.tools else absent

    async def _resolve(self, client: Client, resolve: Callable[[Catalogue], R], since: float) -> tuple[Catalogue, R]:
        """Return what a name means once everything is known that it depends on, and the catalogue that says so."""
        seen = self._visible.catalogue
        resolution = resolve(seen)
        while isinstance(resolution, Undiscovered):
            await self._arrival.of(
                resolution.server, client.principal, since + self._forward.timeout_s(resolution.server)
            )
            seen = self._visible.catalogue
            resolution = resolve(seen)
        self._refuse(resolution)
        return seen, resolution

    def refuse(self, server: str) -> None:
        """Raise why a server cannot be used, if it cannot."""
        refused = refusal(server, self._visible.statuses.get(server))
        if refused is not None:
            raise refused

    def _refuse(self, resolution: Resolution | None) -> None:
        """Raise why the server that was named cannot be used, if it cannot."""
        if isinstance(resolution, Resolved | Absent):
            self.refuse(resolution.server)


def ambiguous(name: str, readings: tuple[Meaning, ...], path: Callable[[str, str], str]) -> AmbiguousName:
    paths = [clean(path(*reading)) for reading in readings[:_MAX_READINGS_SHOWN]]
    text = f"{clean(name[:100])!r} can mean {' or '.join(map(repr, paths))}; nothing was called: use one of these"
    return AmbiguousName(text, details={"readings": paths})


def refuse_left_out(entry: Entry, name: str) -> UnknownTool | ToolHeld | None:
    """Return the error for a tool that its server offers, and that clients are not shown; None for any other."""
    if name in entry.held:
        return held_error(entry.server, name, entry.held[name])
    if name in entry.hidden:
        return exposure_error(entry.server, name)
    if name not in entry.offer.barred or entry.offer.era == "legacy":
        return None
    return UnknownTool(f"{clean(name[:100])!r} of server {entry.server!r} {_WHY_BARRED}", server=entry.server)


def _is_hidden(seen: Catalogue, absent: Absent) -> bool:
    entry = seen.entries.get(absent.server)
    return entry is not None and (absent.name in entry.hidden or absent.name in entry.held)


def _no_server(path: str) -> str:
    """Say that the server is unknown, where a path is plainly written with one."""
    server, colon, name = path.strip().partition(":")
    named = colon and name and not _SPACE.search(path.strip())
    return f", as no server {clean(server[:64])!r} is configured" if named else ""


def _new_path(seen: Catalogue, absent: Absent) -> str:
    """Return the path of a tool that was called so before, empty if there is none."""
    entry = seen.entries.get(absent.server)
    name = entry.renamed.get(absent.name, "") if entry is not None and entry.available else ""
    return clean(tool_path(absent.server, name))[:200] if name else ""


def unknown_tool(seen: Catalogue, path: str, absent: Absent | None = None) -> UnknownTool | ToolHeld:
    """Return the error for a path that means nothing, with the nearest paths; if `absent`, of the server named."""
    last = _PATH_PARTS.split(path.strip())[-1]
    if last == READ_ONLY:
        text = f"{last} is a tool of this server itself at /mcp?execute=by-effect alone: there call it directly"
        return UnknownTool(f"{text}, elsewhere call {EXECUTE}", details={"tool": last})
    if last in SCHEMAS:
        return UnknownTool(f"{last} is a tool of this server itself: call it directly", details={"tool": last})
    server = absent.server if absent is not None else None
    entry = seen.entries.get(absent.server) if absent is not None else None
    if absent is not None and entry is not None:
        refused = refuse_left_out(entry, absent.name)
        if refused is not None:
            return refused
    if absent is not None and (now := _new_path(seen, absent)):
        text = f"server {absent.server!r} has no tool {clean(absent.name[:100])!r} any more: it is called {now!r} now"
        return UnknownTool(f"{text}; nothing was called", server=server, details={"renamed": now, "nearest": [now]})
    nearest = [clean(other)[:200] for other in seen.nearest(path, server=server)]
    listed = f"list its tools with {server}:*, a query of discover_mcp_tools" if server else ""
    hint = f"did you mean {', '.join(nearest)}?" if nearest else listed or "use discover_mcp_tools to find tools"
    if absent is not None:
        text = f"server {absent.server!r} has no tool {clean(absent.name[:100])!r}"
        if unread := unlisted_of(seen, absent.server):
            text += f" that is known: {unread}; tell the user"
            hint = hint if nearest else "nothing was called"
    else:
        text = f"there is no tool {clean(path[:100])!r}{_no_server(path)}"
    details = {"nearest": nearest}
    if absent is not None and entry is not None and (why := entry.hidden_tools.get(absent.name)) is not None:
        return WithheldTool(f"{text}; {hint}", entry.server, absent.name, details, why)
    return UnknownTool(f"{text}; {hint}", server=server, details=details)


# What names of prompts and resources mean at a door, whichever it is.


class Naming(Protocol):
    """What names mean at a door: a server, and its own name. `since` is when the request came, by the trio clock."""

    async def prompt(self, client: Client, name: str, since: float) -> Meaning:
        """Raises `UnknownPrompt`, and why a server cannot be asked. A checkpoint if it waits for anything."""

    async def resource(self, client: Client, uri: str, since: float) -> Meaning:
        """Raises `RemoteError` in the codes of the client's era, and as `prompt` does."""


# Whether tools that somebody names can be called, and why not, without a call: for scripts, before they begin.
#
# What a name means, and what is said of one that means nothing, is what a call would hear (`lookup`). A server that
# sleeps can be called: the call wakes it.

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
