"""A session that is over ends when what was under way in it has its answers, or when these stop coming."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from actors.protocol.wire.peer import Failure, Outgoing
from actors.transport.http.client.verdict import expiry
from actors.transport.http.remote import HttpLimits
from actors.transport.http.site import Site
from actors.transport.http.transport import HttpConnection
from actors.transport.session import MAX_ARRIVED
from tests.fakes.late_clock import lasting

STOP_S = 2.0


@pytest.mark.parametrize(("answered", "takes_s"), [(3, 3 * 1.5), (2, 2 * 1.5 + STOP_S), (0, STOP_S)])
async def test_refusals_that_come_slowly_are_all_heard_before_a_session_ends(
    autojump_clock: MockClock, answered: int, takes_s: float
) -> None:
    site = cast("Site", SimpleNamespace(limits=HttpLimits(settle_s=STOP_S), share=None))
    async with trio.open_nursery() as nursery:
        connection = HttpConnection(site, nursery, "http", lambda kind: None)
        under_way: dict[bytes, Any] = {b"1": trio.CancelScope(), b"2": trio.CancelScope(), b"3": trio.CancelScope()}
        connection._open.update(under_way)

        async def answer() -> None:
            for id_ in list(under_way)[:answered]:
                await trio.sleep(1.5)
                connection._open.pop(id_)
                connection._settled.unpark_all()

        nursery.start_soon(answer)
        began = trio.current_time()
        await connection._finish("it is over")
        assert len(connection._open) == 3 - answered
        assert trio.current_time() - began == lasting(takes_s, wakes=4)
        assert connection.over


async def test_all_that_is_sent_while_a_session_ends_is_told_that_it_was_refused(autojump_clock: MockClock) -> None:
    async def run(work: Callable[..., Awaitable[None]], *args: object) -> None:
        await trio.sleep(0.1)
        await work(*args)

    async def refuse(message: Outgoing) -> Failure:
        await trio.sleep(0.15 if message.id == b"1" else 0)
        return expiry(message.id)

    site = cast("Site", SimpleNamespace(limits=HttpLimits(settle_s=STOP_S), share=SimpleNamespace(run=run)))
    ids = [str(number).encode() for number in range(2 * MAX_ARRIVED)]
    async with trio.open_nursery() as nursery:
        connection = HttpConnection(site, nursery, "http", lambda kind: None)
        connection._channel = cast("Any", SimpleNamespace(ask=refuse, missing=""))
        told = []
        # At 0.1 s the first is refused, at 0.2 s the others are sent, at 0.25 s the second is refused.
        for part in (ids[:2], ids[2:]):
            await connection.send([Outgoing(parts=(), method="tools/call", id=id_) for id_ in part], lambda count: None)
            await trio.sleep(0.2)
        while (failure := (await connection.receive()).failure) is not None:
            told.append((failure.id, failure.cause))
            await trio.testing.wait_all_tasks_blocked()
        assert sorted(told) == sorted((id_, "expired") for id_ in ids)
        assert connection.over
