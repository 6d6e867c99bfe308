"""An endpoint that events are posted to, without a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import trio

from supervisor.service.events.callbacks import Receiver
from supervisor.service.events.limits import CallbackUnusable, Reason, Undelivered


class Endpoint:
    """In the place of `Callbacks`: answers as it is told to, and remembers, with moments of the trio clock.

    What it gives for a message is why it is not taken: a category, or a status of 4xx.
    """

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], Reason | int | None] = lambda body: None
        self.took_s = self.retry_after_s = 0.0
        self.posted: list[tuple[float, str, dict[str, Any]]] = []
        self.receivers: list[Receiver] = []
        self.verified: list[str] = []
        self.refuses = False

    async def deliver(self, receiver: Receiver, message_id: str, body: bytes) -> None:
        read = json.loads(body)
        self.receivers.append(receiver)
        self.posted.append((trio.current_time(), message_id, read))
        await trio.sleep(self.took_s)
        if isinstance(answer := self.answer(read), int):
            raise Undelivered("http_4xx", final=answer in (410, 413), retry_after_s=self.retry_after_s)
        if answer is not None:
            raise Undelivered(answer)

    @property
    def ids(self) -> list[str]:
        return [id_ for _, id_, _ in self.posted]

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [body for *_, body in self.posted if body.get("type", "event") == type_]

    async def verify(self, receiver: Receiver) -> None:
        self.verified.append(receiver.url)
        await trio.sleep(self.took_s)
        if self.refuses:
            raise CallbackUnusable("challenge_failed", "no")
