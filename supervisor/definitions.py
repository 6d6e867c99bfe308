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
