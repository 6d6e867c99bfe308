"""Servers of which nothing is known yet: calls wake them and wait, searches wait a little, errors say what is wrong.

The clock stands still unless a test moves it: the index is built in a thread, which a clock that jumps does not await.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.kit import Reply
from actors.life.policy import RestartPolicy
from actors.messages import WakeServer
from actors.principal import Principal
from actors.server import ServerSettings
from supervisor.config import Settings
from supervisor.service.client import Client
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer
from tests.fakes.published import Served, served

PATIENT = ServerSettings(start_timeout_s=10_000, discovery_timeout_s=10_000)


class Started:
    """An ask that runs beside the test. `answer` is what it got, None as long as it waits."""

    def __init__(self, nursery: trio.Nursery, ask: Callable[[], Awaitable[Any]]) -> None:
        self.answer: Any = None
        self._done = trio.Event()
        nursery.start_soon(self._run, ask)

    async def _run(self, ask: Callable[[], Awaitable[Any]]) -> None:
        self.answer = await ask()
        self._done.set()

    async def result(self) -> Any:
        """Wait for the answer; real time may pass, as an index is built in a thread, but none of the clock."""
        await self._done.wait()
        return self.answer


@asynccontextmanager
async def late(
    fake: FakeServer, policy: RestartPolicy | None = None, wait_s: float = 0.0, *, good: bool = True
) -> AsyncIterator[tuple[Served, trio.Nursery]]:
    """Run a gateway before a server that was never started, and one that is ready if `good`."""
    servers = {"late": fake, **({"good": FakeServer()} if good else {})}
    settings = Settings(call_timeout_s=60.0, first_discovery_wait_s=wait_s)
    async with (
        served(servers, settings, undiscovered={"late"}, policy=policy, start=PATIENT) as found,
        trio.open_nursery() as nursery,
    ):
        yield found, nursery
        nursery.cancel_scope.cancel()


def call(found: Served, path: str = "late:echo") -> Callable[[], Awaitable[Any]]:
    return lambda: found.execute(path, {"n": 1})


@pytest.mark.parametrize("path", ["late:echo", "late-echo", "Late:Echo", "mcp__late__echo"])
async def test_a_call_of_a_server_that_was_never_started_waits_for_it(mock_clock: MockClock, path: str) -> None:
    fake = FakeServer(start_s=50.0)
    async with late(fake) as (found, nursery):
        asked = [
            Started(nursery, call(found, path)),
            Started(nursery, lambda: found.ask("tools/call", name=path, arguments={"n": 1})),
        ]
        await wait_all_tasks_blocked()
        assert [one.answer for one in asked] == [None, None]
        mock_clock.jump(50.0)
        for one in asked:
            assert (await one.result())["result"]["structuredContent"] == {"n": 1}
        assert fake.starts == 1


async def test_a_resource_and_a_prompt_of_such_a_server_are_waited_for_too(mock_clock: MockClock) -> None:
    fake = FakeServer(start_s=50.0)
    async with late(fake) as (found, nursery):
        resource = Started(nursery, lambda: found.ask("resources/read", uri="late|file:///a"))
        prompt = Started(nursery, lambda: found.ask("prompts/get", name="late-greet"))
        await wait_all_tasks_blocked()
        mock_clock.jump(50.0)
        assert (await resource.result())["error"]["message"] == "unknown method resources/read"
        assert (await prompt.result())["error"]["message"] == "server 'late' has no prompt 'greet'"


async def test_a_server_that_does_not_come_in_time_is_said_to_be_starting(mock_clock: MockClock) -> None:
    async with late(FakeServer(start_s=500.0)) as (found, nursery):
        asked = Started(nursery, call(found))
        await wait_all_tasks_blocked()
        mock_clock.jump(60.0)
        error = failure(await asked.result())
        assert (error["data"]["type"], error["data"]["retryable"]) == ("starting", True)
        assert error["data"]["retry_after_ms"] == 5000
        assert "first time and is not ready yet; `mcpvisor logs late` shows" in error["message"]


async def test_the_time_of_waiting_is_part_of_the_deadline_of_the_call(mock_clock: MockClock) -> None:
    fake = FakeServer(start_s=50.0, tools=[{"name": "hang", "inputSchema": {"type": "object"}}])
    async with late(fake) as (found, nursery):
        asked = Started(nursery, call(found, "late:hang"))
        await wait_all_tasks_blocked()
        mock_clock.jump(50.0)
        catalogue = found.registry.catalogue
        while "late" not in catalogue.value.entries:
            await catalogue.wait_newer(catalogue.version)
        await wait_all_tasks_blocked()
        assert fake.count("tools/call") == 1
        assert asked.answer is None
        mock_clock.jump(10.0)
        assert failure(await asked.result())["data"]["type"] == "timeout"


async def test_a_server_that_is_about_to_be_set_up_is_waited_for(mock_clock: MockClock) -> None:
    async with served({"good": FakeServer()}, also={"soon": "soon"}) as found, trio.open_nursery() as nursery:
        asked = Started(nursery, call(found, "soon:echo"))
        await wait_all_tasks_blocked()
        assert asked.answer is None
        mock_clock.jump(60.0)
        assert failure(await asked.result())["data"]["type"] == "starting"


async def test_a_call_of_a_server_that_failed_says_why_and_when_and_the_next_one_waits_for_that(
    mock_clock: MockClock,
) -> None:
    fake = FakeServer(exits_at="initialize")
    policy = RestartPolicy(backoff_initial_s=100.0, backoff_max_s=1000.0)
    async with late(fake, policy) as (found, nursery):
        error = failure(await Started(nursery, call(found)).result())
        assert (error["data"]["type"], error["data"]["retry_after_ms"]) == ("starting", 5_000)
        assert "did not start: exit code 1; a call tries it again after 5 s; `mcpvisor logs late`" in error["message"]
        assert (trio.current_time(), fake.starts) == (0.0, 1)
        fake.exits_at = None
        asked = Started(nursery, call(found))
        await wait_all_tasks_blocked()
        assert asked.answer is None
        mock_clock.jump(5.0)
        assert "result" in await asked.result()


async def test_a_server_that_was_given_up_is_tried_again_by_a_call(mock_clock: MockClock) -> None:
    fake = FakeServer(exits_at="initialize")
    async with late(fake, RestartPolicy(max_restarts=0)) as (found, nursery):
        error = failure(await Started(nursery, call(found)).result())
        assert error["data"]["type"] == "unavailable"
        assert "`mcpvisor restart late` at once; `mcpvisor logs late`" in error["message"]
        mock_clock.jump(100.0)
        error = failure(await Started(nursery, call(found)).result())
        assert error["data"]["retry_after_ms"] == 200_000
        assert "operator" not in error["message"]
        assert fake.starts == 1
        mock_clock.jump(200.0)
        fake.exits_at = None
        assert "result" in await Started(nursery, call(found)).result()
        assert fake.starts == 2


async def test_calls_that_nobody_waits_for_any_more_leave_nothing_behind(mock_clock: MockClock) -> None:
    async with late(FakeServer(start_s=500.0)) as (found, _):
        assert mock_clock.current_time() == 0.0
        for _ in range(3):
            async with trio.open_nursery() as clients:
                for _ in range(20):
                    clients.start_soon(call(found))
                await wait_all_tasks_blocked()
                assert found.router.in_flight.calls == 20
                clients.cancel_scope.cancel()
            await wait_all_tasks_blocked()
            assert found.router.in_flight.calls == 0
        orders = found.actors["late"]._orders
        reply: Reply[None] = found.actors["late"].address.request(WakeServer(server="late"))
        await wait_all_tasks_blocked()
        assert orders._waiting["wake"] == [reply]


async def test_a_search_waits_for_servers_that_are_discovered_for_the_first_time(mock_clock: MockClock) -> None:
    async with late(FakeServer(start_s=2.0), wait_s=3.0) as (found, nursery):
        nursery.start_soon(found.actors["late"].address.ask, WakeServer(server="late", urgent=False))
        asked = Started(nursery, lambda: found.discover("echo"))
        await wait_all_tasks_blocked()
        assert asked.answer is None
        mock_clock.jump(2.0)
        page = await asked.result()
        assert {row["server_name"] for row in page["tools"]} == {"late", "good"}
        assert "notice" not in page


async def test_a_search_waits_only_a_little_and_names_what_is_missing(mock_clock: MockClock) -> None:
    async with late(FakeServer(start_s=20.0), wait_s=3.0) as (found, nursery):
        nursery.start_soon(found.actors["late"].address.ask, WakeServer(server="late", urgent=False))
        asked = Started(nursery, lambda: found.discover("echo"))
        await wait_all_tasks_blocked()
        assert asked.answer is None
        mock_clock.jump(3.0)
        page = await asked.result()
        assert [row["tool_path"] for row in page["tools"]] == ["good:echo"]
        assert page["notice"] == "Still being discovered, ask again: late."
        assert (await found.discover("echo"))["notice"] == page["notice"]  # nor does the next one wait for it again
        other = Client(principal=Principal("team:others"))
        await found.ask("tools/call", other, name="discover_mcp_tools", arguments={"query": "echo"})
        assert mock_clock.current_time() == 3.0, "nor does anybody else at this door"


async def test_a_search_does_not_wait_if_it_shall_not(mock_clock: MockClock) -> None:
    async with late(FakeServer(start_s=20.0), good=False) as (found, _):
        page = await found.discover("echo")
        assert (page["tools"], page["notice"]) == ([], "Still being discovered, ask again: late.")
        assert mock_clock.current_time() == 0.0


async def test_a_search_does_not_wait_for_a_server_that_failed(mock_clock: MockClock) -> None:
    broken = FakeServer(exits_at="initialize")
    async with late(broken, RestartPolicy(backoff_initial_s=100.0), wait_s=3.0, good=False) as (found, _):
        with pytest.raises(Exception, match="did not start"):
            await found.actors["late"].address.ask(WakeServer(server="late", urgent=False))
        await wait_all_tasks_blocked()
        page = await found.discover("echo")
        assert page["notice"] == "No tool can be used: late fails and is started again (exit code 1); tell the user."
        assert mock_clock.current_time() == 0.0
