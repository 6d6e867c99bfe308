"""Sockets that are ready at the same moment, and in which turn of the loop whoever waits for them is woken."""

from __future__ import annotations

import select
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

in_turns = pytest.mark.skipif(not hasattr(select, "epoll"), reason="it is the epoll of Linux that hands out in turns")


class LoopTurns(trio.abc.Instrument):
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.number = 0

    def before_io_wait(self, timeout: float) -> None:
        del timeout
        self.number += 1


@contextmanager
def pairs(count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Open so many pairs of sockets for the block."""
    with ExitStack() as stack:
        made = [socket.socketpair() for _ in range(count)]
        for end in (end for pair in made for end in pair):
            end.setblocking(False)
            stack.enter_context(end)
        yield made


async def woken(count: int) -> Counter[int]:
    """Return how many of so many are woken in which turn, when the other ends of all are closed at once."""
    turns = LoopTurns()
    in_turn: Counter[int] = Counter()

    async def wait(end: socket.socket) -> None:
        await trio.lowlevel.wait_readable(end)
        in_turn[turns.number] += 1

    trio.lowlevel.add_instrument(turns)
    with pairs(count) as made:
        async with trio.open_nursery() as nursery:
            for end, _ in made:
                nursery.start_soon(wait, end)
            await wait_all_tasks_blocked()
            for _, other in made:
                other.close()
    trio.lowlevel.remove_instrument(turns)
    return in_turn
