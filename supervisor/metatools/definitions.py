"""The four meta-tools as clients see them, and the fifth, where reading is apart from acting. Pure.

The four cost less than 500 tokens together, the five less than 600: a test counts them with cl100k. The hints for
clients that show a model only some tools, and search the others themselves, are in `_meta`, which no model reads.
Source: the documentation of Claude Code, https://code.claude.com/docs/en/mcp; a client that does not know a hint goes
on without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

DISCOVER = "discover_mcp_tools"
EXECUTE = "execute_mcp_tool"
READ_ONLY = "execute_read_only_mcp_tool"
GO_ON = "for the rest ask the same again with 'cursor' set to next_cursor"
LIST_RESOURCES = "list_mcp_resources"
READ_RESOURCE = "read_mcp_resource"

KINDS = ("tool", "resource", "template", "prompt", "skill")

DEFINITIONS: tuple[dict[str, Any], ...] = (
    {
        "name": DISCOVER,
        "description": "Find tools on all connected MCP servers by what a tool should do, one need a query. "
        "Returns tool paths and input schemas for execute_mcp_tool; relevance_score: 0 is best, near 1 is noise. "
        "A tool path gives that tool's full schema; '*' lists all, 'server:*' all of one server.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What a tool should do, a tool path, or 'server:*'"},
                "queries": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Further needs, to save turns",
                },
                "limit": {"type": "number", "description": "Most results to return", "default": 10},
                "cursor": {"type": "string", "description": "next_cursor of a list, with its query"},
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
                "calls": {
                    "type": "array",
                    "items": {"type": "object"},
                    "description": "Further independent {tool_path, arguments}, run side by side",
                },
                "pick": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Only these JSON paths of the result, e.g. $.items[:5].id",
                },
            },
            "required": ["tool_path", "arguments"],
        },
    },
    {
        "name": LIST_RESOURCES,
        "description": "List the resources (files, data, UI) of all connected MCP servers.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "server": {"type": "string", "description": "Of this server only"},
                "query": {"type": "string", "description": "Words they must have"},
                "cursor": {"type": "string", "description": "next_cursor of the last page"},
            },
            "required": [],
        },
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


def _bare(schema: Any) -> Any:
    """Return a schema without what it says in words."""
    if isinstance(schema, dict):
        return {key: _bare(value) for key, value in schema.items() if key != "description"}
    return [_bare(value) for value in schema] if isinstance(schema, list) else schema


def _reading(definition: dict[str, Any]) -> dict[str, Any]:
    """Return what `EXECUTE` is where it only reads: it takes the same, which its description says only once."""
    told = (
        f"Run a tool found with {DISCOVER} whose row says read_only: nothing is changed. "
        f"Others are refused and not run. Arguments as of {EXECUTE}."
    )
    schema = _bare(definition["inputSchema"])
    return {**definition, "name": READ_ONLY, "description": told, "inputSchema": schema, **_HINT}


_HINT: dict[str, Any] = {"annotations": {"readOnlyHint": True}}
BY_EFFECT: tuple[dict[str, Any], ...] = tuple(
    each for one in DEFINITIONS for each in ((one, _reading(one)) if one["name"] == EXECUTE else (one,))
)
"""Those at the address where reading is apart from acting."""

SCHEMAS: dict[str, Any] = {definition["name"]: definition["inputSchema"] for definition in DEFINITIONS}
READS = frozenset(each["name"] for each in DEFINITIONS if each.get("annotations", {}).get("readOnlyHint"))
"""Those that change nothing, however often they are called, and ask no server."""
NAMES = frozenset(each["name"] for each in BY_EFFECT)
"""Those of all meta-tools, wherever they are."""

_ALWAYS_LOAD: Final = "anthropic/alwaysLoad"
"""A client that holds tools back until its model searches for them shows this one from the start."""
_SEARCH_HINT: Final = "anthropic/searchHint"
"""What a tool does in a few words, for a client that holds it back all the same."""
_MAX_RESULT_CHARS: Final = "anthropic/maxResultSizeChars"
"""Text of a result that a model gets as it is; a client puts a longer one into a file."""
_MOST_RESULT_CHARS: Final = 500_000
"""The most that a client takes for that."""
META_SINCE: Final = "2025-06-18"
"""The first revision that has `_meta` in the definition of a tool."""

_SEARCH_HINTS: Final = {
    DISCOVER: "find tools of all connected MCP servers by what they do",
    EXECUTE: "run a tool of any connected MCP server",
    READ_ONLY: "run a tool of any connected MCP server that only reads",
    LIST_RESOURCES: "list files and data of all connected MCP servers",
    READ_RESOURCE: "read a resource, or the rest of a long result",
}


def hinted(listed: Sequence[dict[str, Any]], *, bounded: bool) -> list[dict[str, Any]]:
    """Return definitions with hints. `bounded`: results have a budget already, which a client need not cut again.

    Without a budget nothing is said of their size, so that a client's own limit goes on to protect its model.
    """
    return [{**each, "_meta": _hints(each["name"], bounded=bounded)} for each in listed]


def _hints(name: str, *, bounded: bool) -> dict[str, Any]:
    size = {_MAX_RESULT_CHARS: _MOST_RESULT_CHARS} if bounded and name in (EXECUTE, READ_ONLY, READ_RESOURCE) else {}
    return {_ALWAYS_LOAD: True, _SEARCH_HINT: _SEARCH_HINTS[name], **size}
