"""Resources, prompts, skills and completion: the names are ours, everything else is the server's.

Nothing is opened or cached here. A resource is asked for at the server its path names and nowhere else, listed or not:
templates and links lead to resources that no list has.

URIs in answers: the meta-tool answers with `server|uri`, as `list_mcp_resources` lists them; `resources/read` with
`mcp://server/uri`, as `resources/list` does and MCP demands a URI, or with the server's own if it was asked with that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

import msgspec
import trio

from actors.catalogue.names import resource_path, resource_uri
from actors.errors import InvalidArguments, ProtocolViolation
from actors.protocol.agreement.versions import Era
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.host.workbench import Workbench
from supervisor.metatools.arguments import read_resource
from supervisor.metatools.inventory import rewrite_meta
from supervisor.service.asking.exchange import Exchange
from supervisor.service.fitting.relay import with_member
from supervisor.service.forward import Forwarder
from supervisor.service.lookup.lookup import Naming
from supervisor.service.lookup.visible import Visible
from supervisor.service.request import PARAMS_COST, ServerRequest, members_of, named_params, parts_from
from supervisor.service.results.cutting import SCHEME
from supervisor.service.results.keeper import KeptResults, ResultPart
from supervisor.service.skills import Skills

MAX_COMPLETED_BYTES = 65_536
PARTS_JOINED: Final = 10_000
PART_KEY: Final = "mcpvisor/part"
"""In `_meta` of contents that are a part of a result: which one, and how to go on."""
_KNOWN = {
    "resources/read": {"uri", "_meta"},
    "prompts/get": {"name", "arguments", "_meta"},
    "completion/complete": {"ref", "argument", "context", "_meta"},
    "skills/get": {"uri", "_meta"},
    "resources/directory/read": {"uri", "cursor", "_meta"},
}
"""What is passed on of the params, at the door of the meta-tools."""


class Reading:
    """Answers the methods that name a resource or a prompt.

    `transparent`: all params reach the server, and its errors the clients of its era as they are. `results`: what is
    kept of large ones, if that is read here.
    """

    def __init__(
        self,
        visible: Visible,
        forward: Forwarder,
        bench: Workbench,
        naming: Naming,
        *,
        transparent: bool = False,
        results: KeptResults | None = None,
    ) -> None:
        self._results = results
        self._visible = visible
        self._forward = forward
        self._bench = bench
        self._naming = naming
        self._transparent = transparent
        self._skills = Skills(visible, bench, naming, self._ask)
        self.methods = {
            **self._skills.methods,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
        }

    async def for_model(self, exchange: Exchange, arguments: msgspec.Raw, meta: msgspec.Raw) -> bytes:
        """`read_mcp_resource`: texts as text blocks, so that a model sees them; bytes as embedded resources."""
        since = trio.current_time()
        uri = await self._bench.run(len(arguments), read_resource, arguments)
        if self._results is not None and uri.startswith(SCHEME):
            read = await self._results.read(exchange, uri)
            texts = [f"[{read.note}]", read.text] if read.text else [f"[{read.note}]"]
            return encode({"content": [{"type": "text", "text": text} for text in texts]})
        server, own, body = await self._read(exchange, uri, {"_meta": meta}, since, "legacy")
        of_skill = await self._skills.check(exchange, server, own, body, since)
        return await self._bench.run(len(body) // PARAMS_COST, _for_model, server, body, of_skill)

    async def _read_resource(self, exchange: Exchange) -> bytes:
        """Return contents under the URIs of `resources/list`, unless it was asked with the server's own."""
        since, era = trio.current_time(), exchange.client.era
        members, uri = await named_params(self._bench, exchange, "uri")
        if self._results is not None and uri.startswith(SCHEME):
            return _kept_contents(uri, await self._results.read(exchange, uri), era)
        server, own, body = await self._read(exchange, uri, members, since, era)
        if not self._transparent:  # else its client is the host of the skill, and has its entry
            await self._skills.check(exchange, server, own, body, since)
        return await self._bench.run(len(body) // PARAMS_COST, _as_read, server, body, era, own != uri)

    async def _read(
        self, exchange: Exchange, uri: str, members: dict[str, msgspec.Raw], since: float, era: Era
    ) -> tuple[str, str, bytes]:
        server, own = await self._naming.resource(exchange.client, uri, since)
        members["uri"] = msgspec.Raw(encode(own))
        body = await self._ask(exchange, "resources/read", server, members, since, name=own, uri=uri[:8192], era=era)
        return server, own, body

    async def _get_prompt(self, exchange: Exchange) -> bytes:
        since = trio.current_time()
        members, name = await named_params(self._bench, exchange, "name")
        server, own = await self._naming.prompt(exchange.client, name, since)
        members["name"] = msgspec.Raw(encode(own))
        if not self._transparent and bytes(members.get("arguments", b"null")) in (b"{}", b"null"):
            members.pop("arguments", None)
        return await self._ask(exchange, "prompts/get", server, members, since, name=own)

    async def _complete(self, exchange: Exchange) -> bytes:
        since, params, client = trio.current_time(), exchange.params, exchange.client
        if len(params) > MAX_COMPLETED_BYTES and not self._transparent:
            raise InvalidArguments(f"completion/complete: params over {MAX_COMPLETED_BYTES} bytes")
        members = members_of(params)
        ref = json.members(members.get("ref"))
        kind, name, uri = (json.text_at(ref.get(member)) for member in ("type", "name", "uri"))
        if kind == "ref/prompt" and name:
            server, own = await self._naming.prompt(client, name, since)
            renamed = {**ref, "name": own}
        elif kind == "ref/resource" and uri:
            server, own = await self._naming.resource(client, uri, since)
            renamed = {**ref, "uri": own}
        else:
            wrong = "'ref' must be a 'ref/prompt' with a 'name' or a 'ref/resource' with a 'uri'"
            raise InvalidArguments(f"completion/complete: {wrong}")
        members["ref"] = msgspec.Raw(encode(renamed))
        return await self._ask(exchange, "completion/complete", server, members, since)

    async def _ask(
        self, exchange: Exchange, method: str, server: str, members: dict[str, msgspec.Raw], since: float, **more: Any
    ) -> bytes:
        entry = self._visible.catalogue.entries.get(server)
        if self._transparent:
            more["written"] = entry.offer.era if entry is not None else None
        else:
            members = {name: value for name, value in members.items() if name in _KNOWN[method]}
        rest = parts_from(method, members, exchange.retry)
        request = ServerRequest(server, method, rest.members, rest.meta, since=since, **more)
        return await self._forward.ask(exchange, request)


def _kept_contents(uri: str, read: ResultPart, era: Era) -> bytes:
    """Return a part of a result that is kept as the contents of a resource."""
    kind = "application/json" if read.is_json else "text/plain"
    contents = [{"uri": uri, "mimeType": kind, "text": read.text, "_meta": {PART_KEY: read.note}}]
    body = encode(_with_contents(b"{}", contents, era))
    return with_member(body, b'"resultType":"complete"') if era == "modern" else body


def _for_model(server: str, body: bytes, of_skill: bool) -> bytes:
    """Return contents as the result of a tool; of a skill, whose it is is said where it is read (SEP-2640)."""
    origin = [{"type": "text", "text": f"[file of a skill, as server {server!r} wrote it]"}] if of_skill else []
    blocks = chain(origin, (_block(server, item) for item in _contents(server, body)))
    named = (_with_own_name(server, item, resource_path) for item in _contents(server, body))
    return _written({"content": blocks, "structuredContent": _with_contents(body, named)})


def _as_read(server: str, body: bytes, era: Era, renamed: bool) -> bytes:
    """Return the result of `resources/read` for what a server answered, its URIs `renamed` to `mcp://server/uri`."""
    contents: Iterator[Any] = _contents(server, body)
    if renamed:
        contents = (_with_own_name(server, item, resource_uri) for item in contents)
    return _written(_with_contents(body, contents, era))


def _written(value: Any) -> bytes:
    """Return JSON text of members that are very many, or very large; an iterator is an array.

    Other threads have their turn in between: so few parts are joined in one call, and nothing is there as a whole that
    is freed as a whole.
    """
    parts = _write(value)
    return b"".join(iter(lambda: b"".join(islice(parts, PARTS_JOINED)), b""))


def _write(value: Any) -> Iterator[bytes]:
    """Yield the parts of a JSON text, none of them empty."""
    if isinstance(value, dict):
        for number, (name, member) in enumerate(value.items()):
            yield (b"," if number else b"{") + encode(name) + b":"
            yield from _write(member)
        yield b"}" if value else b"{}"
    elif isinstance(value, Iterator):
        yield b"["
        for number, item in enumerate(value):
            if number:
                yield b","
            yield from _write(item)
        yield b"]"
    else:
        yield bytes(value) if isinstance(value, msgspec.Raw) else encode(value)


def _contents(server: str, body: bytes) -> Iterator[dict[str, msgspec.Raw]]:
    try:
        contents = json.read(json.MEMBERS, body).get("contents", b"[]")
        for item in json.read(json.ELEMENTS, contents):
            yield json.read(json.MEMBERS, item)
    except json.UnreadableJson:
        text = f"server {server!r} answered resources/read with something that is no resource"
        raise ProtocolViolation(text, server=server, outcome="completed") from None


def _block(server: str, item: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Return a content block; a URI in it is one (`mcp://`), because clients check it."""
    text = item.get("text")
    if text is not None and bytes(text)[:1] == b'"':
        return {"type": "text", "text": text}
    return {"type": "resource", "resource": _with_own_name(server, item, resource_uri)}


def _with_contents(body: bytes, contents: Iterable[Any], era: Era = "legacy") -> dict[str, Any]:
    members: dict[str, Any] = {**json.MEMBERS.decode(body), "contents": contents}
    if era == "modern":  # nothing is known about who else may see it
        members = {"ttlMs": 0, **members, "cacheScope": "private"}
    return members


def _with_own_name(server: str, item: Mapping[str, msgspec.Raw], name: Callable[[str, str], str]) -> dict[str, Any]:
    """Return one content under the name that `name` gives its URI, and so a UI resource that its `_meta` names."""
    named = {"uri": name(server, _text(item["uri"]))} if "uri" in item else {}
    meta = {"_meta": rewrite_meta(server, item["_meta"], name)} if "_meta" in item else {}
    return {**item, **named, **meta}


def _text(raw: msgspec.Raw) -> str:
    return str(json.read_or(json.VALUE, raw, ""))
