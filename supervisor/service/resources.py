"""Resources, prompts and completion: the names are ours, everything else is the server's.

Nothing is opened or cached here. A resource is asked for at the server its path names and nowhere else, listed or not:
templates and links lead to resources that no list has.

URIs in answers: the meta-tool answers with `server|uri`, as `list_mcp_resources` lists them; `resources/read` with
`mcp://server/uri`, as `resources/list` does and MCP demands a URI, or with the server's own if it was asked with that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import trio

from actors.catalogue.names.naming import resource_path, resource_uri
from actors.errors import InvalidArguments, ProtocolViolation
from actors.protocol.agreement.versions import Era
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.host.loop.workbench import Workbench
from supervisor.metatools.answers.native_lists import rewrite_meta
from supervisor.metatools.arguments import resources
from supervisor.metatools.lenient_json import EMPTY
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Client
from supervisor.service.forward import Forwarder
from supervisor.service.lookup.lookup import Lookup
from supervisor.service.request import ServerRequest

NO_META = msgspec.Raw(b"")
MAX_COMPLETED_BYTES = 65_536
READ_COST = 64
"""So many bytes of contents cost as much as one that a model wrote."""


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
    contents: list[msgspec.Raw] = []


class Reading:
    """Answers the methods that name a resource or a prompt."""

    def __init__(self, forward: Forwarder, lookup: Lookup, bench: Workbench) -> None:
        self._forward = forward
        self._lookup = lookup
        self._bench = bench

    async def for_model(self, exchange: Exchange, arguments: msgspec.Raw, meta: msgspec.Raw) -> bytes:
        """`read_mcp_resource`: texts as text blocks, so that a model sees them; bytes as embedded resources."""
        uri = await self._bench.run(len(arguments), resources.read_resource, arguments)
        server, _, body = await self._read(exchange, uri, meta, era="legacy")
        return await self._bench.run(len(body) // READ_COST, _for_model, server, body)

    async def read(self, exchange: Exchange) -> bytes:
        """`resources/read`: contents under the URIs of `resources/list`, unless it was asked with the server's own."""
        said, params, era = "resources/read: params need a 'uri'", exchange.params, exchange.client.era
        wanted: _Read = await self._bench.run(len(params) // READ_COST, read_params, params, _Read, said)
        server, own, body = await self._read(exchange, wanted.uri, wanted.meta, era=era)
        renamed = own != wanted.uri
        return await self._bench.run(len(body) // READ_COST, as_read, server, body, era, renamed)

    async def _read(self, exchange: Exchange, uri: str, meta: msgspec.Raw, *, era: Era) -> tuple[str, str, bytes]:
        since = trio.current_time()
        server, own = await self._lookup.resource(exchange.client, uri, since)
        members = b'"uri":' + encode(own)
        body = await self._forward.ask(
            exchange,
            ServerRequest(server, "resources/read", members, meta, name=own, since=since, era=era, uri=uri[:8192]),
        )
        return server, own, body

    async def get_prompt(self, exchange: Exchange) -> bytes:
        """`prompts/get`."""
        since = trio.current_time()
        said, params = "prompts/get: params need a 'name'", exchange.params
        wanted: _Get = await self._bench.run(len(params) // READ_COST, read_params, params, _Get, said)
        server, name = await self._lookup.prompt(exchange.client, wanted.name, since)
        members = b'"name":' + encode(name)
        if bytes(wanted.arguments) not in (b"{}", b"null"):
            members += b',"arguments":' + bytes(wanted.arguments)
        return await self._forward.ask(
            exchange, ServerRequest(server, "prompts/get", members, wanted.meta, name=name, since=since)
        )

    async def complete(self, exchange: Exchange) -> bytes:
        """`completion/complete`, for an argument of a prompt or of a resource template."""
        params = exchange.params
        if len(params) > MAX_COMPLETED_BYTES:
            raise InvalidArguments(f"completion/complete: params over {MAX_COMPLETED_BYTES} bytes")
        since = trio.current_time()
        wanted: _Complete = read_params(params, _Complete, "completion/complete: params need 'ref' and 'argument'")
        server, ref = await self._resolve_ref(exchange.client, wanted.ref, since)
        members = b'"ref":' + encode(ref) + b',"argument":' + encode(wanted.argument)
        if bytes(wanted.context):
            members += b',"context":' + bytes(wanted.context)
        return await self._forward.ask(
            exchange, ServerRequest(server, "completion/complete", members, wanted.meta, since=since)
        )

    async def _resolve_ref(self, client: Client, ref: Mapping[str, Any], since: float) -> tuple[str, dict[str, Any]]:
        """Return the server a reference is about, and the reference in that server's words."""
        kind, name, uri = ref.get("type"), ref.get("name"), ref.get("uri")
        if kind == "ref/prompt" and isinstance(name, str):
            server, own = await self._lookup.prompt(client, name, since)
            return server, {**ref, "name": own}
        if kind == "ref/resource" and isinstance(uri, str):
            server, own = await self._lookup.resource(client, uri, since)
            return server, {**ref, "uri": own}
        wrong = "'ref' must be a 'ref/prompt' with a 'name' or a 'ref/resource' with a 'uri'"
        raise InvalidArguments(f"completion/complete: {wrong}")


def _for_model(server: str, body: bytes) -> bytes:
    contents = _contents(server, body)
    blocks = _array(_block(server, item) for item in contents)
    structured = with_contents(body, _array(_with_own_name(server, item, resource_path) for item in contents))
    return b"".join([b'{"content":', *blocks, b',"structuredContent":', structured, b"}"])


def as_read(server: str, body: bytes, era: Era, renamed: bool) -> bytes:
    """Return the result of `resources/read` for what a server answered, its URIs `renamed` to `mcp://server/uri`."""
    contents = _array(
        _with_own_name(server, item, resource_uri) if renamed else item for item in _contents(server, body)
    )
    return with_contents(body, contents, era)


class _Parts(list[bytes]):
    """Parts of JSON text, to be joined."""


def _array(items: Iterable[Mapping[str, Any]]) -> _Parts:
    """Return the parts of a JSON array of objects.

    Made member by member, because there may be very many, or very large ones: other threads have their turn in between,
    and the parts are copied once, when they are joined.
    """
    parts = _Parts([b"["])
    for item in items:
        parts += [*_object(item), b","]
    parts[-1] = b"]" if len(parts) > 1 else b"[]"
    return parts


def _object(members: Mapping[str, Any]) -> _Parts:
    parts = _Parts([b"{"])
    for name, value in members.items():
        parts += [encode(name), b":"]
        if isinstance(value, _Parts):
            parts += value
        else:
            parts.append(bytes(value) if isinstance(value, msgspec.Raw) else encode(value))
        parts.append(b",")
    parts[-1] = b"}" if len(parts) > 1 else b"{}"
    return parts


def _contents(server: str, body: bytes) -> list[dict[str, msgspec.Raw]]:
    try:
        return [json.read(json.MEMBERS, item) for item in json.read(msgspec.json.Decoder(_Contents), body).contents]
    except json.UnreadableJson:
        text = f"server {server!r} answered resources/read with something that is no resource"
        raise ProtocolViolation(text, server=server, outcome="completed") from None


def _block(server: str, item: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Return a content block; a URI in it is one (`mcp://`), because clients check it."""
    text = item.get("text")
    if text is not None and bytes(text)[:1] == b'"':
        return {"type": "text", "text": text}
    return {"type": "resource", "resource": _with_own_name(server, item, resource_uri)}


def with_contents(body: bytes, contents: _Parts, era: Era = "legacy") -> bytes:
    """Return a server's answer with other contents; everything else of it stays as and where it is."""
    members: dict[str, Any] = {**json.MEMBERS.decode(body), "contents": contents}
    if era == "modern":  # nothing is known about who else may see it
        members = {"ttlMs": 0, **members, "cacheScope": "private"}
    return b"".join(_object(members))


def _with_own_name(server: str, item: Mapping[str, msgspec.Raw], name: Callable[[str, str], str]) -> dict[str, Any]:
    """Return one content under the name that `name` gives its URI, and so a UI resource that its `_meta` names."""
    named = {"uri": name(server, _text(item["uri"]))} if "uri" in item else {}
    meta = {"_meta": rewrite_meta(server, item["_meta"], name)} if "_meta" in item else {}
    return {**item, **named, **meta}


def _text(raw: msgspec.Raw) -> str:
    return str(json.read_or(json.VALUE, raw, ""))


def read_params(params: msgspec.Raw, type_: type[Any], wrong: str) -> Any:
    """Return the params of a method as a struct. Raises `InvalidArguments` with what is expected."""
    try:
        return json.read(msgspec.json.Decoder(type_), params)
    except json.UnreadableJson:
        raise InvalidArguments(wrong) from None
