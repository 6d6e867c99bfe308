"""Names of spans and attributes: the semantic conventions of OpenTelemetry for MCP and GenAI, and our own. Pure.

They are in development (open-telemetry/semantic-conventions-genai) and may change: they are here and nowhere else.
"""

from __future__ import annotations

from typing import Final

from actors import codes

SCOPE: Final = "mcpvisor"
METHOD: Final = "mcp.method.name"
ERROR: Final = "error.type"
TOOL: Final = "gen_ai.tool.name"
PROMPT: Final = "gen_ai.prompt.name"
OPERATION: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"
REQUEST_ID: Final = "jsonrpc.request.id"
STATUS_CODE: Final = "rpc.response.status_code"
VERSION: Final = "mcp.protocol.version"
SESSION: Final = "mcp.session.id"
TRANSPORT: Final = "network.transport"
PROTOCOL: Final = "network.protocol.name"
# Ours
SERVER: Final = "mcpvisor.server"
HITS: Final = "mcpvisor.search.hits"
WAIT_SPAN: Final = "mcpvisor.wait"
SEARCH_SPAN: Final = "mcpvisor.search"
START_SPAN: Final = "mcpvisor.start"
READING_SPAN: Final = "mcpvisor.discovery"

MAX_TEXT: Final = 256
"""Characters of what a client wrote."""
NO_FAULT: Final = frozenset(
    {
        *(codes.PARSE_ERROR, codes.INVALID_REQUEST, codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS),
        codes.RESOURCE_NOT_FOUND,
    }
)
"""Codes of answers to a client that are its own mistake, and no error of the span of a server."""
SUBJECTS: Final = {"tools/call": TOOL, "prompts/get": PROMPT}
"""By method, what the name is of that it is about, and that the name of the span has."""


def span_name(method: str, name: str) -> str:
    """Return the name of a span: never with the address of a resource, of which there may be any number."""
    subject = method in SUBJECTS and name
    return f"{method} {name}"[:MAX_TEXT] if subject else method[:MAX_TEXT]
