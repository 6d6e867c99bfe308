"""What a remote server may write, right or wrong, from grammars: heads, bodies, events, frames, documents. Seeded."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

ODD = [
    "",
    "é",
    "\u202e",
    "\x00",
    "\x7f",
    "9" * 400,
    "-1",
    "x" * 3000,
    "http://[::bad",
    "//[",
    "ÿ",
    "\U0001f600",
    " ",
    "\t",
]
ODD_BYTES = [
    b"\x00",
    b"\xff",
    b"\r",
    b"\n",
    b"\r\n\r\n",
    b"\xc3",
    b":",
    b";",
    b"0\r\n\r\n",
    b"\x1b[31m",
    b"HTTP/1.1 100 \r\n\r\n",
]


class Grammar:
    """Makes one thing after the other from a source of chance."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def one(self, of: Sequence[Any]) -> Any:
        """Choose."""
        return of[self.random.randrange(len(of))]

    def seldom(self, part: float = 0.1) -> bool:
        """Say yes now and then."""
        return self.random.random() < part

    def odd(self) -> bytes:
        """Return what stands where something ordinary is expected."""
        return str(self.one(ODD)).encode(errors="replace") if self.seldom(0.7) else bytes(self.one(ODD_BYTES))

    def spoilt(self, data: bytes) -> bytes:
        """Cut, repeat, or replace a part, anywhere; mostly do nothing."""
        if not self.seldom(0.12):
            return data
        at = self.random.randrange(len(data) + 1)
        end = min(len(data), at + self.random.randrange(1, 40))
        match self.random.randrange(5):
            case 0:
                return data[:at]
            case 1:
                return data[:at] + self.odd() + data[end:]
            case 2:
                return data[:end] + data[at:]
            case 3:
                return data[:at] + self.random.randbytes(end - at) + data[end:]
            case _:
                return data[:at] + data[end:]

    # HTTP -------------------------------------------------------------------------------------------------------------

    def answer(self, id_: Any, events: bool | None = None) -> bytes:
        """Return an answer to the request with that id."""
        as_events = self.seldom(0.6) if events is None else events
        body = self.events(id_) if as_events else self.message(id_)
        kind = "text/event-stream" if as_events else "application/json"
        head = self.head(kind)
        if self.seldom(0.2):
            body, head = gzip.compress(body, 1, mtime=0), head + b"content-encoding: gzip\r\n"
        match self.random.randrange(4):
            case 0:
                body, head = self.chunked(body), head + b"transfer-encoding: chunked\r\n"
            case 1:
                length = len(body) if not self.seldom() else self.random.randrange(10**6)
                head += b"content-length: %d\r\n" % length
            case _:
                head += b"connection: close\r\n"
        interim = b"HTTP/1.1 1%02d x\r\nlink: y\r\n\r\n" % self.random.randrange(100)
        before = interim * (self.random.randrange(60) if self.seldom() else 0)
        return before + self.spoilt(head + b"\r\n") + self.spoilt(body)

    def head(self, kind: str) -> bytes:
        """Return a status line and fields, without the end."""
        status = self.one(
            [200] * 20 + [202, 204, 206, 301, 302, 307, 308, 400, 401, 403, 404, 405, 429, 500, 503, 99, 1000]
        )
        lines = [
            b"HTTP/%b %d %b" % (self.one([b"1.1"] * 9 + [b"1.0", b"2.0"]), status, self.one([b"OK", b"", self.odd()]))
        ]
        lines.append(b"content-type: " + (kind.encode() if not self.seldom() else self.odd()))
        for name in (
            b"location",
            b"retry-after",
            b"mcp-session-id",
            b"www-authenticate",
            b"content-encoding",
            b"x",
            b"set-cookie",
        ):
            if self.seldom(0.5 if name == b"location" and 300 <= status < 400 else 0.05):
                lines += [name + b": " + self.value(name)]
        return b"\r\n".join(lines) + b"\r\n"

    def value(self, name: bytes) -> bytes:
        """Return the value of a field."""
        right = {
            b"location": [
                b"/mcp",
                b"?a",
                b"//here:1/x",
                b"http://u:p@here/mcp",
                b"http://169.254.169.254/",
                b"http://[::bad",
            ],
            b"retry-after": [b"1", b"Wed, 21 Oct 2015 07:28:00 GMT", b"9" * 50],
            b"www-authenticate": [
                b'Bearer resource_metadata="http://here/x", scope="a b"',
                b"Basic x",
                b'Bearer scope="',
            ],
            b"content-encoding": [b"gzip", b"br", b"identity"],
        }.get(name, [b"x"])
        return bytes(self.one(right)) if not self.seldom(0.3) else self.odd()

    def chunked(self, body: bytes) -> bytes:
        """Return a body in chunks of any size."""
        out, at = b"", 0
        while at < len(body):
            size = self.one([1, 2, 7, 100, 5000])
            part = body[at : at + size]
            extension = b";x=y" if self.seldom(0.05) else b""
            out += b"%x%b\r\n%b\r\n" % (len(part), extension, part)
            at += size
        return out + b"0\r\n" + (b"trailer: x\r\n" if self.seldom() else b"") + b"\r\n"

    def message(self, id_: Any) -> bytes:
        """Return a JSON-RPC message, mostly the answer to that id."""
        chosen = id_ if not self.seldom() else self.one([None, 1, "x", [], 10**30, -1.5])
        members: dict[str, Any] = {"jsonrpc": "2.0", "id": chosen}
        match self.random.randrange(5):
            case 0:
                members["error"] = {"code": self.one([-32601, -32000, 2**70, "x"]), "message": self.one(ODD)}
            case 1:
                members = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": id_}}
            case 2:
                members |= {"method": self.one(["ping", "roots/list", "x"]), "params": self.one([{}, [], None])}
            case _:
                content = [{"type": "text", "text": self.one(ODD)}]
                members["result"] = {"content": content, "structuredContent": {"n": 1}, "resultType": "complete"}
        return self.spoilt(json.dumps(members, ensure_ascii=self.seldom(0.5)).encode(errors="replace"))

    def events(self, id_: Any) -> bytes:
        """Return a stream of events."""
        out = b"\xef\xbb\xbf" if self.seldom() else b""
        for _ in range(self.random.randrange(1, 8)):
            end = bytes(self.one([b"\n", b"\r\n", b"\r"]))
            fields = [b"data: " + self.message(id_)]
            for name, values in (
                (b"id", [b"1", "é".encode(), b"\x00", b"x" * 2000, b""]),
                (b"retry", [b"1", b"9" * 400, b"9" * 5000, b"-5", "²".encode(), b"1e9"]),
                (b"event", [b"message", b"endpoint", b"ping", b""]),
                (b"", [b"comment", b""]),
            ):
                if self.seldom(0.25):
                    fields.insert(0, name + b":" + bytes(self.one(values)))
            out += end.join(fields) + end + end
        return self.spoilt(out)

    def endpoint(self) -> bytes:
        """Return the first event of HTTP+SSE."""
        places = [b"/post", b"/post", b"/post", b"http://other/", b"http://[::bad", b"//u:p@here/x", self.odd()]
        where = bytes(self.one(places))
        return b"event: endpoint\ndata: " + where + b"\n\n"

    # WebSocket --------------------------------------------------------------------------------------------------------

    def handshake(self, accept: bytes) -> bytes:
        """Return the answer to an opening (RFC 6455 4.2.2)."""
        lines = [b"HTTP/1.1 %d x" % self.one([101] * 40 + [200, 302, 401, 426, 503, 100])]
        lines += [b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Accept: " + accept]
        if self.seldom(0.6):
            lines.append(b"Sec-WebSocket-Protocol: " + self.one([b"mcp"] * 6 + [b"other", self.odd()]))
        if self.seldom():
            lines.append(
                self.one([b"Sec-WebSocket-Extensions: ", b"x: ", b"content-length: ", b"Upgrade: "]) + self.odd()
            )
        early = b"HTTP/1.1 100 x\r\n\r\n" if self.seldom(0.03) else b""
        return early + self.spoilt(b"\r\n".join(lines) + b"\r\n\r\n")

    def frames(self, id_: Any) -> bytes:
        """Return some frames (RFC 6455 5.2)."""
        out = b""
        for _ in range(self.random.randrange(1, 8)):
            opcode = self.one([1] * 40 + [0, 2, 8, 9, 10, 3, 11])
            payload = self.message(self.one([id_, 2]))
            if opcode == 8:
                payload = struct.pack("!H", self.one([1000, 1001, 1009, 4000, 0, 999, 65535])) + self.odd()[:100]
            elif opcode > 8:
                payload = self.odd()[: 125 if not self.seldom() else 200]
            final = 0x80 if not self.seldom(0.03) else 0
            reserved = self.one([0x10, 0x20, 0x40]) if self.seldom(0.03) else 0
            head = bytes([final | reserved | opcode])
            mask = 0x80 if self.seldom(0.03) else 0
            if len(payload) < 126:
                head += bytes([mask | len(payload)])
            elif len(payload) < 65536:
                head += bytes([mask | 126]) + struct.pack("!H", len(payload))
            out += head + (b"\x00" * 4 if mask else b"") + payload
        return self.spoilt(out)

    # OAuth ------------------------------------------------------------------------------------------------------------

    def document(self, base: str) -> bytes:
        """Return what is about a resource, an issuer, or a token, all in one."""

        def url() -> Any:
            return self.one(
                [base, base + "/a", base + "/mcp"] * 3 + ["http://[::bad", "http://169.254.169.254", *ODD, 5, None, []]
            )

        members: dict[str, Any] = {
            "resource": base + "/mcp" if not self.seldom() else url(),
            "authorization_servers": [base if not self.seldom() else url()],
            "issuer": base if not self.seldom() else url(),
            "authorization_endpoint": url(),
            "token_endpoint": url(),
            "registration_endpoint": url(),
            "scopes_supported": self.one([["a"], [], None, [5], ODD, "a"]),
            "code_challenge_methods_supported": self.one([["S256"]] * 4 + [["plain"], None, 5]),
            "access_token": self.one(["t", *ODD]),
            "token_type": self.one(["Bearer", "bearer", "x", 5]),
            "expires_in": self.one([60, "60", -1, 10**400, "nan", "inf", None, []]),
            "scope": self.one(["a b", *ODD]),
            "client_id": self.one(["c", *ODD]),
            "error": self.one(["invalid_grant", *ODD]),
        }
        kept = {name: value for name, value in members.items() if not self.seldom()}
        return self.spoilt(json.dumps(kept).encode())


Written = Callable[[Grammar, bytes], bytes]
"""Makes what is written in answer to a request, of which the bytes are given."""
