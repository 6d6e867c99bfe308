"""What the daemon is compared with: hypercorn on trio and an application that does nothing.

`python -m benchmarks.bare PORT BODY_BYTES`: answers every HTTP request, once its body is read, with the same JSON of
BODY_BYTES bytes, and every WebSocket message with a text of that size. Nobody who stands on this stack can be faster.
"""

from __future__ import annotations

import sys
from typing import Any

import trio
from hypercorn.config import Config
from hypercorn.trio import serve


def application(body: bytes) -> Any:
    """Return the ASGI application."""
    start = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())],
    }
    end = {"type": "http.response.body", "body": body, "more_body": False}
    answer = {"type": "websocket.send", "text": body.decode()}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body", False):
                pass
            await send(start)
            await send(end)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            while (await receive())["type"] == "websocket.receive":
                await send(answer)
        else:
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})

    return app


def main() -> None:
    """Serve until killed."""
    port, size = int(sys.argv[1]), int(sys.argv[2])
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.accesslog = None
    config.errorlog = None
    trio.run(serve, application(b'"' + b"x" * (size - 2) + b'"'), config)


if __name__ == "__main__":
    main()
