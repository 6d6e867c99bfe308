"""The life of a server actor: crash loops, probes of the era, stop in every state, long times."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer, Tool
from actors.errors import (
    ServerGaveUp,
    ServerStarting,
    ShuttingDown,
    SpawnFailed,
    Starved,
    UnknownServer,
)
from actors.kit import Starts
from actors.life.lifecycle import Spawned, SpawnRefused, Violated
from actors.life.policy import RestartPolicy
from actors.life.states import State, Timer
from actors.messages import Departure, StopServer
from actors.protocol.agreement.versions import Era
from actors.server import ServerSettings
from actors.server.inbox import ProcessExit, Received, TimerFired
from actors.transport.base import Connection, Exit
from tests.actors.server.rig import Rig, running_server
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryPeer, MemoryTransport

KNOWN = Offer(tools=(Tool(name="echo"),))


class Unstartable:
    """A transport that starts nothing the first `failures` times, and then `fake`."""

    kind = "stdio"

    def __init__(
        self,
        *,
        permanent: bool = False,
        scarce: bool = False,
        away: bool = False,
        after_s: float = 0.0,
        failures: int = 1000,
        fake: FakeServer | None = None,
    ) -> None:
        self.tries = 0
        self._failures = failures
        self._real = MemoryTransport((fake or FakeServer()).serve)
        self._permanent = permanent
        self._scarce = scarce
        self._away = away
        self._after_s = after_s

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        self.tries += 1
        await trio.sleep(self._after_s)
        if self.tries <= self._failures:
            text = "there is no such program"
            raise SpawnFailed(text, permanent=self._permanent, scarce=self._scarce, away=self._away)
        async with self._real.connect() as connection:
            yield connection


async def outcome(rig: Rig, action: Callable[[], Any]) -> Exception | None:
    try:
        await action()
    except (ServerGaveUp, ServerStarting, ShuttingDown, Starved, UnknownServer) as error:
        return error
    return None


# Crash loops ----------------------------------------------------------------------------------------------------------


async def test_the_status_of_a_server_that_refuses_the_handshake_tells_what_it_said_on_stderr(
    autojump_clock: MockClock,
) -> None:
    fake = FakeServer(errors_at={"initialize": {"code": -32602, "message": "not with you"}})

    async def serve(peer: MemoryPeer) -> int:
        peer.log("error: the token has expired\n")
        return await fake.serve(peer)

    async with running_server(fake, transport=MemoryTransport(serve)) as rig:
        await outcome(rig, rig.wake)
        await rig.reach(State.FAILED)
        error = (await rig.status()).last_error or ""
        assert "not with you" in error
        assert error.endswith("last words: error: the token has expired")


@pytest.mark.case("P07")
@pytest.mark.parametrize("known", [KNOWN, None], ids=["known", "unknown"])
@pytest.mark.parametrize("era", ["legacy", "modern", None])
async def test_a_server_that_was_given_up_costs_one_start_each_time_it_is_tried(
    autojump_clock: MockClock, era: Era | None, known: Offer | None
) -> None:
    async with running_server(FakeServer(probe="exit", exits_at="initialize"), era=era, known=known) as rig:
        await outcome(rig, rig.wake)
        assert rig.fake.starts == 5
        for _ in range(1200 // 6):
            await outcome(rig, rig.call)
            await trio.sleep(6)
        assert rig.fake.starts <= 5 + 4


async def test_a_server_that_never_spoke_and_was_given_up_is_tried_in_both_eras_in_turn(
    autojump_clock: MockClock,
) -> None:
    async with running_server(FakeServer(probe="exit", exits_at="initialize"), era=None) as rig:
        await outcome(rig, rig.wake)
        rig.fake.exits_at = None  # what remains is that it ends at the probe of the modern era
        before = rig.fake.starts
        for _ in range(700):
            await outcome(rig, rig.call)
            await trio.sleep(1)
        assert rig.actor.life.state is State.READY
        assert [said[0] for said in rig.fake.asked[before:]] == ["server/discover", "initialize"]


@pytest.mark.parametrize("policy", [RestartPolicy(max_restarts=0), RestartPolicy(backoff_initial_s=60)], ids=repr)
async def test_an_operator_wakes_a_server_that_was_given_up_or_waits_at_once(
    autojump_clock: MockClock, policy: RestartPolicy
) -> None:
    async with running_server(FakeServer(exits_at="initialize"), policy=policy) as rig:
        with pytest.raises((ServerStarting, ServerGaveUp), match="exit code 1"):
            await rig.wake()
        rig.fake.exits_at = None
        before = trio.current_time()
        await rig.wake(operator=True)
        assert trio.current_time() - before < 1
        assert rig.actor.life.state is State.READY


@pytest.mark.case("N01")
async def test_a_permanent_failure_to_start_costs_no_restarts(autojump_clock: MockClock) -> None:
    transport = Unstartable(permanent=True)
    async with running_server(transport=transport, known=KNOWN) as rig:
        for tries in (1, 2):
            for _ in range(2):
                with pytest.raises(ServerGaveUp, match="no such program"):
                    await rig.call()
            assert transport.tries == tries
            await trio.sleep(1000)
        assert (await rig.status()).restarts == 0


async def test_a_call_is_answered_once_a_start_succeeds(autojump_clock: MockClock) -> None:
    transport = Unstartable(permanent=False, failures=2)
    async with running_server(transport=transport) as rig:
        assert await rig.call(a=1) == {"a": 1}
        assert transport.tries == 3


async def test_a_start_that_hangs_is_given_up_and_says_so(autojump_clock: MockClock) -> None:
    transport = Unstartable(permanent=False, after_s=1e6)
    settings = ServerSettings(start_timeout_s=10)
    async with running_server(transport=transport, settings=settings, policy=RestartPolicy(max_restarts=1)) as rig:
        assert isinstance(await outcome(rig, lambda: rig.call(deadline_s=3600)), ServerGaveUp)
        assert transport.tries == 2
        assert (await rig.status()).last_error == "it could not be started within 10 s"


async def test_a_patient_wake_settles_at_the_first_failure_and_the_server_is_tried_again(
    autojump_clock: MockClock,
) -> None:
    async with running_server(FakeServer(exits_at="initialize")) as rig:
        error = await outcome(rig, lambda: rig.wake(urgent=False))
        assert isinstance(error, ServerStarting)
        assert error.retry_after_s == pytest.approx(1, abs=0.1)
        assert trio.current_time() < 1
        rig.fake.exits_at = None
        await rig.reach(State.READY)
        assert rig.listed == [["echo"]]


async def test_a_server_that_exits_normally_with_nothing_to_do_is_dormant_and_not_restarted(
    autojump_clock: MockClock,
) -> None:
    async with running_server() as rig:
        await rig.wake()
        assert rig.fake.peer is not None
        rig.fake.peer.close_input()
        await rig.reach(State.DORMANT)
        assert (await rig.status()).restarts == 0
        assert await rig.call(a=1) == {"a": 1}


async def test_a_permanent_server_is_restarted_after_a_normal_exit(autojump_clock: MockClock) -> None:
    async with running_server(policy=RestartPolicy(restart="permanent")) as rig:
        await rig.wake()
        assert rig.fake.peer is not None
        rig.fake.peer.close_input()
        await rig.reach(State.RESPAWNING)
        await rig.reach(State.READY)
        assert rig.fake.starts == 2


# Probing the era ------------------------------------------------------------------------------------------------------


async def test_a_server_that_refuses_the_probe_gets_initialize_on_the_same_process(autojump_clock: MockClock) -> None:
    async with running_server(era=None) as rig:
        await rig.call()
        assert rig.fake.asked[0][:3] == ["server/discover", "initialize", "notifications/initialized"]
        assert rig.eras == ["legacy"]


@pytest.mark.case("P18")
@pytest.mark.parametrize("probe", ["silent", "exit"])
async def test_a_probe_without_answer_means_a_fresh_process_with_initialize_once(
    autojump_clock: MockClock, probe: Any
) -> None:
    async with running_server(FakeServer(probe=probe), era=None) as rig:
        await rig.call()
        assert rig.fake.asked[0] == ["server/discover"]
        assert rig.fake.asked[1][0] == "initialize"
        assert rig.eras == ["legacy"]
        assert (await rig.status()).restarts == 0
        assert State.RESPAWNING not in rig.states
        await rig.sleep()
        await rig.call()
        assert rig.fake.count("server/discover") == 1
        assert rig.fake.starts == 3
        assert (await rig.status()).last_error is None


async def test_a_modern_server_that_was_silent_once_is_not_taken_for_legacy_for_ever(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(probe="silent"), era="modern") as rig, trio.open_nursery() as nursery:
        nursery.start_soon(rig.call)
        await rig.reach(State.HANDSHAKING)
        rig.fake.probe = "modern"
        await rig.reach(State.READY)
        await rig.sleep()
        await rig.call()
        assert [asked[0] for asked in rig.fake.asked] == ["server/discover", "initialize", "server/discover"]
        assert rig.eras == []


async def test_a_server_that_closes_its_output_under_the_probe_gets_a_fresh_process(autojump_clock: MockClock) -> None:
    fake = FakeServer(probe="silent", ignores_eof=True)
    async with running_server(fake, era=None) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(rig.wake)
        await rig.reach(State.HANDSHAKING)
        assert fake.peer is not None
        fake.peer.close_output()
        await rig.reach(State.READY)
        assert (fake.starts, (await rig.status()).restarts) == (2, 0)


async def test_a_modern_server_that_was_taken_for_legacy_is_found_out(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(probe="modern"), era="legacy") as rig:
        await rig.call()
        assert rig.fake.asked[0][:2] == ["initialize", "server/discover"]
        assert rig.eras == ["modern"]
        assert rig.fake.starts == 1


@pytest.mark.case("P19")
async def test_no_mutual_version_is_permanent(autojump_clock: MockClock) -> None:
    refusal = {"code": -32022, "message": "no", "data": {"supported": ["2099-01-01"]}}
    fake = FakeServer(errors_at={"server/discover": refusal})
    async with running_server(fake, era=None) as rig:
        with pytest.raises(ServerGaveUp, match="2099-01-01"):
            await rig.call()
        await trio.sleep(100)
        assert fake.starts == 1
        assert fake.count("initialize") == 0


async def test_a_server_that_wavers_between_the_eras_uses_up_its_budget(autojump_clock: MockClock) -> None:
    refusal = {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}}
    fake = FakeServer(errors_at={"initialize": refusal}, exits_at="server/discover")
    async with running_server(fake, era="legacy") as rig:
        assert isinstance(await outcome(rig, lambda: rig.call(deadline_s=3600)), ServerGaveUp)
        assert fake.starts == 5


async def test_initialize_has_its_own_deadline_after_a_slow_probe(autojump_clock: MockClock) -> None:
    fake = FakeServer(start_s=19, silent_at={"initialize"})
    settings = ServerSettings(probe_timeout_s=20, start_timeout_s=30)
    async with running_server(fake, era=None, settings=settings) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(outcome, rig, rig.wake)
        await rig.reach(State.RESPAWNING)
        assert trio.current_time() == pytest.approx(49, abs=0.5)
        assert "no progress while handshaking" in (rig.actor.life.reason)
        rig.fake.silent_at.clear()


# Stopping and sleeping ------------------------------------------------------------------------------------------------


FAKES: dict[State, Callable[[], FakeServer]] = {
    State.DORMANT: FakeServer,
    State.SPAWNING: FakeServer,
    State.HANDSHAKING: lambda: FakeServer(silent_at={"initialize"}),
    State.DISCOVERING: lambda: FakeServer(silent_at={"tools/list"}),
    State.READY: FakeServer,
    State.RESPAWNING: lambda: FakeServer(exits_at="initialize"),
    State.FAILED: lambda: FakeServer(exits_at="initialize"),
    State.DRAINING: lambda: FakeServer(ignores_eof=True),
}


@asynccontextmanager
async def server_in(state: State) -> AsyncIterator[tuple[Rig, list[Exception | None]]]:
    """A server in that state, somebody waiting for it to wake, and one call."""
    starts = Starts(0) if state is State.SPAWNING else None
    settings = ServerSettings(idle_timeout_s=0)
    outcomes: list[Exception | None] = []
    async with running_server(FAKES[state](), settings=settings, starts=starts) as rig, trio.open_nursery() as nursery:

        async def note(action: Callable[[], Any]) -> None:
            outcomes.append(await outcome(rig, action))

        if state is not State.DORMANT:
            nursery.start_soon(note, rig.wake)
            nursery.start_soon(note, lambda: rig.call(deadline_s=7200))
        if state is State.DRAINING:
            await rig.reach(State.READY)
            nursery.start_soon(note, rig.sleep)
        await rig.reach(state)
        yield rig, outcomes


@pytest.mark.case("P24", "D09")
@pytest.mark.parametrize("how", ["sleep", "stop", "leave", "leave to another"])
@pytest.mark.parametrize("state", FAKES)
async def test_whatever_ends_it_in_whatever_state_no_process_is_left_and_whoever_waits_is_settled(
    autojump_clock: MockClock, state: State, how: str
) -> None:
    async with server_in(state) as (rig, outcomes), running_server() as new:
        before = trio.current_time()
        match how:
            case "sleep":
                await rig.sleep()
            case "stop":
                await rig.stop()
            case "leave":
                await rig.leave(None, drain_s=60).wait()
            case _:
                await rig.leave(new, drain_s=60).wait()
        took_s = trio.current_time() - before
        await trio.sleep(60 if how.startswith("leave") else 0)
        await wait_all_tasks_blocked()
        assert rig.actor.life.state in ((State.DORMANT, State.FAILED) if how == "sleep" else (State.STOPPED,))
        assert took_s < (61 if how.startswith("leave") else 11)
        assert rig.fake.starts == rig.fake.exits
        assert len(outcomes) == {State.DORMANT: 0, State.DRAINING: 3}.get(state, 2)
        if how == "stop":
            assert rig.states[-1] is State.STOPPED


async def test_messages_and_timers_of_an_older_incarnation_change_nothing(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.call()
        await rig.sleep()
        await rig.call()
        before = rig.actor.life
        for message in (
            Spawned(1),
            SpawnRefused(1, "late", permanent=True),
            Received(1, [b'{"jsonrpc":"2.0","id":1,"result":{}}']),
            Violated(1, "late"),
            ProcessExit(1, Exit(code=9)),
            TimerFired(Timer.HANDSHAKE, 1),
            TimerFired(Timer.IDLE, 1),
        ):
            await rig.actor.address.tell(message)
        await wait_all_tasks_blocked()
        assert rig.actor.life == before
        assert await rig.call(a=1) == {"a": 1}


async def test_a_server_that_does_not_read_while_it_starts_is_replaced(autojump_clock: MockClock) -> None:
    class Deaf(FakeServer):
        async def _live(self, peer: Any) -> None:
            if self.starts > 1:
                await super()._live(peer)
            await trio.sleep_forever()

    fake = Deaf()
    async with running_server(fake) as rig:
        rig_call = await outcome(rig, lambda: rig.call(deadline_s=300, text="x" * 200_000))
        assert rig_call is None
        assert fake.starts == 2


# Status ---------------------------------------------------------------------------------------------------------------


async def test_what_a_server_wrote_to_stderr_is_in_its_status_only_for_whoever_asks_for_that(
    autojump_clock: MockClock,
) -> None:
    async with running_server() as rig:
        await rig.wake()
        assert rig.fake.peer is not None
        rig.fake.peer.log("".join(f"line {number}\n" for number in range(30)))
        assert (await rig.status()).stderr == ""
        found = await rig.status(stderr=True)
        assert (found.state, found.stderr.splitlines()) == (State.READY, [f"line {number}" for number in range(10, 30)])


@pytest.mark.parametrize("ends", ["stopped", "departed"])
async def test_nothing_of_a_server_that_has_ended_has_to_be_searched_for(autojump_clock: MockClock, ends: str) -> None:
    gc.collect()
    gc.disable()
    try:
        async with running_server() as rig:
            assert await rig.call("echo", n=1) == {"n": 1}
            parts = [rig.actor._server, rig.actor._calls, rig.actor._timers, rig.actor._server.processes]
            left = [weakref.ref(part) for part in parts]
            del parts
            departure = Departure(reason="it is not needed any more", drain_s=1.0) if ends == "departed" else None
            await rig.actor.address.ask(StopServer(departure))
            await wait_all_tasks_blocked()
            assert [reference() for reference in left] == [None] * len(left)
    finally:
        gc.enable()
