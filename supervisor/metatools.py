"""How generously the arguments of the meta-tools are read. Pure.

Models make the same mistakes again and again: arguments as a JSON string, `tool_path` inside `arguments`, arguments
beside `tool_path`, another word for either. What they meant is plain, so it is done; what is not plain is answered with
what was wrong, the keys that were received, and the schema. A call as the schema wants it is read in one pass, whatever
its size; to be understood in any other way it must be of a size that models write.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from actors.catalogue.resolution import MAX_PATH_CHARS, bounded
from actors.errors import InvalidArguments
from supervisor import loose
from supervisor.definitions import DISCOVER, EXECUTE, KINDS, SCHEMAS
from supervisor.inventory import Position, decode_cursor
from supervisor.loose import EMPTY, MAX_MEMBERS, MAX_NESTING, first, holds_object, is_prose, plain, texts, without

DEFAULT_LIMIT = 10
MAX_LISTED = 100
"""Most queries, kinds or servers that one discover may name."""
MAX_ASKED_BYTES = 262_144
"""Most bytes of the arguments of a meta-tool that passes nothing on."""

PATH_KEYS = ("tool_path", "toolPath", "tool_name", "toolName", "tool", "function", "function_name", "path", "name")
ARGUMENT_KEYS = (
    *("arguments", "args", "parameters", "params", "input"),
    *("tool_arguments", "tool_args", "tool_input", "toolArguments", "tool_params", "kwargs"),
)
QUERY_KEYS = (
    *("query", "q", "search", "text", "search_query", "searchQuery", "queries", "keywords", "task", "intent"),
    *("description", "tool_description", "prompt", "question", *PATH_KEYS),
)
CURSOR_KEYS = ("cursor", "next_cursor", "nextCursor")
LIMIT_KEYS = ("limit", "max_results", "maxResults", "top_k", "topK", "count", "n")
KIND_KEYS = ("kinds", "kind", "types", "type")
SERVER_KEYS = ("server", "servers", "server_name", "serverName")  # not in the schema: it would cost tokens
_EVERY_KIND = frozenset({"*", "all", "any"})
_MAX_KEYS_SHOWN = 10


class Discover(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for. `limit` is already within 1 and the configured maximum; no `servers`: all of them.

    `limited`: the client set the limit. `after` is where a listing goes on.
    """

    query: str
    limit: int = DEFAULT_LIMIT
    limited: bool = False
    after: Position | None = None
    kinds: frozenset[str] = frozenset({"tool"})
    servers: frozenset[str] = frozenset()


