"""A case of each kind: a client of ours before a server that writes what a grammar makes; each returns its outcome."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import trio

from actors.errors import ServerExited, SpawnFailed
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Transport
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.http.transport import HttpTransport
from actors.transport.websocket import WebSocketTransport
from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.fetch import Fetcher, locate
from supervisor.oauth.issuers.issuer import (
    Grant,
    OAuthClient,
    authorization_url,
    read_registration,
    refusal_of,
    tokens_of,
)
from supervisor.oauth.issuers.metadata import OAuthTrouble, challenge_of, check_login, check_scheme
from tests.fuzz.grammars import Grammar
from tests.fuzz.network import Serve

HOST = "http://here.example"
DEADLINE_S = 60.0
"""Of one case, in virtual seconds: every bound of it is shorter."""
LIMITS = HttpLimits(max_line_bytes=65_536, max_event_bytes=32_768, connect_timeout_s=5, call_max_s=20, stop_s=1)
KEY = re.compile(rb"sec-websocket-key: *(\S+)", re.IGNORECASE)
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
LEGACY, MODERN = "2025-11-25", "2026-07-28"

Connect = Callable[[Serve], Awaitable[None]]


def _id(request: bytes) -> Any:
    try:
        return json.loads(request.partition(b"\r\n\r\n")[2]).get("id")
    except (ValueError, AttributeError):
        return None


def http_server(grammar: Grammar) -> Serve:
    """Return a server over HTTP, of either transport."""

    def serve(request: bytes) -> bytes:
        if request.startswith(b"GET") and grammar.seldom(0.5):
            return b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\n" + grammar.endpoint() + grammar.events(1)
        return grammar.answer(_id(request), True if request.startswith(b"GET") else None)

    return serve


def socket_server(grammar: Grammar) -> Serve:
    """Return a server behind a WebSocket, which says everything at once."""

    def serve(request: bytes) -> bytes:
        key = KEY.search(request)
        digest = hashlib.sha1((key[1] if key else b"") + GUID).digest()
        return grammar.handshake(base64.b64encode(digest)) + grammar.frames(1)

    return serve


def pages(grammar: Grammar) -> Serve:
    """Return a server that publishes something of logins."""

    def serve(_: bytes) -> bytes:
        body = grammar.document(HOST)
        start = grammar.head("application/json") if grammar.seldom(0.2) else b"HTTP/1.1 200 OK\r\n"
        head = start + b"content-length: %d\r\n\r\n" % len(body)
        return grammar.spoilt(head) + body

    return serve


def _message(id_: bytes, method: str, version: str) -> Outgoing:
    member = b'"id":%b,' % id_ if id_ else b""
    text = b'{"jsonrpc":"2.0",%b"method":"%b","params":{}}' % (member, method.encode())
    return Outgoing(parts=(text,), method=method, id=id_, version=version)


async def conversation(transport: Transport, version: str) -> str:
    """Speak with a server as its actor does; return what came of two requests."""
    seen: set[str] = set()
    try:
        async with transport.connect() as connection:
            greeting = "server/discover" if version == MODERN else "initialize"
            first = [_message(b"1", greeting, version)]
            later = [] if version == MODERN else [_message(b"", "notifications/initialized", version)]
            await connection.send(first, lambda _: None)
            seen |= await _until(connection.receive, b"1")
            await connection.send([*later, _message(b"2", "tools/call", version)], lambda _: None)
            seen |= await _until(connection.receive, b"2")
            await connection.stop()
            await connection.wait()
    except SpawnFailed:
        seen.add("no connection")
    except ServerExited:
        seen.add("exited")
    return "; ".join(sorted(seen))


async def _until(receive: Callable[[], Awaitable[Any]], id_: bytes) -> set[str]:
    """Receive until a request has its answer or its failure, or nothing more comes."""
    with trio.move_on_after(LIMITS.call_max_s + 10):
        while True:
            incoming = await receive()
            if incoming.failure is not None and incoming.failure.id == id_:
                assert incoming.failure.reason
                return {str(incoming.failure.cause)}
            if not incoming.lines and incoming.failure is None:
                return {"ended"}
            if any(b'"id": ' + id_ in bytes(line) for line in incoming.lines if isinstance(line, bytes)):
                return {"answer"}
    return {"silence"}


async def http(grammar: Grammar) -> str:
    """Speak Streamable HTTP or HTTP+SSE."""
    kind: Literal["http", "sse"] = "http" if grammar.seldom(0.7) else "sse"
    version = MODERN if kind == "http" and grammar.seldom(0.5) else LEGACY
    return await conversation(HttpTransport(Remote(url=f"{HOST}/mcp"), LIMITS, kind), version)


async def websocket(grammar: Grammar) -> str:
    """Speak over a WebSocket."""
    remote = Remote(url=f"{HOST.replace('http', 'ws')}/mcp")
    return await conversation(WebSocketTransport(remote, LIMITS), grammar.one([LEGACY, MODERN]))


async def oauth(grammar: Grammar) -> str:
    """Find out who issues tokens, and read what that says."""
    server = f"{HOST}/mcp"
    challenge = challenge_of([grammar.value(b"www-authenticate").decode("latin-1")])
    client = OAuthClient(id="c", redirect_uri="http://127.0.0.1/x")
    try:
        located = await locate(Fetcher(server), server, challenge, OAuthConfig())
        endpoint = check_login(located.issuer)
        check_scheme(endpoint, server)
        grant = Grant(server=server, issuer=located.issuer, resource=located.resource, client=client)
        authorization_url(endpoint, grant, state="s", verifier="v" * 43)
        page = await Fetcher(server).post(f"{HOST}/token", {}, b"")
        refusal_of(page.status, page.body)
        read_registration(page.body, "none", "http://127.0.0.1/x")
        tokens_of(page.status, page.body, 0.0)
    except OAuthTrouble as trouble:
        return type(trouble).__name__
    return "a token"


KINDS: Mapping[str, tuple[Callable[[Grammar], Serve], Callable[[Grammar], Awaitable[str]]]] = {
    "http": (http_server, http),
    "websocket": (socket_server, websocket),
    "oauth": (pages, oauth),
}
