"""How generously the arguments of `execute_mcp_tool` are read. Pure. See `arguments`.

A call may go on with an earlier one, whose result asked something: it has the arguments of that one, and beside them
`continuation` and `answers`. The schema does not name these two: they are told of where they are needed, and cost
nothing elsewhere.

`calls` has further calls, each of which is read as one by itself. A tool may have an argument of that name, and a model
may write arguments without an object of their own. So beside the path of a tool, and without `arguments`, `calls` are
calls only where each of them names a tool.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec

from actors.catalogue.names import clip
from actors.catalogue.offer import NO_RAW
from actors.errors import AmbiguousName, InvalidArguments
from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools import lenient_json
from supervisor.metatools.arguments import ARGUMENT_KEYS, PATH_KEYS, SERVER_KEYS, invalid, members, object_text
from supervisor.metatools.definitions import EXECUTE
from supervisor.metatools.lenient_json import (
    EMPTY,
    MAX_NESTING,
    holds_object,
    plain,
    texts,
    without,
)
from supervisor.metatools.texts import clean

PREFIX: Final = "mcpvisor-"
"""What every state begins with that is ours, so that a tool may have an argument of that name."""
_KEY: Final = "continuation"
_ANSWERS: Final = "answers"
PICK: Final = "pick"
CALLS: Final = "calls"
MAX_CALLS: Final = 10
"""Of one request beside the first."""
_MARK: Final = f'"{_KEY}"'.encode()
_CALLS_MARK: Final = CALLS.encode()


class Continuation(msgspec.Struct, frozen=True):
    """The state that an earlier result gave, and what was answered: a JSON object by the keys of the questions."""

    state: str
    answers: msgspec.Raw


class Execute(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool to run; `arguments` is the JSON text of an object, untouched where it was one.

    `server` is the name of the server where it stood beside the path, as a client wrote it. Beside a whole path, among
    arguments without an object of their own, it may be one of them: `server_key` is its key then, else empty. `wrapper`
    is the key the arguments were found under where that key may also be a parameter of the tool's own. `continuation`:
    it goes on with an earlier call. `pick` is the JSON text of the paths of what is wanted of the result, empty for all
    of it; `pick_beside`: it stood among arguments without an object of their own, so it may be one of them.
    """

    tool_path: str
    server: str = ""
    server_key: str = ""
    arguments: msgspec.Raw = EMPTY
    wrapper: str = ""
    continuation: Continuation | None = None
    pick: msgspec.Raw = NO_RAW
    pick_beside: bool = False


class Asked(msgspec.Struct, frozen=True):
    """The calls of one request, each once. `order`: of each that was asked for, in order, the place among them."""

    calls: tuple[Execute, ...]
    order: tuple[int, ...] = (0,)


class _Exact(msgspec.Struct, forbid_unknown_fields=True):
    tool_path: str
    arguments: msgspec.Raw
    pick: msgspec.Raw = NO_RAW


