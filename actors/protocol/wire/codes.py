"""Which parameter of a request says what it is about. Pure."""

from __future__ import annotations

from typing import Final

NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""By method; `Mcp-Name` repeats it (MCP 2026-07-28, streamable-http, "Request Metadata"; SEP-2663 for tasks)."""
