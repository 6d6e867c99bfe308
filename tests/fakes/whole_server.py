"""A server of either era for the memory transport that says more than it must: whatever it says should arrive."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from actors.protocol.agreement.versions import META_SERVER_INFO, META_SUBSCRIPTION, Era
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer

INFO = {"name": "whole", "version": "3", "title": "Whole", "websiteUrl": "https://example.org", "x-own": [1.0, None]}
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True, "x-own": 1},
    "prompts": {},
    "completions": {},
    "logging": {},
    "tasks": {"list": {}},
    "extensions": {"io.modelcontextprotocol/ui": {}, "io.modelcontextprotocol/tasks": {}},
    "experimental": {"x-own": {"a": 1}},
}
INSTRUCTIONS = "Use it. " * 4000
"""More than what is looked at for the search."""
TOOLS: list[dict[str, Any]] = [
    {"name": f"tool{number}", "inputSchema": {"type": "object"}, "x-own": 1.0, "_meta": {"a": number}}
    for number in range(5)
]
ODD = b'{ "a" : 1.0, "big":123456789012345678901234567890 }'


@dataclass
class WholeServer:
    """`era` is the one it speaks. `page`: tools on a page. `asked`: each request it got, method and params."""

    era: Era = "legacy"
    page: int = 100
    tools: list[dict[str, Any]] = field(default_factory=lambda: list(TOOLS))
    prompts: tuple[str, ...] = ()
    capabilities: dict[str, Any] = field(default_factory=lambda: dict(CAPABILITIES))
    errors: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    starts: int = 0
    dies: bool = False
    streams: list[Any] = field(default_factory=list)
    opened: int = 0
    peer: MemoryPeer | None = None

    async def serve(self, peer: MemoryPeer) -> int:
        self.starts += 1
        self.peer = peer
        lines = Lines(peer)
        while not self.dies and (arrived := await lines.read()) is not None:
            for message in map(json.loads, arrived):
                if (
                    message.get("method") == "notifications/cancelled"
                    and message["params"]["requestId"] in self.streams
                ):
                    self.streams.remove(message["params"]["requestId"])
                if "id" in message:
                    method, params = message["method"], message.get("params", {})
                    self.asked.append((method, params))
                    if method == "events/stream":
                        self.opened += 1
                        self.streams.append(message["id"])
                        await self.stream("active", message["id"])
                        continue
                    body = self._answer(method, params)
                    await peer.write(b'{"jsonrpc":"2.0","id":%b,%b}\n' % (json.dumps(message["id"]).encode(), body))
        return 1

    async def stream(self, what: str, id_: Any, **more: Any) -> None:
        """Tell something on one of `streams`, by the id of its request."""
        assert self.peer is not None
        params = {"cursor": "c", **more, "_meta": {META_SUBSCRIPTION: id_, "x-own": 1}}
        said = {"jsonrpc": "2.0", "method": f"notifications/events/{what}", "params": params}
        await self.peer.write(json.dumps(said).encode() + b"\n")

    async def end_stream(self, id_: Any) -> None:
        assert self.peer is not None
        result = {"resultType": "complete", "_meta": {META_SUBSCRIPTION: id_}}
        await self.peer.write(json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode() + b"\n")

    async def notify(self, method: str) -> None:
        assert self.peer is not None
        await self.peer.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")

    def methods(self) -> list[str]:
        """What clients asked for: not what we ask by ourselves at the start."""
        return [method for method, _ in self.asked if method not in ("initialize", "server/discover")]

    def last(self) -> tuple[str, Any]:
        """The last request, without the members of `_meta` that we add to each."""
        method, params = self.asked[-1]
        meta = {key: value for key, value in params.get("_meta", {}).items() if not key.startswith("io.model")}
        return method, {key: value for key, value in params.items() if key != "_meta"} | (
            {"_meta": meta} if meta else {}
        )

    def _answer(self, method: str, params: Any) -> bytes:
        if method in self.errors:
            return b'"error":' + json.dumps(self.errors[method]).encode()
        result = self._result(method, params)
        if result is None:
            error = {"code": -32601, "message": f"no {method} at all", "data": {"x-own": 1}}
            return b'"error":' + json.dumps(error).encode()
        return b'"result":' + (result if isinstance(result, bytes) else json.dumps(result).encode())

    def _result(self, method: str, params: Any) -> Any:
        modern = {"resultType": "complete", "ttlMs": 7, "cacheScope": "public"} if self.era == "modern" else {}
        match method:
            case "initialize" if self.era == "legacy":
                return {**self.greeting(), "protocolVersion": "2025-06-18", "serverInfo": INFO}
            case "server/discover" if self.era == "modern":
                meta = {META_SERVER_INFO: INFO, "x-own/a": 1}
                return {**modern, **self.greeting(), "supportedVersions": ["2026-07-28"], "_meta": meta}
            case "tools/list":
                start = int(params.get("cursor", 0))
                following = start + self.page
                more = {"nextCursor": str(following)} if following < len(self.tools) else {}
                return {**modern, "tools": self.tools[start:following], **more, "_meta": {"x-own/page": start}}
            case "resources/list":
                return {**modern, "resources": [{"uri": "file:///a", "name": "a"}]}
            case "resources/templates/list":
                return {**modern, "resourceTemplates": []}
            case "prompts/list":
                return {**modern, "prompts": [{"name": name, "x-own": 1} for name in self.prompts]}
            case "resources/read":
                return {**modern, "contents": [{"uri": params["uri"], "text": "hello"}]}
            case "tools/call" | "x-own/method":
                kind = b'"resultType":"complete",' if modern else b""
                return b"{" + kind + b'"content":[],"x":' + ODD + b"}"
        return None

    def greeting(self) -> dict[str, Any]:
        return {"capabilities": self.capabilities, "instructions": INSTRUCTIONS, "x-own": {"more": [1.0]}}
