"""A session that is over ends when what was under way in it has its answers, or when these stop coming."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from actors.transport.http.connection import HttpConnection
from actors.transport.http.remote import HttpLimits
from actors.transport.http.site import Site
from tests.fakes.late_clock import lasting

STOP_S = 2.0


@pytest.mark.parametrize(("answered", "takes_s"), [(3, 3 * 1.5), (2, 2 * 1.5 + STOP_S), (0, STOP_S)])
async def test_refusals_that_come_slowly_are_all_heard_before_a_session_ends(
    autojump_clock: MockClock, answered: int, takes_s: float
) -> None:
    site = cast("Site", SimpleNamespace(limits=HttpLimits(stop_s=STOP_S), share=None))
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
        await connection._finish()
        assert len(connection._open) == 3 - answered
        assert trio.current_time() - began == lasting(takes_s, wakes=4)
        assert connection.over
