"""An endpoint that fails in every way gets every event once it is back: in order, signed, with counts that add up."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio

from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Courier
from supervisor.delivery.http_sink import HttpSink
from supervisor.delivery.sinks import LateHttpSink
from supervisor.events.event import DaemonEvent
from supervisor.events.kinds import LimitExceeded

KEY = b"k" * 32
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
CANARY = "sk-canary-secret-0000"
Answer = Callable[[trio.SocketStream], Awaitable[bool | None]]
"""Says whether the events have arrived; None ends the connection."""


def status(number: int, more: str = "") -> Answer:
    async def answer(stream: trio.SocketStream) -> bool:
        body = f"<html>{CANARY}</html>"
        size = "" if number == 204 else f"content-length: {len(body)}\r\n"
        head = f"HTTP/1.1 {number} X\r\n{size}set-cookie: a=b\r\n{more}\r\n"
        await stream.send_all((head + ("" if number == 204 else body)).encode())
        return number < 300

    return answer


async def hang(stream: trio.SocketStream) -> None:
    await stream.receive_some(1)


async def reset(stream: trio.SocketStream) -> None:
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await stream.aclose()


async def rubbish(stream: trio.SocketStream) -> None:
    await stream.send_all(b"\0\xff" * 1000 + CANARY.encode())


async def half_a_head(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-le")


async def endless(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 500 X\r\n")
    while True:
        await stream.send_all(b"x: y\r\n" * 100)


async def slow(stream: trio.SocketStream) -> bool:
    for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n":
        await stream.send_all(bytes([byte]))
        await trio.sleep(0.002)
    return True


class Endpoint:
    """Answers requests as a list says, and with 204 behind it; keeps those that it took."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.taken: list[dict[str, Any]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []

    async def serve(self, stream: trio.SocketStream) -> None:
        buffer = b""
        with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                while b"\r\n\r\n" not in buffer:
                    data = await stream.receive_some(65536)
                    if not data:
                        return
                    buffer += data
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                lines = head.decode().split("\r\n")[1:]
                headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
                while len(buffer) < int(headers["content-length"]):
                    buffer += await stream.receive_some(65536)
                size = int(headers["content-length"])
                body, buffer = buffer[:size], buffer[size:]
                self.requests.append((headers, body))
                answer = self.answers.pop(0) if self.answers else status(204)
                good = await answer(stream)
                if good is None:
                    return
                self.taken += json.loads(body)["events"] if good else []


