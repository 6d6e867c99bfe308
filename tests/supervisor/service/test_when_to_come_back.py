"""When to come back to a server that cannot be used: a row, the status and an error say the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.names import ServerNames
from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Catalogue
from actors.errors import SupervisorError
from actors.life.lifecycle import Barred
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.messages import ServerChanged, ServerStatus
from actors.search.index import Index
from supervisor.metatools.page import Context
from supervisor.metatools.servers import late
from tests.actors.server.rig import Rig, running_server
from tests.actors.server.test_life import Unstartable
from tests.fakes.mcp_server import FakeServer

KNOWN = Offer(tools=(Tool(name="echo"),))
SLOW = RestartPolicy(backoff_initial_s=100, backoff_max_s=100)


def reported(rig: Rig) -> ServerStatus:
    """How the server does, as the registry was told last."""
    return rig.of(ServerChanged)[-1].status


def in_row(status: ServerStatus) -> int | None:
    """What a row says now, in milliseconds."""
    seen = Catalogue(index=Index.empty(), names=ServerNames({}))
    context = Context(seen=seen, statuses={"s": status}, budget=2000, now=trio.current_time())
    row = context.availability("s")
    assert row["available"] is False
    wait: int | None = row.get("retry_after_ms")
    return wait


async def in_error(rig: Rig) -> int | None:
    """What the error of a call that does not wait says now, in milliseconds."""
    with pytest.raises(SupervisorError) as caught:
        await rig.call(deadline_s=0.001)
    wait: int | None = caught.value.data().get("retry_after_ms")
    return wait


@asynccontextmanager
async def backing_off() -> AsyncIterator[Rig]:
    async with running_server(FakeServer(exits_at="initialize"), policy=SLOW, known=KNOWN) as rig:
        rig.submit("echo")
        await rig.reach(State.RESPAWNING)
        yield rig


@asynccontextmanager
async def failed(known: Offer | None) -> AsyncIterator[Rig]:
    policy = RestartPolicy(max_restarts=0)
    async with running_server(FakeServer(exits_at="initialize"), policy=policy, known=known) as rig:
        rig.submit("echo")
        await rig.reach(State.FAILED)
        yield rig


@asynccontextmanager
async def away() -> AsyncIterator[Rig]:
    async with running_server(transport=Unstartable(away=True), policy=SLOW, known=KNOWN) as rig:
        rig.submit("echo")
        await rig.reach(State.RESPAWNING)
        yield rig


@asynccontextmanager
async def locked() -> AsyncIterator[Rig]:
    async with running_server(known=KNOWN) as rig:
        await rig.wake()
        rig.actor._course.step(Barred(rig.actor.life.incarnation, "HTTP 401"))
        await rig.reach(State.FAILED)
        yield rig


@pytest.mark.parametrize(
    ("scene", "first"),
    [
        pytest.param(backing_off, 5.0, id="started again after a back-off"),
        pytest.param(lambda: failed(KNOWN), 300.0, id="given up, tried by a call"),
        pytest.param(lambda: failed(None), 300.0, id="given up, tried by itself"),
        pytest.param(away, 15.0, id="remote and away"),
        pytest.param(locked, None, id="waits for a login"),
    ],
)
async def test_a_row_a_status_and_an_error_say_the_same_of_when_to_come_back(
    autojump_clock: MockClock, scene: object, first: float | None
) -> None:
    assert callable(scene)
    async with scene() as rig:
        for _ in range(3):
            await wait_all_tasks_blocked()
            status = reported(rig)
            now = trio.current_time()
            at = status.retry_at
            expected = None if at is None else round((at - now) * 1000)
            assert (in_row(status), await in_error(rig)) == (expected, expected)
            assert (await rig.status()).retry_at == (None if at is None else pytest.approx(at))
            if status.state is State.RESPAWNING:
                assert late("s", status, now).data()["retry_after_ms"] == expected
            if first is None:
                assert expected is None
            else:
                assert expected is not None
                assert first - 10 < expected / 1000 <= first
            await trio.sleep(1)


async def test_a_call_at_the_moment_that_was_named_tries_a_server_that_is_away(autojump_clock: MockClock) -> None:
    async with away() as rig:
        await wait_all_tasks_blocked()
        before, wait = rig.actor.life.incarnation, in_row(reported(rig))
        assert wait is not None
        await trio.sleep(wait / 1000 - 1)
        await in_error(rig)
        assert rig.actor.life.incarnation == before
        await trio.sleep(1)
        rig.submit("echo")
        await wait_all_tasks_blocked()
        assert rig.actor.life.incarnation == before + 1
