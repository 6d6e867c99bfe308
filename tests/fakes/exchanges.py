"""Requests of clients, and a client that hears what it is told before its answer."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from actors.protocol.exchanges import LogLevel
from supervisor.service.asking.exchange import Exchange, QuestionTable, SessionState
from supervisor.service.client import Client, Updates

LEGACY = Client(version="2025-11-25")
MODERN = Client(era="modern", version="2026-07-28")


class Ear:
    """What a client heard, decoded; `room`: how many more messages it takes."""

    def __init__(self, room: int = 1000) -> None:
        self.heard: list[Any] = []
        self.room = room

    def say(self, message: bytes) -> bool:
        if self.room <= 0:
            return False
        self.room -= 1
        self.heard.append(msgspec.json.decode(message))
        return True


def exchange(
    client: Client,
    method: str,
    params: bytes = b"",
    *,
    ear: Ear | None = None,
    questions: QuestionTable | None = None,
    log_level: LogLevel | Literal[""] | None = None,
    updates: Updates | None = None,
) -> Exchange:
    """One request with the id 1."""
    return Exchange(
        client,
        b"1",
        method,
        msgspec.Raw(params),
        voice=ear,
        session=SessionState(questions, log_level, updates),
    )
