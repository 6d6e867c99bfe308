"""The four meta-tools as clients see them. Pure.

Together they cost less than 500 tokens: a test counts them with cl100k.
"""

from __future__ import annotations

from typing import Any

DISCOVER = "discover_mcp_tools"
EXECUTE = "execute_mcp_tool"
LIST_RESOURCES = "list_mcp_resources"
READ_RESOURCE = "read_mcp_resource"

KINDS = ("tool", "resource", "template", "prompt")

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

SCHEMAS: dict[str, Any] = {definition["name"]: definition["inputSchema"] for definition in DEFINITIONS}
READS = frozenset(each["name"] for each in DEFINITIONS if each.get("annotations", {}).get("readOnlyHint"))
"""Those that change nothing, however often they are called."""
