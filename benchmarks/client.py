"""A small MCP client over HTTP, and requests as bytes for the load generator.

Legacy: one session by `initialize` (MCP 2025-11-25 basic/transports). Modern: each request says everything in `_meta`
and headers (MCP 2026-07-28 basic/transports).
"""

from __future__ import annotations

import base64
import http.client
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from actors.protocol.agreement.versions import (
    LATEST_LEGACY,
    LATEST_MODERN,
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_VERSION,
    Era,
)

TIMEOUT_S = 60.0
INFO = {"name": "benchmark", "version": "1"}
ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

Tool = tuple[str, dict[str, Any]]
"""Name and arguments of a call."""

Capabilities = dict[str, Any]
"""What a client declares that it can be asked."""


class Client:
    """One keep-alive connection in one era, to one door. A context manager closes it."""

    def __init__(
        self,
        port: int,
        era: Era = "legacy",
        path: str = "/mcp",
        capabilities: Capabilities | None = None,
        token: str = "",
    ) -> None:
        self.port = port
        self.era = era
        self.path = path
        self._capabilities = capabilities
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._shown = {"Authorization": f"Bearer {token}"} if token else {}
        self.headers = {
            **ACCEPT,
            **self._shown,
            "MCP-Protocol-Version": LATEST_LEGACY if era == "legacy" else LATEST_MODERN,
        }

    def __enter__(self) -> Self:
        if self.era == "legacy":
            self._initialize()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _initialize(self) -> None:
        response, _ = self.post(initialize(self._capabilities), {**ACCEPT, **self._shown})
        session = response.getheader("Mcp-Session-Id")
        if session:
            self.headers["Mcp-Session-Id"] = session
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers)

    def open(self, message: Any, headers: dict[str, str]) -> http.client.HTTPResponse:
        """Send a message, in one write, and return its answer, of which only the head is read."""
        if self._connection.sock is None:
            self._connection.connect()
        self._connection.sock.sendall(posted(self.port, self.path, message, headers))
        response = http.client.HTTPResponse(self._connection.sock, method="POST")
        response.begin()
        return response

    def post(self, message: Any, headers: dict[str, str]) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a message and return the whole answer. Raises `RuntimeError` for an HTTP error."""
        response = self.open(message, headers)
        body = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{message} was answered with {response.status}: {body[:1000]!r}")
        return response, body

    def call(self, tool: Tool, meta: Mapping[str, Any] | None = None) -> Any:
        """Call a tool and return its result. Raises `RuntimeError` if there is an error instead."""
        answer = self.answer(tool, meta)
        if "result" not in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{tool[0]} was answered with {msgspec.json.encode(answer)[:1000]!r}")
        return answer["result"]

    def answer(self, tool: Tool, meta: Mapping[str, Any] | None = None) -> Any:
        """Call a tool and return the JSON-RPC answer, whatever it is. Raises `RuntimeError` for an HTTP error.

        `meta`: more members of the `_meta` of the call.
        """
        message = call(tool, 1, self.era)
        if meta:
            message["params"].setdefault("_meta", {}).update(meta)
        _, body = self.post(message, {**self.headers, **routing(tool, self.era)})
        text = body.strip()  # JSON, or the last event of a stream
        return msgspec.json.decode(text if text[:1] == b"{" else (b"\n" + text).rpartition(b"\ndata: ")[2])

    def request(self, tool: Tool, id_: int, token: str = "") -> bytes:
        """Return the bytes of an HTTP request that calls a tool in this client's session; `token` is for progress."""
        message = call(tool, id_, self.era)
        if token:
            message["params"].setdefault("_meta", {})["progressToken"] = token
        return posted(self.port, self.path, message, {**self.headers, **routing(tool, self.era)})


def page(port: int, path: str, *, token: str = "", body: Any = None) -> Any:
    """Return the JSON of one of the operators' pages; with a `body` it is sent, by POST."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            headers["Content-Type"] = "application/json"
            connection.request("POST", path, msgspec.json.encode(body), headers)
        return msgspec.json.decode(connection.getresponse().read())
    finally:
        connection.close()


def initialize(capabilities: Capabilities | None = None) -> dict[str, Any]:
    """Return the first message of a legacy session."""
    params = {"protocolVersion": LATEST_LEGACY, "capabilities": capabilities or {}, "clientInfo": INFO}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def call(tool: Tool, id_: int, era: Era, capabilities: Capabilities | None = None) -> dict[str, Any]:
    """Return the request that calls a tool."""
    params: dict[str, Any] = {"name": tool[0], "arguments": tool[1]}
    if era == "modern":
        params["_meta"] = said_each_time(capabilities)
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def said_each_time(capabilities: Capabilities | None = None) -> dict[str, Any]:
    """Return the `_meta` of every request of the modern era."""
    return {META_VERSION: LATEST_MODERN, META_CLIENT_INFO: INFO, META_CAPABILITIES: capabilities or {}}


def routing(tool: Tool, era: Era) -> dict[str, str]:
    """Return the headers that say what a request is, which the modern era wants."""
    return {"Mcp-Method": "tools/call", "Mcp-Name": tool[0]} if era == "modern" else {}


def posted(port: int, path: str, message: Any, headers: dict[str, str]) -> bytes:
    """Return the bytes of an HTTP request with a message."""
    body = msgspec.json.encode(message)
    lines = [f"{name}: {value}" for name, value in {"Host": f"127.0.0.1:{port}", **headers}.items()]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def frame(message: Any) -> str:
    """Return a message as a masked WebSocket text frame in base64 (RFC 6455 5.2; a mask of zeros changes nothing)."""
    data = msgspec.json.encode(message)
    length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
    return base64.b64encode(b"\x81" + length + b"\0\0\0\0" + data).decode()


def upgrade(port: int, path: str = "/mcp") -> str:
    """Return the handshake that makes an HTTP connection a WebSocket."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: mcp",
    ]
    return "\r\n".join([*lines, "", ""])
