"""A server of both eras whose tool asks by a request, which the modern era has not: the SDKs then fail in the tool."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from trio.testing import MockClock

from actors.kit import Reply
from actors.life.states import State
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import RemoteError
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.actors.server.test_dialogue import Caller
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryPeer

SETTINGS = ServerSettings(terms=Terms(capabilities=OF_CLIENTS))
PYTHON = "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests."
TYPESCRIPT = "Server-to-client requests are not available on protocol revision 2026-07-28: 'sampling/createMessage' ..."


class OfSdk(FakeServer):
    """Asks by a request where it was initialized, and fails otherwise, as `fails` says: by an error, or by a result."""

    fails: tuple[str, bool] = (PYTHON, False)

    async def _call(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        text, by_result = self.fails
        if message["params"]["name"] != "ask" or "initialize" in self.asked[-1]:
            await super()._call(peer, message)
        elif by_result:
            result = {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": True}
            await self._send(peer, {"id": message["id"], "result": result})
        else:
            await self._send(peer, {"id": message["id"], "error": {"code": -32600, "message": text}})


def server(fails: tuple[str, bool]) -> OfSdk:
    fake = OfSdk(probe="both", tools=[tool("ask"), tool("echo")])
    fake.fails = fails
    return fake


@pytest.mark.parametrize("fails", [(PYTHON, False), (TYPESCRIPT, True)], ids=["by an error", "by a result"])
async def test_it_is_said_what_helps_and_the_next_process_can_ask(
    autojump_clock: MockClock, fails: tuple[str, bool]
) -> None:
    async with running_server(server(fails), settings=SETTINGS, era=None) as rig:
        if fails[1]:
            await rig.submit("ask").wait()
        else:
            with pytest.raises(RemoteError, match=r"no back-channel.*once it is started again \(mcpvisor restart s\)"):
                await rig.call("ask")
        status = await rig.status()
        assert (status.state, status.era, rig.fake.starts) == (State.READY, "modern", 1)  # what it holds is not lost
        assert status.last_error is not None
        assert "2026-07-28 does not have; once it is started again" in status.last_error
        assert await rig.call(a=1) == {"a": 1}
        await rig.sleep()
        caller = Caller()
        reply: Reply[Any] = rig.submit("ask", exchange=caller)
        await caller.asked.wait()
        ((question, answer),) = caller.questions
        assert question.method == "elicitation/create"
        answer.answer(msgspec.Raw(b'{"action":"accept"}'))
        await reply.wait()
        status = await rig.status()
        assert (status.era, status.last_error) == ("legacy", None)


@pytest.mark.parametrize("only", ["modern", None])
async def test_an_era_of_the_configuration_stays_and_other_failures_say_nothing(
    autojump_clock: MockClock, only: Era | None
) -> None:
    settings = ServerSettings(terms=Terms(capabilities=OF_CLIENTS, only=only))
    fake = server((PYTHON if only else "no elicitation today", False))
    async with running_server(fake, settings=settings, era=None) as rig:
        with pytest.raises(RemoteError) as failed:
            await rig.call("ask")
        assert ('with "era": "legacy" in its entry' in failed.value.error.message) is (only is not None)
        assert ((await rig.status()).last_error is None) is (only is None)
        await rig.sleep()
        assert await rig.call(a=1) == {"a": 1}
        assert (await rig.status()).era == "modern"
