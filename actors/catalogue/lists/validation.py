"""From what a server listed to entries we can use: each is read alone; what is malformed is refused with a reason.

Bounds: a name of at most 256 characters, a description of 16 KiB (longer ones are cut), a definition of 1 MiB, 128
levels and 200,000 brackets and commas; of parameters and required names, what ranking needs. A schema without `type`
gets `"type": "object"`: some real servers forget it, and clients demand it. All this may run in a worker thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

import msgspec

from actors.catalogue.lists.marks import marks_of
from actors.catalogue.offer import NO_RAW, Prompt, Resource, Tool
from actors.protocol.wire import json
from actors.protocol.wire.mirrors import MARK, Mirror, MisplacedMirror, mirrors_in
from actors.protocol.wire.outline import MalformedJson, extent

MAX_NAME = 256
MAX_DESCRIPTION = 16 * 1024
MAX_DEFINITION_BYTES = 1024 * 1024
MAX_DEPTH = 128
MAX_MARKS = 200_000
MAX_PARAMETERS = 60
MAX_REQUIRED = 256
_TASK_SUPPORT = b'"taskSupport"'

T = TypeVar("T")


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


def tool(raw: msgspec.Raw) -> Tool:
    """Read one entry of `tools/list`. Raises `Unusable`."""
    value, entry = _decode(_tool, raw)
    _check_name(entry.name)
    schema, properties, required = _schema(entry.input_schema, value.get("inputSchema"))
    mirrors, misplaced = _mirrors(value.get("inputSchema")) if MARK in bytes(raw) else ((), "")
    return Tool(
        name=entry.name,
        title=(entry.title or "")[:MAX_NAME],
        description=(entry.description or "")[:MAX_DESCRIPTION],
        input_schema=schema,
        required=required,
        parameters=properties,
        annotations=_object(entry.annotations),
        meta=_object(entry.meta),
        definition=raw,
        mirrors=mirrors,
        misplaced=misplaced,
        needs_task=_TASK_SUPPORT in bytes(raw) and _needs_task(value.get("execution")),
        **marks_of(value, bytes(raw)),
    )


def resource(raw: msgspec.Raw, *, template: bool = False) -> Resource:
    """Read one entry of `resources/list`, or of `resources/templates/list`. Raises `Unusable`."""
    _, entry = _decode(_resource, raw)
    uri = entry.uri_template if template else entry.uri
    if not uri or len(uri) > 8192 or not uri.isprintable():
        raise Unusable("its URI is missing, over 8192 characters or not printable")
    return Resource(
        uri=uri,
        name=entry.name[:MAX_NAME],
        title=(entry.title or "")[:MAX_NAME],
        description=(entry.description or "")[:MAX_DESCRIPTION],
        mime_type=(entry.mime_type or "")[:MAX_NAME],
        meta=_object(entry.meta),
        definition=raw,
        template=template,
    )


def prompt(raw: msgspec.Raw) -> Prompt:
    """Read one entry of `prompts/list`. Raises `Unusable`."""
    _, entry = _decode(_prompt, raw)
    _check_name(entry.name)
    description = (entry.description or "")[:MAX_DESCRIPTION]
    return Prompt(name=entry.name, title=(entry.title or "")[:MAX_NAME], description=description, definition=raw)


def _decode(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw) -> tuple[dict[str, Any], T]:
    """Return an entry as plain values and as a struct: all of it is read once, so nothing in it surprises us later."""
    data = bytes(raw)
    _check_extent(data)
    try:
        value = json.read(json.VALUE, data)
    except json.UnreadableJson as error:
        raise Unusable(f"its definition is not JSON that we can read: {str(error)[:150]}") from None
    try:
        return value, json.read(decoder, raw)
    except json.UnreadableJson as error:
        raise Unusable(str(error)[:200]) from None


def _check_extent(data: bytes) -> None:
    opening = data.count(b"{") + data.count(b"[")
    if opening <= MAX_DEPTH and data.count(b",") <= MAX_MARKS // 2:
        return  # most are neither so deep nor have so many values
    try:
        depth, marks = extent(data)
    except MalformedJson:
        raise Unusable("its definition is not JSON") from None
    if depth > MAX_DEPTH:
        raise Unusable(f"its definition is nested more than {MAX_DEPTH} levels deep")
    if marks > MAX_MARKS:
        raise Unusable(f"its definition has more than {MAX_MARKS} brackets and commas")


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME:
        raise Unusable(f"its name is empty or over {MAX_NAME} characters")
    if not name.isprintable() or name != name.strip():
        raise Unusable("its name has control or invisible characters, or spaces around it")


def _object(raw: msgspec.Raw) -> msgspec.Raw:
    return raw if bytes(raw)[:1] == b"{" else NO_RAW


def _schema(raw: msgspec.Raw, schema: Any) -> tuple[msgspec.Raw, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return (schema, parameters with descriptions one level deep, needed names); `schema` is `raw` as a value.

    Needed is what is required and has no default: the libraries that servers are written with (Zod, Pydantic) call a
    parameter required that they fill in themselves, so a call without it is the server's to judge.
    """
    if not bytes(raw):
        return msgspec.Raw(b'{"type":"object"}'), (), ()
    if not isinstance(schema, dict):
        raise Unusable("its input schema is not an object")
    if "type" not in schema:
        rest = b"," + bytes(raw).lstrip()[1:] if schema else b"}"
        raw = msgspec.Raw(b'{"type":"object"' + rest)
    plain = msgspec.json.format(bytes(raw), indent=-1)  # white space would cost tokens in every answer
    if len(plain) < len(bytes(raw)):
        raw = msgspec.Raw(plain)  # otherwise it stays a part of the definition, and costs no memory of its own
    required, properties = schema.get("required"), schema.get("properties")
    named = required if isinstance(required, list) else []
    filled_in = properties if isinstance(properties, dict) else {}
    names = (
        name
        for name in named
        if isinstance(name, str) and len(name) <= MAX_NAME and not _has_default(filled_in.get(name))
    )
    return raw, tuple(islice(_parameters(schema, 0), MAX_PARAMETERS)), tuple(islice(names, MAX_REQUIRED))


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _needs_task(execution: Any) -> bool:
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def _mirrors(schema: Any) -> tuple[tuple[Mirror, ...], str]:
    try:
        return mirrors_in(schema), ""
    except MisplacedMirror as reason:
        return (), str(reason)


def _parameters(schema: dict[str, Any], depth: int) -> Iterable[tuple[str, str]]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, value in properties.items():
        declared = value if isinstance(value, dict) else {}
        described = declared.get("description")
        yield name[:MAX_NAME], described[:1000] if isinstance(described, str) else ""
        for inner in (declared, declared.get("items")) if depth < 1 else ():
            if isinstance(inner, dict) and "properties" in inner:
                yield from _parameters(inner, depth + 1)
