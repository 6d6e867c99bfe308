"""The four meta-tools: their definitions, and how generously their arguments are read. Pure.

Together the definitions cost a client less than 500 tokens (a test counts them with cl100k). Models make the same
mistakes again and again: arguments as a JSON string, `tool_path` inside `arguments`, arguments beside `tool_path`,
another word for either. What they meant is plain, so it is done; what is not plain is answered with what was wrong, the
keys that were received, and the schema.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from actors.errors import InvalidArguments

DISCOVER = "discover_mcp_tools"
EXECUTE = "execute_mcp_tool"
LIST_RESOURCES = "list_mcp_resources"
READ_RESOURCE = "read_mcp_resource"

KINDS = ("tool", "resource", "template", "prompt")
DEFAULT_LIMIT = 10
MAX_QUERY_CHARS = 100_000
MAX_PATH_CHARS = 1000

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
PATH_KEYS = ("tool_path", "toolPath", "tool_name", "tool", "path", "name")
ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input")
QUERY_KEYS = ("query", "q", "search", "text")
SERVER_KEYS = ("server", "servers", "server_name", "serverName")
"""Not in the schema, where it would cost tokens; models that have seen other gateways send it all the same."""
URI_KEYS = ("uri", "resource_uri", "resource", "path")
_MAX_NESTING = 3
_MAX_KEYS_SHOWN = 10
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOT_JSON = (msgspec.MsgspecError, RecursionError)


class Discover(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for. `limit` is already within 1 and the configured maximum; no `servers`: all of them."""

    query: str
    limit: int = DEFAULT_LIMIT
    kinds: frozenset[str] = frozenset({"tool"})
    servers: frozenset[str] = frozenset()


