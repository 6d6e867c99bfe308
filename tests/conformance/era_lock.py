"""Makes the reference server, which speaks both eras, one that speaks one of them only.

What it refuses, it refuses as servers do that have never heard of the other era: a legacy one as the TypeScript SDK 1.x
does, a modern one by -32022 with the revisions it has (2026-07-28, basic/versioning).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from tests.conformance.suites import Era

MODERN = "2026-07-28"
ENVELOPE = "io.modelcontextprotocol/protocolVersion"
Json = dict[str, Any]


def refusal(message: Any, only: Era, header: str = "") -> Json | None:
    """Return the error for a message of the era that is not spoken; `header` is its `MCP-Protocol-Version`."""
    if not isinstance(message, dict) or "method" not in message:
        return None
    params = message.get("params") or {}
    modern = header == MODERN or ENVELOPE in (params.get("_meta") or {}) or message["method"] == "server/discover"
    if modern == (only == "modern"):
        return None
    if only == "legacy":
        return {"code": -32601, "message": "Method not found"}
    requested = header or str(params.get("protocolVersion", ""))
    data = {"supported": [MODERN], "requested": requested}
    return {"code": -32022, "message": "Unsupported protocol version", "data": data}


class LockedInput:
    """The lines of stdin that are of one era; requests of the other one are answered, their notifications dropped."""

    def __init__(self, lines: AsyncIterator[str], answer: Callable[[str], Awaitable[None]], only: Era) -> None:
        self._lines = lines
        self._answer = answer
        self._only = only

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            message = _parsed(line)
            error = refusal(message, self._only)
            if error is None:
                yield line
            elif "id" in message:
                await self._answer(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}) + "\n")


class LockedApp:
    """An ASGI application that speaks one era only."""

    def __init__(self, app: Any, only: Era) -> None:
        self._app = app
        self._only = only

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] == "POST":
            await self._post(scope, receive, send)
        elif self._only == "modern":
            await _reply(send, 405, None)
        else:
            await self._app(scope, receive, send)

    async def _post(self, scope: Any, receive: Any, send: Any) -> None:
        body = await _body(receive)
        message = _parsed(body)
        header = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode("latin-1")
        error = refusal(message, self._only, header)
        if error is None:
            await self._app(scope, _replayed(body, receive), send)
        else:
            answer = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
            await _reply(send, 400 if "id" in message else 202, answer if "id" in message else None)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


async def _body(receive: Any) -> bytes:
    body = bytearray()
    more = True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return bytes(body)


def _replayed(body: bytes, receive: Any) -> Any:
    """Give the body once more, and then what comes."""
    events = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Any:
        return events.pop() if events else await receive()

    return given


async def _reply(send: Any, status: int, content: Json | None) -> None:
    body = b"" if content is None else json.dumps(content).encode()
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})
