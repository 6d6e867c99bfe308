"""The benchmark of the worst requests: they are within the default limits, or they would measure a refusal."""

from __future__ import annotations

from benchmarks.worst_requests import requests
from supervisor.config import Settings


def test_the_worst_requests_are_within_the_default_limits() -> None:
    names = set()
    for case in requests(3001):
        names.add(case.name)
        head, _, body = case.payload.partition(b"\r\n\r\n")
        if case.name.startswith("POST"):
            assert f"Content-Length: {len(body)}".encode() in head
            assert Settings().max_body_bytes * 0.9 < len(body) <= Settings().max_body_bytes
        elif case.name.startswith("WebSocket"):
            assert Settings().websocket_max_message_bytes * 0.9 < len(case.payload)
            assert len(case.payload) - 14 <= Settings().websocket_max_message_bytes
    assert len(names) > 30
