"""From what a server listed to entries we can use: what is malformed is dropped with a reason, the rest is kept.

Bounds: a name of at most 256 characters, a description of 16 KiB (longer ones are cut), a definition of 1 MiB and 128
levels. A schema without `type` gets `"type": "object"`: some real servers forget it, and clients demand it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from actors.catalogue.entries import NO_RAW, Offer, Prompt, Resource, Tool
from actors.protocol.era import Agreement
from actors.protocol.listing import Kind, Listed

MAX_NAME = 256
MAX_DESCRIPTION = 16 * 1024
MAX_DEFINITION_BYTES = 1024 * 1024
MAX_DEPTH = 128
MAX_PARAMETERS = 60
MAX_PROBLEMS = 50

E = TypeVar("E", Tool, Resource, Prompt)


class Unusable(Exception):
    """Why one entry was dropped; the text is for operators."""


class _Tool(msgspec.Struct):
    name: str
    title: str | None = None
    description: str | None = None
    input_schema: msgspec.Raw = msgspec.field(name="inputSchema", default=NO_RAW)
    annotations: msgspec.Raw = NO_RAW
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_RAW)


class _Resource(msgspec.Struct):
    name: str = ""
    uri: str = ""
    uri_template: str = msgspec.field(name="uriTemplate", default="")
    title: str | None = None
    description: str | None = None
    mime_type: str | None = msgspec.field(name="mimeType", default=None)
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_RAW)


class _Prompt(msgspec.Struct):
    name: str
    title: str | None = None
    description: str | None = None


_tool = msgspec.json.Decoder(_Tool)
_resource = msgspec.json.Decoder(_Resource)
_prompt = msgspec.json.Decoder(_Prompt)


def offer(agreement: Agreement, listed: Listed) -> Offer:
    """Return what a server offers, from what it agreed to and what it listed. Raises nothing."""
    problems: list[str] = [*listed.failed, *listed.truncated]
    return Offer(
        tools=_entries("tool", listed.tools, tool, lambda entry: entry.name, problems),
        resources=_entries("resource", listed.resources, resource, lambda entry: entry.uri, problems),
        templates=_entries("resource template", listed.templates, template, lambda entry: entry.uri, problems),
        prompts=_entries("prompt", listed.prompts, prompt, lambda entry: entry.name, problems),
        instructions=agreement.instructions[:MAX_DESCRIPTION],
        server_info=agreement.server_info,
        capabilities=agreement.capabilities,
        era=agreement.era,
        version=agreement.version,
        problems=tuple(problems[:MAX_PROBLEMS]),
        partial="tools" in listed.missing,
    )


def keeping(found: Offer, known: Offer, missing: Collection[Kind]) -> Offer:
    """Return `found` with what was `known` of the lists that could not be had this time."""
    return replace(
        found,
        tools=known.tools if "tools" in missing else found.tools,
        resources=known.resources if "resources" in missing else found.resources,
        templates=known.templates if "templates" in missing else found.templates,
        prompts=known.prompts if "prompts" in missing else found.prompts,
        partial=found.partial and known.partial,
    )


def _entries(
    word: str,
    raws: Iterable[msgspec.Raw],
    make: Callable[[msgspec.Raw], E],
    key: Callable[[E], str],
    problems: list[str],
) -> tuple[E, ...]:
    """Convert each entry; of two with the same key the first stays, so that a later one cannot shadow it."""
    found: dict[str, E] = {}
    for number, raw in enumerate(raws, 1):
        try:
            entry = make(raw)
            if key(entry) in found:
                raise Unusable(f"a second {word} of the name {key(entry)[:80]!r}")
        except Unusable as reason:
            problems.append(f"{word} {number} left out: {reason}")
        else:
            found[key(entry)] = entry
    return tuple(found.values())


def tool(raw: msgspec.Raw) -> Tool:
    """Read one entry of `tools/list`. Raises `Unusable`."""
    found: _Tool = _decode(_tool, raw)
    _check_name(found.name)
    schema, properties, required = _schema(found.input_schema)
    return Tool(
        name=found.name,
        title=(found.title or "")[:MAX_NAME],
        description=(found.description or "")[:MAX_DESCRIPTION],
        input_schema=schema,
        required=required,
        parameters=tuple(properties[:MAX_PARAMETERS]),
        annotations=_object(found.annotations),
        meta=_object(found.meta),
        definition=raw,
    )


def resource(raw: msgspec.Raw) -> Resource:
    """Read one entry of `resources/list`. Raises `Unusable`."""
    found: _Resource = _decode(_resource, raw)
    return _resource_entry(found, found.uri, raw, template_=False)


def template(raw: msgspec.Raw) -> Resource:
    """Read one entry of `resources/templates/list`. Raises `Unusable`."""
    found: _Resource = _decode(_resource, raw)
    return _resource_entry(found, found.uri_template, raw, template_=True)


def prompt(raw: msgspec.Raw) -> Prompt:
    """Read one entry of `prompts/list`. Raises `Unusable`."""
    found: _Prompt = _decode(_prompt, raw)
    _check_name(found.name)
    description = (found.description or "")[:MAX_DESCRIPTION]
    return Prompt(name=found.name, title=(found.title or "")[:MAX_NAME], description=description, definition=raw)


def _resource_entry(found: _Resource, uri: str, raw: msgspec.Raw, *, template_: bool) -> Resource:
    if not uri or len(uri) > 8192 or not uri.isprintable():
        raise Unusable("its URI is missing, over 8192 characters or not printable")
    return Resource(
        uri=uri,
        name=found.name[:MAX_NAME],
        title=(found.title or "")[:MAX_NAME],
        description=(found.description or "")[:MAX_DESCRIPTION],
        mime_type=(found.mime_type or "")[:MAX_NAME],
        meta=_object(found.meta),
        definition=raw,
        template=template_,
    )


def _decode(decoder: msgspec.json.Decoder[Any], raw: msgspec.Raw) -> Any:
    data = bytes(raw)
    if len(data) > MAX_DEFINITION_BYTES:
        raise Unusable(f"its definition is over {MAX_DEFINITION_BYTES} bytes")
    try:
        # Without that many brackets nothing can be that deep: most definitions are read once only.
        if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _deeper(msgspec.json.decode(data), MAX_DEPTH):
            raise Unusable(f"its definition is nested more than {MAX_DEPTH} levels deep")
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Unusable(str(error)[:200]) from None


def _deeper(value: Any, levels: int) -> bool:
    """Return whether objects and arrays are nested more than `levels` deep; without recursion."""
    level = [value]
    for _ in range(levels + 1):
        nested = [part for part in level if isinstance(part, dict | list)]
        if not nested:
            return False
        level = [child for part in nested for child in (part.values() if isinstance(part, dict) else part)]
    return True


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME:
        raise Unusable(f"its name is empty or over {MAX_NAME} characters")
    if not name.isprintable() or name != name.strip():
        raise Unusable("its name has control or invisible characters, or spaces around it")


def _object(raw: msgspec.Raw) -> msgspec.Raw:
    return raw if bytes(raw)[:1] == b"{" else NO_RAW


def _schema(raw: msgspec.Raw) -> tuple[msgspec.Raw, list[tuple[str, str]], tuple[str, ...]]:
    """Return (schema, parameters with descriptions one level deep, required names)."""
    if not bytes(raw):
        return msgspec.Raw(b'{"type":"object"}'), [], ()
    try:
        schema = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        raise Unusable("its input schema is not JSON we can read") from None
    if not isinstance(schema, dict):
        raise Unusable("its input schema is not an object")
    if "type" not in schema:
        rest = b"," + bytes(raw).lstrip()[1:] if schema else b"}"
        raw = msgspec.Raw(b'{"type":"object"' + rest)
    raw = msgspec.Raw(msgspec.json.format(bytes(raw), indent=-1))  # white space would cost tokens in every answer
    required = schema.get("required")
    names = tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()
    return raw, list(_parameters(schema, 0)), names


def _parameters(schema: Any, depth: int) -> Iterable[tuple[str, str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return
    for name, value in properties.items():
        described = value.get("description") if isinstance(value, dict) else None
        yield name, described[:1000] if isinstance(described, str) else ""
        if depth < 1 and isinstance(value, dict):
            yield from _parameters(value, depth + 1)
            yield from _parameters(value.get("items"), depth + 1)
