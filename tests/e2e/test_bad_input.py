"""Wrong input is answered with a status, a code and the id of the request; nobody else notices."""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import trio

from tests.e2e.daemons import Daemon, client, running, stand_in, text
from tests.fakes.failures import failure
from tests.scenario.client import message

pytestmark = pytest.mark.e2e

TIMES = 5
JSON = b"Content-Type: application/json\r\n"
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One server, and small limits."""
    servers = {"growing": stand_in("growing"), "filesystem": stand_in("filesystem")}
    limits: dict[str, Any] = {"max_body_bytes": 20_000, "websocket_max_message_bytes": 20_000}
    with running(tmp_path_factory.mktemp("bad-input"), servers, **limits) as daemon:
        trio.run(daemon.ready)
        yield daemon


# Openings that are no HTTP, or no WebSocket ---------------------------------------------------------------------------


def upgrade(port: int) -> bytes:
    """A correct opening of a WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ["GET /ws HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"]
    return "\r\n".join([*lines, f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]).encode()


def frame(first: int, payload: bytes, *, masked: bool = True) -> bytes:
    """One WebSocket frame with any first byte; the mask is zero."""
    length = len(payload)
    extended = b"" if length < 126 else length.to_bytes(2, "big")
    second = (0x80 if masked else 0) | (126 if extended else length)
    return bytes([first, second]) + extended + (b"\0" * 4 if masked else b"") + payload


def http(line: bytes, *headers: bytes, body: bytes = b"") -> Callable[[int], list[bytes]]:
    """An opening with a request line, `Host` and more."""
    return lambda port: [
        line + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + body
    ]


def websocket(*frames: bytes) -> Callable[[int], list[bytes]]:
    """An opening that is followed by frames, each sent alone."""
    return lambda port: [upgrade(port), *frames]


H2C = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c")
OPENINGS: dict[str, Callable[[int], list[bytes]]] = {
    "a chunk size that is no number": http(
        b"POST /mcp", b"Content-Type: application/json", b"Transfer-Encoding: chunked", body=b"zz\r\n{}\r\n0\r\n\r\n"
    ),
    "two different lengths": http(b"POST /mcp", b"Content-Length: 2", b"Content-Length: 3", body=b"{}}"),
    "a length and chunks": http(
        b"POST /mcp", b"Content-Length: 2", b"Transfer-Encoding: chunked", body=b"2\r\n{}\r\n0\r\n\r\n"
    ),
    "a promise of a body that never comes": http(b"POST /mcp", b"Expect: 100-continue", b"Content-Length: 7"),
    "a target that is not ASCII": http(b"GET /\xf0\x9f\x90\x8d\xff"),
    "an upgrade to HTTP/2": http(b"GET /mcp", *H2C, b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
    "the preface of HTTP/2 and noise": lambda port: [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xfe" * 100],
    "a header that does not end": lambda port: [b"GET /mcp HTTP/1.1\r\nX: " + b"a" * 70_000],
    "the greeting of TLS": lambda port: [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200],
    "a frame with a reserved opcode": websocket(frame(0x83, b"hm")),
    "a frame without a mask": websocket(frame(0x81, b"{}", masked=False)),
    "text that is not UTF-8": websocket(frame(0x81, b"\xc3\x28")),
    "a ping that is too long": websocket(frame(0x89, b"p" * 300)),
    "a close code that does not exist": websocket(frame(0x88, b"\x00\x07")),
    "a message before its handshake is answered": lambda port: [upgrade(port) + frame(0x81, b"{")],
}


async def open_and_leave(daemon: Daemon, parts: list[bytes]) -> None:
    """Send the parts, each once the one before was answered, and leave without a word."""
    stream = await trio.open_tcp_stream("127.0.0.1", daemon.port)
    async with stream:
        try:
            for number, part in enumerate(parts):
                await stream.send_all(part)
                if number < len(parts) - 1:
                    await stream.receive_some(65536)
            with trio.move_on_after(0.1):
                await stream.receive_some(65536)
        except trio.BrokenResourceError:
            return


@pytest.mark.case("C14")
@pytest.mark.parametrize("kind", OPENINGS)
async def test_a_malformed_opening_disturbs_nobody(daemon: Daemon, kind: str) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(TIMES):
            nursery.start_soon(open_and_leave, daemon, OPENINGS[kind](daemon.port))
    assert text(await daemon.execute("growing:echo", text=kind)) == kind
    assert daemon.process.poll() is None


async def test_a_connection_that_is_reset_in_a_request_disturbs_nobody(daemon: Daemon) -> None:
    for _ in range(TIMES):
        stream = await trio.open_tcp_stream("127.0.0.1", daemon.port)
        await stream.send_all(b"POST /mcp HTTP/1.1\r\nContent-Length: 100\r\n" + JSON)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        stream.socket.close()
    assert text(await daemon.execute("growing:echo", text="still here")) == "still here"


# Requests that are wrong ----------------------------------------------------------------------------------------------

CALL = "tools/call"
WRONG: dict[str, tuple[object, int, int, object]] = {
    # What is sent: HTTP status, JSON-RPC code, id in the answer. What is no request at all has no id (JSON-RPC 2.0,
    # section 5); from there on a legacy client gets 200, as most of them lose the code otherwise.
    "no JSON": (b'{"jsonrpc": "2.0", "id": 1,', 400, -32700, None),
    "not UTF-8": (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', 400, -32700, None),
    "a number": (b"7", 400, -32600, None),
    "an empty object": ({}, 400, -32600, None),
    "another version of JSON-RPC": ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400, -32600, None),
    "an id that is an object": ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, 400, -32600, None),
    "a method that is a number": ({"jsonrpc": "2.0", "id": 2, "method": 5}, 400, -32600, None),
    "parameters that are a string": ({"jsonrpc": "2.0", "id": 3, "method": CALL, "params": "x"}, 200, -32602, 3),
    "an empty batch": ([], 400, -32600, None),
    "a method that does not exist": (message("no/such", {}, "a"), 200, -32601, "a"),
    "a call without a name": (message(CALL, {}, "b"), 200, -32602, "b"),
    "a modern method that does not exist": (message("no/such", {"_meta": MODERN}, 9), 404, -32601, 9),
}


@pytest.mark.parametrize("kind", WRONG)
async def test_a_wrong_request_is_answered_with_status_code_and_id(daemon: Daemon, kind: str) -> None:
    body, status, code, id_ = WRONG[kind]
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "no/such"} if "modern" in kind else {}
    response = await daemon.showing(**headers).post(body)
    answer = response.json()
    assert (response.status_code, answer["error"]["code"], answer["id"]) == (status, code, id_)
    assert answer["error"]["message"]