@asynccontextmanager
async def sending(endpoint: Endpoint, **more: Any) -> AsyncIterator[Courier]:
    """A courier before a real server on this machine."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        await nursery.start(trio.serve_listeners, endpoint.serve, [listener])
        config = EventSink(
            name="a",
            url=f"http://127.0.0.1:{port}/x?y=z",
            **{"interval_s": 0.01, "timeout_s": 1.5, "secret": SECRET, **more},
        )
        courier = Courier(
            config, LateHttpSink(config, lambda: 1_800_000_000.5), lambda number: f"7-{number}", lambda: 5.0
        )
        nursery.start_soon(courier.run)
        yield courier
        courier.scope.cancel()
        nursery.cancel_scope.cancel()


def tell(courier: Courier, *numbers: int) -> None:
    for number in numbers:
        courier.take(DaemonEvent(number=number, time=0.0, data=LimitExceeded(resource="x", reason="y")))


async def until_sent(courier: Courier, emitted: int) -> None:
    with trio.fail_after(30):
        while courier.queue.emitted < emitted or courier.queue:  # noqa: ASYNC110 - a real server takes its time
            await trio.sleep(0.005)


FAILURES: list[tuple[str, Answer]] = [
    *((f"status {number}", status(number)) for number in (301, 401, 403, 404, 429, 500, 502, 503)),
    ("leads elsewhere", status(307, "location: http://169.254.169.254/\r\n")),
    *(("hangs", hang), ("resets", reset), ("rubbish", rubbish), ("half a head", half_a_head), ("endless", endless)),
]


@pytest.mark.parametrize(("name", "failure"), FAILURES)
async def test_after_any_failure_each_event_arrives_once_and_in_order(name: str, failure: Answer) -> None:
    endpoint = Endpoint(failure, failure)
    async with sending(endpoint, batch_events=3) as courier:
        tell(courier, *range(1, 8))
        await until_sent(courier, 7)
        told = courier.status()
    assert [event["id"] for event in endpoint.taken] == [f"7-{number}" for number in range(1, 8)]
    assert (told.emitted, told.sent, told.refused, told.dropped, told.failed) == (7, 7, 0, 0, 2)
    ids = [headers["webhook-id"] for headers, _ in endpoint.requests]
    assert ids[0] == ids[1] == ids[2] == "evt_7-1", "the same batch"
    assert all("cookie" not in headers for headers, _ in endpoint.requests)


@pytest.mark.parametrize("number", [400, 413, 415, 422])
async def test_what_it_will_never_take_is_given_up(number: int) -> None:
    endpoint = Endpoint(status(number))
    async with sending(endpoint, batch_events=3) as courier:
        tell(courier, *range(1, 5))
        await until_sent(courier, 4)
        told = courier.status()
    assert [event["id"] for event in endpoint.taken] == ["7-4"]
    assert (told.sent, told.refused, told.failed) == (1, 3, 1)


@pytest.mark.parametrize("seed", range(2))
async def test_after_all_failures_in_any_order_nothing_is_missing_but_what_was_given_up(seed: int) -> None:
    mixed = random.Random(seed)
    answers = [answer for _, answer in FAILURES] + [status(400), status(413), status(204), slow] * 2
    mixed.shuffle(answers)
    endpoint = Endpoint(*answers)
    async with sending(endpoint, batch_events=2, interval_s=0.001, timeout_s=1.0) as courier:
        tell(courier, *range(1, 41))
        await until_sent(courier, 40)
        told = courier.status()
    numbers = [int(event["id"].partition("-")[2]) for event in endpoint.taken]
    first = [int(json.loads(body)["events"][0]["id"].partition("-")[2]) for _, body in endpoint.requests]
    assert numbers == sorted({*numbers})
    assert first == sorted(first), "nothing goes before what was not taken"
    assert endpoint.answers == [], "it failed in every way"
    assert (told.sent, told.refused, told.dropped, told.queued) == (len(numbers), 8, 0, 0)
    assert told.emitted == 40 == told.sent + told.refused


async def test_nobody_there_keeps_the_events(caplog: pytest.LogCaptureFixture) -> None:
    config = EventSink(name="a", url="http://127.0.0.1:1/", secret=SECRET, headers={"x": CANARY}, interval_s=0.01)
    courier = Courier(config, HttpSink(config, lambda: 0.0), str, lambda: 5.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(courier.run)
        tell(courier, 1, 2)
        with trio.fail_after(30):
            while courier.status().failed < 3:  # noqa: ASYNC110 - it is tried again and again
                await trio.sleep(0.005)
        courier.scope.cancel()
    told = courier.status()
    assert (told.queued, told.sent, told.dropped) == (2, 0, 0)
    assert "cannot be reached" in told.last_error
    assert len(caplog.records) == 1, "what is the same is said once"
    for text in (repr(told), caplog.text, repr(config)):
        assert not [word for word in (CANARY, SECRET, "127.0.0.1:1") if word in text]


async def test_what_is_sent_is_signed_and_says_what_was_dropped() -> None:
    endpoint = Endpoint(slow)
    async with sending(endpoint, queue_events=2, headers={"authorization": "Bearer x"}) as courier:
        tell(courier, 1, 2, 3)
        await until_sent(courier, 3)
    ((headers, body),) = endpoint.requests
    signed = f"{headers['webhook-id']}.1800000000.".encode() + body
    digest = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert headers["webhook-timestamp"] == "1800000000"
    assert (headers["content-type"], headers["authorization"]) == ("application/json", "Bearer x")
    told = json.loads(body)
    assert (told["dropped"], [event["id"] for event in told["events"]]) == (1, ["7-2", "7-3"])


async def test_without_a_secret_nothing_is_signed() -> None:
    endpoint = Endpoint()
    async with sending(endpoint, secret="") as courier:
        tell(courier, 1)
        await until_sent(courier, 1)
    ((headers, _),) = endpoint.requests
    assert headers["webhook-id"] == "evt_7-1"
    assert "webhook-signature" not in headers
