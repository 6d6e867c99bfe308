"""The four meta-tools: their definitions, and how generously their arguments are read. Pure.

Together the definitions cost a client less than 500 tokens (a test counts them with cl100k). Models make the same
mistakes again and again: arguments as a JSON string, `tool_path` inside `arguments`, arguments beside `tool_path`.
What they meant is plain, so it is done; what is not plain is answered with what was wrong and the schema.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.errors import InvalidArguments

DISCOVER = "discover_mcp_tools"
EXECUTE = "execute_mcp_tool"
LIST_RESOURCES = "list_mcp_resources"
READ_RESOURCE = "read_mcp_resource"

KINDS = ("tool", "resource", "template", "prompt")
MAX_QUERY_CHARS = 100_000

DEFINITIONS: tuple[dict[str, Any], ...] = (
    {
        "name": DISCOVER,
        "description": "Find tools on all connected MCP servers by saying what you want to do. "
        "Returns tool paths and input schemas for execute_mcp_tool. '*' lists everything.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What you want to do, or a tool path"},
                "limit": {"type": "number", "description": "Most results to return", "default": 10},
                "kinds": {
                    "type": "array",
                    "items": {"enum": list(KINDS)},
                    "description": "What to find",
                    "default": ["tool"],
                },
            },
            "required": ["query"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": EXECUTE,
        "description": "Run a tool found with discover_mcp_tools.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_path": {"type": "string", "description": "server:tool, e.g. github:create_issue"},
                "arguments": {"type": "object", "description": "Arguments as the tool's inputSchema says"},
            },
            "required": ["tool_path", "arguments"],
        },
    },
    {
        "name": LIST_RESOURCES,
        "description": "List the resources (files, data, UI) of all connected MCP servers.",
        "inputSchema": {"type": "object", "properties": {}, "required": []},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": READ_RESOURCE,
        "description": "Read a resource found with list_mcp_resources.",
        "inputSchema": {
            "type": "object",
            "properties": {"uri": {"type": "string", "description": "server|uri"}},
            "required": ["uri"],
        },
        "annotations": {"readOnlyHint": True},
    },
)

SCHEMAS: dict[str, Any] = {definition["name"]: definition["inputSchema"] for definition in DEFINITIONS}

EMPTY = msgspec.Raw(b"{}")
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Discover(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for. `limit` is already within 1 and the configured maximum."""

    query: str
    limit: int = 10
    kinds: frozenset[str] = frozenset({"tool"})


class Execute(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool to run; `arguments` is the JSON text of an object, untouched where it was one."""

    tool_path: str
    arguments: msgspec.Raw = EMPTY


def invalid(tool: str, what: str) -> InvalidArguments:
    """Return the error for a wrong call of a meta-tool, with the schema that would have been right."""
    return InvalidArguments(f"{tool}: {what}", details={"tool": tool, "schema": SCHEMAS[tool]})


def members(tool: str, arguments: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the members of a meta-tool's arguments, also where they came as a JSON string. Raises InvalidArguments."""
    data = bytes(arguments).strip() or b"{}"
    if data[:1] == b'"':
        data = msgspec.json.decode(data, type=str).encode()
    if data == b"null":
        return {}
    try:
        return _members.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        raise invalid(tool, "arguments must be a JSON object") from None


def discover(arguments: msgspec.Raw, max_limit: int) -> Discover:
    """Read the arguments of `discover_mcp_tools`. Raises `InvalidArguments`."""
    found = members(DISCOVER, arguments)
    query = _plain(found.get("query"))
    if not isinstance(query, str):
        raise invalid(DISCOVER, "'query' must be a string that says what you want to do")
    return Discover(query=query[:MAX_QUERY_CHARS], limit=_limit(found, max_limit), kinds=_kinds(found))


def _limit(found: dict[str, msgspec.Raw], maximum: int) -> int:
    value = _plain(found.get("limit"))
    if isinstance(value, str) and value.strip().lstrip("+-").isdigit():
        value = int(value)
    if value is None:
        return min(10, maximum)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(DISCOVER, f"'limit' must be a number from 1 to {maximum}")
    return max(1, min(int(value), maximum))


def _kinds(found: dict[str, msgspec.Raw]) -> frozenset[str]:
    value = _plain(found.get("kinds"))
    if value is None or value == []:
        return frozenset({"tool"})
    wanted = [value] if isinstance(value, str) else value
    if not isinstance(wanted, list) or not all(isinstance(kind, str) for kind in wanted):
        raise invalid(DISCOVER, f"'kinds' must be a list of {', '.join(KINDS)}")
    kinds = frozenset(kind.removesuffix("s") for kind in wanted)
    if not kinds <= frozenset(KINDS):
        raise invalid(DISCOVER, f"'kinds' must be a list of {', '.join(KINDS)}")
    return kinds


def execute(arguments: msgspec.Raw) -> Execute:
    """Read the arguments of `execute_mcp_tool`. Raises `InvalidArguments`."""
    found = members(EXECUTE, arguments)
    inner = found.pop("arguments", None)
    path = _plain(found.pop("tool_path", None))
    if isinstance(path, dict):  # {"tool_path": {"tool_path": ..., "arguments": ...}}
        return execute(msgspec.Raw(msgspec.json.encode(path)))
    if inner is None:
        inner = msgspec.Raw(msgspec.json.encode(found)) if found else EMPTY
    inner = _object(inner)
    if path is None:
        path, inner = _nested(inner)
    if not isinstance(path, str) or not path.strip():
        raise invalid(EXECUTE, "'tool_path' must be a string such as 'github:create_issue'")
    return Execute(tool_path=path[:1000], arguments=inner)


def _object(raw: msgspec.Raw) -> msgspec.Raw:
    """Return the arguments as the JSON text of an object."""
    data = bytes(raw).strip()
    if data[:1] == b"{":
        return raw
    if data == b"null":
        return EMPTY
    if data[:1] == b'"':
        text = msgspec.json.decode(data, type=str).strip() or "{}"
        try:
            if isinstance(msgspec.json.decode(text), dict):
                return msgspec.Raw(text.encode())
        except (msgspec.MsgspecError, RecursionError):
            pass
    raise invalid(EXECUTE, "'arguments' must be a JSON object")


def _nested(raw: msgspec.Raw) -> tuple[Any, msgspec.Raw]:
    """`tool_path` inside `arguments`: take it out."""
    inner = _members.decode(raw)
    path = _plain(inner.pop("tool_path", None))
    if path is None:
        return None, raw
    if set(inner) == {"arguments"}:
        return path, _object(inner["arguments"])
    return path, msgspec.Raw(msgspec.json.encode(inner))


def read_resource(arguments: msgspec.Raw) -> str:
    """Read the arguments of `read_mcp_resource`. Raises `InvalidArguments`."""
    uri = _plain(members(READ_RESOURCE, arguments).get("uri"))
    if not isinstance(uri, str) or not uri:
        raise invalid(READ_RESOURCE, "'uri' must be a string such as 'docs|file:///readme.md'")
    return uri


def _plain(raw: msgspec.Raw | None) -> Any:
    return None if raw is None else msgspec.json.decode(raw)
