"""Resources, prompts and completion: the names are ours, everything else is the server's.

Nothing is opened or cached here. A resource is asked for at the server its path names and nowhere else, listed or not:
templates and links lead to resources that no list has. (Threat catalogue L17.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from actors.catalogue.naming import URI_SCHEME, readings, resource_path, resource_uri, split_resource
from actors.errors import InvalidArguments, ProtocolViolation, UnknownPrompt
from actors.protocol.jsonrpc import encode
from actors.protocol.versions import Era
from supervisor import metatools
from supervisor.forward import Forwarder
from supervisor.front.service import Client
from supervisor.loose import EMPTY, size
from supervisor.relay import not_found
from supervisor.shown import clean
from supervisor.visible import Visible
from supervisor.workbench import Workbench

NO_META = msgspec.Raw(b"")
MAX_COMPLETED_BYTES = 65_536
READ_COST = 64
"""So many bytes of contents cost as much as one that a model wrote."""
_MAX_URI_SHOWN = 200


class _Read(msgspec.Struct):
    uri: str
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_META)


class _Get(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = EMPTY
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_META)


class _Complete(msgspec.Struct):
    ref: dict[str, Any]
    argument: dict[str, Any]
    context: msgspec.Raw = msgspec.Raw(b"")
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_META)


class _Contents(msgspec.Struct):
    contents: list[dict[str, msgspec.Raw]] = []


class Reading:
    """Answers the methods that name a resource or a prompt."""

    def __init__(self, forward: Forwarder, visible: Visible, bench: Workbench) -> None:
        self._forward = forward
        self._bench = bench
        self._visible = visible

    async def for_model(self, client: Client, arguments: msgspec.Raw, meta: msgspec.Raw) -> bytes:
        """`read_mcp_resource`: texts as text blocks, so that a model sees them; bytes as embedded resources."""
        uri = await self._bench.run(size(arguments), metatools.read_resource, arguments)
        server, body = await self._read(client, uri, meta, era="legacy")
        return await self._bench.run(len(body) // READ_COST, _for_model, server, body)

    async def read(self, client: Client, params: msgspec.Raw) -> bytes:
        """`resources/read`: contents under the kind of name that was asked for."""
        wanted: _Read = decoded(params, _Read, "resources/read: params need a 'uri'")
        server, body = await self._read(client, wanted.uri, wanted.meta, era=client.era)
        name = resource_uri if wanted.uri.startswith(URI_SCHEME) else resource_path
        return await self._bench.run(len(body) // READ_COST, _renamed, server, body, name, client.era)

    async def _read(self, client: Client, uri: str, meta: msgspec.Raw, *, era: Era) -> tuple[str, bytes]:
        server, own = await self._owner(client, uri)
        body = await self._forward.ask(
            client, server, "resources/read", b'"uri":' + encode(own), meta, era=era, uri=uri[:8192]
        )
        return server, body

    async def _owner(self, client: Client, uri: str) -> tuple[str, str]:
        """Return the server that a resource belongs to, and the resource's own URI."""
        split = split_resource(uri)
        seen = await self._visible.indexed(client)
        if split is not None and split[0] in seen.entries:
            return split
        undiscovered = None if split is None else self._visible.undiscovered(seen, ":".join(split))
        text = f"there is no resource {clean(uri[:_MAX_URI_SHOWN])!r}; list_mcp_resources tells which there are"
        raise undiscovered or not_found(client.era, text, uri)

    async def get_prompt(self, client: Client, params: msgspec.Raw) -> bytes:
        """`prompts/get`."""
        wanted: _Get = decoded(params, _Get, "prompts/get: params need a 'name'")
        server, name = await self._find_prompt(client, wanted.name)
        members = b'"name":' + encode(name)
        if bytes(wanted.arguments) not in (b"{}", b"null"):
            members += b',"arguments":' + bytes(wanted.arguments)
        return await self._forward.ask(client, server, "prompts/get", members, wanted.meta)

    async def _find_prompt(self, client: Client, path: str) -> tuple[str, str]:
        seen = await self._visible.indexed(client)
        for server, name in readings(path[:1000], seen.entries):
            if any(prompt.name == name for prompt in seen.entries[server].offer.prompts):
                return server, name
        raise self._visible.undiscovered(seen, path[:1000]) or UnknownPrompt(
            f"there is no prompt {clean(path[:100])!r}; prompts/list tells which there are"
        )

    async def complete(self, client: Client, params: msgspec.Raw) -> bytes:
        """`completion/complete`, for an argument of a prompt or of a resource template."""
        if size(params) > MAX_COMPLETED_BYTES:
            raise InvalidArguments(f"completion/complete: params over {MAX_COMPLETED_BYTES} bytes")
        wanted: _Complete = decoded(params, _Complete, "completion/complete: params need 'ref' and 'argument'")
        server, ref = await self._referred(client, wanted.ref)
        members = b'"ref":' + encode(ref) + b',"argument":' + encode(wanted.argument)
        if bytes(wanted.context):
            members += b',"context":' + bytes(wanted.context)
        return await self._forward.ask(client, server, "completion/complete", members, wanted.meta)

    async def _referred(self, client: Client, ref: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the server a reference is about, and the reference in that server's words."""
        kind, name, uri = ref.get("type"), ref.get("name"), ref.get("uri")
        if kind == "ref/prompt" and isinstance(name, str):
            server, own = await self._find_prompt(client, name)
            return server, {**ref, "name": own}
        if kind == "ref/resource" and isinstance(uri, str):
            server, own = await self._owner(client, uri)
            return server, {**ref, "uri": own}
        wrong = "'ref' must be a 'ref/prompt' with a 'name' or a 'ref/resource' with a 'uri'"
        raise InvalidArguments(f"completion/complete: {wrong}")


def _for_model(server: str, body: bytes) -> bytes:
    blocks = encode([_block(server, item) for item in _contents(server, body)])
    return b"".join([b'{"content":', blocks, b',"structuredContent":', body, b"}"])


def _renamed(server: str, body: bytes, name: Callable[[str, str], str], era: Era) -> bytes:
    """Return a `resources/read` result under the names that `name` gives, with the members that an era wants."""
    contents = _contents(server, body)
    for item in contents:
        if "uri" in item:
            item["uri"] = msgspec.Raw(encode(name(server, _text(item["uri"]))))
    found: dict[str, Any] = {**msgspec.json.decode(body, type=dict[str, msgspec.Raw]), "contents": contents}
    if era == "modern":  # nothing is known about who else may see it
        found = {"ttlMs": 0, **found, "cacheScope": "private"}
    return encode(found)


def _contents(server: str, body: bytes) -> list[dict[str, msgspec.Raw]]:
    try:
        return msgspec.json.decode(body, type=_Contents).contents
    except (msgspec.MsgspecError, RecursionError):
        text = f"server {server!r} answered resources/read with something that is no resource"
        raise ProtocolViolation(text, server=server, outcome="completed") from None


def _block(server: str, item: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Return a content block; a URI in it is one (`mcp://`), because clients check it."""
    text = item.get("text")
    if text is not None and bytes(text)[:1] == b'"':
        return {"type": "text", "text": text}
    named = {"uri": resource_uri(server, _text(item["uri"]))} if "uri" in item else {}
    return {"type": "resource", "resource": {**item, **named}}


def _text(raw: msgspec.Raw) -> str:
    try:
        return str(msgspec.json.decode(raw))
    except msgspec.MsgspecError:
        return ""


def decoded(params: msgspec.Raw, type_: type[Any], wrong: str) -> Any:
    """Return the params of a method as a struct. Raises `InvalidArguments` with what is expected."""
    try:
        return msgspec.json.decode(params, type=type_)
    except (msgspec.MsgspecError, RecursionError):
        raise InvalidArguments(wrong) from None
