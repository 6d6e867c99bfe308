"""Trials: clients that freeze, vanish, or write what is no request. What is malformed comes `TIMES` times each."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from benchmarks.client import initialize
from benchmarks.faults.scene import Scene
from benchmarks.faults.session import Session, exchange
from benchmarks.faults.subjects import Subject
from benchmarks.faults.verdict import Trial, fault_of_refusal, trial
from benchmarks.running import ECHO

CLIENTS: Final = "clients"
REQUESTS: Final = "malformed requests"
TIMES: Final = 20
REFUSAL_S: Final = 15.0
FROZEN: Final = 40
BIG: Final = 500_000
NOW: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: a connection that is closed is reset."""


def try_clients(subject: Subject, directory: Path) -> Iterator[Trial]:
    """Yield a trial for each kind of bad client."""
    with Scene(subject, directory, lambda _: ECHO) as scene:
        yield trial(CLIENTS, f"{FROZEN} frozen clients", *_frozen(scene))
        yield trial(CLIENTS, f"{FROZEN} clients that vanish in a call", *_vanished(scene))
        for name in requests(scene.ready()):
            yield trial(REQUESTS, name, *_malformed(scene, name))


def _frozen(scene: Scene) -> tuple[str, str]:
    """Let clients ask for much and read nothing; return what others see meanwhile, and afterwards."""
    session = scene.ready()
    with ExitStack() as stack:
        for number in range(FROZEN):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", scene.port), timeout=REFUSAL_S))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with suppress(OSError):
                connection.sendall(session.request(("echo", {"text": "x" * BIG}), number + 10))
        meanwhile = scene.aftermath(scene.ready() if scene.alive else session)
    return meanwhile, scene.aftermath(session)


def _vanished(scene: Scene) -> tuple[str]:
    session = scene.ready()
    for number in range(FROZEN):
        with suppress(OSError), socket.create_connection(("127.0.0.1", scene.port), timeout=REFUSAL_S) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
            connection.sendall(session.request(("echo", {"text": "x" * 1000}), number + 10))
    return (scene.aftermath(session),)


def _malformed(scene: Scene, name: str) -> tuple[str, str]:
    session = scene.ready()
    data = requests(session)[name]
    with ThreadPoolExecutor(TIMES) as threads:
        each_own = (
            data.replace(b'"id":100', b'"id":%d' % (100 + number)) for number in range(TIMES)
        )  # as long as before
        refusals = [threads.submit(exchange, session.port, one, None, REFUSAL_S) for one in each_own]
        faults = [fault_of_refusal(each.result()[0]) for each in refusals]
    return max(faults), scene.aftermath(session)


def requests(session: Session) -> dict[str, bytes]:
    """Return what no client should send, by name. All but those that are wrong in it have the right head."""
    good = json.dumps(initialize()).encode()
    bodies = {
        "no JSON": b"{",
        "no body": b"",
        "100,000 brackets": b"[" * 100_000,
        "number of 5,000 digits": b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % (b"9" * 5000),
        "NaN": b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        "UTF-16": json.dumps(initialize()).encode("utf-16"),
        "invalid UTF-8": good.replace(b"benchmark", b"\xff\xfe"),
        "lone surrogate": good.replace(b"benchmark", b"\\ud800"),
        "a batch": b"[" + b",".join([b'{"jsonrpc":"2.0","id":100,"method":"ping"}'] * 1000) + b"]",
        "an empty list": b"[]",
        "a number": b"7",
        "a number as method": b'{"jsonrpc":"2.0","id":100,"method":7}',
        "an object as id": b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        "a list as params": b'{"jsonrpc":"2.0","id":100,"method":"tools/call","params":[1]}',
        "an object as name": b'{"jsonrpc":"2.0","id":100,"method":"tools/call","params":{"name":{}}}',
        "a number for arguments": b'{"jsonrpc":"2.0","id":100,"method":"tools/call","params":{"arguments":7}}',
        "no such method": b'{"jsonrpc":"2.0","id":100,"method":"no/such"}',
        "an answer to nothing": b'{"jsonrpc":"2.0","id":99,"result":{}}',
    }
    with_body = {name: _post(session, body) for name, body in bodies.items()}
    return {**with_body, **_broken(session, good)}


def _broken(session: Session, good: bytes) -> Mapping[str, bytes]:
    """Return requests whose HTTP is wrong."""
    chunked = {"Transfer-Encoding": "chunked"}
    return {
        "no such session": _post(session, good.replace(b"initialize", b"ping"), {"Mcp-Session-Id": "nobody"}),
        "another content type": _post(session, good, {"Content-Type": "text/plain"}),
        "negative length": _post(session, good, {"Content-Length": "-5"}),
        "a length in words": _post(session, good, {"Content-Length": "many"}),
        "two framings": _post(session, good, chunked),
        "a bad chunk": _post(session, b"ZZ\r\nhello\r\n", {**chunked, "Content-Length": ""}),
        "2,000 headers": _post(session, good, {f"X-{number}": "a" * 100 for number in range(2000)}),
        "a URL of 1 MB": b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "a line without a colon": b"POST /mcp HTTP/1.1\r\nnonsense\r\n\r\n",
        "garbage": b"\x00\xff\xfe garbage\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
        "a bad frame after an upgrade": _upgrade(session) + b"\xff\xff\xff\xff",
        "method of 10 kB": b"A" * 10_000 + b" / HTTP/1.1\r\nHost: x\r\n\r\n",
    }


def _post(session: Session, body: bytes, headers: Mapping[str, str] = {}) -> bytes:
    own = {"Host": f"127.0.0.1:{session.port}", **session.headers, "Content-Length": str(len(body)), **headers}
    lines = [f"{name}: {value}" for name, value in own.items() if value]
    return "\r\n".join([f"POST {session.path} HTTP/1.1", *lines, "", ""]).encode() + body


def _upgrade(session: Session) -> bytes:
    lines = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Host: 127.0.0.1:{session.port}",
    )
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    return "\r\n".join([f"GET {session.path} HTTP/1.1", *lines, key, "", ""]).encode()
