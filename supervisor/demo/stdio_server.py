"""The smallest MCP server over stdio that is still right, for the demo's servers. Standard library only.

- Each line of stdin is one JSON-RPC message; each line of stdout is one, too. Nothing else goes to stdout.
- A server speaks one era: `legacy` begins with `initialize` (MCP 2025-11-25, basic/lifecycle), `modern` has no
  handshake and says its version in `server/discover` (MCP 2026-07-28, server/discover).
- It ends when stdin does (MCP 2025-11-25, basic/lifecycle "Shutdown").
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

Run = Callable[[dict[str, Any]], "str | dict[str, Any]"]
"""What a tool does: arguments in; text, or an object that is also the structured content, out. ValueError: isError."""
AnyRun = TypeVar("AnyRun", bound=Run)


class ProtocolError(Exception):
    """A request that is answered with a JSON-RPC error of this code and message."""


class StdioServer:
    """Tools and resources of one server. `era` is `legacy` or `modern`."""

    def __init__(self, name: str, *, era: str = "legacy", instructions: str = "") -> None:
        self._info = {"name": name, "version": "1.0.0"}
        self._modern = era == "modern"
        self._instructions = instructions
        self._tools: dict[str, tuple[dict[str, Any], Run]] = {}
        self._resources: dict[str, tuple[dict[str, Any], Callable[[], str]]] = {}

    def add_tool(
        self,
        name: str,
        description: str,
        properties: Mapping[str, Any],
        run: Run,
        *,
        required: Iterable[str] | None = None,
        read_only: bool = False,
    ) -> None:
        """Offer a tool, or replace it. Every property is required unless `required` names those that are."""
        schema = {
            "type": "object",
            "properties": dict(properties),
            "required": list(properties if required is None else required),
        }
        definition: dict[str, Any] = {"name": name, "description": description, "inputSchema": schema}
        if read_only:
            definition["annotations"] = {"readOnlyHint": True}
        self._tools[name] = (definition, run)

    def tool(self, description: str, *, read_only: bool = False, **properties: Any) -> Callable[[AnyRun], AnyRun]:
        """Offer the decorated function as a tool of its name."""

        def add(run: AnyRun) -> AnyRun:
            self.add_tool(run.__name__, description, properties, run, read_only=read_only)
            return run

        return add

    def remove_tool(self, name: str) -> bool:
        return self._tools.pop(name, None) is not None

    def add_resource(self, uri: str, name: str, description: str, read: Callable[[], str]) -> None:
        """Offer a text; `read` is called for each request."""
        definition = {"uri": uri, "name": name, "description": description, "mimeType": "text/plain"}
        self._resources[uri] = (definition, read)

    def announce_tools(self) -> None:
        """Tell the client that the list of tools is another one now (legacy era)."""
        _write({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "id" not in message or "method" not in message:
                continue  # a notification, or an answer to a question that was never asked
            try:
                answer = {"result": self._result(message["method"], message.get("params") or {})}
            except ProtocolError as error:
                code, text = error.args
                answer = {"error": {"code": code, "message": text}}
            _write({"jsonrpc": "2.0", "id": message["id"], **answer})

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        result = self._perform(method, params)
        if self._modern:
            result["resultType"] = "complete"
            if method.endswith(("/list", "/discover", "/read")):
                result |= {"ttlMs": 60_000, "cacheScope": "private"}
        return result

    def _perform(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize" if not self._modern:
                asked = params.get("protocolVersion")
                version = asked if asked in LEGACY_VERSIONS else LEGACY_VERSIONS[-1]
                return {"protocolVersion": version, "serverInfo": self._info, **self._about()}
            case "server/discover" if self._modern:
                meta = {"io.modelcontextprotocol/serverInfo": self._info}
                return {"supportedVersions": [MODERN_VERSION], "_meta": meta, **self._about()}
            case "ping" if not self._modern:
                return {}
            case "tools/list":
                return {"tools": [definition for definition, _ in self._tools.values()]}
            case "tools/call":
                return self._call(params)
            case "resources/list":
                return {"resources": [definition for definition, _ in self._resources.values()]}
            case "resources/read":
                return self._read(params)
        raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method}")

    def _about(self) -> dict[str, Any]:
        capabilities: dict[str, Any] = {"tools": {"listChanged": not self._modern}}
        if self._resources:
            capabilities["resources"] = {}
        return {"capabilities": capabilities, "instructions": self._instructions}

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        name = params.get("name", "")
        if name not in self._tools:
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name}")
        try:
            answer = self._tools[name][1](params.get("arguments") or {})
        except (ValueError, KeyError, TypeError) as error:
            return {"content": [{"type": "text", "text": f"{name}: {error}"}], "isError": True}
        if isinstance(answer, str):
            return {"content": [{"type": "text", "text": answer}]}
        return {"content": [{"type": "text", "text": json.dumps(answer)}], "structuredContent": answer}

    def _read(self, params: dict[str, Any]) -> dict[str, Any]:
        uri = params.get("uri", "")
        if uri not in self._resources:
            raise ProtocolError(INVALID_PARAMS, f"Resource not found: {uri}")
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": self._resources[uri][1]()}]}


def _write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()
