"""Servers that cannot be trusted any more: what they do to their pipes, and what becomes of the calls."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut, CallTooLarge, ServerExited, SupervisorError, TooManyCalls
from actors.life.states import State
from actors.messages import CallServer
from actors.protocol.wire.weight import LARGE_BYTES
from actors.server import ServerSettings
from tests.actors.server.rig import content, running_server
from tests.fakes.lines import Lines, line
from tests.fakes.mcp_server import Exits, FakeServer
from tests.fakes.memory import MemoryPeer


class Slow(FakeServer):
    """Reads what a pipe holds, then pauses."""

    def __init__(self, pause_s: float) -> None:
        super().__init__()
        self._pause_s = pause_s

    async def _read(self, peer: MemoryPeer, nursery: trio.Nursery) -> None:
        lines = Lines(peer)
        while (arrived := await lines.read()) is not None:
            await trio.sleep(self._pause_s)
            for each in arrived:
                await self._on_message(peer, json.loads(each), nursery)


@pytest.mark.case("S34")
async def test_a_server_that_stops_reading_is_replaced_and_the_next_one_gets_what_was_not_written(
    autojump_clock: MockClock,
) -> None:
    async with running_server() as rig:  # 10 s without a byte are too long
        await rig.wake()
        rig.fake.deaf = True
        calls = []
        for _ in ("read", "in the pipe", "not written"):
            calls.append(rig.submit("echo", text="x" * 100_000))
            await wait_all_tasks_blocked()
        for call in calls[:2]:
            with pytest.raises(ServerExited, match="does not read its input") as caught:
                await call.wait()
            assert caught.value.outcome == "unknown"
        rig.fake.deaf = False
        await calls[2].wait()
        assert trio.current_time() < 20
        assert rig.fake.starts == 2


async def test_a_server_that_reads_slowly_but_steadily_is_not_taken_for_deaf(autojump_clock: MockClock) -> None:
    fake = Slow(pause_s=9.0)
    async with running_server(fake) as rig:
        await rig.wake()
        assert await rig.call(text="x" * 1_000_000, deadline_s=1000) == {"text": "x" * 1_000_000}
        assert trio.current_time() > 90
        assert fake.starts == 1


async def test_calls_that_do_not_fit_are_refused_and_the_others_are_answered(autojump_clock: MockClock) -> None:
    fake = Slow(pause_s=0.01)
    async with running_server(fake, settings=ServerSettings(max_queued_bytes=6_400_000)) as rig:
        await rig.wake()
        arguments = b'"name":"echo","arguments":{"text":"' + b"x" * 370_000 + b'"}'
        message = CallServer(server="s", method="tools/call", members=arguments, deadline_s=600.0)
        calls = [rig.actor.address.request(message) for _ in range(30)]
        for call in calls:
            with suppress(SupervisorError):
                await call.wait()
        refused = [call.failure for call in calls if call.failure is not None]
        # Two are written or about to be, 17 wait within that; all that is known of the rest is that nothing was sent.
        assert len(refused) == 11
        for error in refused:
            assert isinstance(error, TooManyCalls)
            assert (error.outcome, error.retryable) == ("not_sent", True)
        assert (fake.starts, fake.exits) == (1, 0)
        assert await rig.call(a=1) == {"a": 1}


async def test_a_call_that_would_never_fit_is_too_large(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(max_queued_bytes=1000)) as rig:
        with pytest.raises(CallTooLarge, match="max_queued_bytes") as caught:
            await rig.call(text="x" * 1000)
        assert caught.value.outcome == "not_sent"
        assert rig.fake.starts == 0


async def test_small_calls_pass_a_full_pipe_in_their_turn(autojump_clock: MockClock) -> None:
    fake = Slow(pause_s=0.1)
    async with running_server(fake) as rig:
        await rig.wake()
        calls = []
        for number, size in enumerate((2_000_000, 10, 600_000, 600_000, 10)):
            calls.append(rig.submit(n=number, text="x" * size))
            await wait_all_tasks_blocked()
        assert (await rig.status()).waiting == 4
        assert [(await content(call))["n"] for call in calls] == [0, 1, 2, 3, 4]
        sent = [message["params"]["arguments"] for message in fake.messages if message["method"] == "tools/call"]
        assert [arguments["n"] for arguments in sent] == [0, 1, 2, 3, 4]


@pytest.mark.case("S33")
async def test_a_server_that_closes_its_input_fails_calls_within_a_second_and_is_replaced(
    autojump_clock: MockClock,
) -> None:
    async with running_server(FakeServer(ignores_eof=True)) as rig:
        await rig.wake()
        before = trio.current_time()
        hanging = rig.submit("hang")
        await wait_all_tasks_blocked()
        assert rig.fake.peer is not None
        rig.fake.peer.close_input()
        call = rig.submit(a=1)
        with pytest.raises(ServerExited, match="closed its input") as caught:
            await hanging.wait()
        assert caught.value.outcome == "unknown"
        assert trio.current_time() - before < 1
        assert await content(call) == {"a": 1}  # it was not written, so the next process gets it
        assert rig.fake.starts == 2


@pytest.mark.case("S32")
async def test_calls_of_a_server_that_closes_its_output_and_lives_on_fail_at_once(
    autojump_clock: MockClock,
) -> None:
    async with running_server(FakeServer(ignores_eof=True)) as rig:
        await rig.wake()
        calls = [rig.submit("hang") for _ in range(10)]
        await wait_all_tasks_blocked()
        assert rig.fake.peer is not None
        rig.fake.peer.close_output()
        for call in calls:
            with pytest.raises(ServerExited, match="closed its output") as caught:
                await call.wait()
            assert caught.value.outcome == "unknown"
        assert rig.actor.life.state is State.READY  # its exit is waited for beside that
        assert await rig.call(a=1) == {"a": 1}
        assert rig.fake.starts == 2


class Parting(FakeServer):
    """Says much before it answers a call, and exits at once: most of it is still to be read then."""

    async def _call(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        await peer.write(line(method="notifications/message", params={"data": "x" * LARGE_BYTES}) * 20)
        await super()._call(peer, message)
        raise Exits(0)


async def test_an_answer_written_just_before_the_exit_still_counts(autojump_clock: MockClock) -> None:
    async with running_server(Parting()) as rig:
        await rig.wake()
        assert await rig.call(a=1) == {"a": 1}
        await rig.reach(State.DORMANT)
        assert (rig.fake.starts, rig.fake.exits) == (1, 1)


async def test_a_server_that_spoke_while_a_call_was_late_is_not_asked_whether_it_lives(
    autojump_clock: MockClock,
) -> None:
    async with running_server() as rig:
        await rig.wake()
        call = rig.submit("hang", 10)
        await trio.sleep(5)
        assert await rig.call(a=1) == {"a": 1}
        await trio.sleep(6)
        assert isinstance(call.failure, CallTimedOut)
        assert rig.fake.count("ping") == 0


async def test_one_silent_call_among_several_that_are_late_is_enough_to_ask(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        calls = [rig.submit("hang", 10)]
        await trio.sleep(5)
        assert await rig.call(a=1) == {"a": 1}
        calls.append(rig.submit("hang", 5))  # late at the same moment, and nothing came since
        await trio.sleep(6)
        assert [type(call.failure) for call in calls] == [CallTimedOut] * 2
        assert rig.fake.count("ping") == 1


async def test_what_a_server_said_before_it_was_sent_a_call_is_no_sign_of_life(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(start_s=3, silent_at={"tools/call"})) as rig:
        with pytest.raises(CallTimedOut):
            await rig.call(deadline_s=10)
        await wait_all_tasks_blocked()
        assert rig.fake.count("ping") == 1
