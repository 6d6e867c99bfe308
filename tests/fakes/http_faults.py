"""What servers behind HTTP, and what stands before them, do wrong: each fault answers one request in a server's place.

They are small; what makes them large is the limit that a test sets. `ELSEWHERE` is a place that nobody may be led to.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import zlib
from collections.abc import Sequence

import trio

from tests.fakes.remote_server import Fault, Request, head

SECRET = "sk-chaos-secret"
ELSEWHERE = "http://169.254.169.254/latest"
PAUSE_S = 0.02
"""Between two bytes of what trickles."""


def right(request: Request) -> bytes:
    """Return the answer that the server itself would give to a call of `echo`."""
    arguments = request.message.get("params", {}).get("arguments", {})
    result = {"resultType": "complete", "content": [], "structuredContent": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": request.message.get("id"), "result": result}).encode()


def plain(length: int) -> bytes:
    return head(200, {"content-type": "application/json", "content-length": str(length)})


def endless() -> bytes:
    return head(200, {"content-type": "application/json", "connection": "close"})


def status(number: int, body: bytes = b"", kind: str = "text/html", **headers: str) -> Fault:
    """Answer with a status, and a page that holds a secret."""

    async def fault(request: Request) -> None:
        await request.respond(number, body or f"<html>\x1b[31m{SECRET}</html>".encode(), kind, **headers)

    return fault


def raw(data: bytes) -> Fault:
    """Send this, and close."""

    async def fault(request: Request) -> None:
        await request.stream.send_all(data)

    return fault


def body(text: bytes, kind: str = "application/json") -> Fault:
    """Answer 200 with this."""

    async def fault(request: Request) -> None:
        await request.respond(200, text, kind)

    return fault


async def trickle(request: Request, data: bytes) -> None:
    for byte in data:
        await request.stream.send_all(bytes([byte]))
        if await request.left_within(PAUSE_S):
            return


async def redirect_loop(request: Request) -> None:
    await request.respond(307, b"", location=request.path)


async def reset(request: Request) -> None:
    request.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await request.stream.aclose()


async def close(request: Request) -> None:
    await request.stream.aclose()


async def hang(request: Request) -> None:
    await request.left_within(60)


async def slow_headers(request: Request) -> None:
    await trickle(request, plain(1000) * 10)


async def slow_body(request: Request) -> None:
    await request.stream.send_all(plain(1000))
    await trickle(request, right(request) + b" " * 1000)


async def short_body(request: Request) -> None:
    text = right(request)
    await request.stream.send_all(plain(len(text) + 100) + text)


async def huge(request: Request) -> None:
    await request.stream.send_all(endless() + b'{"jsonrpc":"2.0","id":1,"result":{"a":"')
    while True:
        await request.stream.send_all(b"x" * 65536)


async def huge_at_once(request: Request) -> None:
    await request.respond(200, b'{"jsonrpc":"2.0","id":1,"result":{"a":"' + b"x" * 200_000 + b'"}}')


async def gzip_bomb(request: Request) -> None:
    bomb = gzip.compress(b'{"jsonrpc":"2.0","id":1,"result":{"a":"' + bytes(20_000_000), 1)
    await request.respond(200, bomb, content_encoding="gzip")


def bomb(size: int) -> Fault:
    """Answer with so many bytes that are next to none on their way."""

    async def fault(request: Request) -> None:
        packer = zlib.compressobj(1, wbits=31)
        start = packer.compress(b'{"jsonrpc":"2.0","id":1,"result":{"a":"')
        zeros = b"".join(packer.compress(bytes(1_000_000)) for _ in range(size // 1_000_000))
        await request.respond(200, start + zeros + packer.flush(), content_encoding="gzip")

    return fault


class Held:
    """Gives the right answer once it may `go_on`."""

    def __init__(self) -> None:
        self.begun, self.go_on = trio.Event(), trio.Event()

    async def fault(self, request: Request) -> None:
        self.begun.set()
        await self.go_on.wait()
        await request.respond(200, right(request))


async def gzip_asked(request: Request) -> None:
    await request.respond(200, gzip.compress(right(request)), content_encoding="gzip")


async def gzip_broken(request: Request) -> None:
    await request.respond(200, right(request), content_encoding="gzip")


async def wrong_type(request: Request) -> None:
    await request.respond(200, right(request), "text/plain")


async def no_type(request: Request) -> None:
    text = right(request)
    await request.stream.send_all(head(200, {"content-length": str(len(text))}) + text)


async def other_id(request: Request) -> None:
    await request.respond(200, json.dumps({**json.loads(right(request)), "id": 424242}).encode())


async def header_flood(request: Request) -> None:
    await request.stream.send_all(head(200, {f"x-{number}": "a" * 1000 for number in range(2000)}))


def header_lines(size: int) -> Fault:
    """Give the right answer with a head of about so many bytes, in lines of four."""

    async def fault(request: Request) -> None:
        text = right(request)
        start = plain(len(text)).removesuffix(b"\r\n")
        await request.stream.send_all(start + b"a:\r\n" * ((size - len(start)) // 4) + b"\r\n" + text)

    return fault


def one_hundreds(count: int) -> Fault:
    """Give the right answer after so many that are none."""

    async def fault(request: Request) -> None:
        await request.stream.send_all(head(100, {}) * count)
        await request.respond(200, right(request))

    return fault


async def bad_chunk(request: Request) -> None:
    chunked = head(200, {"content-type": "application/json", "transfer-encoding": "chunked"})
    await request.stream.send_all(chunked + b"ZZ\r\nhello\r\n")


async def cookies(request: Request) -> None:
    more = {"set_cookie": "track=1; Path=/", "clear_site_data": '"*"', "mcp_session_id": "evil\tid"}
    await request.respond(200, right(request), **more)


def events(*parts: bytes | None, kind: str = "text/event-stream") -> Fault:
    """Answer with an event stream of these parts, None for the right answer, and close."""

    async def fault(request: Request) -> None:
        await request.begin_events(kind)
        for part in parts:
            await request.stream.send_all(b"data: " + right(request) + b"\n\n" if part is None else part)

    return fault


async def events_endless(request: Request) -> None:
    await request.begin_events()
    while not await request.left_within(PAUSE_S):
        await request.stream.send_all(b": keep-alive\n\n")


async def events_flood(request: Request) -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
    await request.begin_events()
    for _ in range(100):
        await request.stream.send_all((b"event: message\ndata: " + note + b"\n\n") * 20)
    await request.event(right(request))


async def events_trickle(request: Request) -> None:
    await request.begin_events()
    await trickle(request, b"event: message\ndata: " + b" " * 1000 + right(request) + b"\n\n")


async def events_big_line(request: Request) -> None:
    await request.begin_events()
    await request.stream.send_all(b"data: ")
    while True:
        await request.stream.send_all(b"x" * 65536)


async def events_forms(request: Request) -> None:
    """Use what the form of event streams allows: a mark, CRLF, comments, an empty id, data of many lines."""
    lines = json.dumps(json.loads(right(request)), indent=1).split("\n")
    await request.begin_events()
    start = "\ufeff: c\r\nretry: 1\r\nid: \r\nevent: message\r\n"
    await request.stream.send_all((start + "".join(f"data: {line}\r\n" for line in lines) + "\r\n").encode())


async def events_compressed(request: Request) -> None:
    """Send comments without end that take next to no bytes."""
    await request.begin_events(content_encoding="gzip")
    part = gzip.compress(b":\n" * 2_000_000, 1)
    while True:
        await request.stream.send_all(part)


async def asks(request: Request) -> None:
    """Ask for a password before the answer."""
    params = {"message": "password?", "requestedSchema": {"type": "object", "properties": {}}}
    question = {"jsonrpc": "2.0", "id": "srv-1", "method": "elicitation/create", "params": params}
    await request.begin_events()
    await request.event(json.dumps(question).encode())
    await request.event(right(request))


async def delay(request: Request) -> None:
    if not await request.left_within(0.1):
        await request.respond(200, right(request))


def tiny_chunks(lines: Sequence[bytes]) -> Fault:
    """Answer with events cut into chunks of these few bytes each, before the right one."""

    async def fault(request: Request) -> None:
        chunked = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        await request.stream.send_all(head(200, chunked))
        last = b"data: " + right(request) + b"\n\n"
        await request.stream.send_all(b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*lines, last)))

    return fault