class Execute(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool to run; `arguments` is the JSON text of an object, untouched where it was one.

    `server` is the name of the server where it stood beside the path, as a client wrote it. `wrapper` is the key the
    arguments were found under where that key may also be a parameter of the tool's own.
    """

    tool_path: str
    server: str = ""
    arguments: msgspec.Raw = EMPTY
    wrapper: str = ""


class _Exact(msgspec.Struct, forbid_unknown_fields=True):
    tool_path: str
    arguments: msgspec.Raw


_exact = msgspec.json.Decoder(_Exact)


def invalid(tool: str, what: str, found: loose.Members | None = None) -> InvalidArguments:
    """Return the error for a wrong call of a meta-tool, with the schema that would have been right."""
    received = [key[:40] for key in list(found or ())[:_MAX_KEYS_SHOWN]]
    got = f"; received {', '.join(map(repr, received))}" if received else ""
    details = {"tool": tool, "received": received, "schema": SCHEMAS[tool]}
    return InvalidArguments(f"{tool}: {what}{got}", details=details)


def members(tool: str, arguments: msgspec.Raw) -> loose.Members:
    """Return the members of a meta-tool's arguments, read loosely. Raises `InvalidArguments`."""
    try:
        return loose.members(arguments)
    except loose.TooManyMembers:
        raise invalid(
            tool, f"too much at once: over {MAX_MEMBERS} members are read in no place but 'arguments'"
        ) from None
    except loose.NotAnObject:
        raise invalid(tool, "'arguments' must be a JSON object") from None


def short(tool: str, arguments: msgspec.Raw) -> None:
    """Raise `InvalidArguments` for more than is read at all."""
    size = len(arguments)
    if size > MAX_ASKED_BYTES:
        raise invalid(tool, f"the arguments have {size} bytes, {MAX_ASKED_BYTES} are the most")


def object_text(raw: msgspec.Raw) -> msgspec.Raw:
    """Return the arguments of a tool as the JSON text of an object; see `loose`. Raises `InvalidArguments`."""
    try:
        return loose.object_text(raw)
    except loose.NotAnObject:
        raise invalid(EXECUTE, "'arguments' must be a JSON object") from None


def discover(arguments: msgspec.Raw, max_limit: int) -> Discover:
    """Read the arguments of `discover_mcp_tools`. Raises `InvalidArguments`."""
    short(DISCOVER, arguments)
    found = _asked(arguments)
    servers = frozenset(filter(None, map(str.strip, listed(found, "servers", SERVER_KEYS, MAX_PATH_CHARS))))
    words = listed(found, "queries", QUERY_KEYS)
    after = cursor(DISCOVER, found)
    alone = first(found, QUERY_KEYS) is None and (bool(servers) or after is not None)  # a server: all that it has
    if not words and not alone:
        raise invalid(DISCOVER, "'query' must be a string that says what a tool should do", found)
    return Discover(
        query=" ".join(words),
        limit=_limit(found, max_limit),
        limited=first(found, LIMIT_KEYS) is not None,
        kinds=_kinds(found),
        servers=servers,
        after=after,
    )


def cursor(tool: str, found: loose.Members) -> Position | None:
    """Return where a list goes on; None for its beginning. Raises `InvalidArguments`."""
    text = first(found, CURSOR_KEYS)
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise invalid(tool, "'cursor' must be the next_cursor of the last answer", found)
    return decode_cursor(text.strip())


def listed(
    found: loose.Members, what: str, keys: Sequence[str], longest: int = MAX_ASKED_BYTES, tool: str = DISCOVER
) -> list[str]:
    """Return the texts of a list, or the one text. Raises `InvalidArguments` if they are too many, or one too long."""
    named = texts(first(found, keys))
    if len(named) > MAX_LISTED:
        raise invalid(tool, f"{len(named)} {what} at once, {MAX_LISTED} are the most", found)
    if any(len(text) > longest for text in named):
        raise invalid(tool, f"one of the {what} is over {longest} characters", found)
    return named


def _asked(arguments: msgspec.Raw) -> loose.Members:
    """Return what a discover asks with, out of what it was wrapped in; a text alone is the query."""
    if is_prose(arguments):
        return {QUERY_KEYS[0]: arguments}
    found = members(DISCOVER, arguments)
    for _ in range(MAX_NESTING):
        inner = [key for key in (*ARGUMENT_KEYS, QUERY_KEYS[0]) if holds_object(found.get(key))]
        if not inner:
            break
        found = {**without(found, inner[0]), **members(DISCOVER, found[inner[0]])}
    return found


def _limit(found: loose.Members, maximum: int) -> int:
    """Return a number within 1 and `maximum`; fractions are cut, what is too large or too small is clamped."""
    value = first(found, LIMIT_KEYS)
    if value is None:
        return min(DEFAULT_LIMIT, maximum)
    number = loose.number(value)
    if math.isnan(number):
        raise invalid(DISCOVER, f"'limit' must be a number from 1 to {maximum}", found)
    return int(max(1, min(number, maximum)))


def _kinds(found: loose.Members) -> frozenset[str]:
    value = first(found, KIND_KEYS)
    if value is None or value in ([], ""):
        return frozenset({"tool"})
    wanted = texts(value.replace(",", " ").split() if isinstance(value, str) else value)
    if len(wanted) > MAX_LISTED:
        raise invalid(DISCOVER, f"{len(wanted)} kinds at once, {MAX_LISTED} are the most", found)
    kinds = frozenset(kind.strip().lower().removeprefix("resource_").removesuffix("s") for kind in wanted)
    if kinds & _EVERY_KIND:
        return frozenset(KINDS)
    if not kinds or not kinds <= frozenset(KINDS):
        raise invalid(DISCOVER, f"'kinds' must be a list of {', '.join(KINDS)}", found)
    return kinds


def execute(arguments: msgspec.Raw) -> Execute:
    """Read the arguments of `execute_mcp_tool`. Raises `InvalidArguments`."""
    return _as_wanted(arguments) or _understood(arguments)


def _as_wanted(arguments: msgspec.Raw) -> Execute | None:
    """Return a call that is written as the schema wants it, its arguments untouched; None for any other."""
    try:
        call = _exact.decode(arguments)
    except (msgspec.MsgspecError, RecursionError):
        return None
    path = call.tool_path.strip()
    if not path or path[0] == "{" or not bytes(call.arguments).startswith(b"{"):
        return None
    if _is_envelope(call.arguments, call.tool_path):
        return None
    return Execute(tool_path=bounded(path), arguments=call.arguments)


def _understood(arguments: msgspec.Raw) -> Execute:
    """Return a call that is written in another way."""
    found = members(EXECUTE, arguments)
    rest = dict(found)
    for _ in range(MAX_NESTING):
        path, rest = _take_path(rest)
        if not isinstance(path, dict):  # {"tool_path": {"tool_path": ..., "arguments": ...}}
            break
        rest = {**rest, **path}
    server, rest = _server_beside(path, rest)
    inner, wrapper = _take_arguments(rest)
    if path is None:
        path, inner = _nested(inner)
    elif _is_envelope(inner, path):
        inner = object_text(members(EXECUTE, inner)["arguments"])
    if not isinstance(path, str) or not path.strip():
        raise invalid(EXECUTE, "'tool_path' must be a string such as 'github:create_issue'", found)
    return Execute(tool_path=bounded(path), server=server, arguments=inner, wrapper=wrapper)


def _server_beside(path: Any, rest: loose.Members) -> tuple[str, loose.Members]:
    """Take out the server where it came apart from its tool. Among flat arguments of a whole path it is one of them."""
    key = next((key for key in SERVER_KEYS if isinstance(plain(rest.get(key)), str)), "")
    if not key or not isinstance(path, str) or (":" in path and not bytes(rest.get("arguments", b"")).strip(b"{} \n")):
        return "", rest
    return bounded(plain(rest[key])), without(rest, key)


def _take_path(found: loose.Members) -> tuple[Any, loose.Members]:
    """Take the tool's path out: a string, the members of an object, or None if there is none at this level.

    A word like `name` counts as the path only where it cannot be an argument: nothing else is called `tool_path`.
    """
    keys = PATH_KEYS if not _mentions_path(found) else PATH_KEYS[:1]
    for key in keys:
        if holds_object(found.get(key)):
            return members(EXECUTE, found[key]), without(found, key)
        value = plain(found.get(key))
        if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):
            return ":".join(value), without(found, key)
        if isinstance(value, str) and value.strip():
            return value, without(found, key)
    empty = PATH_KEYS[0] in found and plain(found[PATH_KEYS[0]]) is None
    return None, without(found, PATH_KEYS[0]) if empty else found