class _Several(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    calls: list[msgspec.Raw]
    tool_path: msgspec.Raw = NO_RAW
    arguments: msgspec.Raw = NO_RAW
    pick: msgspec.Raw = NO_RAW


_NEEDS_A_PATH = (
    f"'tool_path' must be a string such as 'github:create_issue', or {CALLS!r} a list of calls with 'tool_path' and "
    "'arguments'"
)
_ASTRAY = f"{{}} beside {CALLS!r}, but no 'tool_path': put it into each call that it is for; nothing was called"
_OF_ONE_CALL = (PICK, _KEY, _ANSWERS, *SERVER_KEYS)
_WHOLE = re.compile(r"[^\s:]+:[^\s:/]\S*")
"""A path with its server, and no address."""
_exact = msgspec.json.Decoder(_Exact)
_several = msgspec.json.Decoder(_Several)
_as_written = msgspec.json.Decoder(float_hook=lambda number: msgspec.Raw(number.encode()))


def asked_calls(arguments: msgspec.Raw) -> Asked:
    """Read the arguments of `execute_mcp_tool`: one call, or several.

    Raises `InvalidArguments` and `AmbiguousName`, which say of several which one it is, counted from 1.
    """
    if _CALLS_MARK not in bytes(arguments) or _as_wanted(arguments) is not None:
        return Asked((execute(arguments),))
    listed, first = _take_calls(arguments)
    if listed is None:
        return Asked((execute(arguments),))
    if len(listed) > MAX_CALLS:
        raise invalid(EXECUTE, f"{len(listed)} in {CALLS!r}, {MAX_CALLS} are the most", first)
    beside = {key: value for key, value in first.items() if _says_something(value)}
    astray = [key for key in _OF_ONE_CALL if key in beside]
    if listed and astray and not _has_path(beside) and not _mentions_path(beside):
        raise invalid(EXECUTE, _ASTRAY.format(" and ".join(map(repr, astray))), first)
    if not listed or beside:
        listed = [msgspec.Raw(encode(first)), *listed]
    if len(listed) == 1:
        return Asked((execute(listed[0]),))
    return _once_each([_call_of_several(number, each) for number, each in enumerate(listed, 1)])


def _take_calls(arguments: msgspec.Raw) -> tuple[list[msgspec.Raw] | None, Members]:
    """Return the members of `calls`, None where that is none of ours, and the call beside them, as it was written."""
    if (exact := json.read_or(_several, arguments, None)) is not None:
        given = {key: getattr(exact, key) for key in exact.__struct_fields__ if key != CALLS}
        rest = {key: raw for key, raw in given.items() if bytes(raw)}
        return (exact.calls if _are_calls(exact.calls, rest) else None), rest
    given = members(EXECUTE, arguments)
    for _ in range(MAX_NESTING):  # {"arguments": {"calls": [...]}}
        inner = given.get("arguments", EMPTY)
        if CALLS in given or _CALLS_MARK not in bytes(inner) or _has_path(given) or not holds_object(inner):
            break
        given = members(EXECUTE, inner)
    if CALLS not in given:
        return None, given
    rest, listed = without(given, CALLS), _listed(given[CALLS])
    if listed is None and not (_has_path(rest) and "arguments" not in rest):
        raise invalid(EXECUTE, f"{CALLS!r} must be a list of objects with 'tool_path' and 'arguments'", given)
    return (listed if listed is not None and _are_calls(listed, rest) else None), rest


def _listed(raw: msgspec.Raw) -> list[msgspec.Raw] | None:
    """Return the elements of a list, also of one in a text; an object alone is one. None for anything else."""
    text = plain(raw)
    data = text.strip().encode(errors="replace") if isinstance(text, str) else bytes(raw).strip()
    if data in (b"", b"null", b"{}"):
        return []
    return [msgspec.Raw(data)] if data[:1] == b"{" else json.read_or(json.ELEMENTS, data, None)


def _are_calls(listed: list[msgspec.Raw], beside: Members) -> bool:
    """Say whether these are calls, and no argument of the tool that is named beside them."""
    if not _has_path(beside) or _says_something(beside.get("arguments", EMPTY)):
        return True
    if not listed:
        return "arguments" in beside or beside.keys() <= set(PATH_KEYS)
    return all(map(_names_tool, listed))


def _has_path(given: Members) -> bool:
    return any(_says_something(given[key]) for key in PATH_KEYS if key in given)


def _names_tool(raw: msgspec.Raw) -> bool:
    if not holds_object(raw):
        return False
    given = members(EXECUTE, raw)
    paths = [plain(given.get(key)) for key in PATH_KEYS]
    return _mentions_path(given) or any(isinstance(path, str) and _WHOLE.fullmatch(path) for path in paths)


def _call_of_several(number: int, raw: msgspec.Raw) -> Execute:
    if not holds_object(raw):
        raise invalid(EXECUTE, f"call {number} must be an object with 'tool_path' and 'arguments'; nothing was called")
    try:
        return execute(raw)
    except (InvalidArguments, AmbiguousName) as error:
        text = f"call {number}: {error.message}"
        raise type(error)(text, details={**(error.details or {}), "call": number}) from None


def _once_each(calls: list[Execute]) -> Asked:
    places: dict[Any, int] = {}
    order = tuple(places.setdefault(_meaning(call), len(places)) for call in calls)
    same = [[call for call, at in zip(calls, order, strict=True) if at == place] for place in range(len(places))]
    return Asked(tuple(map(_as_one, same)), order)


def _as_one(same: list[Execute]) -> Execute:
    """Return the call that several are; where they pick other parts of its result, it is not for less than all."""
    first, *others = same
    agreed = all(bytes(other.pick) == bytes(first.pick) for other in others)
    return first if agreed else msgspec.structs.replace(first, pick=NO_RAW)


def _meaning(call: Execute) -> tuple[Any, ...]:
    """Return what makes a call the same as another one: its tool, and its arguments as JSON.

    What it picks of the result is no matter of the call, unless it may be one of the arguments.
    """
    goes_on = call.continuation
    known = (goes_on.state, bytes(goes_on.answers)) if goes_on is not None else ()
    whole = not call.server or call.server_key or ":" in call.tool_path
    path = (call.tool_path, call.server) if whole else (f"{call.server}:{call.tool_path}", "")
    pick = bytes(call.pick) if call.pick_beside else b""
    return *path, call.server_key, call.wrapper, pick, _canonical(call.arguments), *known


def _canonical(raw: msgspec.Raw) -> bytes:
    """Return arguments in one way of writing JSON, numbers as they are: decimals that are one `float` are two calls."""
    data = bytes(raw)
    value = json.read_or(_as_written, data, None) if len(data) <= lenient_json.MAX_PLAIN_BYTES else None
    return data if value is None else msgspec.json.encode(value, order="sorted")


def execute(arguments: msgspec.Raw) -> Execute:
    """Read the arguments of one call. Raises `InvalidArguments`."""
    if _MARK in bytes(arguments):
        continuation, rest = _take_continuation(members(EXECUTE, arguments))
        if continuation is not None:
            return msgspec.structs.replace(_call(msgspec.Raw(encode(rest))), continuation=continuation)
    return _call(arguments)


def _take_continuation(given: Members) -> tuple[Continuation | None, Members]:
    """Return what goes on with an earlier call, None for none, and the other arguments. Raises `InvalidArguments`."""
    state = plain(given.get(_KEY))
    if not isinstance(state, str) or not state.startswith(PREFIX):
        return None, given
    answers = answers_of(given.get(_ANSWERS, lenient_json.EMPTY))
    return Continuation(state, answers), without(without(given, _KEY), _ANSWERS)


def answers_of(given: msgspec.Raw) -> msgspec.Raw:
    """Return the answers of a model as a client sends them: one without an action is an accepted form.

    Raises `InvalidArguments`.
    """
    try:
        answers = {key: _answer(answer) for key, answer in lenient_json.members(given).items()}
    except (lenient_json.TooManyMembers, lenient_json.NotAnObject):
        raise InvalidArguments("'answers' must be an object of objects, one for each question") from None
    return msgspec.Raw(encode(answers))


def _answer(answer: msgspec.Raw) -> Any:
    members = lenient_json.members(answer)
    return members if "action" in members else {"action": "accept", "content": members}


def _call(arguments: msgspec.Raw) -> Execute:
    return _as_wanted(arguments) or _read_loosely(arguments)


def _as_wanted(arguments: msgspec.Raw) -> Execute | None:
    if (call := json.read_or(_exact, arguments, None)) is None:
        return None
    path = call.tool_path.strip()
    given = bytes(call.arguments)
    if not path or path[0] == "{" or not given.startswith(b"{"):
        return None
    if b'"tool_path"' in given and _is_envelope(call.arguments, call.tool_path):
        return None
    return Execute(tool_path=clip(path), arguments=call.arguments, pick=call.pick)


def _read_loosely(arguments: msgspec.Raw) -> Execute:
    given = members(EXECUTE, arguments)
    rest, outer, inner, wrapper = dict(given), _NOWHERE, EMPTY, ""
    pick, pick_beside = NO_RAW, False
    for _ in range(MAX_NESTING):
        path, rest = _take_path(rest)
        if isinstance(path, dict):  # {"tool_path": {"tool_path": ..., "arguments": ...}}
            rest = _together(rest, path)
            continue
        server, rest = _take_server(path, rest)
        outer = _agree(path, outer, server)
        if PICK in rest:
            pick, pick_beside = rest[PICK], not any(key in rest for key in ARGUMENT_KEYS)
            rest = without(rest, PICK)
        inner, wrapper = _take_arguments(rest)
        if path is not None or b'"tool_path"' not in bytes(inner):
            break
        rest = dict(members(EXECUTE, inner))  # {"arguments": {"tool_path": ..., "arguments": ...}}
    if not isinstance(path, str) or not path.strip():
        raise invalid(EXECUTE, _NEEDS_A_PATH, given)
    if _is_envelope(inner, path):
        envelope = members(EXECUTE, inner)
        inner, pick = object_text(envelope["arguments"]), envelope.get(PICK, pick)
    return Execute(
        tool_path=clip(path),
        server=outer.name,
        server_key=outer.key,
        arguments=inner,
        wrapper=wrapper,
        pick=pick,
        pick_beside=pick_beside,
    )


class _Beside(NamedTuple):
    """The name of a server beside a path; `key` is its key where it may be an argument instead."""

    name: str
    key: str = ""


_NOWHERE = _Beside("")


def _take_server(path: Any, rest: Members) -> tuple[_Beside, Members]:
    """Take out the server where it came apart from its tool. Raises `AmbiguousName` if several stand there."""
    flat = isinstance(path, str) and ":" in path and not _says_something(rest.get("arguments", EMPTY))
    given = {key: plain(rest.get(key)) for key in SERVER_KEYS}
    named = {key: texts(value) for key, value in given.items() if value and not (flat and isinstance(value, list))}
    names = list(dict.fromkeys(clip(name) for several in named.values() for name in several))
    if not names:
        return _NOWHERE, rest
    if len(names) > 1:
        raise _two_tools([f"{name}:{path}" for name in names])
    left = {key: raw for key, raw in rest.items() if not named.get(key)}
    return _Beside(names[0], next(key for key in named if named[key]) if flat else ""), left


def _agree(path: Any, outer: _Beside, inner: _Beside) -> _Beside:
    if outer.name and inner.name and outer.name != inner.name:
        raise _two_tools([f"{inner.name}:{path}", f"{outer.name}:{path}"])
    return outer if outer.name else inner


def _together(outer: Members, inner: Members) -> Members:
    """Return the members of both. Raises `InvalidArguments` for a key that they have with different values."""
    for key in outer.keys() & inner.keys():
        if _says_something(outer[key]) and _says_something(inner[key]) and plain(outer[key]) != plain(inner[key]):
            raise invalid(EXECUTE, f"{key[:40]!r} is there twice, inside of 'tool_path' and beside it: which one?")
    return {**outer, **{key: raw for key, raw in inner.items() if key not in outer or _says_something(raw)}}


def _says_something(raw: msgspec.Raw) -> bool:
    return bytes(raw).strip(b"{} \t\r\n") not in (b"", b"null", b'""')


def _two_tools(paths: list[str]) -> AmbiguousName:
    readings = [clean(path)[:200] for path in paths]
    text = f"{EXECUTE}: this names {' and '.join(map(repr, readings))}; nothing was called: use one of these"
    return AmbiguousName(text, details={"readings": readings})


def _take_path(given: Members) -> tuple[Any, Members]:
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
            return value, _without_path(given, key, value)
    empty = PATH_KEYS[0] in given and plain(given[PATH_KEYS[0]]) is None
    return None, without(given, PATH_KEYS[0]) if empty else given


def _without_path(given: Members, key: str, path: str) -> Members:
    """Return the other members. Raises `AmbiguousName` where one beside `arguments` is the path of another tool."""
    if "arguments" in given:
        others = [plain(given.get(other)) for other in PATH_KEYS if other != key]
        paths = [other for other in others if isinstance(other, str) and _WHOLE.fullmatch(other) and other != path]
        if paths and _WHOLE.fullmatch(path.strip()):
            raise _two_tools([path, *paths])
    return without(given, key)


def _mentions_path(given: Members) -> bool:
    return PATH_KEYS[0] in given or any(b'"tool_path"' in bytes(given.get(key, b"")) for key in ARGUMENT_KEYS)


def _take_arguments(rest: Members) -> tuple[msgspec.Raw, str]:
    """Return the tool's arguments, and the key they were under if that key could be a parameter itself."""
    given = object_text(rest.get("arguments", EMPTY))
    beside = without(rest, "arguments")
    for key in ARGUMENT_KEYS[1:]:
        other = beside.get(key, EMPTY)
        if _says_something(given) and _says_something(other) and holds_object(other) and plain(other) != plain(given):
            raise invalid(EXECUTE, f"'arguments' and {key!r} are two objects of arguments; send one", rest)
    if bytes(given).strip(b"{} \t\r\n") or not beside:
        return given, ""
    if len(beside) == 1 and (key := next(iter(beside))) in ARGUMENT_KEYS:
        value = beside[key]
        if holds_object(value):
            return object_text(value), key
    return msgspec.Raw(msgspec.json.encode(beside)), ""


def _is_envelope(raw: msgspec.Raw, path: str) -> bool:
    """Whether arguments hold the whole call once more."""
    try:
        inner = lenient_json.members(raw)
    except lenient_json.NotAnObject:
        return False
    return inner.keys() - {PICK} == {"tool_path", "arguments"} and plain(inner["tool_path"]) == path
