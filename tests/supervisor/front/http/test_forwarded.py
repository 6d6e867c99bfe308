"""Requests that another node sends here: what is none is refused, and a page for a browser comes back as bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
import trio

from supervisor.config import Settings
from supervisor.fleet.engine import NodeAway
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.wire import ConnectionContext, ConnectionCounters, Departures
from supervisor.front.http.elsewhere import RequestHead, VisitHead, answer_with
from supervisor.identity.people import OPERATOR
from tests.supervisor.fleet.links.test_links import linked

encode = msgspec.msgpack.encode
ENDS = (("10.0.0.9", 4000), ("10.0.0.1", 3001))
VISIT = VisitHead("GET", b"/ui", "1.1", [(b"host", b"x"), (b"cookie", b"a=b")], ENDS, None)


def context() -> ConnectionContext:
    return ConnectionContext(
        settings=Settings(),
        budget=Budget(),
        counters=ConnectionCounters(),
        departures=Departures(),
        closing=trio.Event(),
    )


async def nobody(*args: Any) -> None:
    raise AssertionError(args)


async def told(head: bytes, receive: Callable[[HttpRequest], Awaitable[None]] = nobody, body: bytes = b"") -> bytes:
    """Return the bytes of the answer; raises what it is refused with."""
    async with linked() as (a, b, place):
        b.links.answer = answer_with(nobody, receive, context())
        sent = await a.links.request(place.node, head, body)
        await sent.read_head()
        parts = []
        while (part := await sent.next()) is not None:
            parts.append(part)
        return b"".join(parts)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\xc1",
        encode(["visit"]),
        encode(["later", "GET"]),
        encode(["visit", "GET", b"/ui", "1.1", [["host"]], ENDS, None]),
        encode(["request", "GET", b"/mcp", "1.1", [], "nobody", True, ""]),
        encode(RequestHead("GET", b"/mcp", "1.1", [], OPERATOR, True, ""))[:-1],
    ],
)
async def test_what_is_no_request_is_refused(head: bytes) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(NodeAway, match="do not understand one another")):
        await told(head)


async def test_a_visit_comes_as_it_was_sent_and_its_answer_goes_back_as_it_is_written() -> None:
    async def receive(request: HttpRequest) -> None:
        assert (request.method, request.path, request.ends, request.sender) == ("POST", "/ui/x", ENDS, "10.0.0.9")
        assert request.own_end == "10.0.0.1 3001"
        assert b"cookie" in request.fields.lines
        await request.answer(201, b"{}", [(b"set-cookie", b"c=d")])

    visit = msgspec.structs.replace(VISIT, method="POST", target=b"/ui/x?y=z")
    answer = await told(encode(visit), receive, b"a=b")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 201 ")
    assert b"\r\nset-cookie: c=d" in head
    assert b"\r\nconnection: close" in head
    assert body == b"{}"


async def test_a_bug_behind_a_page_ends_that_visit_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def receive(request: HttpRequest) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("canary")

    answer = await told(encode(VISIT), receive)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"canary" not in answer
    assert "a bug behind a page for a browser at another node" in caplog.text
