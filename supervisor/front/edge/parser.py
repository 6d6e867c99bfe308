"""Requests out of the bytes of one connection (RFC 9112), by llhttp. Pure.

Theory: whoever stands between a client and us (a proxy, a cache) must find the same requests in the same bytes as we
do, or one client can slip a request into another's. So the parser never sees more than one message: a head up to its
empty line, then no more than the body that this head announced. What comes behind waits in the inbox, unread, until the
message before it was answered.

    head ──── no body ───────────────────────────▶ complete
     │  └──── Content-Length: that many bytes ────▶ complete
     └─────── chunked: line by line until 0 CRLF ─▶ complete, or whatever the client does next is not looked at

Rules of this file:
- llhttp is strict by default, and stays so. What it takes and RFC 9112 does not (other protocols in the request line,
  several spaces, codings before `chunked`) is refused here.
- Sizes are looked at before anything is parsed, and nothing that has no end is kept: a head has a bound in bytes and
  lines, and so have the lines around the parts of a body.
- An `Upgrade` that we do not follow is ignored, as it may be (RFC 9110 7.8). llhttp would take what comes then for the
  other protocol, and the body of a POST with it, so the head is parsed again without that line.
"""

from __future__ import annotations

from typing import Final

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from supervisor.front.edge.fields import Fields, fields_of

Headers = list[tuple[bytes, bytes]]
"""Names in lower case, and values."""

MAX_HEAD_BYTES: Final = 16 * 1024
"""Request line and header lines together, and what stands between the parts of a body; more is answered with 431."""

MAX_HEADERS: Final = 128
"""Header lines of one request; more are answered with 431."""

_SLICE_BYTES: Final = 8 * 1024
"""What is looked at in one go where the end of a line is looked for."""

_VERSIONS: Final = {b"HTTP/1.1": "1.1", b"HTTP/1.0": "1.0"}
_NO_FRAMING: Final = frozenset({b"upgrade", b"connection", b"http2-settings"})
"""What says that another protocol may follow."""


