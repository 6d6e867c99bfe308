"""Pings of thousands of quiet WebSockets: nobody else waits for them, and who answers none has left."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock
from wsproto.connection import Connection, ConnectionType

from supervisor.config import Settings
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.websocket import WebSocket
from supervisor.front.edge.wire import Leaving
from supervisor.host.pauses import PER_TURN
from tests.fakes.front_server import frame
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


class Line:
    """The wire of one client on virtual time: what it sends is put in, and what it is sent is kept."""

    def __init__(self, *, answers: bool) -> None:
        self.context = SimpleNamespace(settings=Settings(websocket_ping_s=20.0), budget=Budget())
        self.leaving = Leaving()
        self.sent: list[tuple[float, bytes]] = []
        self._answers = answers
        self._said = trio.Event()

    async def write(self, data: bytes) -> None:
        self.sent.append((trio.current_time(), data))
        if self._answers and data[0] == PING:
            self._said.set()
        await trio.lowlevel.checkpoint()

    async def read(self) -> bytes:
        await self._said.wait()
        self._said = trio.Event()
        return frame(opcode=PONG)


PING, PONG, CLOSE = 0x89, 0x8A, 0x88


async def beside(line: Line, seconds: float, *, reads: bool) -> float:
    """Ping, and maybe read, for so long, or until the client is given up; return how long that was."""
    wire: Any = line
    socket, begun = WebSocket(wire, Connection(ConnectionType.SERVER)), trio.current_time()
    with trio.move_on_after(seconds) as scope, line.leaving.ends(scope):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(socket.pings)
            if reads:
                nursery.start_soon(socket.receive)
            await trio.sleep_forever()
    return trio.current_time() - begun


@pytest.mark.case("W06")
async def test_a_client_that_answers_no_ping_is_given_up_with_the_next(autojump_clock: MockClock) -> None:
    line = Line(answers=False)
    assert await beside(line, 600, reads=True) <= 41
    (pinged, ping), (closed, close) = line.sent
    assert (ping[0], close[0]) == (PING, CLOSE)
    assert closed - pinged == pytest.approx(20, abs=1)
    assert close.endswith(b"\x03\xf0no answer to a ping within 20 s")
    assert line.leaving.is_set


@pytest.mark.parametrize(("answers", "reads"), [(True, True), (False, False)])
async def test_a_client_that_answers_and_one_to_which_we_do_not_listen_stay(
    autojump_clock: MockClock, answers: bool, reads: bool
) -> None:
    line = Line(answers=answers)
    assert await beside(line, 600, reads=reads) == pytest.approx(600, abs=1)
    assert {data[0] for _, data in line.sent} == {PING}
