"""What real servers do that a plain one does not, by name: data for `behaving_server`. Standard library only."""

from __future__ import annotations

from typing import Any

from tests.fakes import written
from tests.fakes.behaviour import (
    INVALID_PARAMS,
    NOT_FOUND,
    NULLS,
    NULLS_OF_ALL,
    TOOLS,
    TOOLS_CHANGED,
    UNKNOWN_TOOL,
    UNTYPED,
    Behaviour,
    asked,
    offering,
    probe,
    refused,
    says,
    tool,
    unsupported,
)

LATE_PAGE = {"tools": [tool("echo")]}


def progress(token: Any) -> dict[str, Any]:
    return {"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}


RICH = tool(
    "rich",
    title="Rich",
    annotations={"readOnlyHint": True, "category": "x"},
    inputSchema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"a": {"anyOf": [{"type": "integer", "default": None}, {"const": 1.0}]}},
        "properties": {"a": {"$ref": "#/$defs/a", "x-own": 12345678901234567890123}},
        "additionalProperties": False,
    },
    outputSchema={"type": "object"},
    _meta={
        "ui": {"resourceUri": "ui://rich/app.html"},
        "ui/resourceUri": "ui://rich/app.html",
        "fastmcp": {"tags": []},
    },
    **{"x-own": [None, 1.0]},
)
NULLS_OF_RESOURCES = {"mimeType": None, "size": None, "annotations": {"audience": None, "priority": 1}, **NULLS_OF_ALL}
TEMPLATE = {"uriTemplate": "test://{a}", "name": "t", "mimeType": None, **NULLS_OF_ALL}
PROMPT = {"name": "a", "arguments": [{"name": "x", "description": None, "required": None}], **NULLS_OF_ALL}
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
    "probe-is-refused-without-id": probe({"id": None, **refused(-32600, "Invalid Request")}),
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
    "banner": Behaviour(
        start=b"Server v1.2.3\nstarting...\n  tools: 2\n\nReady!\n",
        before={"tools/call": (b"calling {...\n", b"[1] id 7\n")},
        stderr=b"listening\n" * 20_000,
    ),
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
    "ids-are-numbers": Behaviour(written=written.numbered),
    "ids-are-texts": Behaviour(written=written.with_texts),
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
    "null-members-of-all": Behaviour(
        capabilities={"tools": {}, "resources": {"listChanged": None}, "prompts": None, "logging": None},
        answers={
            "resources/list": {"result": {"resources": [{"uri": "test://a", "name": "a", **NULLS_OF_RESOURCES}]}},
            "resources/templates/list": {"result": {"resourceTemplates": [TEMPLATE], "nextCursor": None}},
        },
    ),
    "prompts": Behaviour(
        capabilities={"tools": {}, "prompts": {}},
        answers={"prompts/list": {"result": {"prompts": [PROMPT, {"name": "b", "arguments": None}]}}},
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
        calls={"echo": says(**{"x-own": {"big": 123456789012345678901234567890, "a": [None]}, "_meta": {"x-own/a": 1}})}
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
    "logs-unasked": Behaviour(before={"tools/call": (LOG, progress("nobody's"), progress(None), LOG)}),
    "null-members-of-results": Behaviour(
        calls={"echo": says(_meta=None, isError=None, structuredContent=None)},
        answers={"resources/read": {"result": {"contents": [], "_meta": None}}},
    ),
    "odd-results": offering(
        {"text": {"result": "done"}, "nothing": {"result": None}, "list": {"result": []}, "neither": {}}
    ),
    "odd-errors": offering(
        {
            "text": {"error": "it failed"},
            "no-code": {"error": {"message": "it failed"}},
            "code-0": refused(0, "it failed"),
            "code-is-text": {"error": {"code": "E1", "message": "it failed"}},
            "cancelled": refused(-32800, "Request cancelled"),
            "wants-a-url": refused(-32042, "URL elicitation required", data={"elicitations": []}),
            "not-found": refused(-32002, "Resource not found"),
            "vendor": refused(-32000, "it failed", data={"why": [1.0, None]}),
            "needs-a-task": refused(-32601, "Tool requires task augmentation (taskSupport: 'required')"),
        }
    ),
    "rich-definitions": Behaviour(tools=(*TOOLS, RICH)),
}
MODERN = {
    "modern-errors": offering(
        {
            "headers": refused(-32020, "Header mismatch"),
            "capability": refused(-32021, "Sampling needed", data={"requiredCapabilities": {"sampling": {}}}),
            "version": unsupported("2026-07-28"),
            "vendor": refused(-31000, "it failed", data={"why": 1}),
        },
        eras=("modern",),
    ),
    "modern-tasks": offering(
        {"task": {"result": {"resultType": "task", "task": {"taskId": "1"}}}, "odd": {"result": {"resultType": 7}}},
        eras=("modern",),
    ),
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
