"""A tool that a sleeping server gained unseen: its call wakes the server once and runs exactly that tool, or none.

The clock stands still unless a test moves it: the index is built in a thread, which a clock that jumps does not await.
"""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.config import Settings
from supervisor.service.lookup.visible import FIRST_PAUSE_S
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.published import served


async def test_a_tool_that_was_added_while_its_server_slept_is_found_by_the_first_call_of_it(
    mock_clock: MockClock,
) -> None:
    fake = FakeServer()
    async with served({"desk": fake}) as found:
        await found.sleep("desk")
        fake.tools = [tool("echo"), tool("sleep")]
        for path in ("desk:sleep", "desk:echo"):
            assert (await found.execute(path, {"s": 0}))["result"]["structuredContent"] == {"s": 0}
        assert fake.starts == 2


async def test_all_who_call_such_a_tool_at_once_wake_its_server_once(mock_clock: MockClock) -> None:
    fake = FakeServer()
    async with served({"desk": fake}) as found:
        await found.sleep("desk")
        fake.tools = [tool("echo"), tool("sleep")]
        results: list[object] = []

        async def call() -> None:
            results.append((await found.execute("desk:sleep", {"s": 0}))["result"]["structuredContent"])

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(call)
        assert results == [{"s": 0}] * 5
        assert fake.starts == 2


async def test_a_model_that_makes_up_names_wakes_a_sleeping_server_once_in_a_growing_while(
    mock_clock: MockClock,
) -> None:
    fake, other = FakeServer(), FakeServer()
    async with served({"desk": fake, "other": other}) as found:
        woken = []
        for pause_s in (0.0, FIRST_PAUSE_S - 1, 1.0, FIRST_PAUSE_S, FIRST_PAUSE_S):
            await found.sleep("desk")
            mock_clock.jump(pause_s)
            before = fake.starts
            for path in ("desk:nonsense", "desk-nonsense", "desk:more nonsense"):
                error = failure(await found.execute(path))
                assert error["data"]["type"] == "not_found"
                assert error["message"].startswith("server 'desk' has no tool ")
            woken.append(fake.starts - before)
        assert woken == [1, 0, 1, 0, 1]
        assert other.starts == 1


async def test_what_is_only_spelled_alike_does_not_run_after_the_look_but_is_named(mock_clock: MockClock) -> None:
    fake = FakeServer()
    async with served({"desk": fake}) as found:
        await found.sleep("desk")
        fake.tools = [tool("echo"), tool("delete-all")]
        error = failure(await found.execute("desk:deleteAll"))
        assert error["data"]["nearest"][0] == "desk:delete-all"
        assert [message["method"] for message in fake.messages if message["method"] == "tools/call"] == []


async def test_a_name_that_two_servers_may_have_wakes_neither(mock_clock: MockClock) -> None:
    servers = {"desk": FakeServer(), "desk-top": FakeServer()}
    async with served(servers) as found:
        await found.sleep(*servers)
        for fake in servers.values():
            fake.tools = [tool("echo"), tool("go"), tool("top-go")]
        assert failure(await found.execute("desk-top-go"))["data"]["type"] == "not_found"
        assert [fake.starts for fake in servers.values()] == [1, 1]


async def test_a_server_that_does_not_wake_in_time_is_not_said_to_lack_the_tool(mock_clock: MockClock) -> None:
    fake = FakeServer()
    async with served({"desk": fake}, Settings(call_timeout_s=60.0, first_discovery_wait_s=0.0)) as found:
        await found.sleep("desk")
        fake.silent_at = {"tools/list"}
        errors = []

        async def call() -> None:
            errors.append(failure(await found.execute("desk:new")))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            while fake.starts < 2:
                await wait_all_tasks_blocked()
            await wait_all_tasks_blocked()
            mock_clock.jump(60.0)
        assert errors[0]["data"]["type"] in ("starting", "server_error")
        assert "has no tool" not in errors[0]["message"]


async def test_a_server_that_does_not_start_is_not_said_to_lack_the_tool(mock_clock: MockClock) -> None:
    fake = FakeServer()
    async with served({"desk": fake}) as found:
        await found.sleep("desk")
        fake.exits_at = "initialize"
        error = failure(await found.execute("desk:new"))
        assert error["data"]["type"] == "starting"
        assert "'desk' did not start" in error["message"]