WRONG_CALLS: dict[str, tuple[str, Any, str]] = {
    "a tool that does not exist": ("no-such", {}, "there is no tool 'no-such'"),
    "a server that does not exist": ("execute_mcp_tool", {"tool_path": "no:such", "arguments": {}}, "'no:such'"),
    "a search without a query": ("discover_mcp_tools", {}, "'query' must be"),
    "arguments that are a list": ("filesystem-read_file", [], "missing path"),
    "arguments that are missing": ("filesystem-read_file", {}, '"required":["path"]'),
    "a resource without a server": ("read_mcp_resource", {"uri": "nobody|file:///a"}, "there is no resource"),
}


@pytest.mark.parametrize("kind", WRONG_CALLS)
async def test_a_call_that_is_wrong_has_a_result_that_says_so(daemon: Daemon, kind: str) -> None:
    name, arguments, words = WRONG_CALLS[kind]
    response = await daemon.post(message(CALL, {"name": name, "arguments": arguments}, 4))
    assert (response.status_code, response.json()["id"]) == (200, 4)
    found = failure(response.json())
    assert words in found["message"]
    assert found["data"]["outcome"] == "not_sent"


async def test_a_body_over_the_limit_is_refused_before_it_is_read(daemon: Daemon) -> None:
    response = await daemon.post(message("ping", {"pad": "x" * 30_000}))
    assert response.status_code == 413
    assert response.json()["error"]["code"] == -31413


@pytest.mark.case("C01")
async def test_a_body_over_the_limit_is_refused_in_chunks_too(daemon: Daemon) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(40):
            await trio.lowlevel.checkpoint()
            yield b"x" * 1000

    async with client() as http_client:
        response = await http_client.post(
            f"{daemon.url}/mcp", content=chunks(), headers={"content-type": "application/json"}
        )
    assert response.status_code == 413


@pytest.mark.case("C05")
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("host", "evil.example", 421), ("origin", "http://evil.example", 403), ("content-type", "text/plain", 415)],
)
async def test_a_request_of_a_strange_page_is_refused(daemon: Daemon, header: str, value: str, status: int) -> None:
    response = await daemon.showing(**{header: value}).post(message("ping"))
    assert response.status_code == status


async def test_ten_thousand_levels_of_json_are_refused(daemon: Daemon) -> None:
    response = await daemon.post(b"[" * 10_000 + b"]" * 9_999)
    assert response.status_code == 400
    assert json.loads(response.content)["error"]["code"] in {-32700, -32600}
