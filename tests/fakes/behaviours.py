"""What real servers do that a plain one does not, by name: data for `behaving_server`. Standard library only."""

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


class Behaviour(NamedTuple):
    """One server. It is plain where nothing is said.

    `eras` that it speaks; `pins`: the first one that it answered in is the only one. `answers`: what a method gets, a
    `result` or an `error`; `first`: the first time. `pages`: members of the list of tools, by cursor. `before` and
    `after`: what is said around the answer to a method, or after a notification. `written` makes a line of a message.
    `slow`: seconds before the first answer. `dies`: it exits at an unknown method before the handshake; `deaf`: it says
    nothing to that, and exits at the next line. `bare`: it says no more than it must. `end`: exit code, and seconds to
    it, at the end of its input.
    """

    eras: tuple[str, ...] = ("legacy",)
    version: str = "2025-06-18"
    pins: bool = False
    unknown: Mapping[str, Any] = NOT_FOUND
    capabilities: Mapping[str, Any] = {"tools": {}}
    tools: tuple[Mapping[str, Any], ...] = TOOLS
    answers: Mapping[str, Any] = {}
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


LATE_PAGE = {"tools": [tool("echo")]}
LOG = {"method": "notifications/message", "params": {"level": "info", "data": "hello"}}
ROOTS = asked(0, "roots/list")
PING = asked("ping-1", "ping")
SAMPLE = asked("sample", "sampling/createMessage", messages=[], maxTokens=1)
FORM = asked(2, "elicitation/create", message="Key?", requestedSchema={"type": "object", "properties": {}})

