"""What the daemon is compared with: a server on trio that does nothing, on hypercorn or on httptools alone.

`python -m benchmarks.bare STACK PORT BODY_BYTES`: answers each HTTP request, once its body is read, with the same JSON
of BODY_BYTES bytes, and on hypercorn every WebSocket message with a text of that size. Nobody on that stack is faster.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import httptools
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


class _Requests:
    """Counts the requests that are complete, as httptools finds them."""

    def __init__(self) -> None:
        self.complete = 0

    def on_message_complete(self) -> None:
        """One more."""
        self.complete += 1


async def parsed(port: int, body: bytes) -> None:
    """Serve until cancelled with httptools and nothing else."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    async def served(stream: trio.SocketStream) -> None:
        requests = _Requests()
        parser = httptools.HttpRequestParser(requests)
        with suppress(trio.BrokenResourceError):  # whoever loads it goes without a word
            while data := await stream.receive_some(65536):
                parser.feed_data(data)
                if requests.complete:
                    await stream.send_all(answer * requests.complete)
                    requests.complete = 0

    await trio.serve_tcp(served, port, host="127.0.0.1")


def main() -> None:
    """Serve until killed."""
    stack, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    body = b'"' + b"x" * (size - 2) + b'"'
    if stack == "httptools":
        trio.run(parsed, port, body)
        return
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.accesslog = None
    config.errorlog = None
    trio.run(serve, application(body), config)


if __name__ == "__main__":
    main()