def _mentions_path(found: loose.Members) -> bool:
    return PATH_KEYS[0] in found or any(b'"tool_path"' in bytes(found.get(key, b"")) for key in ARGUMENT_KEYS)


def _take_arguments(rest: loose.Members) -> tuple[msgspec.Raw, str]:
    """Return the tool's arguments, and the key they were under if that key could be a parameter itself."""
    given = object_text(rest.get("arguments", EMPTY))
    beside = without(rest, "arguments")
    if bytes(given).strip(b"{} \t\r\n") or not beside:
        return given, ""
    if len(beside) == 1 and (key := next(iter(beside))) in ARGUMENT_KEYS:
        value = beside[key]
        if holds_object(value):
            return object_text(value), key
    return msgspec.Raw(msgspec.json.encode(beside)), ""


def _nested(raw: msgspec.Raw) -> tuple[Any, msgspec.Raw]:
    """`tool_path` inside `arguments`: take it out."""
    inner = members(EXECUTE, raw)
    path = plain(inner.get("tool_path"))
    if path is None:
        return None, raw
    rest = without(inner, "tool_path")
    if set(rest) == {"arguments"}:
        return path, object_text(rest["arguments"])
    return path, msgspec.Raw(msgspec.json.encode(rest))


def _is_envelope(raw: msgspec.Raw, path: str) -> bool:
    """Whether arguments hold the whole call once more."""
    if b'"tool_path"' not in bytes(raw):
        return False
    try:
        inner = loose.members(raw)
    except loose.NotAnObject:
        return False
    return inner.keys() == {"tool_path", "arguments"} and plain(inner["tool_path"]) == path
