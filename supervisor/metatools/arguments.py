"""How generously the arguments of the meta-tools are read. Pure.

Models make the same mistakes again and again: arguments as a JSON string, `tool_path` inside `arguments`, arguments
beside `tool_path`, another word for either. What they meant is plain, so it is done; what is not plain is answered with
what was wrong, the keys that were received, and the schema. A call as the schema wants it is read in one pass, whatever
its size; to be understood in any other way it must be of a size that models write.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec

from actors.catalogue.names import MAX_PATH_CHARS, split_resource
from actors.errors import InvalidArguments
from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from actors.search.text import squash
from supervisor.metatools import lenient_json
from supervisor.metatools.definitions import DISCOVER, EXECUTE, KINDS, LIST_RESOURCES, READ_RESOURCE, SCHEMAS
from supervisor.metatools.inventory import Position, decode_cursor
from supervisor.metatools.lenient_json import (
    EMPTY,
    MAX_MEMBERS,
    MAX_NESTING,
    first,
    holds_object,
    is_prose,
    plain,
    texts,
    without,
)

DEFAULT_LIMIT = 10
MAX_NEEDS = 10
"""Most needs of one discover, those counted once that are the same."""
_ROWS = 3
"""So many rows a need has a page of several, where its client says nothing of their number."""
_MAX_LISTED = 100
"""Most queries, kinds or servers that one discover may name."""
_MAX_ASKED_BYTES = 262_144
"""Most bytes of the arguments of a meta-tool that passes nothing on."""

PATH_KEYS = ("tool_path", "toolPath", "tool_name", "toolName", "tool", "function", "function_name", "path", "name")
ARGUMENT_KEYS = (
    *("arguments", "args", "parameters", "params", "input"),
    *("tool_arguments", "tool_args", "tool_input", "toolArguments", "tool_params", "kwargs"),
)
_QUERY_KEYS = (
    *("query", "q", "search", "text", "search_query", "searchQuery", "queries", "keywords", "task", "intent"),
    *("description", "tool_description", "prompt", "question", *PATH_KEYS),
)
_FURTHER = "queries"
_NEEDS_A_QUERY = f"'query' must be a string that says what a tool should do, or {_FURTHER!r} a list of such strings"
_FIRST_KEYS = tuple(key for key in _QUERY_KEYS if key != _FURTHER)
_CURSOR_KEYS = ("cursor", "next_cursor", "nextCursor")
_LIMIT_KEYS = ("limit", "max_results", "maxResults", "top_k", "topK", "count", "n")
_KIND_KEYS = ("kinds", "kind", "types", "type")
# Not in the schema, as they would cost tokens.
SERVER_KEYS = ("server", "servers", "server_name", "serverName")
_CONFIRMATION_KEYS = ("requires_confirmation", "requiresConfirmation")
URI_KEYS = ("uri", "resource_uri", "resource", "path")
_EVERY_KIND = frozenset({"*", "all", "any"})
_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]{0,40}://", re.IGNORECASE)
_MAX_KEYS_SHOWN = 10
_KINDS_OF_JSON = {b'"': "string", b"[": "list", b"{": "object", b"t": "boolean", b"f": "boolean", b"n": "null"}
_HOLDING = frozenset({"string", "list", "object"})


class Discover(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for: `query`, and `further` needs beside it. `limit` is of the page they share, already within 1 and
    the configured maximum, and one for each need at least; no `servers`: all of them.

    `limited`: the client set the limit; `clamped` says so where another one was taken. `after` is where a listing goes
    on. `requires_confirmation`: only tools that run, or do not run, without a yes of the user.
    """

    query: str
    further: tuple[str, ...] = ()
    limit: int = DEFAULT_LIMIT
    limited: bool = False
    clamped: str = ""
    after: Position | None = None
    kinds: frozenset[str] = frozenset({"tool"})
    servers: frozenset[str] = frozenset()
    requires_confirmation: bool | None = None


class ResourceQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which resources to list. No `servers`: of all. `words`: all of them must be there."""

    words: tuple[str, ...] = ()
    servers: frozenset[str] = frozenset()
    after: Position | None = None


def invalid(tool: str, what: str, given: Members | None = None) -> InvalidArguments:
    """Return the error: what is wrong, and which keys were received with what kind of value, but no value."""
    shown = dict(islice((given or {}).items(), _MAX_KEYS_SHOWN))
    received = [key[:40] for key in shown]
    kinds = (f"{key[:40]!r} ({_kind_of(raw)})" for key, raw in shown.items())
    got = f"; received {', '.join(kinds)}" if received else ""
    details = {"tool": tool, "received": received, "schema": SCHEMAS[tool]}
    return InvalidArguments(f"{tool}: {what}{got}", details=details)


def _kind_of(raw: msgspec.Raw) -> str:
    """Return what kind of value this is, by its first byte, and whether there is anything in it."""
    data = bytes(raw).strip()
    kind = _KINDS_OF_JSON.get(data[:1], "number")
    return f"empty {kind}" if kind in _HOLDING and not data[1:-1].strip() else kind


def members(tool: str, arguments: msgspec.Raw) -> Members:
    """Return the members of a meta-tool's arguments, read loosely. Raises `InvalidArguments`."""
    try:
        return lenient_json.members(arguments)
    except lenient_json.TooManyMembers:
        raise invalid(
            tool, f"too much at once: over {MAX_MEMBERS} members are read in no place but 'arguments'"
        ) from None
    except lenient_json.NotAnObject:
        raise invalid(tool, "'arguments' must be a JSON object") from None


def _short(tool: str, arguments: msgspec.Raw) -> None:
    """Raise `InvalidArguments` for more than is read at all."""
    size = len(arguments)
    if size > _MAX_ASKED_BYTES:
        raise invalid(tool, f"the arguments have {size} bytes, {_MAX_ASKED_BYTES} are the most")


def object_text(raw: msgspec.Raw) -> msgspec.Raw:
    """Return the arguments of a tool as the JSON text of an object. Raises `InvalidArguments`."""
    try:
        return lenient_json.read(raw).text
    except lenient_json.NotAnObject:
        raise invalid(EXECUTE, "'arguments' must be a JSON object") from None


class _Exact(msgspec.Struct, forbid_unknown_fields=True):
    query: str
    limit: int | None = None
    kinds: Annotated[
        list[Literal["tool", "resource", "template", "prompt", "skill"]], msgspec.Meta(max_length=_MAX_LISTED)
    ] = []


_exact = msgspec.json.Decoder(_Exact)


def discover(arguments: msgspec.Raw, max_limit: int) -> Discover:
    """Read the arguments of `discover_mcp_tools`. Raises `InvalidArguments`."""
    _short(DISCOVER, arguments)
    return _as_wanted(arguments, max_limit) or _read_loosely(arguments, max_limit)


def _as_wanted(arguments: msgspec.Raw, max_limit: int) -> Discover | None:
    if (asked := json.read_or(_exact, arguments, None)) is None:
        return None
    if asked.query.lstrip()[:1] == "{":
        return None
    limit, clamped = _clamp(asked.limit, max_limit)
    return Discover(
        query=asked.query,
        limit=limit,
        limited=asked.limit is not None,
        clamped=clamped,
        kinds=frozenset(asked.kinds or ("tool",)),
    )


def _read_loosely(arguments: msgspec.Raw, max_limit: int) -> Discover:
    given = _unwrap(arguments)
    servers = frozenset(filter(None, map(str.strip, _text_list(given, "servers", SERVER_KEYS, MAX_PATH_CHARS))))
    words, further = _text_list(given, "queries", _FIRST_KEYS), _further(given)
    after = _cursor(DISCOVER, given)
    alone = first(given, _QUERY_KEYS) is None and (bool(servers) or after is not None)  # a server: all that it has
    if not words and not further and not alone:
        raise invalid(DISCOVER, _NEEDS_A_QUERY, given)
    needs = _distinct([" ".join(words), *further])
    if len(needs) > MAX_NEEDS:
        raise invalid(DISCOVER, f"{len(needs)} needs at once, {MAX_NEEDS} are the most")
    if len(needs) > 1 and after is not None:
        raise invalid(DISCOVER, "'cursor' goes on with one list: send its query alone, without 'queries'", given)
    asked = _limit(given, max_limit)
    limit, clamped = _clamp(asked, max_limit, len(needs))
    return Discover(
        query=needs[0],
        further=tuple(needs[1:]),
        limit=limit,
        limited=asked is not None,
        clamped=clamped,
        kinds=_kinds(given),
        servers=servers,
        after=after,
        requires_confirmation=_confirmation(given),
    )


