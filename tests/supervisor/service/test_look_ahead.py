"""A search that starts a server ahead answers as one that does not, byte for byte, and only of what is a good hit."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.kit import Latest
from actors.life.states import State
from actors.messages import ServerStatus
from supervisor.config import Settings
from supervisor.metrics.meters import Meters
from supervisor.servers.deployment import Deployment
from supervisor.servers.warm_up import WarmUp
from supervisor.service.client import Client
from supervisor.service.port import answer
from tests.fakes.exchanges import exchange
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.published import CLIENT, Served, served


async def found_for(found: Served, query: str) -> bytes:
    """The whole answer to one search, as it is sent."""
    params: dict[str, Any] = {"name": "discover_mcp_tools", "arguments": {"query": query}}
    return (await answer(found.gateway, exchange(CLIENT, "tools/call", json.dumps(params).encode()))).body


async def world(query: str, *, ahead: int) -> tuple[list[bytes], int]:
    """Search twice for something of a server that sleeps; give the answers, and how often the server was started."""
    fake = FakeServer([tool("weather_forecast"), tool("echo")])
    warm_up: WarmUp

    def consider(client: Client, server: str, status: ServerStatus) -> None:
        warm_up.consider(client, server, status)

    async with served({"desk": fake}, ahead=consider) as found:
        statuses = found.registry.statuses
        warm_up = WarmUp(
            found.router.address,
            lambda server, principal: server,
            lambda: True,
            lambda launch: statuses.value.get(launch),
            Latest(Deployment(settings=Settings(warm_up=ahead))),
            trio.current_time,
            Meters(),
        )
        await found.sleep("desk")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(warm_up.run)
            await wait_all_tasks_blocked()
            answers = [await found_for(found, query)]
            await wait_all_tasks_blocked()
            while ahead and fake.starts > 1 and statuses.value["desk"].state is not State.READY:
                await statuses.wait_newer(statuses.version)
            answers.append(await found_for(found, query))
            nursery.cancel_scope.cancel()
        return answers, fake.starts


@pytest.mark.parametrize(("query", "starts"), [("weather forecast", 2), ("submarine welding permits", 1), ("*", 1)])
async def test_an_answer_is_the_same_and_a_good_hit_starts_its_server_once(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, query: str, starts: int
) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # an answer says how long the search took
    before, never = await world(query, ahead=0)
    assert never == 1
    after, started = await world(query, ahead=1)
    assert started == starts
    assert before[0] == after[0]
    assert before == after
