"""How much of an answer is read at once: the head little, a body much, and of a stream no more than a few events."""

from __future__ import annotations

from typing import Any

import httpcore2
import pytest

from actors.transport.http.client import client

URL = "http://here"


class Noted(httpcore2.AsyncMockStream):
    """Has an answer; `most` are the bytes that each read would have taken."""

    def __init__(self, answer: bytes) -> None:
        super().__init__([answer[at : at + 100] for at in range(0, len(answer), 100)])
        self.most: list[int] = []

    async def read(self, max_bytes: int, *args: Any, **named: Any) -> bytes:
        self.most.append(max_bytes)
        return await super().read(max_bytes, *args, **named)


@pytest.mark.parametrize(
    ("kind", "body_bytes"),
    [
        ("application/json", client.BODY_READ_BYTES),
        ("", client.BODY_READ_BYTES),
        ("text/event-stream; charset=utf-8", client.STREAM_READ_BYTES),
    ],
)
async def test_the_head_is_read_in_small_parts_and_a_body_in_large_ones(kind: str, body_bytes: int) -> None:
    client._bound_reading()
    named = f"Content-Type: {kind}\r\n" if kind else ""
    head = f"HTTP/1.1 200 OK\r\n{named}X: {'x' * 300}\r\nContent-Length: 500\r\n\r\n".encode()
    stream = Noted(head + b" " * 500)
    async with httpcore2.AsyncHTTP11Connection(httpcore2.Origin(b"http", b"here", 80), stream) as connection:
        answer = await connection.request("GET", URL)
    assert len(answer.content) == 500
    in_head = -(-len(head) // 100)
    assert set(stream.most[:in_head]) == {client.READ_BYTES}
    assert set(stream.most[in_head:]) == {body_bytes}
