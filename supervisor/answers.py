"""What the meta-tools answer: pages of hits and of resources, as JSON. Pure.

A page of hits must fit a budget of tokens: complete schemas for the first hits, a signature with required parameters
for the rest; a hit that was asked for by its exact path is always complete. Local `$ref`s are inlined, so that a schema
can be read alone. Text of servers is shown without control, ANSI and invisible characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from actors.catalogue.entries import Resource, Tool
from actors.catalogue.naming import namespaced, resource_path, resource_uri, tool_path
from actors.catalogue.snapshot import Catalogue, Entry
from actors.lifecycle import State
from actors.messages import ServerStatus
from actors.protocol.jsonrpc import encode
from actors.search import Found, Hit

BYTES_PER_TOKEN = 4
SCHEMA_SHARE = 0.75
"""How much of the budget complete schemas may take; the rest is for the lines of all other hits."""
LONG_DESCRIPTION = 400
SHORT_DESCRIPTION = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
_SENTENCE = re.compile(r"[.!?。](?=\s|$)")


def tokens_of(text: bytes | str) -> int:
    """Estimate tokens; exact counting would cost more than the answer."""
    return (len(text) + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN


def clean(text: str) -> str:
    """Remove what a reader cannot see and a terminal might obey."""
    text = _ANSI.sub("", text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cs"))


def shorten(text: str, limit: int) -> str:
    """Cut at the end of a sentence if one ends in the second half of the limit, else at a word."""
    text = clean(text).strip()
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text, 0, limit)]
    if ends and ends[-1] >= limit // 3:
        return text[: ends[-1]]
    return text[:limit].rsplit(" ", 1)[0] + " ..."


class Page:
    """Builds the answer of `discover_mcp_tools` within a budget of tokens."""

    def __init__(self, catalogue: Catalogue, statuses: Mapping[str, ServerStatus], budget_tokens: int) -> None:
        self._catalogue = catalogue
        self._statuses = statuses
        self._budget = budget_tokens
        self._spent = 0
        self._complete = 0

    def build(self, query: str, found: Found, milliseconds: float) -> dict[str, Any]:
        """Return the answer's object."""
        rows: list[dict[str, Any]] = []
        for hit in found.hits:
            row = self._row(hit, first=not rows)
            size = tokens_of(encode(row))
            if rows and self._spent + size > self._budget:
                break
            self._spent += size
            rows.append(row)
        answer: dict[str, Any] = {
            "tools": rows,
            "total_found": found.total,
            "search_time_ms": round(milliseconds, 2),
            "query": query if len(query) <= 200 else query[:200] + "...",
            "catalog_revision": self._catalogue.revision,
        }
        notice = self._notice(query, found, len(rows))
        if notice:
            answer["notice"] = notice
        return answer

    def _notice(self, query: str, found: Found, shown: int) -> str:
        if not found.hits:
            servers = sorted(self._catalogue.visible)
            named = ", ".join(servers[:20]) + (", ..." if len(servers) > 20 else "")
            if not servers:
                return "No server is configured or ready yet."
            return f"Nothing fits. Servers: {named}. Say what you want to do, name a server, or use '*' to list."
        if shown < found.total and query.strip() == "*":
            return f"{shown} of {found.total} shown; narrow the query, or raise 'limit'."
        return ""

    def _row(self, hit: Hit, *, first: bool) -> dict[str, Any]:
        document = hit.document
        entry = self._catalogue.entries[document.server]
        if document.kind == "tool":
            return self._tool_row(entry, entry.tools[document.name], hit, first=first)
        row: dict[str, Any] = {"kind": document.kind, "server_name": document.server, "name": clean(document.name)}
        row["prompt" if document.kind == "prompt" else "uri"] = document.key.removesuffix("#prompt")
        row["description"] = shorten(document.description or document.title, SHORT_DESCRIPTION)
        row["relevance_score"] = round(hit.distance, 3)
        return row

    def _tool_row(self, entry: Entry, tool: Tool, hit: Hit, *, first: bool) -> dict[str, Any]:
        row: dict[str, Any] = {
            "tool_path": tool_path(entry.server, tool.name),
            "description": shorten(tool.description or tool.title, LONG_DESCRIPTION if first else SHORT_DESCRIPTION),
            "server_name": entry.server,
            "transport": entry.transport,
            "relevance_score": round(hit.distance, 3),
        }
        schema = self._schema(tool, always=hit.exact, first=first)
        if schema is not None:
            row["inputSchema"] = schema
        else:
            row["signature"] = signature(tool)
            row["required"] = list(tool.required)
        if bytes(tool.annotations):
            row["annotations"] = tool.annotations
        if bytes(tool.meta):
            row["_meta"] = rewrite_meta(entry.server, tool.meta)
        self._add_availability(entry, row)
        return row

    def _schema(self, tool: Tool, *, always: bool, first: bool) -> Any:
        """Return the complete schema if it fits (or must be there), else None."""
        limit = self._budget * SCHEMA_SHARE if not first else self._budget - tokens_of(b" " * LONG_DESCRIPTION)
        size = len(bytes(tool.input_schema)) / BYTES_PER_TOKEN
        if not always and self._spent + size > limit:
            return None
        return inlined(tool.input_schema)

    def _add_availability(self, entry: Entry, row: dict[str, Any]) -> None:
        status = self._statuses.get(entry.server)
        if status is not None and status.state in (State.RESPAWNING, State.FAILED):
            row["available"] = False
            row["retry_after_ms"] = 1000 if status.state is State.RESPAWNING else 60_000


