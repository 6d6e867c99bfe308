"""How generously the arguments of `execute_mcp_tool` are read. Pure. See `tools`."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.catalogue.resolution import bounded
from actors.protocol.jsonrpc import encode
from supervisor.metatools import lenient_json
from supervisor.metatools.arguments.continuation import MARK, Continuation, taken_out
from supervisor.metatools.arguments.tools import ARGUMENT_KEYS, PATH_KEYS, SERVER_KEYS, invalid, members, object_text
from supervisor.metatools.definitions import EXECUTE
from supervisor.metatools.lenient_json import (
    EMPTY,
    MAX_NESTING,
    holds_object,
    plain,
    without,
)


class Execute(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool to run; `arguments` is the JSON text of an object, untouched where it was one.

    `server` is the name of the server where it stood beside the path, as a client wrote it. `wrapper` is the key the
    arguments were found under where that key may also be a parameter of the tool's own. `continuation`: it goes on
    with an earlier call.
    """

    tool_path: str
    server: str = ""
    arguments: msgspec.Raw = EMPTY
    wrapper: str = ""
    continuation: Continuation | None = None


class _Exact(msgspec.Struct, forbid_unknown_fields=True):
    tool_path: str
    arguments: msgspec.Raw


_exact = msgspec.json.Decoder(_Exact)


def execute(arguments: msgspec.Raw) -> Execute:
    """Read the arguments of `execute_mcp_tool`. Raises `InvalidArguments`."""
    if MARK in bytes(arguments):
        continuation, rest = taken_out(members(EXECUTE, arguments))
        if continuation is not None:
            return msgspec.structs.replace(_call(msgspec.Raw(encode(rest))), continuation=continuation)
    return _call(arguments)


def _call(arguments: msgspec.Raw) -> Execute:
    return _as_wanted(arguments) or _understood(arguments)


def _as_wanted(arguments: msgspec.Raw) -> Execute | None:
    """Return a call that is written as the schema wants it, its arguments untouched; None for any other."""
    try:
        call = _exact.decode(arguments)
    except (msgspec.MsgspecError, RecursionError):
        return None
    path = call.tool_path.strip()
    given = bytes(call.arguments)
    if not path or path[0] == "{" or not given.startswith(b"{"):
        return None
    if b'"tool_path"' in given and _is_envelope(call.arguments, call.tool_path):
        return None
    return Execute(tool_path=bounded(path), arguments=call.arguments)


def _understood(arguments: msgspec.Raw) -> Execute:
    """Return a call that is written in another way."""
    given = members(EXECUTE, arguments)
    rest = dict(given)
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
        raise invalid(EXECUTE, "'tool_path' must be a string such as 'github:create_issue'", given)
    return Execute(tool_path=bounded(path), server=server, arguments=inner, wrapper=wrapper)


def _server_beside(path: Any, rest: lenient_json.Members) -> tuple[str, lenient_json.Members]:
    """Take out the server where it came apart from its tool. Among flat arguments of a whole path it is one of them."""
    key = next((key for key in SERVER_KEYS if isinstance(plain(rest.get(key)), str)), "")
    if not key or not isinstance(path, str) or (":" in path and not bytes(rest.get("arguments", b"")).strip(b"{} \n")):
        return "", rest
    return bounded(plain(rest[key])), without(rest, key)


def _take_path(given: lenient_json.Members) -> tuple[Any, lenient_json.Members]:
    """Take the tool's path out: a string, the members of an object, or None if there is none at this level.

    A word like `name` counts as the path only where it cannot be an argument: nothing else is called `tool_path`.
    """
    keys = PATH_KEYS if not _mentions_path(given) else PATH_KEYS[:1]
    for key in keys:
        if holds_object(given.get(key)):
            return members(EXECUTE, given[key]), without(given, key)
        value = plain(given.get(key))
        if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):
            return ":".join(value), without(given, key)
        if isinstance(value, str) and value.strip():
            return value, without(given, key)
    empty = PATH_KEYS[0] in given and plain(given[PATH_KEYS[0]]) is None
    return None, without(given, PATH_KEYS[0]) if empty else given


def _mentions_path(given: lenient_json.Members) -> bool:
    return PATH_KEYS[0] in given or any(b'"tool_path"' in bytes(given.get(key, b"")) for key in ARGUMENT_KEYS)


def _take_arguments(rest: lenient_json.Members) -> tuple[msgspec.Raw, str]:
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
    try:
        inner = lenient_json.members(raw)
    except lenient_json.NotAnObject:
        return False
    return inner.keys() == {"tool_path", "arguments"} and plain(inner["tool_path"]) == path
