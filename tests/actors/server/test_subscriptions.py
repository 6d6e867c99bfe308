"""A subscription to the changes of a modern server's lists is opened again, and what it missed is read."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.fakes.mcp_server import FakeServer, tool

AWAKE = ServerSettings(idle_timeout_s=0)


def modern(honours: dict[str, Any] | None = None) -> FakeServer:
    return FakeServer(probe="modern", honours={"toolsListChanged": True} if honours is None else honours)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({}, id="its result"),
        pytest.param({"cancelled": True}, id="a cancellation"),
        pytest.param({"error": {"code": -32603, "message": "Subscription limit reached"}}, id="an error"),
        pytest.param({"result": 7}, id="no result"),
    ],
)
async def test_a_subscription_that_ends_is_opened_again_and_what_changed_meanwhile_is_read(
    how: dict[str, Any], autojump_clock: MockClock
) -> None:
    fake = modern()
    async with running_server(fake, settings=AWAKE, era="modern") as rig:
        await rig.wake()
        await trio.sleep(100)
        assert len(fake.subscriptions) == 1
        await fake.end_subscription(**how)
        await wait_all_tasks_blocked()
        fake.tools.append(tool("missed"))
        await trio.sleep(0.4)
        assert len(fake.subscriptions) == 1
        await trio.sleep(2)
        assert len(fake.subscriptions) == 2
        assert rig.listed == [["echo"], ["echo", "missed"]]
        fake.tools.append(tool("told"))
        await fake.notify("notifications/tools/list_changed")
        await trio.sleep(2)
        assert rig.listed[2:] == [["echo", "missed", "told"]]


async def test_one_that_ends_by_its_result_and_a_cancellation_has_ended_once(autojump_clock: MockClock) -> None:
    fake = modern()
    async with running_server(fake, settings=AWAKE, era="modern") as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        for _ in range(3):
            await fake.end_subscription()
            await fake.end_subscription(cancelled=True)
            await wait_all_tasks_blocked()
        await trio.sleep(1.5)
        assert len(fake.subscriptions) == 2


async def test_one_that_ends_all_the_time_is_asked_for_ever_more_rarely_and_costs_few_readings(
    autojump_clock: MockClock,
) -> None:
    fake = modern()
    async with running_server(fake, settings=AWAKE, era="modern") as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        for number in range(1, 20):
            await fake.end_subscription()
            while len(fake.subscriptions) == number:
                await trio.sleep(1)
                await wait_all_tasks_blocked()
        took = trio.current_time()
        assert took > 12 * 60
        assert len(rig.listed) <= took / 60 + 1
        await trio.sleep(61)
        await fake.end_subscription()
        await trio.sleep(1.5)
        assert len(fake.subscriptions) == 21


@pytest.mark.parametrize(
    ("honours", "how"),
    [
        pytest.param({}, {}, id="nothing is honoured"),
        pytest.param({"toolsListChanged": False}, {}, id="nothing is honoured, in other words"),
        pytest.param(None, {"error": {"code": -32601, "message": "unknown"}}, id="there is no such method"),
    ],
)
async def test_a_server_that_tells_nothing_is_not_asked_again(
    honours: dict[str, bool] | None, how: dict[str, Any], autojump_clock: MockClock
) -> None:
    fake = modern() if honours is None else modern(honours)
    async with running_server(fake, settings=AWAKE, era="modern") as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        await fake.end_subscription(**how)
        await trio.sleep(600)
        assert len(fake.subscriptions) == 1


async def test_an_acknowledgement_that_cannot_be_read_is_one(autojump_clock: MockClock) -> None:
    fake = modern({"toolsListChanged": "yes"})
    async with running_server(fake, settings=AWAKE, era="modern") as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        await fake.end_subscription()
        await trio.sleep(2)
        assert len(fake.subscriptions) == 2


async def test_a_server_that_is_put_to_sleep_is_not_listened_to(autojump_clock: MockClock) -> None:
    fake = modern()
    async with running_server(fake, settings=AWAKE, era="modern") as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        await fake.end_subscription()
        await rig.sleep()
        await trio.sleep(60)
        assert len(fake.subscriptions) == 1
        await rig.wake()
        await wait_all_tasks_blocked()
        assert len(fake.subscriptions) == 2
        assert len(rig.listed) == 2
