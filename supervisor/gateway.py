"""The service behind the front: the methods of MCP over the catalogue and the router.

Each answer is fitted to the era of the client that asked. Calls are passed through as bytes; only the envelope and the
name of the tool are read on the way.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import trio

from actors.catalogue.entries import Tool
from actors.catalogue.naming import URI_SCHEME, readings, resource_path, resource_uri, split_resource
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import (
    InvalidArguments,
    ServerError,
    ServerGaveUp,
    ServerStarting,
    UnknownMethod,
    UnknownPrompt,
    UnknownResource,
    UnknownTool,
)
from actors.kit import Address, Latest
from actors.lifecycle import State
from actors.messages import CallServer, Result, ServerStatus
from actors.protocol.jsonrpc import RemoteError, encode
from actors.protocol.versions import META_SERVER_INFO, MODERN_VERSIONS
from actors.router import Message as RouterMessage
from supervisor import answers, metatools
from supervisor.front.service import Client, Revisions
from supervisor.relay import fit, relayed, travelling_meta, with_member

INSTRUCTIONS = (
    "Many MCP servers stand behind these four tools. Call discover_mcp_tools with what you want to do, "
    "then execute_mcp_tool with a tool_path and arguments that fit its inputSchema."
)
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
FIRST_INDEX_S = 30.0
"""How long a request waits, right after the start, for the index to be built."""
LIST_TTL_MS = 60_000


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a deployment may change: seconds, tokens, and how many hits a client may ask for at most."""

    call_timeout_s: float = 60.0
    discover_limit_max: int = 50
    discover_token_budget: int = 2000
    max_query_chars: int = 512
    notify_catalogue_changes: bool = True


