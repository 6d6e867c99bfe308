"""What is on its way to the client of a WebSocket arrives in its order, whoever sends it."""

from __future__ import annotations

import random

import pytest
import trio
from trio.testing import MockClock

from supervisor.front.websocket import OutgoingQueue


class SlowWire:
    """A connection that takes a message at a time; `sent` has those that have left."""

    def __init__(self, chance: random.Random) -> None:
        self.sent: list[bytes] = []
        self._chance = chance
        self._turn = trio.Lock()

    async def write(self, message: bytes) -> None:
        async with self._turn:
            await trio.sleep(self._chance.choice((0, 0.01)))
            self.sent.append(message)


def queue(wire: SlowWire) -> OutgoingQueue:
    return OutgoingQueue(wire.write, 1000, 100_000, 5.0, lambda: None)


@pytest.mark.parametrize("seed", range(10))
async def test_what_is_told_comes_behind_what_was_queued_and_before_what_is_queued_later(
    seed: int, autojump_clock: MockClock
) -> None:
    chance = random.Random(seed)
    wire = SlowWire(chance)
    outgoing = queue(wire)
    expected: list[bytes] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outgoing.run)
        for number in range(60):
            message = b"%d" % number
            expected.append(message)
            if chance.random() < 0.5:
                await outgoing.tell(message)
            else:
                await outgoing.send(message)
            await trio.sleep(chance.choice((0, 0, 0.005, 0.05)))
        await outgoing.wait_sent()
        assert wire.sent == expected
        nursery.cancel_scope.cancel()
