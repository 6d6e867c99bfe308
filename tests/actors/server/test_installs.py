"""Starts that install: a launcher such as npx gets the time it needs, and only while it works."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer, Tool
from actors.errors import ServerGaveUp, ServerStarting
from actors.life.states import State
from actors.messages import ServerChanged
from actors.server import ServerSettings
from actors.server.settings import DRAIN_S
from actors.transport.stdio.installer import Installer
from tests.actors.server.rig import running_server
from tests.actors.server.test_life import outcome
from tests.fakes.fleet import fleet
from tests.fakes.late_clock import MOST_S, lasting
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryPeer, MemoryTransport

KNOWN = Offer(tools=(Tool(name="echo"),))
NPX = ServerSettings(installer=Installer("npx", "server"))


async def test_a_first_start_that_installs_for_minutes_is_left_alone(autojump_clock: MockClock) -> None:
    async with (
        running_server(FakeServer(installs_s=400), settings=NPX, era=None) as rig,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(rig.wake)
        await trio.sleep(300)
        assert (rig.fake.starts, rig.actor.life.state) == (1, State.HANDSHAKING)
        assert (await rig.status()).activity == "installing"
        assert "installing" in [fact.status.activity for fact in rig.of(ServerChanged)]
        await rig.reach(State.READY)
        assert rig.fake.starts == 1
        assert rig.fake.count("server/discover") == 1
        status = await rig.status()
        assert (status.activity, status.restarts, status.last_error) == (None, 0, None)


async def test_a_call_that_waits_for_an_install_is_told_so(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(installs_s=400), settings=NPX, era=None) as rig:
        with pytest.raises(ServerStarting, match="it is being installed, which can take minutes") as caught:
            await rig.call(deadline_s=60)
        assert caught.value.retry_after_s == 30
        await trio.sleep(400)
        assert await rig.call(a=1) == {"a": 1}


async def test_an_install_ends_at_its_own_limit(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(installs_s=1e5), settings=NPX, era="legacy") as rig:
        await outcome(rig, lambda: rig.wake(urgent=False))
        assert trio.current_time() == pytest.approx(900 + NPX.install_grace_s, abs=2)
        assert rig.actor.life.state is State.RESPAWNING


async def test_a_long_install_is_told_of_every_minute(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(installs_s=150), settings=NPX, era=None) as rig:
        await rig.wake()
        told = [line for line in rig.story if line.startswith("is being installed")]
        assert len(told) in (2, 3)
        assert rig.story.index(told[0]) > rig.story.index("started")
        assert rig.story[-1].startswith("ready after")


async def test_a_launcher_that_is_quiet_may_wait_for_the_network(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(installs_s=10, start_s=70), settings=NPX, era=None) as rig:
        await rig.wake()
        assert (rig.fake.starts, (await rig.status()).restarts) == (1, 0)


async def test_a_launcher_that_is_quiet_for_too_long_hangs(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(installs_s=10, probe="silent"), settings=NPX, era=None) as rig:
        await rig.wake()
        assert trio.current_time() == pytest.approx(10 + 90 + 10, abs=10)  # a fresh process, which is asked otherwise
        assert rig.fake.starts == 2


async def test_an_ordinary_program_has_its_ordinary_deadlines(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(installs_s=400), era="legacy") as rig:
        await outcome(rig, lambda: rig.wake(urgent=False))
        assert trio.current_time() == pytest.approx(60, abs=1)
        assert "no progress while handshaking" in rig.actor.life.reason


async def test_a_launcher_that_was_up_before_has_more_time_only_while_it_works(autojump_clock: MockClock) -> None:
    fake = FakeServer(start_s=1e6)
    async with running_server(fake, settings=NPX, known=KNOWN) as rig:
        await outcome(rig, lambda: rig.wake(urgent=False))
        assert trio.current_time() == pytest.approx(60, abs=1)
        await rig.reach(State.FAILED)
        rig.restarts.forget()
        fake.start_s, fake.installs_s = 0.0, 200.0  # its cache was cleared
        before = trio.current_time()
        await rig.wake()
        assert 200 <= trio.current_time() - before <= 200 * (0.5 + MOST_S) / 0.5  # its work is done in steps


async def test_that_a_server_was_never_up_is_not_forgotten_by_a_silent_probe(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(start_s=1e6), era=None) as rig:
        await outcome(rig, lambda: rig.wake(urgent=False))
        await rig.reach(State.FAILED)
        assert rig.eras == []


async def test_an_install_that_must_end_is_asked_to_and_has_time_for_it(autojump_clock: MockClock) -> None:
    settings = ServerSettings(installer=NPX.installer, install_grace_s=20)
    ended: list[float] = []

    class Orderly(FakeServer):
        """It tidies up for 15 s once its input is closed."""

        async def serve(self, peer: MemoryPeer) -> int:
            self.starts += 1
            try:
                while await peer.read():
                    pass
                await trio.sleep(15)
                ended.append(trio.current_time())
            finally:
                self.exits += 1
            return 0

    async with running_server(Orderly(), settings=settings, era=None) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(outcome, rig, rig.wake)
        await trio.sleep(5)
        await rig.sleep()
        assert ended == [lasting(20, wakes=2)]


async def test_the_daemons_end_waits_less_for_an_install(autojump_clock: MockClock) -> None:
    settings = ServerSettings(installer=NPX.installer, install_grace_s=100)
    fake = FakeServer(installs_s=1e5, ignores_eof=True)
    async with running_server(fake, settings=settings, era=None) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(outcome, rig, rig.wake)
        await trio.sleep(5)
        await rig.stop()
        assert trio.current_time() == pytest.approx(5 + DRAIN_S, abs=1)


async def test_few_servers_install_at_once_and_hold_up_nobody_else(autojump_clock: MockClock) -> None:
    fakes = {f"npx{number}": FakeServer(installs_s=60) for number in range(12)}
    commands = {name: f"npx -y {name}" for name in fakes}
    async with fleet({**fakes, "plain": FakeServer()}, commands=commands) as running:
        await trio.sleep(30)
        assert running.ready_at["plain"] < 5
        assert sum(fake.starts for fake in fakes.values()) == 3  # the fourth place is kept for one that is called
        activities = [(await running.status(name)).activity for name in fakes]
        assert (activities.count("installing"), activities.count("waiting for its turn")) == (3, 9)
        await trio.sleep(300)
        assert len(running.ready_at) == 13
        assert all(fake.starts == 1 for fake in fakes.values())


async def test_a_call_that_waits_behind_other_installs_is_told_so(autojump_clock: MockClock) -> None:
    fakes = {name: FakeServer(installs_s=400) for name in ("a", "b")}
    async with fleet(fakes, commands=dict.fromkeys(fakes, "npx same"), later={"b"}) as running:
        await wait_all_tasks_blocked()
        with pytest.raises(ServerStarting, match="other servers are started or installed before it"):
            await running.call("b")


async def test_launchers_that_hang_free_their_place_for_other_installs(autojump_clock: MockClock) -> None:
    fakes = {f"mute{number}": FakeServer(start_s=1e9) for number in range(12)} | {"good": FakeServer()}
    async with fleet(fakes, commands={name: f"npx -y {name}" for name in fakes}) as running:
        await trio.sleep(30)
        assert running.ready_at["good"] < 30


async def test_the_status_of_a_server_whose_launcher_fails_silently_says_what_to_try(
    autojump_clock: MockClock,
) -> None:
    async def fail(peer: MemoryPeer) -> int:
        return 1

    async with running_server(transport=MemoryTransport(fail), settings=NPX) as rig:
        with pytest.raises(ServerGaveUp):
            await rig.wake()
        error = (await rig.status()).last_error or ""
        assert error.startswith("exit code 1; npx did not say why")
        assert error.endswith("to see why: npx --foreground-scripts -y server")
