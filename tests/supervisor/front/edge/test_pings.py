"""Pings of thousands of quiet WebSockets: nobody else waits for them."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import trio
from trio.testing import MockClock
from wsproto.connection import Connection, ConnectionType

from supervisor.config import Settings
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.websocket import WebSocket
from supervisor.host.loop.wakes import PER_TURN
from tests.fakes.ready import LoopTurns

CLIENTS = 20 * PER_TURN


async def test_clients_that_came_together_are_pinged_a_few_in_each_turn_and_at_moments_of_their_own(
    autojump_clock: MockClock,
) -> None:
    turns = LoopTurns()
    in_turn: Counter[int] = Counter()
    moments: list[float] = []

    async def write(_: bytes) -> None:
        in_turn[turns.number] += 1
        moments.append(trio.current_time())
        await trio.lowlevel.checkpoint()

    context = SimpleNamespace(settings=Settings(websocket_ping_s=20.0), budget=Budget())
    connection: Any = SimpleNamespace(context=context, write=write)
    trio.lowlevel.add_instrument(turns)
    async with trio.open_nursery() as nursery:
        for _ in range(CLIENTS):
            nursery.start_soon(WebSocket(connection, Connection(ConnectionType.SERVER)).pings)
        await trio.sleep(41)
        nursery.cancel_scope.cancel()
    assert max(in_turn.values()) <= PER_TURN
    assert CLIENTS <= len(moments) <= 4 * CLIENTS
    assert len({round(moment) for moment in moments}) > 5