class HttpProtocolError(Exception):
    """The bytes are no request that is served; `status` and text are for the client. Nothing after it is read."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class IncomingRequest(msgspec.Struct, eq=False):
    """One request as far as it has arrived: its head, and the parts of its body that nobody has taken."""

    method: str
    target: bytes
    version: str
    headers: Headers
    fields: Fields
    keep_alive: bool
    """False if the client wants the connection closed behind the answer."""
    upgrade: bool = False
    """True if it asks for a WebSocket (RFC 6455 4.1)."""
    length: int = 0
    """The announced length of its body; 0 where there is none, and where it comes in chunks."""
    expects: bool = False
    """True if it waits for a 100 before it sends its body."""
    parts: list[bytes] = []
    """What has arrived of its body."""
    complete: bool = False


class RequestParser:
    """The requests of one connection, one at a time."""

    def __init__(self) -> None:
        self._inbox = b""
        self._at = 0  # what comes before this has been used up
        self._looked = 0
        self._now: IncomingRequest | None = None
        self._body_left = 0
        self._start()

    def _start(self) -> None:
        self._target = b""
        self._headers: Headers = []
        self._in_head = True
        self._keep_alive = True
        self._lines_bytes = 0
        self._parser: HttpRequestParser | None = HttpRequestParser(self)

    @property
    def remainder(self) -> bytes:
        """What has arrived and was not looked at."""
        return self._inbox[self._at :]

    def close(self) -> None:
        """The connection is over: let go of the parser, which knows us, so that nobody has to search for both."""
        self._parser = None
        self._inbox = b""

    def add(self, data: bytes) -> None:
        self._inbox = self._inbox[self._at :] + data if self._at < len(self._inbox) else data
        self._looked = max(0, self._looked - self._at)
        self._at = 0

    def next(self) -> IncomingRequest | None:
        """Begin with the next request; None if its head is not here. The one before it must be complete.

        Raises `HttpProtocolError`.
        """
        inbox, start = self._inbox, self._at
        end = inbox.find(b"\r\n\r\n", max(start, self._looked))
        if (end if end >= 0 else len(inbox)) - start > MAX_HEAD_BYTES:
            raise HttpProtocolError(431, f"the head of a request may have {MAX_HEAD_BYTES} bytes")
        if end < 0:
            self._looked = max(start, len(inbox) - 3)  # its end may be cut anywhere
            if inbox.count(b"\n", start) != inbox.count(b"\r\n", start):
                raise HttpProtocolError(400, "the lines of a request end with CR and LF")
            return None
        self._at = end + 4
        head = inbox[start : self._at] if start or self._at < len(inbox) else inbox
        if head.count(b"\n") > MAX_HEADERS + 2:
            raise HttpProtocolError(431, f"a request may have {MAX_HEADERS} header lines")
        version = _version_of(head[: head.index(b"\r\n")])
        self._headers, self._in_head = [], True
        self._feed(head)
        self._now = now = self._build(version)
        if now.upgrade:
            return now
        if self._upgrades:
            self._parse_without_upgrade(now)
        return now

    def go_on(self) -> bool:
        """Take the next part of the body out of what has arrived; False if there is none.

        Raises `HttpProtocolError`.
        """
        now = self._now
        if now is None or now.complete or self._at >= len(self._inbox):
            return False
        start = self._at
        if self._body_left:
            self._at = min(len(self._inbox), start + self._body_left)
            self._body_left -= self._at - start
        else:
            end = self._inbox.find(b"\r\n", start, start + _SLICE_BYTES)
            self._at = end + 2 if end >= 0 else min(len(self._inbox), start + _SLICE_BYTES)
        had = len(now.parts)
        self._feed(self._inbox[start : self._at])
        # Sizes with their extensions, and trailers, are kept until they end; a client need not end them.
        self._lines_bytes = 0 if len(now.parts) > had else self._lines_bytes + self._at - start
        if self._lines_bytes > MAX_HEAD_BYTES:
            raise HttpProtocolError(431, f"between its parts, and behind them, a body may have {MAX_HEAD_BYTES} bytes")
        return True

    def _feed(self, data: bytes) -> None:
        self._upgrades = False
        assert self._parser is not None
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._upgrades = True
        except HttpParserError as error:
            raise HttpProtocolError(400, f"no HTTP: {error}") from None

    def _build(self, version: str) -> IncomingRequest:
        assert self._parser is not None
        method, headers = self._parser.get_method().decode("ascii"), self._headers
        fields = fields_of(headers)
        get = fields.lines.get
        coding, upgrade = get(b"transfer-encoding"), get(b"upgrade")
        if coding and (coding.lower() != b"chunked" or version == "1.0"):
            raise HttpProtocolError(501, "the only coding of a body is chunked, in HTTP/1.1")
        if method == "CONNECT":
            raise HttpProtocolError(405, "this is no proxy")
        self._body_left = int(get(b"content-length") or b"0")
        return IncomingRequest(
            method,
            self._target,
            version,
            headers,
            fields,
            keep_alive=self._keep_alive,
            upgrade=upgrade is not None
            and upgrade.lower() == b"websocket"
            and self._upgrades
            and method == "GET"
            and version == "1.1",
            expects=version == "1.1" and (get(b"expect") or b"").lower() == b"100-continue",
            length=self._body_left,
            parts=[],
            complete=not (self._body_left or coding),
        )

    def _parse_without_upgrade(self, now: IncomingRequest) -> None:
        lines = [b"%s: %s\r\n" % line for line in now.headers if line[0] not in _NO_FRAMING]
        self._start()
        head = b"%s %s HTTP/%s\r\n" % (now.method.encode(), now.target, now.version.encode())
        self._feed(head + b"".join(lines) + b"\r\n")

    # What httptools calls -------------------------------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        """All of a target: a head is fed whole."""
        self._target = url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # nobody has use for trailers (RFC 9110 6.5): they must not count as said in the head
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        self._keep_alive = self._parser.should_keep_alive()  # which says something else once the message is complete
        self._in_head = False
        self._lines_bytes = 0

    def on_body(self, data: bytes) -> None:
        assert self._now is not None
        self._now.parts.append(data)

    def on_message_complete(self) -> None:
        if self._now is not None:
            self._now.complete = True


def _version_of(line: bytes) -> str:
    """Return the version of a request line. Raises `HttpProtocolError` for one that is not made of three words."""
    words = line.split(b" ")
    if len(words) != 3 or not all(words) or b"\r" in line or b"\n" in line:
        raise HttpProtocolError(
            400, "a request begins with its request line: method, target and version, one space between them"
        )
    version = _VERSIONS.get(words[2])
    if version is None:
        raise HttpProtocolError(505 if words[2].startswith(b"HTTP/") else 400, "HTTP/1.1 is spoken here")
    return version