def signature(tool: Tool) -> str:
    """Return `name(a, b?)`: every top-level parameter, optional ones with a question mark."""
    try:
        schema = msgspec.json.decode(tool.input_schema)
    except (msgspec.MsgspecError, RecursionError):
        return f"{tool.name}(...)"
    properties = schema.get("properties") if isinstance(schema, dict) else None
    names = list(properties)[:20] if isinstance(properties, dict) else []
    shown = ", ".join(name if name in tool.required else f"{name}?" for name in names)
    return clean(f"{tool.name}({shown})")


def inlined(raw: msgspec.Raw) -> Any:
    """Return a schema whose local references are replaced by what they point to, where that ends."""
    data = bytes(raw)
    if b"$ref" not in data:
        return raw
    try:
        schema = msgspec.json.decode(data)
        result = _inline(schema, schema, ())
    except (msgspec.MsgspecError, RecursionError, _Endless):
        return raw
    if isinstance(result, dict):
        result.pop("$defs", None)
        result.pop("definitions", None)
    small = encode(result)
    return raw if len(small) > 4 * len(data) + 4000 else result


class _Endless(Exception):
    """A reference leads back to itself, or nowhere: the schema is given as it is."""


def _inline(node: Any, root: Any, path: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, root, path) for item in node]
    if not isinstance(node, dict):
        return node
    ref = node.get("$ref")
    if isinstance(ref, str):
        if ref in path or len(path) > 20:
            raise _Endless
        target = _inline(_target(root, ref), root, (*path, ref))
        rest = {key: _inline(value, root, path) for key, value in node.items() if key != "$ref"}
        return {**target, **rest} if isinstance(target, dict) else target
    return {
        key: value if key in ("$defs", "definitions") else _inline(value, root, path) for key, value in node.items()
    }


def _target(root: Any, ref: str) -> Any:
    if not ref.startswith("#/"):
        raise _Endless
    node = root
    for part in ref[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or key not in node:
            raise _Endless
        node = node[key]
    return node


def rewrite_meta(server: str, meta: msgspec.Raw, name: Callable[[str, str], str] = resource_path) -> Any:
    """Return `_meta` with the UI resource's URI as `name` gives it, in both spellings (MCP Apps, SEP-1865)."""
    if b"resourceUri" not in bytes(meta):
        return meta
    found: dict[str, Any] = msgspec.json.decode(meta)
    ui = found.get("ui")
    if isinstance(ui, dict) and isinstance(ui.get("resourceUri"), str):
        found["ui"] = {**ui, "resourceUri": name(server, ui["resourceUri"])}
    flat = found.get("ui/resourceUri")
    if isinstance(flat, str):
        found["ui/resourceUri"] = name(server, flat)
    return found


def resources(catalogue: Catalogue) -> dict[str, Any]:
    """Return the answer of `list_mcp_resources`."""
    listed = [row for entry in _visible(catalogue) for row in _resource_rows(entry, entry.offer.resources)]
    templates = [row for entry in _visible(catalogue) for row in _resource_rows(entry, entry.offer.templates)]
    return {
        "resources": listed,
        "resource_templates": templates,
        "total_resources": len(listed),
        "total_templates": len(templates),
    }


def _visible(catalogue: Catalogue) -> Iterable[Entry]:
    return (entry for entry in catalogue.entries.values() if entry.available)


def _resource_rows(entry: Entry, found: Iterable[Resource]) -> Iterable[dict[str, Any]]:
    for resource in found:
        uri = resource_path(entry.server, resource.uri)
        row: dict[str, Any] = {"uriTemplate" if resource.template else "uri": uri, "name": clean(resource.name)}
        if resource.description:
            row["description"] = clean(resource.description)
        if resource.mime_type:
            row["mimeType"] = resource.mime_type
        row["server"] = entry.server
        if bytes(resource.meta):
            row["_meta"] = rewrite_meta(entry.server, resource.meta)
        yield row


def native_entries(catalogue: Catalogue, kind: str) -> list[Any]:
    """Return the definitions of all `resources`, `templates` or `prompts` under their namespaced names."""
    found: list[Any] = []
    for entry in _visible(catalogue):
        for item in getattr(entry.offer, kind):
            definition: dict[str, Any] = msgspec.json.decode(item.definition, type=dict[str, msgspec.Raw])
            if kind == "prompts":
                definition["name"] = namespaced(entry.server, item.name)
            else:
                definition["uriTemplate" if item.template else "uri"] = resource_uri(entry.server, item.uri)
            if "_meta" in definition:
                definition["_meta"] = rewrite_meta(entry.server, definition["_meta"], resource_uri)
            found.append(definition)
    return found
