"""The worst requests a client may send within the front's default limits, as bytes for a fresh connection.

They need no server; `worst_cases` measures how long each holds the loop.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import msgspec

BODY_BYTES = 4 * 1024 * 1024
MESSAGE_BYTES = 1024 * 1024
_CALL = b'{"jsonrpc":"2.0","id":1,"method":"nowhere","params":'
_META = b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":'


class Request(msgspec.Struct, frozen=True):
    """What to send on a fresh connection: `opening` is answered with a head before `payload` goes."""

    name: str
    payload: bytes
    opening: bytes = b""


def requests(port: int) -> Iterator[Request]:
    """Return the front's worst inputs within its default limits."""
    yield from _bodies(port)
    yield from _messages(port)
    yield from _frames(port)
    yield from _framing(port)


def _filled(unit: bytes, before: bytes, after: bytes, size: int) -> bytes:
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def _texts(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield messages of a size that are much work for a decoder."""
    keys = b"{" + b",".join(b'"k%d":0' % number for number in range(size // 9)) + b"}"
    keys = keys[: size - 300].rpartition(b",")[0] + b"}"
    nested = b"[" * 400 + b"]" * 400
    yield "as many parameters as fit", _CALL + keys + b"}"
    yield "as many members as fit", b'{"jsonrpc":"2.0","id":1,"method":"nowhere",' + keys[1:]
    yield "modern, many parameters", _CALL + b'{"_meta":{' + _META + b"{}}," + keys[1:] + b"}"
    yield "modern, many capabilities", _CALL + b'{"_meta":{' + _META + keys + b"}}}"
    yield "nested too deep", _CALL + b"[" * (size // 2 - 50) + b"]" * (size // 2 - 50) + b"}"
    yield "nested 400 deep, again and again", _filled(nested + b",", _CALL + b'{"a":[', b"0]}}", size)
    yield "one string", _CALL + b'{"a":"' + b"x" * (size - 100) + b'"}}'
    yield "one string of escapes", _CALL + b'{"a":"' + b"\\u00e9" * ((size - 100) // 6) + b'"}}'
    yield "one string of backslashes", _CALL + b'{"a":"' + b"\\\\" * ((size - 100) // 2) + b'"}}'
    yield "a long id", b'{"jsonrpc":"2.0","method":"nowhere","id":"' + b"x" * (size - 100) + b'"}'
    yield "many ids", _filled(b'"id":1,', b'{"jsonrpc":"2.0",', b'"method":"nowhere"}', size)
    yield "a batch of numbers", _filled(b"0,", b"[", b"0]", size)
    yield (
        "a batch of 50 large messages",
        b"[" + b",".join([_CALL + b'{"a":"' + b"x" * (size // 51) + b'"}}'] * 50) + b"]",
    )
    yield "spaces", b" " * (size - 300) + _CALL + b"{}}"


def _bodies(port: int) -> Iterator[Request]:
    for name, text in _texts(BODY_BYTES):
        modern = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: nowhere\r\n" if name.startswith("modern") else b""
        yield Request(f"POST of 4 MiB: {name}", _post(port, text, modern))


def _messages(port: int) -> Iterator[Request]:
    for name, text in _texts(MESSAGE_BYTES - 1000):
        yield Request(f"WebSocket message of 1 MiB: {name}", frame(text), _upgrade(port, b"/mcp"))


def _frames(port: int) -> Iterator[Request]:
    request = frame(_CALL + b'{"_meta":{' + _META + b"{}}}}")
    for path in (b"/mcp", b"/api/events"):
        opening = _upgrade(port, path)
        at = path.decode()
        yield Request(f"{at}: 100,000 pings", frame(opcode=0x89) * 100_000, opening)
        yield Request(f"{at}: 100,000 empty fragments", frame(opcode=0x01) + frame(opcode=0x00) * 100_000, opening)
        yield Request(f"{at}: 20,000 empty messages", frame() * 20_000, opening)
        yield Request(f"{at}: 1 MiB in fragments of 128 bytes", _fragments(b"a" * MESSAGE_BYTES, 128), opening)
    yield Request("/mcp: 5,000 requests in one write", request * 5000, _upgrade(port, b"/mcp"))


def _framing(port: int) -> Iterator[Request]:
    host = b"Host: 127.0.0.1:%d\r\n" % port
    chunked = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield Request("20,000 header lines", b"GET /mcp HTTP/1.1\r\n" + host + b"a:\r\n" * 20_000 + b"\r\n")
    yield Request("4,000 header lines", b"GET /mcp HTTP/1.1\r\n" + host + b"a:\r\n" * 4_000 + b"\r\n")
    yield Request("20,000 trailer lines", b"POST /mcp HTTP/1.1\r\n" + host + chunked + b"0\r\n" + b"a:\r\n" * 20_000)
    yield Request("100,000 chunks of a byte", b"POST /mcp HTTP/1.1\r\n" + host + chunked + b"1\r\na\r\n" * 100_000)
    yield Request("2,000 requests sent ahead", (b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n") * 2000)


def _post(port: int, body: bytes, headers: bytes = b"") -> bytes:
    host = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % port
    return host + headers + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _upgrade(port: int, path: bytes) -> bytes:
    key = base64.b64encode(b"0123456789abcdef")
    head = b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" % port
    return head + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"


def frame(payload: bytes = b"", opcode: int = 0x81) -> bytes:
    """Return one frame of a client, masked with zeros."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        length = b"\xfe" + size.to_bytes(2, "big") if size < 65536 else b"\xff" + size.to_bytes(8, "big")
    return bytes([opcode]) + length + b"\0" * 4 + payload


def _fragments(payload: bytes, size: int) -> bytes:
    parts = [payload[start : start + size] for start in range(0, len(payload), size)]
    return frame(parts[0], 0x01) + b"".join(frame(part, 0x00) for part in parts[1:-1]) + frame(parts[-1], 0x80)
