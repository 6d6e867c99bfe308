"""What there is to say of how a server behaves, and words for what it says. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.fakes import written

Said = tuple[dict[str, Any] | bytes, ...]
"""Messages, or bytes that are written as they are."""

NOT_FOUND = {"code": -32601, "message": "Method not found"}
INVALID_PARAMS = {"code": -32602, "message": "Invalid request parameters", "data": ""}
"""What the Python SDK 1.x answers to a method that it does not know."""
UNKNOWN_TOOL = "tools/call of an unknown tool"
TOOLS_CHANGED = {"method": "notifications/tools/list_changed"}
UNTYPED = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
TEXT = {"type": "object", **UNTYPED}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"{name} of a real server", "inputSchema": TEXT, **more}


def refused(code: int, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


def unsupported(*versions: str) -> dict[str, Any]:
    data = {"supported": list(versions), "requested": "2026-07-28"}
    return refused(-32022, "Unsupported protocol version", data=data)


def asked(id_: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"id": id_, "method": method, "params": params}


TOOLS = (tool("echo"), tool("heard"))
NULLS = dict.fromkeys(("title", "annotations", "outputSchema", "icons", "execution", "_meta"))
NULLS_OF_ALL = dict.fromkeys(("title", "description", "icons", "_meta"))


class Behaviour(NamedTuple):
    """One server. It is plain where nothing is said.

    `eras` that it speaks; `pins`: the first one that it answered in is the only one. `answers`: what a method gets, a
    `result` or an `error`; `first`: the first time. `calls`: what a call of a tool gets. `pages`: members of the list
    of tools, by cursor. `before` and `after`: what is said around the answer to a method, or after a notification.
    `written` makes a line of a message. `slow`: seconds before the first answer. `dies`: it exits at an unknown method
    before the handshake; `deaf`: it says nothing to that, and exits at the next line. `bare`: it says no more than it
    must. `end`: exit code, and seconds to it, at the end of its input.
    """

    eras: tuple[str, ...] = ("legacy",)
    version: str = "2025-06-18"
    pins: bool = False
    unknown: Mapping[str, Any] = NOT_FOUND
    capabilities: Mapping[str, Any] = {"tools": {}}
    tools: tuple[Mapping[str, Any], ...] = TOOLS
    answers: Mapping[str, Any] = {}
    calls: Mapping[str, Any] = {}
    first: Mapping[str, Any] = {}
    pages: Mapping[str | None, Mapping[str, Any]] = {}
    start: bytes = b""
    stderr: bytes = b""
    before: Mapping[str, Said] = {}
    after: Mapping[str, Said] = {}
    written: Callable[[dict[str, Any]], bytes] = written.compact
    slow: float = 0.0
    dies: bool = False
    deaf: bool = False
    bare: bool = False
    end: tuple[int, float] = (0, 0.0)


def probe(answer: dict[str, Any]) -> Behaviour:
    """A legacy server that answers `server/discover` so."""
    return Behaviour(answers={"server/discover": answer})


def says(**result: Any) -> dict[str, Any]:
    """What a tool answers, with these members, too."""
    return {"result": {"content": [{"type": "text", "text": "hello"}], **result}}


def offering(calls: dict[str, Any], **more: Any) -> Behaviour:
    """A server with a tool for each of these answers."""
    return Behaviour(tools=(*TOOLS, *map(tool, calls)), calls=calls, **more)
