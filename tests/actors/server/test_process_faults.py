"""Servers that do not come up, die between calls, or take too long: what calls get, and how often they are started."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from actors.catalogue.offer import Offer, Tool
from actors.errors import CallTimedOut, ServerExited, ServerGaveUp, ServerStarting
from actors.life.states import State
from actors.server import ServerSettings
from tests.actors.server.rig import content, running_server
from tests.fakes.mcp_server import Exits, FakeServer
from tests.fakes.memory import MemoryPeer

KNOWN = Offer(tools=(Tool(name="echo"),))


class Noted(FakeServer):
    """Notes when it is started. With a code, it says something and exits at once the first `times` times."""

    def __init__(self, code: int | None = None, times: int = 1_000_000, **how: Any) -> None:
        super().__init__(**how)
        self.begun: list[float] = []
        self._exit = (code, times)

    async def _live(self, peer: MemoryPeer) -> None:
        self.begun.append(trio.current_time())
        code, times = self._exit
        if code is not None and self.starts <= times:
            peer.log("there is nothing to do\n")
            raise Exits(code)
        await super()._live(peer)


@pytest.mark.case("P06", "P07")
@pytest.mark.parametrize("code", [0, 1])
async def test_a_server_that_exits_at_once_is_started_ever_more_rarely_then_given_up_and_tried_on_demand(
    autojump_clock: MockClock, code: int
) -> None:
    fake = Noted(code)
    async with running_server(fake, known=KNOWN) as rig:
        with pytest.raises(ServerGaveUp) as caught:
            await rig.call(deadline_s=300)
        assert caught.value.outcome == "not_sent"
        pauses = [later - before for before, later in zip(fake.begun, fake.begun[1:], strict=False)]
        assert pauses == pytest.approx([1, 2, 4, 8], abs=0.5)
        status = await rig.status()
        assert status.state is State.FAILED
        assert f"exit code {code}" in (status.last_error or "")
        assert "there is nothing to do" in (status.last_error or "")
        given_up = trio.current_time()
        while trio.current_time() < given_up + 3600:
            with pytest.raises(ServerGaveUp) as again:
                await rig.call()
            assert again.value.retry_after_s == pytest.approx(300 - (trio.current_time() - fake.begun[-1]), abs=1)
            await trio.sleep(10)
        assert len(fake.begun) - 5 <= 12


@pytest.mark.case("P08")
async def test_a_call_is_answered_by_the_first_process_that_comes_up(autojump_clock: MockClock) -> None:
    async with running_server(Noted(1, times=3)) as rig:
        assert await rig.call(deadline_s=30, a=1) == {"a": 1}
        status = await rig.status()
        assert (status.restarts, status.state, status.last_error) == (3, State.READY, None)


class Mortal(FakeServer):
    """Exits with this code once it has answered a call."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self._code = code

    async def _call(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        await super()._call(peer, message)
        raise Exits(self._code)


@pytest.mark.case("P10")
@pytest.mark.parametrize(
    ("code", "calls", "pause_s"),
    [
        pytest.param(0, 20, 1, id="it is seen to be gone"),
        pytest.param(0, 5, 0, id="at once"),
        pytest.param(1, 5, 0, id="it fails"),
    ],
)
async def test_each_call_after_a_death_has_a_process_of_its_own(
    autojump_clock: MockClock, code: int, calls: int, pause_s: int
) -> None:
    async with running_server(Mortal(code)) as rig:
        for number in range(calls):
            assert await rig.call(n=number) == {"n": number}
            await trio.sleep(pause_s)
        assert rig.fake.count("tools/call") == rig.fake.starts == calls


@pytest.mark.case("P12")
async def test_a_call_at_the_moment_of_falling_asleep_is_answered_by_one_process(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=1)) as rig:
        await rig.call()
        for number in range(63):
            await trio.sleep(0.99 + number % 21 / 1000)
            assert await rig.call(n=number) == {"n": number}
        assert rig.fake.count("tools/call") == 64
        assert 1 < rig.fake.starts <= 64
        assert rig.fake.starts - rig.fake.exits <= 1
        assert (await rig.status()).failures == 0


