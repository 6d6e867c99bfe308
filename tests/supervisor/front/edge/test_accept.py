"""The accept loop: it waits out what the system lacks, says so once, and no connection ends another one."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, cast

import pytest
import trio
from trio.testing import MockClock

from actors.kit import Conditions
from supervisor.front.edge.listening import WHAT, Serve, accept_for_ever


class Listener:
    """Accepts what it is given: a stream, or an error that it raises; then it waits."""

    def __init__(self, outcomes: list[Any]) -> None:
        self._outcomes = outcomes
        self.empty = trio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def accept(self) -> Any:
        await trio.lowlevel.checkpoint()
        if not self._outcomes:
            self.empty.set()
            await trio.sleep_forever()
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Stream:
    """A connection that only knows whether it was closed."""

    def __init__(self) -> None:
        self.socket = self
        self.closed = False

    def close(self) -> None:
        self.closed = True


def failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@asynccontextmanager
async def accepting(outcomes: list[Any], handler: Any, conditions: Conditions) -> AsyncIterator[None]:
    listener = Listener(outcomes)
    async with trio.open_nursery() as nursery, trio.open_nursery() as loop:
        loop.start_soon(
            accept_for_ever, cast("trio.SocketListener", listener), cast("Serve", handler), nursery, conditions
        )
        await listener.empty.wait()
        yield
        loop.cancel_scope.cancel()


async def test_want_of_descriptors_is_waited_out_with_two_lines_in_the_log(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    served: list[Stream] = []
    conditions = Conditions()

    async def serve(stream: Stream) -> None:
        await trio.lowlevel.checkpoint()
        served.append(stream)

    stream = Stream()
    async with accepting([*(failure(errno.EMFILE) for _ in range(50)), stream], serve, conditions):
        await trio.testing.wait_all_tasks_blocked()
        assert served == [stream]
        assert stream.closed
    assert conditions.now() == []
    begun, ended = caplog.records
    assert begun.getMessage() == f"{WHAT}: degraded, tried again until it works: Too many open files"
    assert ended.getMessage().startswith(f"{WHAT}: works again")
    assert (begun.exc_info, ended.exc_info) == (None, None)
    assert 30 < trio.current_time() < 110, "it neither spins nor sleeps long"


async def test_a_connection_that_died_before_it_was_accepted_is_no_error(autojump_clock: MockClock) -> None:
    conditions = Conditions()
    async with accepting([failure(errno.ECONNABORTED), failure(errno.EPERM)], None, conditions):
        assert conditions.now() == []


async def test_an_error_of_the_listening_socket_itself_is_not_hidden() -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(OSError, match="Bad file descriptor"), flatten_subgroups=True):
        async with accepting([failure(errno.EBADF)], None, Conditions()):
            pass


@pytest.mark.parametrize("error", [MemoryError(), failure(errno.EMFILE), ZeroDivisionError("a bug")], ids=repr)
async def test_what_goes_wrong_with_one_connection_costs_that_one(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(stream: Stream) -> None:
        await trio.lowlevel.checkpoint()
        raise error

    streams = [Stream(), Stream()]
    async with accepting(list(streams), fail, Conditions()):
        await trio.testing.wait_all_tasks_blocked()
        assert [stream.closed for stream in streams] == [True, True]
    assert ("a bug in a connection" in caplog.text) == isinstance(error, ZeroDivisionError)