class Execute(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool to run; `arguments` is the JSON text of an object, untouched where it was one.

    `wrapper` is the key the arguments were found under where that key may also be a parameter of the tool's own.
    """

    tool_path: str
    arguments: msgspec.Raw = EMPTY
    wrapper: str = ""


def invalid(tool: str, what: str, found: dict[str, msgspec.Raw] | None = None) -> InvalidArguments:
    """Return the error for a wrong call of a meta-tool, with the schema that would have been right."""
    received = [key[:40] for key in list(found or ())[:_MAX_KEYS_SHOWN]]
    got = f"; received {', '.join(map(repr, received))}" if received else ""
    schema = msgspec.json.encode(SCHEMAS[tool]).decode()
    details = {"tool": tool, "received": received, "schema": SCHEMAS[tool]}
    return InvalidArguments(f"{tool}: {what}{got}. inputSchema: {schema}", details=details)


def members(tool: str, arguments: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the members of a meta-tool's arguments, also where they came as a JSON string. Raises InvalidArguments."""
    return _members.decode(object_text(arguments, tool))


def object_text(raw: msgspec.Raw, tool: str = EXECUTE) -> msgspec.Raw:
    """Return arguments as the JSON text of an object: as they are, or out of the strings they were wrapped in.

    Nothing, `null`, an empty string and an empty list are an empty object. Raises `InvalidArguments` for the rest.
    """
    data = bytes(raw).strip()
    text = raw
    try:
        for _ in range(_MAX_NESTING):
            if data[:1] != b'"':
                break
            data = msgspec.json.decode(data, type=str).strip().encode()
            text = msgspec.Raw(data)
        if data[:1] == b"{":
            _members.decode(data)
            return text
        if data in (b"", b"null") or (data[:1] == b"[" and msgspec.json.decode(data) == []):
            return EMPTY
    except (*_NOT_JSON, UnicodeEncodeError):
        pass
    raise invalid(tool, "'arguments' must be a JSON object")


def discover(arguments: msgspec.Raw, max_limit: int) -> Discover:
    """Read the arguments of `discover_mcp_tools`. Raises `InvalidArguments`."""
    found = members(DISCOVER, arguments)
    query = _first(found, QUERY_KEYS)
    if isinstance(query, list) and query and all(isinstance(word, str) for word in query):
        query = " ".join(query)
    if not isinstance(query, str):
        raise invalid(DISCOVER, "'query' must be a string that says what you want to do", found)
    return Discover(query=query[:MAX_QUERY_CHARS], limit=_limit(found, max_limit), kinds=_kinds(found))


def _limit(found: dict[str, msgspec.Raw], maximum: int) -> int:
    """Return a number within 1 and `maximum`; fractions are cut, what is too large or too small is clamped."""
    value = _plain(found.get("limit"))
    if value is None:
        return min(DEFAULT_LIMIT, maximum)
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    except OverflowError:
        number = math.inf if value > 0 else 0.0
    if math.isnan(number):
        raise invalid(DISCOVER, f"'limit' must be a number from 1 to {maximum}", found)
    return int(max(1, min(number, maximum)))


def _kinds(found: dict[str, msgspec.Raw]) -> frozenset[str]:
    value = _plain(found.get("kinds"))
    if value is None or value in ([], ""):
        return frozenset({"tool"})
    wanted = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(wanted, list) or not all(isinstance(kind, str) for kind in wanted):
        raise invalid(DISCOVER, f"'kinds' must be a list of {', '.join(KINDS)}", found)
    kinds = frozenset(kind.strip().lower().removesuffix("s") for kind in wanted)
    if not kinds <= frozenset(KINDS):
        raise invalid(DISCOVER, f"'kinds' must be a list of {', '.join(KINDS)}", found)
    return kinds


def execute(arguments: msgspec.Raw) -> Execute:
    """Read the arguments of `execute_mcp_tool`. Raises `InvalidArguments`."""
    found = members(EXECUTE, arguments)
    rest = dict(found)
    for _ in range(_MAX_NESTING):
        path, rest = _take_path(rest)
        if not isinstance(path, dict):  # {"tool_path": {"tool_path": ..., "arguments": ...}}
            break
        rest = {**rest, **path}
    inner, wrapper = _take_arguments(rest)
    if path is None:
        path, inner = _nested(inner)
    elif _is_envelope(inner, path):
        inner = object_text(_members.decode(inner)["arguments"])
    if not isinstance(path, str) or not path.strip():
        raise invalid(EXECUTE, "'tool_path' must be a string such as 'github:create_issue'", found)
    return Execute(tool_path=path[:MAX_PATH_CHARS], arguments=inner, wrapper=wrapper)


def _take_path(found: dict[str, msgspec.Raw]) -> tuple[Any, dict[str, msgspec.Raw]]:
    """Take the tool's path out: a string, the members of an object, or None if there is none at this level.

    A word like `name` counts as the path only where it cannot be an argument: nothing else is called `tool_path`.
    """
    keys = PATH_KEYS if not _mentions_path(found) else PATH_KEYS[:1]
    for key in keys:
        value = _plain(found.get(key))
        if isinstance(value, str) and value.lstrip()[:1] == "{":
            value = _plain(msgspec.Raw(value.strip().encode(errors="replace")))
        if isinstance(value, dict):
            return members(EXECUTE, found[key]), _without(found, key)
        if isinstance(value, str) and value.strip():
            return value, _without(found, key)
    return None, _without(found, PATH_KEYS[0]) if _is_null(found.get(PATH_KEYS[0])) else found


def _mentions_path(found: dict[str, msgspec.Raw]) -> bool:
    return PATH_KEYS[0] in found or any(b'"tool_path"' in bytes(found.get(key, b"")) for key in ARGUMENT_KEYS)


def _take_arguments(rest: dict[str, msgspec.Raw]) -> tuple[msgspec.Raw, str]:
    """Return the tool's arguments, and the key they were under if that key could be a parameter itself."""
    given = object_text(rest.get("arguments", EMPTY))
    beside = _without(rest, "arguments")
    if bytes(given).strip(b"{} \t\r\n") or not beside:
        return given, ""
    if len(beside) == 1 and (key := next(iter(beside))) in ARGUMENT_KEYS:
        value = beside[key]
        if bytes(value).lstrip()[:1] in (b"{", b'"') and isinstance(_unwrapped(value), dict):
            return object_text(value), key
    return msgspec.Raw(msgspec.json.encode(beside)), ""


def _nested(raw: msgspec.Raw) -> tuple[Any, msgspec.Raw]:
    """`tool_path` inside `arguments`: take it out."""
    inner = _members.decode(raw)
    path = _plain(inner.get("tool_path"))
    if path is None:
        return None, raw
    rest = _without(inner, "tool_path")
    if set(rest) == {"arguments"}:
        return path, object_text(rest["arguments"])
    return path, msgspec.Raw(msgspec.json.encode(rest))


def _is_envelope(raw: msgspec.Raw, path: str) -> bool:
    """Whether arguments hold the whole call once more."""
    if b'"tool_path"' not in bytes(raw):
        return False
    inner = _members.decode(raw)
    return inner.keys() == {"tool_path", "arguments"} and _plain(inner["tool_path"]) == path


def read_resource(arguments: msgspec.Raw) -> str:
    """Read the arguments of `read_mcp_resource`. Raises `InvalidArguments`."""
    found = members(READ_RESOURCE, arguments)
    uri = _first(found, URI_KEYS)
    if not isinstance(uri, str) or not uri.strip():
        raise invalid(READ_RESOURCE, "'uri' must be a string such as 'docs|file:///readme.md'", found)
    return uri.strip()


def _first(found: dict[str, msgspec.Raw], keys: tuple[str, ...]) -> Any:
    """Return the first of these that is there, as a plain value."""
    return next((value for key in keys if (value := _plain(found.get(key))) is not None), None)


def _without(found: dict[str, msgspec.Raw], key: str) -> dict[str, msgspec.Raw]:
    return {name: value for name, value in found.items() if name != key}


def _is_null(raw: msgspec.Raw | None) -> bool:
    return raw is not None and _plain(raw) is None


def _unwrapped(raw: msgspec.Raw) -> Any:
    value = _plain(raw)
    return _plain(msgspec.Raw(value.strip().encode(errors="replace"))) if isinstance(value, str) else value


def _plain(raw: msgspec.Raw | bytes | None) -> Any:
    """Return a plain value; None for what is not there, or not JSON that Python can hold."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except _NOT_JSON:
        return None