@pytest.mark.case("P16")
async def test_of_those_who_wait_for_a_slow_start_the_patient_one_is_answered_and_the_other_told_when_to_come_back(
    autojump_clock: MockClock,
) -> None:
    settings = ServerSettings(start_timeout_s=30)
    async with running_server(FakeServer(start_s=20), settings=settings) as rig:
        hurried, patient = rig.submit(deadline_s=5, n=1), rig.submit(deadline_s=40, n=2)
        await trio.sleep(6)
        error = hurried.failure
        assert isinstance(error, ServerStarting)
        assert (error.outcome, error.retryable) == ("not_sent", True)
        assert error.retry_after_s
        assert await content(patient) == {"n": 2}
        assert trio.current_time() < 22
        assert rig.fake.starts == 1


@pytest.mark.case("P17")
async def test_a_server_that_never_greets_is_ended_at_its_deadline_and_started_after_a_pause(
    autojump_clock: MockClock,
) -> None:
    fake = Noted(silent_at={"initialize"})
    async with running_server(fake, settings=ServerSettings(start_timeout_s=30)) as rig:
        with pytest.raises(ServerStarting) as caught:
            await rig.call(deadline_s=20)
        assert caught.value.outcome == "not_sent"
        assert fake.exits == 0
        await trio.sleep(100)
        pauses = [later - before for before, later in zip(fake.begun, fake.begun[1:], strict=False)]
        assert pauses[:2] == pytest.approx([31, 32], abs=1)


class Prompting(FakeServer):
    """Asks whether it may go on, without an end of line, and waits for the answer."""

    async def _live(self, peer: MemoryPeer) -> None:
        peer.log("Need to install the following packages: x@1\nOk to proceed? (y) ")
        await trio.sleep_forever()


@pytest.mark.case("N09")
async def test_what_a_server_asks_at_its_start_is_told_when_its_time_is_over(
    autojump_clock: MockClock,
) -> None:
    async with running_server(Prompting(), settings=ServerSettings(start_timeout_s=30)) as rig:
        with pytest.raises(ServerStarting):
            await rig.call(deadline_s=10)
        await trio.sleep(25)
        assert rig.fake.exits == 1
        assert "Ok to proceed? (y)" in ((await rig.status()).last_error or "")


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("fake", "why"),
    [
        pytest.param(lambda: FakeServer(revision="1999-01-01"), "1999-01-01", id="an unknown revision"),
        pytest.param(
            lambda: FakeServer(errors_at={"initialize": {"code": -32603, "message": "not today"}}),
            "not today",
            id="an error",
        ),
        pytest.param(
            lambda: FakeServer(probe="modern", supported=["2030-01-01"]), "refused", id="modern revisions to come"
        ),
    ],
)
async def test_a_refused_handshake_is_a_failure_with_its_reason_and_no_loop(
    autojump_clock: MockClock, fake: Any, why: str
) -> None:
    async with running_server(fake(), era=None) as rig:
        with pytest.raises(ServerGaveUp, match=why):
            await rig.call(deadline_s=300)
        await trio.sleep(200)
        assert (rig.actor.life.state, rig.fake.starts) == (State.FAILED, 1)


@pytest.mark.case("P20")
async def test_a_server_that_answers_no_ping_lives_as_long_as_it_answers_calls(autojump_clock: MockClock) -> None:
    fake = FakeServer(silent_at={"ping"})
    async with running_server(fake, settings=ServerSettings(idle_timeout_s=0)) as rig:
        await rig.call()
        await trio.sleep(7200)
        hanging = rig.submit("hang", 20)
        for number in range(30):
            assert await rig.call("sleep", s=1, n=number) == {"s": 1, "n": number}
        assert isinstance(hanging.failure, CallTimedOut)
        await trio.sleep(3600)
        assert (rig.fake.starts, rig.actor.life.state) == (1, State.READY)


@pytest.mark.case("P09")
async def test_a_call_during_which_its_server_dies_is_never_sent_again(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(breaker=False)) as rig:
        for number in range(4):
            await rig.wake()
            before = trio.current_time()
            with pytest.raises(ServerExited) as caught:
                await rig.call("crash", n=number)
            assert caught.value.outcome == "unknown"
            assert trio.current_time() - before < 1
        await rig.call(n="last")
        sent = [each["params"]["arguments"]["n"] for each in rig.fake.messages if each.get("method") == "tools/call"]
        assert sent == [0, 1, 2, 3, "last"]
