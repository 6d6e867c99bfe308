"""That a client has left is told whatever waits to be read before, and only of the one that did."""

from __future__ import annotations

import socket

import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.front.edge.wire import AT_ONCE, Departures


async def test_each_that_leaves_is_told_of_and_no_other() -> None:
    departures, pairs = Departures(), [socket.socketpair() for _ in range(2 * AT_ONCE + 1)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(departures.run)
        leaving = [departures.watch(ours.fileno()) for ours, _ in pairs]
        for number, (_, theirs) in enumerate(pairs):
            theirs.send(b"still to be read")
            if number % 2 == 0:
                theirs.close()
        with trio.fail_after(30):
            for one in leaving[::2]:
                await one.wait()
        assert not any(one.is_set for one in leaving[1::2])
        nursery.cancel_scope.cancel()
    for ours, theirs in pairs:
        ours.close()
        theirs.close()


async def test_a_socket_that_takes_the_number_of_another_is_not_told_of_its_end() -> None:
    departures = Departures()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(departures.run)
        ours, theirs = socket.socketpair()
        first, number = departures.watch(ours.fileno()), ours.fileno()
        departures.forget(number)
        ours.close()
        theirs.close()
        others = socket.socketpair()
        assert number in {one.fileno() for one in others}
        second = departures.watch(number)
        await wait_all_tasks_blocked(0.01)
        assert (first.is_set, second.is_set) == (False, False)
        for one in others:
            one.close()
        nursery.cancel_scope.cancel()
