"""Fair starts: servers that hang hold up nobody, calls come first, and a storm of starts is spread."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer, Tool
from actors.kit import Gate, Starts, Turn
from supervisor.servers.reach import discover
from tests.fakes.fleet import fleet
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryPeer

KNOWN = Offer(tools=(Tool(name="echo"),))


def mute() -> FakeServer:
    """A server that never says a word."""
    return FakeServer(start_s=1e9)


@pytest.mark.case("D25")
@pytest.mark.parametrize("number", [4, 20])
async def test_a_healthy_server_behind_mute_ones_is_ready_within_seconds_at_the_first_start(
    autojump_clock: MockClock, number: int
) -> None:
    fakes = {f"mute{one}": mute() for one in range(number)} | {"healthy": FakeServer()}
    async with fleet(fakes, later={"healthy"}) as running, trio.open_nursery() as nursery:
        await wait_all_tasks_blocked()
        nursery.start_soon(discover, running.servers.directory, ["healthy"])
        await trio.sleep(10)
        assert running.ready_at["healthy"] < 8


@pytest.mark.case("N08")
@pytest.mark.parametrize("number", [4, 20])
async def test_a_call_to_a_sleeping_server_is_answered_at_once_while_mute_ones_start(
    autojump_clock: MockClock, number: int
) -> None:
    fakes = {f"mute{one}": mute() for one in range(number)} | {"asleep": FakeServer()}
    async with fleet(fakes, known={"asleep": KNOWN}) as running:
        await wait_all_tasks_blocked()
        for _ in range(3):
            before = trio.current_time()
            assert await running.call("asleep", a=1) == {"a": 1}
            assert trio.current_time() - before < 0.5
            await trio.sleep(200)


async def test_a_call_passes_mute_servers_that_others_call(autojump_clock: MockClock) -> None:
    fakes = {f"mute{one}": mute() for one in range(8)} | {"asleep": FakeServer()}
    async with fleet(fakes, known=dict.fromkeys(fakes, KNOWN)) as running, trio.open_nursery() as nursery:
        for name in fakes:
            if name != "asleep":
                nursery.start_soon(running.call, name)
        await wait_all_tasks_blocked()
        before = trio.current_time()
        await running.call("asleep")
        assert trio.current_time() - before < 4
        nursery.cancel_scope.cancel()


@pytest.mark.case("N08")
async def test_a_storm_of_a_hundred_servers_is_spread(autojump_clock: MockClock) -> None:
    begun: list[float] = []

    class Noted(FakeServer):
        async def serve(self, peer: MemoryPeer) -> int:
            begun.append(trio.current_time())
            return await super().serve(peer)

    async with fleet({f"s{number}": Noted(start_s=0.3) for number in range(100)}) as running:
        await trio.sleep(15)
        assert len(running.ready_at) == 100
    for moment in begun:
        assert sum(moment - 0.29 < other <= moment for other in begun) <= 4
        assert sum(moment - 1 < other <= moment for other in begun) <= 14


class Ordered(FakeServer):
    """Notes when it is started, in seconds of the trio clock."""

    def __init__(self, name: str, begun: dict[str, float], **how: Any) -> None:
        super().__init__(**how)
        self._name, self._begun = name, begun

    async def serve(self, peer: MemoryPeer) -> int:
        self._begun[self._name] = trio.current_time()
        return await super().serve(peer)


@pytest.mark.parametrize("again", range(2))  # without an order of ours it is that of trio, which is right by chance
async def test_first_starts_are_in_the_order_of_the_file(autojump_clock: MockClock, again: int) -> None:
    begun: dict[str, float] = {}
    fakes = {f"s{number}": Ordered(f"s{number}", begun, start_s=0.5) for number in range(16)}
    async with fleet(fakes):
        await trio.sleep(60)
    moments = [begun[name] for name in fakes]
    assert moments == sorted(moments)
    assert moments[0] < moments[-1]


async def test_a_server_that_gets_a_fresh_process_for_its_era_keeps_its_place_in_the_line(
    autojump_clock: MockClock,
) -> None:
    begun: dict[str, float] = {}
    fakes = {f"s{number}": Ordered(f"s{number}", begun, start_s=0.2) for number in range(12)}
    fakes["s0"].exits_at = "server/discover"
    async with fleet(fakes, starts=Starts(2)) as running:
        await trio.sleep(60)
        assert fakes["s0"].starts == 2
        assert running.ready_at["s0"] < running.ready_at["s3"]


async def test_what_somebody_calls_goes_before_installs_that_nobody_waits_for(autojump_clock: MockClock) -> None:
    begun: dict[str, float] = {}
    fakes = {f"s{number}": Ordered(f"s{number}", begun, installs_s=100) for number in range(12)}
    async with fleet(fakes, commands={name: f"npx -y {name}" for name in fakes}) as running:
        await trio.sleep(10)
        with trio.move_on_after(5):
            await running.call("s11")
        assert begun.keys() == {"s0", "s1", "s2", "s11"}


@pytest.mark.parametrize(("commands", "later_s"), [("npx -y {}", 900), ("server {}", 200)])
async def test_a_server_that_was_just_added_goes_before_the_retries_of_broken_ones(
    autojump_clock: MockClock, commands: str, later_s: float
) -> None:
    fakes = {f"broken{number}": FakeServer(installs_s=40, exits_at="initialize") for number in range(20)}
    fakes["added"] = FakeServer()
    lines = {name: commands.format(name) for name in fakes}
    async with fleet(fakes, commands=lines, later={"added"}, max_restarts=1000) as running:
        await trio.sleep(later_s)
        begun = trio.current_time()
        await discover(running.servers.directory, ["added"])
        assert running.ready_at["added"] - begun < 5
        assert max(fake.starts for fake in fakes.values()) > 2


async def test_the_time_until_a_server_is_ready_does_not_count_the_wait_for_its_turn(autojump_clock: MockClock) -> None:
    fakes = {f"s{number}": FakeServer(installs_s=100) for number in range(4)}
    async with fleet(fakes, commands={name: f"npx -y {name}" for name in fakes}) as running:
        await trio.sleep(1000)
        journal = running.servers.journals.find("s3")
        assert journal is not None
        told = [line.text for line in journal.render(journal.last(100))]
        ready_at = running.ready_at["s3"]
    (started,) = [text for text in told if text.startswith("started")]
    (ready,) = [text for text in told if text.startswith("ready after")]
    waited_s, took_s = float(started.split()[2]), float(ready.split()[2])
    assert waited_s > 90
    assert waited_s + took_s == pytest.approx(ready_at, abs=1)


async def test_first_attempts_pass_those_again_and_find_a_place(autojump_clock: MockClock) -> None:
    gate = Gate(4, kept=1)
    entered: list[str] = []

    async def hold(name: str, turn: Turn) -> None:
        async with gate.place(turn):
            entered.append(name)
            await trio.sleep(20 + len(entered))  # not together, as tasks run in any order

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(hold, f"again{number}", Turn(again=True))
            await wait_all_tasks_blocked()
        assert entered == ["again0", "again1"]
        for name, turn in {"first": Turn(), "second": Turn(), "urgent": Turn(urgent=True, again=True)}.items():
            nursery.start_soon(hold, name, turn)
            await wait_all_tasks_blocked()
        assert entered == ["again0", "again1", "first", "urgent"]
    assert entered[4:] == ["second", "again2", "again3"]
    for places in (1, 2):
        async with Gate(places, kept=1).place(Turn(again=True)):
            pass


async def test_one_place_is_kept_for_urgent_ones(autojump_clock: MockClock) -> None:
    gate = Gate(3, kept=1)
    entered: list[str] = []

    async def hold(name: str, turn: Turn, seconds: float = 20) -> None:
        async with gate.place(turn):
            entered.append(name)
            await trio.sleep(seconds)

    async with trio.open_nursery() as nursery:
        turns = {name: Turn() for name in ("a", "b", "c", "d")}
        for name, turn in turns.items():
            nursery.start_soon(hold, name, turn, 10 if name == "a" else 20)
            await wait_all_tasks_blocked()
        assert entered == ["a", "b"]
        turns["d"].hurry()
        await wait_all_tasks_blocked()
        assert entered == ["a", "b", "d"]
        nursery.start_soon(hold, "e", Turn(urgent=True))
        await trio.sleep(11)
        assert entered == ["a", "b", "d", "e"]
    assert (len(gate.waiting), gate.free) == (0, 3)


async def test_the_only_place_of_a_gate_is_for_everybody(autojump_clock: MockClock) -> None:
    gate = Gate(1, kept=1)
    async with gate.place(Turn()):
        assert gate.free == 0


async def test_after_a_burst_entries_are_spaced(autojump_clock: MockClock) -> None:
    gate = Gate(2, interval_s=1.0)
    entered: list[float] = []

    async def enter() -> None:
        async with gate.place(Turn()):
            entered.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(enter)
    assert entered == [0, 0, 1, 2, 3]
    await trio.sleep(60)
    async with gate.place(Turn()):
        assert trio.current_time() == 63


async def test_a_place_is_given_back_by_whoever_is_cancelled_while_spaced(autojump_clock: MockClock) -> None:
    gate = Gate(1, interval_s=100.0)
    async with gate.place(Turn()):
        pass
    with trio.move_on_after(1):
        async with gate.place(Turn()):
            raise AssertionError
    assert (len(gate.waiting), gate.free) == (0, 1)


async def test_installs_of_one_package_run_one_after_the_other(autojump_clock: MockClock) -> None:
    starts = Starts(installs=9)
    alone: list[tuple[str, str]] = []

    async def install(name: str, package: str) -> None:
        async with starts.install(Turn(), package):
            alone.append((name, "begins"))
            await trio.sleep(1)
            alone.append((name, "ends"))

    async with trio.open_nursery() as nursery:
        for name, package in {"a": "x", "b": "x", "c": "y", "d": "", "e": ""}.items():
            nursery.start_soon(install, name, package)
            await wait_all_tasks_blocked()
        assert [name for name, what in alone if what == "begins"] == ["a", "c", "d", "e"]
    assert alone[-2:] == [("b", "begins"), ("b", "ends")]
    assert starts.installing.free == 9
