"""The shapes of ASGI as the front uses them, and one way to answer before an application has the word.

ASGI 2.3 (HTTP), 2.3 (WebSocket) with the extension "Websocket Denial Response", which hypercorn has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

JSON = b"application/json"


async def respond(
    scope: Scope,
    send: Send,
    status: int,
    body: bytes,
    *,
    content_type: bytes = JSON,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """Answer an HTTP request, or a WebSocket handshake that is not accepted, and close the connection.

    `headers` come on top of type, length and `nosniff`; their names are in lower case.
    """
    kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
    complete = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
        *headers,
    ]
    await send({"type": f"{kind}.start", "status": status, "headers": complete})
    await send({"type": f"{kind}.body", "body": body, "more_body": False})
