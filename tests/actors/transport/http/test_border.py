"""Whatever a server behind HTTP sends, and whatever reading it raises, ends in a reason: its actor lives on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from actors.errors import SupervisorError
from actors.life.policy import RestartPolicy
from actors.server import ServerSettings
from actors.transport.http import head, site, sse, streamable
from actors.transport.http.client import pieces
from actors.transport.http.remote import HttpLimits
from tests.actors.server.rig import Rig
from tests.actors.transport.behind import behind
from tests.fakes import http_faults as faults
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import Fault, RemoteServer, Request
from tests.fakes.sse_server import SseServer

LIMITS = HttpLimits(max_line_bytes=100_000, max_event_bytes=50_000, connect_timeout_s=5, stop_s=0.5)
ONCE = RestartPolicy(max_restarts=0, backoff_initial_s=10.0)


@asynccontextmanager
async def before(server: RemoteServer) -> AsyncIterator[Rig]:
    settings = ServerSettings(breaker=False)
    async with behind(server, limits=LIMITS, within_s=60, era="legacy", policy=ONCE, settings=settings) as rig:
        await rig.wake()
        yield rig


def said_before(text: bytes) -> Fault:
    """Begin a stream with this, and give the right answer behind it."""
    return faults.events(text, None)


ODD = {
    "an id that is not ASCII": "id: é\ndata:\n\n".encode(),
    "an id that no head can hold": b"id: " + b"x" * 20_000 + b"\ndata:\n\n",
    "an id with what cannot be seen": b"id: a\x01b\ndata:\n\n",
    "a pause of 400 digits": b"retry: " + b"9" * 400 + b"\ndata:\n\n",
    "a pause that is negative": b"retry: -" + b"9" * 400 + b"\ndata:\n\n",
    "a pause of 5,000 digits": b"retry: " + b"9" * 5000 + b"\ndata:\n\n",
}


@pytest.mark.case("H15")
@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
async def test_odd_events_before_an_answer_do_not_take_it_away(odd: bytes) -> None:
    fake = FakeServer()
    async with before(RemoteServer(fake.serve, faults={"tools/call": said_before(odd)})) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        assert (await rig.status()).restarts == 0


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
async def test_odd_events_on_the_stream_of_changes_harm_no_call(odd: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable, "_RETRY_S", (0.01, 0.01))
    again = trio.Event()
    asked: list[str | None] = []

    async def stream(request: Request) -> None:
        asked.append(request.headers.get("last-event-id"))
        if len(asked) > 1:
            again.set()
        await faults.events(odd)(request)

    fake = FakeServer(tools=[tool("echo"), tool("hang")])
    async with before(RemoteServer(fake.serve, faults={"GET": stream})) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(hanging, rig)
        await fake.called.wait()
        await again.wait()
        assert await rig.call("echo", n=1) == {"n": 1}
        assert (await rig.status()).restarts == 0
        nursery.cancel_scope.cancel()
    assert set(asked) == {None}


async def hanging(rig: Rig) -> None:
    """Call what never answers."""
    with pytest.raises(SupervisorError):
        await rig.call("hang", deadline_s=30)


@pytest.mark.parametrize("place", ["http://[::bad", "http://[", "//:x", "http://\u00e9\u0301\u202e/", "\x7f"])
@pytest.mark.parametrize("verb", ["GET", "tools/call"])
async def test_a_redirect_to_what_is_no_address_harms_no_other_call(verb: str, place: str) -> None:
    once = trio.Event()

    async def redirect(request: Request) -> None:
        status = b"307" if verb != "GET" else b"302"
        await request.stream.send_all(b"HTTP/1.1 %b x\r\nlocation: %b\r\n\r\n" % (status, place.encode()))
        once.set()

    fake = FakeServer()
    server = RemoteServer(fake.serve, faults={verb: redirect})
    async with before(server) as rig:
        if verb != "GET":
            with pytest.raises(SupervisorError, match="sends us on to where nothing is sent"):
                await rig.call("echo", n=1)
            server.faults.clear()
        await once.wait()
        assert await rig.call("echo", n=1) == {"n": 1}
        assert (await rig.status()).restarts == 0


@pytest.mark.case("H07")
async def test_a_redirect_with_a_user_in_it_does_not_replace_our_credential() -> None:
    async def redirect(request: Request) -> None:
        if request.path == "/mcp":
            await request.respond(307, location=request.headers["host"].join(["http://eve:pw@", "/other"]))
        else:
            await request.respond(200, faults.right(request))

    fake = FakeServer()
    server = RemoteServer(fake.serve, faults={"tools/call": redirect})
    async with behind(server, headers={"authorization": "Bearer ours"}, era="legacy") as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer ours"}
    assert "/other" in {request.path for request in server.requests}


READING: list[tuple[object, str]] = [
    (streamable, "media_type"),
    (streamable, "whole"),
    (site.Site, "within"),
    (pieces.EventReader, "feed"),
]


class Surprise(Exception):
    """What nobody can foresee; its text is a secret."""


def raising(*_: object, **__: object) -> object:
    raise Surprise("sk-secret")


def answering(place: object, name: str) -> Fault:
    """Return an answer in whose reading a function is called."""
    if name == "within":
        return faults.status(307, location="/mcp")
    return faults.body(b"{}") if name == "whole" else faults.events(b"id: 1\ndata: {}\n\n", None)


@pytest.mark.parametrize(("place", "name"), READING, ids=[name for _, name in READING])
async def test_whatever_reading_raises_is_a_reason_for_its_call_and_nothing_for_others(
    place: object, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake = FakeServer(tools=[tool("echo"), tool("hang")])
    server = RemoteServer(fake.serve, plain=True)
    async with before(server) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(hanging, rig)
        await fake.called.wait()
        server.faults["tools/call"] = answering(place, name)
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(place, name, raising)
            for _ in range(3):
                with pytest.raises(SupervisorError, match=r"what it sends cannot be read \(Surprise\)") as raised:
                    await rig.call("echo", n=1)
                assert "secret" not in str(raised.value)
        server.faults.clear()
        assert await rig.call("echo", n=1) == {"n": 1}
        assert (await rig.status()).restarts == 0
        nursery.cancel_scope.cancel()
    (said,) = [record.getMessage() for record in caplog.records if "cannot be read" in record.getMessage()]
    assert "Surprise at test_border.py" in said
    assert "secret" not in said


@pytest.mark.parametrize(("place", "name"), [(sse, "media_type"), (sse, "events"), (site.Site, "within")])
async def test_whatever_reading_the_stream_of_an_older_server_raises_is_a_reason(
    place: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeServer()
    server = SseServer(fake.serve)
    async with behind(server, "sse", era="legacy", policy=ONCE) as rig:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, raising)
            with pytest.raises(SupervisorError):
                await rig.call("echo", n=1)
            assert "what it sends cannot be read (Surprise)" in ((await rig.status()).last_error or "")


@pytest.mark.parametrize(
    ("text", "mark"), [("e-1", "e-1"), ("a b", "a b"), ("", ""), (" a", ""), ("é", ""), ("a\n", ""), ("x" * 1025, "")]
)
def test_a_mark_is_what_a_head_can_hold(text: str, mark: str) -> None:
    assert head.mark_of(text) == mark


def test_a_pause_is_within_its_bounds_whatever_the_server_says() -> None:
    pauses: Callable[[int], float] = lambda ms: head.pause_s(ms, 60.0)  # noqa: E731
    assert [pauses(ms) for ms in (-(10**400), 0, 250, 10**400)] == [0.1, 0.1, 0.25, 60.0]
