"""Calling a tool: find it among what the client may see, check what can be checked, pass the call through as bytes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

import msgspec

from actors.catalogue.entries import Tool
from actors.catalogue.naming import tool_path
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import InvalidArguments, MailboxFull, ServerDisabled, ShuttingDown, SupervisorError, UnknownTool
from actors.protocol.jsonrpc import RemoteError, encode
from actors.search.text import squash
from supervisor import metatools, schemas
from supervisor.fitting import fitted_to
from supervisor.forward import Forwarder
from supervisor.front.service import Client
from supervisor.metatools import Execute
from supervisor.shown import clean
from supervisor.visible import Visible

Used = Callable[[str, str, bool, float], None]
"""Told of each call that ended: server, tool, whether the server answered with a result, milliseconds."""

SCHEMA_CHARS = 4000
"""How much of a schema the text of an error shows; its data has all of it."""
_PATH_PARTS = re.compile(r"[:/.|]|__|-(?=[a-z]+_mcp_)")


class ToolCalls:
    """Calls tools of servers. A result with `isError` is a result; a cancelled call is not counted at all."""

    def __init__(self, forward: Forwarder, visible: Visible, used: Used) -> None:
        self._forward = forward
        self._visible = visible
        self._used = used

    async def call(self, client: Client, wanted: Execute, meta: msgspec.Raw) -> bytes:
        """Call one tool. Raises `UnknownTool`, `InvalidArguments`, and what `Forwarder.ask` raises. A checkpoint."""
        entry, tool = await self._find(client, wanted.tool_path)
        arguments = checked(entry, tool, wanted)
        members = b'"name":' + encode(tool.name) + b',"arguments":' + bytes(arguments)
        started = time.perf_counter()
        try:
            body = await self._forward.ask(client, entry.server, "tools/call", members, meta)
        except (MailboxFull, ServerDisabled, ShuttingDown):  # refused by us: that says nothing about the tool
            raise
        except (SupervisorError, RemoteError):
            self._used(entry.server, tool.name, False, (time.perf_counter() - started) * 1000)
            raise
        self._used(entry.server, tool.name, True, (time.perf_counter() - started) * 1000)
        return body

    async def _find(self, client: Client, path: str) -> tuple[Entry, Tool]:
        found = self._visible.now(client.principal).find_tool(path)
        if found is None:
            seen = await self._visible.indexed(client)
            found = seen.find_tool(path)
            if found is None:
                undiscovered = self._visible.undiscovered(seen, path)
                found = None if undiscovered else spelled_otherwise(seen, path)
                if found is None:
                    raise undiscovered or unknown_tool(seen, path)
        return found


def spelled_otherwise(seen: Catalogue, path: str) -> tuple[Entry, Tool] | None:
    """Return the one tool whose server and name are this path, case and punctuation aside; None if not exactly one is.

    Models write `createIssue` or `create-issue` for `create_issue`. A name without its server never resolves.
    """
    wanted = squash(path[: metatools.MAX_PATH_CHARS].strip().removeprefix("mcp__"))
    hits = [hit.document for hit in seen.index.search(path, servers=seen.visible).hits if hit.exact]
    alike = [found for found in hits if squash(found.server + found.name) == wanted]
    if len(alike) != 1:
        return None
    entry = seen.entries[alike[0].server]
    return entry, entry.tools[alike[0].name]


def unknown_tool(seen: Catalogue, path: str) -> UnknownTool:
    """Return the error for a path that means nothing, with the nearest paths of what this client may see."""
    shown = clean(path[:100])
    last = _PATH_PARTS.split(path.strip())[-1]
    if last in metatools.SCHEMAS:
        return UnknownTool(f"{last} is a tool of this server itself: call it directly", details={"tool": last})
    nearest = [clean(found)[:200] for found in seen.nearest(path)]
    hint = f"; did you mean {', '.join(nearest)}?" if nearest else "; use discover_mcp_tools to find tools"
    return UnknownTool(f"there is no tool {shown!r}{hint}", details={"nearest": nearest})


def checked(entry: Entry, tool: Tool, wanted: Execute) -> msgspec.Raw:
    """Return the arguments for a tool, before a server is woken for them.

    Raises `InvalidArguments` with the tool's schema for arguments that are no object or lack a required one.
    """
    try:
        arguments = metatools.object_text(wanted.arguments)
    except InvalidArguments:
        raise _wrong(entry, tool, "arguments must be a JSON object") from None
    if wanted.wrapper and wanted.wrapper in schemas.properties_of(tool):
        arguments = msgspec.Raw(b"{" + encode(wanted.wrapper) + b":" + bytes(arguments) + b"}")
    arguments = fitted_to(tool, arguments, metatools.ARGUMENT_KEYS)
    if not tool.required:
        return arguments
    given: Mapping[str, msgspec.Raw] = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    missing = [clean(name)[:100] for name in tool.required if name not in given]
    if missing:
        raise _wrong(entry, tool, f"missing {', '.join(missing[:20])}")
    return arguments


def _wrong(entry: Entry, tool: Tool, what: str) -> InvalidArguments:
    path = clean(tool_path(entry.server, tool.name))
    schema = schemas.complete(tool)
    text = encode(schema).decode()
    shown = text if len(text) <= SCHEMA_CHARS else text[:SCHEMA_CHARS] + " ... (see data.schema)"
    details = {"tool_path": path, "schema": schema}
    return InvalidArguments(f"{path}: {what}. inputSchema: {shown}", server=entry.server, details=details)