class _Call(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = metatools.EMPTY
    meta: msgspec.Raw = msgspec.field(name="_meta", default=msgspec.Raw(b""))


class _Read(msgspec.Struct):
    uri: str
    meta: msgspec.Raw = msgspec.field(name="_meta", default=msgspec.Raw(b""))


class _Complete(msgspec.Struct):
    ref: dict[str, Any]
    argument: msgspec.Raw
    context: msgspec.Raw = msgspec.Raw(b"")


_call = msgspec.json.Decoder(_Call)
Handler = Callable[[Client, msgspec.Raw], Awaitable[bytes]]


class Gateway:
    """Implements `supervisor.front.service.Service`."""

    def __init__(
        self,
        router: Address[RouterMessage],
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        settings: GatewaySettings,
        *,
        version: str,
        used: Callable[[str, str, bool, float], None],
        deadlines: Mapping[str, float] | None = None,
    ) -> None:
        self.changes: Latest[Any] = catalogue
        self._router = router
        self._catalogue = catalogue
        self._statuses = statuses
        self._settings = settings
        self._used = used
        self._deadlines = deadlines or {}
        self._info = {"name": "mcp-supervisor", "title": "MCP supervisor", "version": version}
        self._meta = b'"_meta":' + encode({META_SERVER_INFO: self._info})
        self._tools = encode({"tools": metatools.DEFINITIONS})
        self._methods: dict[str, Handler] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "ping": self._ping,
            "server/discover": self._discover_server,
        }

    # The Service protocol -------------------------------------------------------------------------------------------

    def revisions(self, principal: str) -> Revisions:
        """Return what `principal` sees now; constant if the operator switched these notifications off."""
        if not self._settings.notify_catalogue_changes:
            return Revisions()
        seen = self._catalogue.value.view(principal)
        return Revisions(tools=seen.tools_revision, resources=seen.resources_revision, prompts=seen.prompts_revision)

    def initialize(self, version: str) -> bytes:
        """Return an `initialize` result."""
        capabilities = {**CAPABILITIES, "logging": {}}
        if version < "2025-03-26":
            capabilities.pop("completions")
        return encode(
            {
                "protocolVersion": version,
                "capabilities": capabilities,
                "serverInfo": self._info,
                "instructions": INSTRUCTIONS,
            }
        )

    def set_log_level(self, client: Client, level: str) -> None:
        """Nothing is logged to clients yet, so every level is honoured."""

    async def perform(self, client: Client, method: str, params: msgspec.Raw) -> bytes:
        """Perform one request; see `Service.perform`."""
        handler = self._methods.get(method)
        modern = client.era == "modern"
        if handler is None or (method == "ping" and modern) or (method == "server/discover" and not modern):
            raise UnknownMethod(f"there is no method {method[:100]!r} in protocol version {client.version}")
        return await handler(client, params)

    # Lists ----------------------------------------------------------------------------------------------------------

    async def _ping(self, client: Client, params: msgspec.Raw) -> bytes:
        del client, params
        await trio.lowlevel.checkpoint()
        return b"{}"

    async def _discover_server(self, client: Client, params: msgspec.Raw) -> bytes:
        del params
        found = {"supportedVersions": MODERN_VERSIONS, "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}
        return self._own(client, encode(found), cacheable=True)

    async def _list_tools(self, client: Client, params: msgspec.Raw) -> bytes:
        del params
        return self._own(client, self._tools, cacheable=True)

    async def _list_resources(self, client: Client, params: msgspec.Raw) -> bytes:
        del params
        found = answers.native_entries(await self._indexed(client), "resources")
        return self._own(client, encode({"resources": found}), cacheable=True)

    async def _list_templates(self, client: Client, params: msgspec.Raw) -> bytes:
        del params
        found = answers.native_entries(await self._indexed(client), "templates")
        return self._own(client, encode({"resourceTemplates": found}), cacheable=True)

    async def _list_prompts(self, client: Client, params: msgspec.Raw) -> bytes:
        del params
        found = answers.native_entries(await self._indexed(client), "prompts")
        return self._own(client, encode({"prompts": found}), cacheable=True)

    def _seen(self, client: Client) -> Catalogue:
        return self._catalogue.value.view(client.principal)

    def _own(self, client: Client, body: bytes, *, cacheable: bool = False) -> bytes:
        """Return a result that we made, with the members its era wants."""
        if client.era == "legacy":
            return body
        if cacheable:
            body = with_member(body, b'"ttlMs":%d,"cacheScope":"private"' % LIST_TTL_MS)
        return with_member(body, b'"resultType":"complete",' + self._meta)

    # Tools ----------------------------------------------------------------------------------------------------------

    async def _call_tool(self, client: Client, params: msgspec.Raw) -> bytes:
        try:
            call = _call.decode(params)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InvalidArguments(f"tools/call: {error}", details={"expected": "name and arguments"}) from None
        if call.name == metatools.EXECUTE:
            wanted = metatools.execute(call.arguments)
            return await self._execute(client, wanted, call.meta)
        if call.name == metatools.DISCOVER:
            return self._own(client, await self._discover(client, call.arguments))
        if call.name == metatools.LIST_RESOURCES:
            return self._own(client, _content(answers.resources(await self._indexed(client))))
        if call.name == metatools.READ_RESOURCE:
            return self._own(client, await self._read_for_model(client, call))
        return await self._execute(client, metatools.Execute(tool_path=call.name, arguments=call.arguments), call.meta)

    async def _execute(self, client: Client, wanted: metatools.Execute, meta: msgspec.Raw) -> bytes:
        found = self._seen(client).find_tool(wanted.tool_path)
        if found is None:
            seen = await self._indexed(client)
            found = seen.find_tool(wanted.tool_path)
            if found is None:
                raise self._undiscovered(seen, wanted.tool_path) or self._unknown_tool(seen, wanted.tool_path)
        entry, tool = found
        arguments = wanted.arguments if bytes(wanted.arguments) else metatools.EMPTY
        _check_required(entry, tool, arguments)
        members = b'"name":' + encode(tool.name) + b',"arguments":' + bytes(arguments)
        started = time.perf_counter()
        good = False
        try:
            body = await self._ask(client, entry.server, "tools/call", members, meta)
            good = True
            return body
        finally:
            self._used(entry.server, tool.name, good, (time.perf_counter() - started) * 1000)

    def _unknown_tool(self, seen: Catalogue, path: str) -> UnknownTool:
        shown = answers.clean(path[:100])
        if shown in (definition["name"] for definition in metatools.DEFINITIONS):
            return UnknownTool(f"{shown} is a tool of this server itself: call it directly")
        nearest = seen.nearest(path)
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else "; use discover_mcp_tools to find tools"
        return UnknownTool(f"there is no tool {shown!r}{hint}", details={"nearest": nearest})

    def _undiscovered(self, seen: Catalogue, path: str) -> ServerError | None:
        """Return why nothing is known of the server that `path` names; None if that is not what is wrong."""
        for server, _ in readings(path, self._statuses.value.keys() - seen.entries.keys()):
            if self._statuses.value[server].state is not State.FAILED:
                text = f"server {server!r} is still being discovered; try again shortly"
                return ServerStarting(text, server=server, retry_after_s=1.0)
            # The reason may hold paths and the server's own words: those are for operators.
            return ServerGaveUp(f"server {server!r} could not be started; its operator sees why", server=server)
        return None

    async def _ask(self, client: Client, server: str, method: str, members: bytes, meta: msgspec.Raw) -> bytes:
        """Send one request to a server and return its result, fitted to the client's era."""
        message = CallServer(
            server=server,
            method=method,
            members=members,
            meta=travelling_meta(meta),
            deadline_s=self._deadlines.get(server, self._settings.call_timeout_s),
            principal=client.principal,
        )
        try:
            result: Result = await self._router.ask(message)
        except RemoteError as error:
            raise relayed(error, method, client.era) from None
        return fit(result, client.era, server)

    async def _discover(self, client: Client, arguments: msgspec.Raw) -> bytes:
        wanted = metatools.discover(arguments, self._settings.discover_limit_max)
        seen = await self._indexed(client)
        started = time.perf_counter()
        visible = seen.visible
        found = seen.index.search(wanted.query, limit=wanted.limit, kinds=wanted.kinds, servers=visible)
        milliseconds = (time.perf_counter() - started) * 1000
        page = answers.Page(seen, self._statuses.value, self._settings.discover_token_budget)
        return _content(page.build(wanted.query, found, milliseconds))

    async def _indexed(self, client: Client) -> Catalogue:
        """Return what a client sees, once what is known of earlier runs is in it. Raises `ServerStarting`."""
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(FIRST_INDEX_S):
            while not self._catalogue.value.indexed:
                await self._catalogue.changed(self._catalogue.version)
        if not self._catalogue.value.indexed:
            raise ServerStarting("the daemon is still reading its catalogue", retry_after_s=5.0)
        return self._seen(client)

    # Resources, prompts, completion ---------------------------------------------------------------------------------

    async def _read_for_model(self, client: Client, call: _Call) -> bytes:
        """`read_mcp_resource`: texts as text blocks, so that a model sees them; bytes as embedded resources."""
        uri = metatools.read_resource(call.arguments)
        found = msgspec.json.decode(await self._read(client, uri, call.meta, era="legacy"))
        contents = found.get("contents") if isinstance(found, dict) else None
        blocks = [
            {"type": "text", "text": item["text"]}
            if isinstance(item.get("text"), str)
            else {"type": "resource", "resource": {**item, "uri": uri}}
            for item in contents or []
            if isinstance(item, dict)
        ]
        return encode({"content": blocks, "structuredContent": found})

    async def _read_resource(self, client: Client, params: msgspec.Raw) -> bytes:
        wanted = _decoded(params, _Read, "resources/read: params need a 'uri'")
        body = await self._read(client, wanted.uri, wanted.meta, era=client.era)
        found: dict[str, Any] = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        contents = msgspec.json.decode(found.get("contents", b"[]"), type=list[dict[str, msgspec.Raw]])
        server, _ = split_resource(wanted.uri) or ("", "")
        name = resource_uri if wanted.uri.startswith(URI_SCHEME) else resource_path
        for item in contents:
            if "uri" in item:
                item["uri"] = msgspec.Raw(encode(name(server, str(msgspec.json.decode(item["uri"])))))
        found["contents"] = contents
        if client.era == "modern":
            found = {"ttlMs": 0, "cacheScope": "private", **found}
        return encode(found)

    async def _read(self, client: Client, uri: str, meta: msgspec.Raw, *, era: str) -> bytes:
        split = split_resource(uri)
        seen = await self._indexed(client)
        if split is None or split[0] not in seen.entries:
            if split is not None and (undiscovered := self._undiscovered(seen, f"{split[0]}:{split[1]}")) is not None:
                raise undiscovered
            text = f"there is no resource {answers.clean(uri[:200])!r}; list_mcp_resources tells which there are"
            raise UnknownResource(text, details={"uri": uri[:1000]})
        asking = client if era == client.era else msgspec.structs.replace(client, era="legacy")
        return await self._ask(asking, split[0], "resources/read", b'"uri":' + encode(split[1]), meta)

    async def _get_prompt(self, client: Client, params: msgspec.Raw) -> bytes:
        wanted = _decoded(params, _Call, "prompts/get: params need a 'name'")
        server, name = self._find_prompt(await self._indexed(client), wanted.name)
        members = b'"name":' + encode(name)
        if bytes(wanted.arguments) != bytes(metatools.EMPTY):
            members += b',"arguments":' + bytes(wanted.arguments)
        return await self._ask(client, server, "prompts/get", members, wanted.meta)

    def _find_prompt(self, seen: Catalogue, path: str) -> tuple[str, str]:
        entries = seen.entries
        for server, name in readings(path, entries):
            if any(prompt.name == name for prompt in entries[server].offer.prompts):
                return server, name
        raise UnknownPrompt(f"there is no prompt {answers.clean(path[:100])!r}; prompts/list tells which there are")

    async def _complete(self, client: Client, params: msgspec.Raw) -> bytes:
        wanted = _decoded(params, _Complete, "completion/complete: params need 'ref' and 'argument'")
        ref = dict(wanted.ref)
        seen = await self._indexed(client)
        if ref.get("type") == "ref/prompt":
            server, ref["name"] = self._find_prompt(seen, str(ref.get("name")))
        else:
            split = split_resource(str(ref.get("uri")))
            if split is None or split[0] not in seen.entries:
                raise UnknownResource(f"there is no resource {answers.clean(str(ref.get('uri'))[:200])!r}")
            server, ref["uri"] = split
        members = b'"ref":' + encode(ref) + b',"argument":' + bytes(wanted.argument)
        if bytes(wanted.context):
            members += b',"context":' + bytes(wanted.context)
        return await self._ask(client, server, "completion/complete", members, msgspec.Raw(b""))


def _content(answer: dict[str, Any]) -> bytes:
    """Return a tool result that carries an object as text and as structured content."""
    body = encode(answer)
    return b'{"content":[{"type":"text","text":' + encode(body.decode()) + b'}],"structuredContent":' + body + b"}"


def _check_required(entry: Entry, tool: Tool, arguments: msgspec.Raw) -> None:
    """Answer missing arguments before a server is woken for them, with the schema that says what is wanted."""
    data = bytes(arguments)
    if data.lstrip()[:1] != b"{":
        raise _wrong(entry, tool, "arguments must be an object")
    if not tool.required:
        return
    given = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    missing = [name for name in tool.required if name not in given]
    if missing:
        raise _wrong(entry, tool, f"missing {', '.join(missing)}")


def _wrong(entry: Entry, tool: Tool, what: str) -> InvalidArguments:
    path = f"{entry.server}:{tool.name}"
    schema = answers.inlined(tool.input_schema)
    text = f"{path}: {what}. inputSchema: {encode(schema).decode()[:4000]}"
    return InvalidArguments(text, server=entry.server, details={"tool_path": path, "schema": schema})


def _decoded(params: msgspec.Raw, type_: type[Any], wrong: str) -> Any:
    try:
        return msgspec.json.decode(params, type=type_)
    except (msgspec.MsgspecError, RecursionError):
        raise InvalidArguments(wrong) from None