HANDSHAKES = {
    "plain": Behaviour(),
    "unknown-is-32602": Behaviour(unknown=INVALID_PARAMS),
    "probe-is-32600": probe(refused(-32600, "Invalid Request")),
    "probe-is-32000": probe(refused(-32000, "Bad Request: Server not initialized")),
    "probe-is-32002": probe(refused(-32002, "Server not initialized")),
    "probe-is-0": probe(refused(0, "unknown method")),
    "probe-kills-the-reader": Behaviour(deaf=True),
    "probe-ends-it": Behaviour(dies=True),
    "probe-has-another-shape": probe({"result": {"ok": True}}),
    "probe-names-legacy": probe({"result": {"supportedVersions": ["2025-11-25", "2024-11-05"], "capabilities": {}}}),
    "refusal-names-legacy": probe(unsupported("2025-11-25", "2025-06-18")),
    "refusal-names-nothing": probe(refused(-32022, "Unsupported protocol version")),
    "refusal-names-modern": Behaviour(
        eras=("modern",),
        first={"server/discover": unsupported("2026-07-28", "2099-01-01")},
    ),
    "dual-pinned": Behaviour(eras=("legacy", "modern"), pins=True),
    "dual": Behaviour(eras=("legacy", "modern")),
    "modern": Behaviour(eras=("modern",)),
    "pinned-slow": Behaviour(eras=("modern",), slow=1.5),
    "slow-start": Behaviour(slow=1.5),
    "speaks-2024-11-05": Behaviour(version="2024-11-05"),
    "speaks-2025-03-26": Behaviour(version="2025-03-26"),
    "speaks-2025-11-25": Behaviour(version="2025-11-25"),
    "wants-2099": Behaviour(version="2099-01-01"),
    "only-2099": probe(unsupported("2099-01-01")),
}
MESSAGES = {
    "crlf": Behaviour(written=written.crlf),
    "marks-and-blank-lines": Behaviour(written=written.marked),
    "id-last": Behaviour(written=written.id_last),
    "null-error": Behaviour(written=written.both),
    "batches": Behaviour(version="2025-03-26", written=written.batched, after={"tools/call": (LOG,)}),
    "banner": Behaviour(start=b"Server v1.2.3\nstarting...\n  tools: 2\n\nReady!\n", stderr=b"listening\n" * 20_000),
    "log-objects": Behaviour(
        start=b'{"level":"info","msg":"boot"}\n',
        before={"tools/call": (b'{"@timestamp":"2026-11-23","id":7,"log.level":"info","message":"call"}\n',)},
    ),
    "tells-before-it-greets": Behaviour(
        capabilities={"tools": {"listChanged": True}, "logging": {}}, before={"initialize": (LOG, TOOLS_CHANGED, PING)}
    ),
    "five-changes-at-once": Behaviour(after={"notifications/initialized": (TOOLS_CHANGED,) * 5}),
    "asks-for-roots": Behaviour(after={"notifications/initialized": (ROOTS,)}),
    "asks-outside-of-calls": Behaviour(after={"notifications/initialized": (PING, SAMPLE, FORM)}),
    "unknown-notifications": Behaviour(
        before={"tools/call": ({"method": "notifications/x-own", "params": {}}, {"method": "$/progress", "params": 7})}
    ),
    "answers-nobody-asked": Behaviour(
        before={
            "tools/call": (
                {"id": "nobody", "result": {}},
                {"id": None, "error": {"code": -32600, "message": "no"}},
                {"id": "server-error", "error": {"code": -32600, "message": "no"}},
            )
        }
    ),
}
LISTS = {
    "no-type": Behaviour(tools=(tool("echo", inputSchema=UNTYPED), tool("heard", inputSchema={}))),
    "no-schema": Behaviour(tools=(tool("echo"), {"name": "heard"})),
    "execution": Behaviour(
        version="2025-11-25",
        capabilities={"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}},
        tools=tuple(tool(name, execution={"taskSupport": "forbidden"}) for name in ("echo", "heard")),
    ),
    "null-members": Behaviour(
        tools=tuple(tool(name, **NULLS) for name in ("echo", "heard")),
        pages={None: {"nextCursor": None, "_meta": None}},
        answers={"ping": {"result": None}},
    ),
    "same-name-twice": Behaviour(tools=(*TOOLS, tool("echo", description="another"), tool("heard"))),
    "unusual-names": Behaviour(tools=(*TOOLS, tool("a/b"), tool("a.b-c_d"), tool("x" * 100), tool("naïve name"))),
    "empty-cursor": Behaviour(pages={None: {"tools": [tool("heard")], "nextCursor": ""}, "": LATE_PAGE}),
    "empty-cursor-at-the-end": Behaviour(pages={None: {"nextCursor": ""}, "": {"nextCursor": ""}}),
    "cursor-loop": Behaviour(pages={None: {"nextCursor": "more"}, "more": {"nextCursor": "more"}}),
    "large": Behaviour(tools=(*TOOLS, tool("wide", description="x" * 82_000), tool("long", description="y" * 900_000))),
    "lists-missing": Behaviour(
        unknown=INVALID_PARAMS, capabilities={"tools": {}, "resources": {}, "prompts": {}, "logging": {}}
    ),
    "templates-missing": Behaviour(
        capabilities={"tools": {}, "resources": {}}, answers={"resources/list": {"result": {"resources": []}}}
    ),
    "not-announced": Behaviour(capabilities={}),
    "more-capabilities": Behaviour(
        capabilities={"tools": {"listChanged": False}, "experimental": {}, "extensions": {"x-own/a": {}}}
    ),
    "no-tools": Behaviour(tools=()),
    "bare-greeting": Behaviour(bare=True),
}
CALLS = {
    "unknown-tool-is-a-result": Behaviour(
        answers={UNKNOWN_TOOL: {"result": {"content": [{"type": "text", "text": "Unknown tool"}], "isError": True}}}
    ),
    "more-members": Behaviour(
        answers={
            "tools/call": {
                "result": {
                    "content": [{"type": "text", "text": "hello", "x-own": 1.0}],
                    "x-own": {"big": 123456789012345678901234567890, "a": [None]},
                    "_meta": {"x-own/a": 1},
                }
            }
        }
    ),
    "not-found-is-0": Behaviour(
        capabilities={"tools": {}, "resources": {}},
        answers={
            "resources/list": {"result": {"resources": []}},
            "resources/read": refused(0, "Unknown resource: test://none"),
        },
    ),
    "not-found-is-32002": Behaviour(
        capabilities={"tools": {}, "resources": {}},
        answers={
            "resources/list": {"result": {"resources": []}},
            "resources/read": refused(-32002, "Resource not found", data={"uri": "test://none"}),
        },
    ),
    "not-found-is-32602": Behaviour(
        capabilities={"tools": {}, "resources": {}},
        answers={
            "resources/list": {"result": {"resources": []}},
            "resources/read": refused(-32602, "Resource test://none not found"),
        },
    ),
}
MODERN = {
    "modern-says-little": Behaviour(eras=("modern",), bare=True),
    "modern-asks": Behaviour(eras=("modern",), before={"tools/call": (ROOTS, PING)}),
    "modern-tells-unasked": Behaviour(
        eras=("modern",), after={"server/discover": (TOOLS_CHANGED,)}, before={"tools/call": (LOG, TOOLS_CHANGED)}
    ),
    "modern-without-subscriptions": Behaviour(eras=("modern",), answers={"subscriptions/listen": {"error": NOT_FOUND}}),
    "modern-ends-subscriptions": Behaviour(
        eras=("modern",), answers={"subscriptions/listen": {"result": {"resultType": "complete"}}}
    ),
}
ENDS = {
    "exits-1-at-the-end": Behaviour(end=(1, 0.0)),
    "slow-end": Behaviour(end=(0, 1.3)),
    "lives-on": Behaviour(end=(0, 3600.0)),
}
BEHAVIOURS: dict[str, Behaviour] = {**HANDSHAKES, **MESSAGES, **LISTS, **CALLS, **MODERN, **ENDS}