def _further(given: Members) -> list[str]:
    """Return the texts of a list, of a text that holds one, or of objects as those of a discover; or the one text.

    Raises `InvalidArguments`.
    """
    raw = given.get(_FURTHER, EMPTY)
    if isinstance(text := plain(raw), str):
        raw = msgspec.Raw(text.encode(errors="replace"))
        if (listed := json.read_or(json.ELEMENTS, raw, None)) is None:
            return [text]
    else:
        listed = json.read_or(json.ELEMENTS, raw, [raw])
    if len(listed) > _MAX_LISTED:
        raise invalid(DISCOVER, f"{len(listed)} needs at once, {MAX_NEEDS} are the most")
    needs = [_need(each) for each in listed if bytes(each) not in (b"{}", b"null")]
    if not all(isinstance(need, str) for need in needs):
        raise invalid(DISCOVER, f"{_FURTHER!r} must be a list of strings that say what a tool should do", given)
    return needs


def _need(raw: msgspec.Raw) -> Any:
    return first(json.members(raw), _FIRST_KEYS) if holds_object(raw) else plain(raw)


def _distinct(needs: Sequence[str]) -> list[str]:
    """Return each need once, whatever its case and its blanks; one that is blank only where there is no other."""
    known: dict[str, str] = {}
    for need in needs:
        known.setdefault(" ".join(need.casefold().split()), need)
    blank = known.pop("", "")
    return [*known.values()] or [blank]


def _confirmation(given: Members) -> bool | None:
    value = first(given, _CONFIRMATION_KEYS)
    if value is None or isinstance(value, bool):
        return value
    raise invalid(DISCOVER, "'requires_confirmation' must be true or false", given)


def _cursor(tool: str, given: Members) -> Position | None:
    """Return where a list goes on; None for its beginning. Raises `InvalidArguments`."""
    text = first(given, _CURSOR_KEYS)
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise invalid(tool, "'cursor' must be the next_cursor of the last answer", given)
    return decode_cursor(text.strip())


def _said_once(tool: str, keys: Sequence[str], *places: Members) -> Any:
    """Return a value that may stand under several keys, in several objects; None if it stands nowhere.

    Raises `InvalidArguments` where they differ: none is chosen.
    """
    values = [value for given in places for key in keys if (value := plain(given.get(key))) not in (None, "", [])]
    if any(value != values[0] for value in values):
        raise invalid(tool, f"{keys[0]!r} is there with different values; say which is meant", places[0])
    return values[0] if values else None


def _text_list(
    given: Members, what: str, keys: Sequence[str], longest: int = _MAX_ASKED_BYTES, tool: str = DISCOVER
) -> list[str]:
    """Return the texts of a list, or the one text. Raises `InvalidArguments` if they are too many, or one too long."""
    asked = _said_once(tool, keys, given) if keys is SERVER_KEYS else first(given, keys)
    named = texts(asked)
    if keys is SERVER_KEYS and not named and asked not in (None, [], {}):
        raise invalid(tool, "'server' must be the name of a server, or a list of names", given)
    if len(named) > _MAX_LISTED:
        raise invalid(tool, f"{len(named)} {what} at once, {_MAX_LISTED} are the most", given)
    if any(len(text) > longest for text in named):
        raise invalid(tool, f"one of the {what} is over {longest} characters", given)
    return named


def _unwrap(arguments: msgspec.Raw) -> Members:
    """Return what a discover asks with, out of what it was wrapped in; a text alone is the query."""
    if is_prose(arguments):
        return {_QUERY_KEYS[0]: arguments}
    given = members(DISCOVER, arguments)
    for _ in range(MAX_NESTING):
        inner = [key for key in (*ARGUMENT_KEYS, _QUERY_KEYS[0]) if holds_object(given.get(key))]
        if not inner:
            break
        given = {**without(given, inner[0]), **members(DISCOVER, given[inner[0]])}
    return given


