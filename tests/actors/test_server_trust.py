"""Servers that cannot be trusted any more: what they do to their pipes, and what becomes of the calls."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut, ProtocolViolation, ServerExited
from actors.lifecycle import State
from actors.server import ServerSettings
from actors.transport.memory import MemoryTransport
from tests.actors.rig import running_server
from tests.fakes.mcp_server import FakeServer


async def test_an_answer_that_is_none_fails_its_call_only(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        with pytest.raises(ProtocolViolation) as caught:
            await rig.call("odd")
        assert caught.value.outcome == "unknown"
        assert await rig.call(a=1) == {"a": 1}
        assert rig.fake.starts == 1


async def test_a_server_that_stops_reading_is_replaced(autojump_clock: MockClock) -> None:
    settings = ServerSettings(write_timeout_s=10)
    async with running_server(settings=settings) as rig:
        await rig.wake()
        rig.fake.deaf = True
        errors: list[str] = []

        async def call() -> None:
            try:
                await rig.call(text="x" * 100_000)
            except ServerExited as error:
                errors.append(error.message)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call)
                await wait_all_tasks_blocked()
        assert len(errors) == 2
        assert all("does not read its input" in error for error in errors)
        assert trio.current_time() < 20
        rig.fake.deaf = False
        assert await rig.call(a=1) == {"a": 1}
        assert rig.fake.starts == 2


async def test_a_server_that_closes_its_input_and_lives_on_is_replaced(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(ignores_eof=True)) as rig:
        await rig.wake()
        assert rig.fake.peer is not None
        rig.fake.peer.close_input()
        with pytest.raises(ServerExited, match="closed its input"):
            await rig.call()
        assert await rig.call(a=1) == {"a": 1}


async def test_a_server_that_closes_its_output_and_lives_on_is_replaced(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(ignores_eof=True)) as rig:
        await rig.wake()
        assert rig.fake.peer is not None
        rig.fake.peer.close_output()
        await rig.reach(State.RESPAWNING)
        assert "closed its output" in rig.actor.life.reason
        assert await rig.call(a=1) == {"a": 1}


async def test_a_line_over_the_limit_ends_the_process_and_its_calls(autojump_clock: MockClock) -> None:
    fake = FakeServer()
    transport = MemoryTransport(fake.serve, max_line_bytes=1000)
    async with running_server(fake, transport=transport) as rig, trio.open_nursery() as nursery:
        await rig.wake()
        nursery.start_soon(fake.write, b"x" * 2000)
        with pytest.raises(ServerExited, match="limit of 1000 bytes"):
            await rig.call("hang")
        assert await rig.call(a=1) == {"a": 1}


async def test_the_last_words_of_a_killed_server_are_kept_for_operators(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(ignores_eof=True)) as rig:
        await rig.wake()
        assert rig.fake.peer is not None
        rig.fake.peer.log("out of luck\n")
        rig.fake.peer.close_output()
        await rig.reach(State.RESPAWNING)
        assert "out of luck" in ((await rig.status()).last_error or "")


async def test_an_answer_written_just_before_the_exit_still_counts(autojump_clock: MockClock) -> None:
    class Parting(FakeServer):
        async def notify(self, method: str, times: int = 1) -> None:
            await super().notify(method, times)
            assert self.peer is not None
            self.peer.close_input()

    fake = Parting()
    async with running_server(fake) as rig, trio.open_nursery() as nursery:
        await rig.wake()
        results = []

        async def call() -> None:
            results.append(await rig.call(a=1))

        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        await fake.notify("notifications/tools/list_changed")
        await rig.reach(State.DORMANT)
        assert results == [{"a": 1}]


async def test_a_server_that_answers_nothing_any_more_is_replaced_after_a_call_timed_out(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=ServerSettings(unresponsive_s=5)) as rig:
        await rig.wake()
        rig.fake.silent_at = {"tools/call", "ping"}
        with pytest.raises(CallTimedOut):
            await rig.call(deadline_s=10)
        assert rig.fake.starts == 1
        await trio.sleep(4)
        assert rig.fake.count("ping") == 1
        rig.fake.silent_at = set()
        assert await rig.call(deadline_s=10, a=1) == {"a": 1}
        await trio.sleep(2)
        assert rig.fake.starts == 1  # it has spoken again in time

        rig.fake.silent_at = {"tools/call", "ping"}
        with pytest.raises(CallTimedOut):
            await rig.call(deadline_s=10)
        await trio.sleep(6)
        rig.fake.silent_at = set()
        assert await rig.call(a=2) == {"a": 2}
        assert rig.fake.starts == 2


async def test_a_slow_tool_of_a_server_that_answers_pings_costs_no_restart(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(unresponsive_s=5)) as rig:
        await rig.wake()
        for _ in range(3):
            with pytest.raises(CallTimedOut):
                await rig.call("hang", deadline_s=10)
            await trio.sleep(10)
        assert rig.fake.count("ping") == 3
        assert rig.fake.starts == 1
