"""Requests out of bytes: what is one, what is none, and that nobody before us finds other ones in the same bytes."""

from __future__ import annotations

from typing import NamedTuple

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.front.edge.parser import MAX_HEAD_BYTES, MAX_HEADERS, HttpProtocolError, IncomingRequest, RequestParser
from supervisor.front.guard import Guard

HEAD = b"POST /mcp HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GUARD = Guard("127.0.0.1", [], allowed_hosts=["a"])
NEXT = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"


class Asked(NamedTuple):
    """One complete request."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Reading(NamedTuple):
    """What is found in some bytes: complete requests, and the status with which the rest is refused, 0 if it is not."""

    requests: list[Asked]
    status: int = 0
    last: bool = False
    """The last one ends the connection, or opens a WebSocket: what follows belongs to nobody."""


def ours(*parts: bytes) -> Reading:
    """What the parser and the guard behind it say."""
    parser, requests = RequestParser(), list[Asked]()
    now: IncomingRequest | None = None
    try:
        for part in parts:
            parser.add(part)
            while True:
                if now is None:
                    now = parser.next()
                    if now is None:
                        break
                    if (refusal := GUARD.check(now.fields, now.target)) is not None:
                        return Reading(requests, refusal.status)
                while parser.go_on():
                    pass
                if not now.complete:
                    break
                requests.append(Asked(now.method, now.target, now.headers, b"".join(now.parts)))
                if now.upgrade or not now.keep_alive:
                    return Reading(requests, last=True)
                now = None
    except HttpProtocolError as error:
        return Reading(requests, error.status)
    finally:
        parser.close()
    return Reading(requests)


def by_h11(data: bytes) -> Reading:
    """What the parser says that was here before."""
    connection, requests = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES), list[Asked]()
    connection.receive_data(data)
    request: h11.Request | None = None
    body = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                method, target = request.method.decode("ascii"), bytes(request.target)
                headers = [(bytes(name), bytes(value)) for name, value in request.headers]
                requests.append(Asked(method, target, headers, body))
                connection.send(h11.Response(status_code=404, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    return Reading(requests, last=True)
                connection.start_next_cycle()
            else:
                return Reading(requests)
    except h11.RemoteProtocolError as error:
        return Reading(requests, error.error_status_hint)


def post(*lines: bytes, body: bytes = b"") -> bytes:
    return HEAD + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


REFUSED = {
    "lines that end with LF": (HEAD.replace(b"\r\n", b"\n") + b"\n", 400),
    "one line that ends with LF": (HEAD + b"X: y\n\r\n", 400),
    "an empty line of LF": (HEAD + b"\n", 400),
    "an empty line before the request": (b"\r\n" + NEXT, 400),
    "LF before the request": (b"\n" + NEXT, 400),
    "a folded line": (post(b"X: a", b" b"), 400),
    "a space before the colon": (post(b"X : a"), 400),
    "a line without a colon": (post(b"X"), 400),
    "a name that is no token": (post(b"X(: a"), 400),
    "a name that is not ASCII": (post(b"X\xe4: a"), 400),
    "NUL in a value": (post(b"X: a\0b"), 400),
    "a control character in a value": (post(b"X: a\x01b"), 400),
    "two lengths": (post(b"Content-Length: 1", b"Content-Length: 2", body=b"ab"), 400),
    "the same length twice": (post(b"Content-Length: 1", b"Content-Length: 1", body=b"a"), 400),
    "a list of lengths": (post(b"Content-Length: 1, 1", body=b"a"), 400),
    "a length with a sign": (post(b"Content-Length: +1", body=b"a"), 400),
    "a length in hexadecimals": (post(b"Content-Length: 0x1", body=b"a"), 400),
    "a length without end": (post(b"Content-Length: " + b"9" * 30, body=b"a"), 400),
    "length and chunks": (post(b"Content-Length: 1", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
    "chunks and length": (post(b"Transfer-Encoding: chunked", b"Content-Length: 1", body=b"0\r\n\r\n"), 400),
    "chunked twice": (post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
    "another coding before chunked": (post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), 501),
    "a coding that hides chunked": (post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"), 400),
    "no coding": (post(b"Transfer-Encoding: identity"), 400),
    "chunks in HTTP/1.0": (b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    "a size in C notation": (CHUNKED + b"0x1\r\na\r\n0\r\n\r\n", 400),
    "a negative size": (CHUNKED + b"-1\r\na\r\n0\r\n\r\n", 400),
    "a size without end": (CHUNKED + b"f" * 20 + b"\r\na\r\n0\r\n\r\n", 400),
    "a size that ends with LF": (CHUNKED + b"1\na\r\n0\r\n\r\n", 400),
    "more than the size says": (CHUNKED + b"1\r\nabc\r\n0\r\n\r\n", 400),
    "a space behind the size": (CHUNKED + b"1 \r\na\r\n0\r\n\r\n", 400),
    "framing in the trailers": (CHUNKED + b"0\r\nContent-Length: 5\r\n\r\n", 400),
    "several spaces in the request line": (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a space at its end": (b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
    "a target that is not ASCII": (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a target that is no path": (b"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "no version": (b"GET /\r\nHost: a\r\n\r\n", 400),
    "another protocol": (b"GET / RTSP/1.0\r\nHost: a\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "a version that does not exist": (b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
    "a method that nobody knows": (b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a tunnel": (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    "too many lines": (post(*[b"a: b"] * MAX_HEADERS), 431),
    "a head that is too long": (post(b"X: " + b"a" * MAX_HEAD_BYTES), 431),
    "a target of a megabyte": (b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
    "a line without end": (HEAD + b"X: " + b"a" * 2 * MAX_HEAD_BYTES, 431),
    "too many trailers": (CHUNKED + b"0\r\n" + b"a: b\r\n" * 4000 + b"\r\n", 431),
    "a trailer without end": (CHUNKED + b"0\r\nX: " + b"a" * 2 * MAX_HEAD_BYTES, 431),
    "an extension without end": (CHUNKED + b"1;" + b"a" * 2 * MAX_HEAD_BYTES, 431),
}


@pytest.mark.case("C14", "C15")
@pytest.mark.parametrize("name", REFUSED)
def test_what_can_be_read_in_two_ways_is_refused_with_all_that_follows(name: str) -> None:
    data, status = REFUSED[name]
    assert ours(data + NEXT) == Reading([], status)


def test_requests_sent_together_are_found_one_after_the_other() -> None:
    length = post(b"Content-Length: 3", body=b"abc")
    chunks = CHUNKED + b"1;why=not\r\na\r\n02\r\n\r\n\r\n0\r\nTrailer: x\r\n\r\n"
    bodies = [one.body for one in ours(length + chunks + NEXT + length).requests]
    assert bodies == [b"abc", b"a\r\n", b"", b"abc"]


def test_trailers_say_nothing_of_the_request() -> None:
    (asked, following) = ours(CHUNKED + b"0\r\nHost: evil\r\nMcp-Session-Id: x\r\n\r\n" + NEXT).requests
    assert asked.headers == [(b"host", b"a"), (b"transfer-encoding", b"chunked")]
    assert following.target == b"/next"


@pytest.mark.parametrize("protocol", [b"h2c", b"foo/2", b"websocket"])
def test_an_upgrade_that_is_not_followed_changes_nothing_for_the_body(protocol: bytes) -> None:
    """llhttp takes what comes behind such a head for the other protocol: Java sends this with its first POST."""
    data = post(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: " + protocol, b"Content-Length: 5", body=b"GET /")
    found = ours(data + NEXT)
    assert [one.body for one in found.requests] == [b"GET /", b""]
    assert (b"upgrade", protocol) in found.requests[0].headers


@pytest.mark.parametrize(
    ("lines", "version", "opens"),
    [
        (b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"1.1", True),
        (b"Connection: keep-alive, UPGRADE\r\nUpgrade: WebSocket\r\n", b"1.1", True),
        (b"Upgrade: websocket\r\n", b"1.1", False),
        (b"Connection: Upgrade\r\n", b"1.1", False),
        (b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"1.0", False),
    ],
)
def test_a_websocket_is_opened_by_both_fields(lines: bytes, version: bytes, opens: bool) -> None:
    parser = RequestParser()
    parser.add(b"GET /ws HTTP/" + version + b"\r\nHost: a\r\n" + lines + b"\r\nbehind")
    incoming = parser.next()
    assert incoming is not None
    assert incoming.upgrade is opens
    assert parser.remainder == b"behind"


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nHost: a\r\n\r\n", False),
    ],
)
def test_who_wants_the_connection_closed_says_so(head: bytes, kept: bool) -> None:
    parser = RequestParser()
    parser.add(head)
    incoming = parser.next()
    assert incoming is not None
    assert incoming.keep_alive is kept


# Against the parser that was here before ------------------------------------------------------------------------------

LINES = st.sampled_from(
    [b"\r\n"] * 30 + [b"\n", b"\r", b"\r\r\n", b"\n\r\n", b" \r\n", b"\0\r\n", b"\r\n\r\n", b"\r\n ", b""],
)
FIELDS = st.sampled_from(
    [
        *(b"Host: a", b"Content-Length: 5", b"content-length: 5", b"Content-Length: 05", b"Content-Length:5 "),
        *(b"Content-Length: 0", b"Content-Length: 6", b"Content-Length: 5, 5", b"Content-Length: -5"),
        *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked", b"transfer-encoding:\tchunked"),
        *(b"Transfer-Encoding: gzip", b"Transfer-Encoding : chunked", b"Transfer-Encoding: chunked, identity"),
        *(b"Connection: close", b"Connection: keep-alive", b"Connection: Upgrade", b"Upgrade: h2c"),
        *(b"Upgrade: websocket", b"Expect: 100-continue", b"X: \xe4", b"X:", b"X:  a  ", b"Proxy-Connection: close"),
        *(b"X: a,b", b"Trailer: X", b"TE: trailers", b"X: GET / HTTP/1.1"),
    ]
)
BODIES = st.sampled_from(
    [
        *(b"", b"hello", b"hello!", b"5\r\nhello\r\n0\r\n\r\n", b"0\r\n\r\n", b"5;a=b\r\nhello\r\n0\r\n\r\n"),
        *(b"5\r\nhello\r\n0\r\nX: y\r\n\r\n", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", b"05\r\nhello\r\n00\r\n\r\n"),
        *(b"5\nhello\n0\n\n", b"5\r\nhelloX\r\n0\r\n\r\n", b"g\r\n", b"5 \r\nhello\r\n0\r\n\r\n"),
    ]
)
STARTS = st.sampled_from(
    [b"GET / HTTP/1.1", b"POST /mcp HTTP/1.1", b"POST /mcp?x=1 HTTP/1.1"] * 5
    + [b"GET / HTTP/1.0", b"HEAD * HTTP/1.1", b"GET http://a/ HTTP/1.1", b"get / HTTP/1.1", b"GET /\t HTTP/1.1"]
    + [
        b"OPTIONS * HTTP/1.1",
        b"GET / HTTP/0.9",
        b"GET /",
        b"GET / http/1.1",
        b" GET / HTTP/1.1",
        b"CONNECT a:1 HTTP/1.1",
    ]
)


SEPARATORS = (b"\r", b"\n", b" ", b"\t", b":", b"\0", b",", b"0", b";", b"\xff")


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A message by the grammar, with what attacks do to it."""
    lines = [draw(STARTS), b"Host: a", *draw(st.lists(FIELDS, max_size=4))]
    head = b"".join(line + draw(LINES) for line in lines)
    return head + draw(LINES) + draw(BODIES)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Some messages, with a byte added, taken out or changed somewhere."""
    data = bytearray(b"".join(draw(st.lists(messages(), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(data)))
        if draw(st.booleans()):
            data[place : place + 1] = b""
        else:
            data[place:place] = draw(
                st.sampled_from([b"\r", b"\n", b" ", b"\t", b":", b"\0", b",", b"0", b";", b"\xff"])
            )
    return bytes(data)


def normal(asked: Asked) -> Asked:
    """As h11 writes it: codings in lower case."""
    headers = [(name, value.lower() if name == b"transfer-encoding" else value) for name, value in asked.headers]
    return asked._replace(headers=headers)


@given(streams())
def test_ours_finds_no_request_that_the_one_before_did_not_find(data: bytes) -> None:
    """Where the two differ ours is the stricter: the requests that it finds are the first ones of the other's."""
    found, expected = ours(data), by_h11(data)
    requests = [normal(one) for one in found.requests]
    assert requests == [normal(one) for one in expected.requests[: len(requests)]]
    if len(requests) < len(expected.requests) and not found.last:
        assert found.status


@given(streams(), st.data())
def test_it_does_not_matter_where_the_bytes_are_cut(data: bytes, draw: st.DataObject) -> None:
    places = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    parts = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
    cut, whole = ours(*parts), ours(data)
    assert (cut.requests, bool(cut.status), cut.last) == (whole.requests, bool(whole.status), whole.last)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise_anything_else(data: bytes) -> None:
    ours(HEAD + data)
    ours(CHUNKED + data)
    ours(data)