def _limit(given: Members, maximum: int) -> float | None:
    """Return the limit that is asked for, None for none. Raises `InvalidArguments` for what is no number."""
    value = first(given, _LIMIT_KEYS)
    if value is None:
        return None
    number = lenient_json.number(value)
    if math.isnan(number):
        raise invalid(DISCOVER, f"'limit' must be a number from 1 to {maximum}", given)
    return number


def _clamp(asked: float | None, maximum: int, needs: int = 1) -> tuple[int, str]:
    """Return a number within that of the needs and `maximum`, fractions cut, and what is said if it is another one."""
    maximum = max(maximum, needs)
    if asked is None:
        return min(default_limit(needs), maximum), ""
    used = int(max(needs, min(asked, maximum)))
    of_all = f" with {needs} needs, which share them" if needs > 1 else ""
    return (
        used,
        "" if needs <= asked <= maximum else f"'limit' goes from {needs} to {maximum}{of_all}: {used} was taken.",
    )


def default_limit(needs: int) -> int:
    return max(DEFAULT_LIMIT, _ROWS * needs) if needs > 1 else DEFAULT_LIMIT


def _kinds(given: Members) -> frozenset[str]:
    value = first(given, _KIND_KEYS)
    if value is None or value in ([], ""):
        return frozenset({"tool"})
    wanted = texts(value.replace(",", " ").split() if isinstance(value, str) else value)
    if len(wanted) > _MAX_LISTED:
        raise invalid(DISCOVER, f"{len(wanted)} kinds at once, {_MAX_LISTED} are the most", given)
    kinds = frozenset(kind.strip().lower().removeprefix("resource_").removesuffix("s") for kind in wanted)
    if kinds & _EVERY_KIND:
        return frozenset(KINDS)
    if not kinds or not kinds <= frozenset(KINDS):
        raise invalid(DISCOVER, f"'kinds' must be a list of {', '.join(KINDS)}", given)
    return kinds


def list_resources(arguments: msgspec.Raw) -> ResourceQuery:
    """Read the arguments of `list_mcp_resources`. Raises `InvalidArguments`."""
    _short(LIST_RESOURCES, arguments)
    given = {_QUERY_KEYS[0]: arguments} if is_prose(arguments) else members(LIST_RESOURCES, arguments)
    servers = _text_list(given, "servers", SERVER_KEYS, MAX_PATH_CHARS, LIST_RESOURCES)
    words = " ".join(_text_list(given, "queries", _QUERY_KEYS, tool=LIST_RESOURCES)).casefold().split()
    return ResourceQuery(
        words=tuple(word for word in words if word != "*")[:_MAX_LISTED],
        servers=frozenset(filter(None, map(str.strip, servers))),
        after=_cursor(LIST_RESOURCES, given),
    )


def read_resource(arguments: msgspec.Raw) -> str:
    """Read the arguments of `read_mcp_resource`. Raises `InvalidArguments`."""
    _short(READ_RESOURCE, arguments)
    text = plain(arguments)
    alone = is_prose(arguments) and ("|" in text or _ADDRESS.match(text) is not None)
    given = {URI_KEYS[0]: arguments} if alone else members(READ_RESOURCE, arguments)
    outer = given
    if holds_object(given.get("arguments")):
        given = members(READ_RESOURCE, given["arguments"])
    uri, server = first(given, URI_KEYS), _said_once(READ_RESOURCE, SERVER_KEYS, given, outer)
    if not isinstance(uri, str) or not uri.strip():
        raise invalid(READ_RESOURCE, "'uri' must be a string such as 'docs|file:///readme.md'", given)
    servers = texts(server)
    uri, beside = uri.strip(), servers[0].strip() if len(servers) == 1 else ""
    named = (split_resource(uri) or ("", ""))[0]
    if not beside or squash(named) == squash(beside):
        return uri
    if named and not any(sign in named for sign in ":/"):  # else the `|` is the URI's own
        raise invalid(READ_RESOURCE, f"'uri' is of server {named[:64]!r}, and beside it stands another", given)
    return f"{beside}|{uri}"
