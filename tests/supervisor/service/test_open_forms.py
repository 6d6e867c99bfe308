"""A form that is open at a client when the call it is about is over: it is taken back, however that came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.messages import SleepServer
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.server import ServerSettings
from supervisor.config import ServerConfig
from supervisor.service.asking.exchange import QuestionTable
from supervisor.service.client import Client
from tests.fakes.exchanges import Ear, exchange
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.published import Served, served

CLIENT = Client(version="2025-11-25", capabilities=msgspec.Raw(b'{"elicitation":{}}'))
SETTINGS = ServerSettings(terms=Terms(capabilities=OF_CLIENTS))
ASK = b'{"name":"ask","arguments":{}}'


async def die(server: FakeServer, running: Served) -> None:
    await running.actors["s"].address.ask(SleepServer(server="s"))


async def answer_all_the_same(server: FakeServer, running: Served) -> None:
    call = next(message["id"] for message in server.messages if message.get("method") == "tools/call")
    await server.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n' % call)


async def break_down(server: FakeServer, running: Served) -> None:
    await running.ask("tools/call", CLIENT, "servers/s", name="crash", arguments={})


@pytest.mark.parametrize("end", [die, answer_all_the_same, break_down])
async def test_a_form_is_taken_back_when_its_call_is_over(
    autojump_clock: MockClock, end: Callable[[FakeServer, Served], Awaitable[None]]
) -> None:
    server, ear, answers = FakeServer(tools=[tool("ask"), tool("crash")]), Ear(), list[Any]()
    entry = ServerConfig(name="s", command="x")
    async with served({"s": server}, start=SETTINGS, entries=[entry]) as running, trio.open_nursery() as nursery:
        asked = exchange(CLIENT, "tools/call", ASK, ear=ear, questions=QuestionTable())

        async def call() -> None:
            answers.append(await running.answer(asked, "servers/s"))

        nursery.start_soon(call)
        await server.called.wait()
        await wait_all_tasks_blocked()
        (form,) = ear.heard
        assert form["method"] == "elicitation/create"
        await end(server, running)
        await wait_all_tasks_blocked()
        assert len(answers) == 1
        assert [each["method"] for each in ear.heard] == ["elicitation/create", "notifications/cancelled"]
        assert ear.heard[1]["params"]["requestId"] == form["id"]
