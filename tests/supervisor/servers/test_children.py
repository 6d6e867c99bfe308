"""Servers that come, go and take the place of another one of their name, while their operator switches them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ServerDisabled, ServerExited, ServerGaveUp, SupervisorError, UnknownServer
from actors.kit import Reply
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.messages import Result, ServerRemoved, StopServer
from actors.server import ServerActor
from supervisor.servers.children import CHANGED
from supervisor.servers.deployment import DeployedServer
from tests.fakes.deployments import server
from tests.fakes.fleet import Fleet, fleet
from tests.fakes.mcp_server import FakeServer, tool

NO_RESTARTS = RestartPolicy(max_restarts=0, period_s=60.0, backoff_initial_s=0.5)
GONE = "it is not in the configuration any more"


def fake() -> FakeServer:
    return FakeServer(tools=[tool("echo"), tool("sleep")])


def process(*args: str) -> DeployedServer:
    return server("a", command="server", args=args)


def address() -> DeployedServer:
    return server("a", kind="http", url="http://localhost/mcp")


async def content(reply: Reply[Result]) -> Any:
    return msgspec.json.decode((await reply.wait()).body)["structuredContent"]


async def under_way(running: Fleet, fakes: dict[str, FakeServer], seconds: float) -> Reply[Result]:
    """Call a tool that takes its time, and return once the server has begun with it."""
    await running.call("a")
    fakes["a"].called = trio.Event()
    reply = running.submit("a", "sleep", s=seconds)
    await fakes["a"].called.wait()
    return reply


async def replace(running: Fleet, by: DeployedServer, drain_s: float = 30.0) -> None:
    await running.servers.add(by, None, None, drain_s=drain_s)


class Reader(trio.abc.Instrument):
    """Reads how a server is doing whenever any task has had its turn."""

    def __init__(self, running: Fleet, name: str) -> None:
        self._running, self._name = running, name
        self.states = list[State | None]()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        del task
        status = self._running.servers.statuses.of(self._name, {})
        self.states.append(status.state if status is not None else None)


@pytest.mark.parametrize("ended", ["stopped", "crashed"])
async def test_how_a_server_is_doing_can_be_read_at_any_moment_of_its_end(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    async with fleet({"a": fake()}) as running:
        await running.call("a")
        reader = Reader(running, "a")
        trio.lowlevel.add_instrument(reader)
        if ended == "crashed":
            address = running.servers.directory.find("a")
            assert address is not None
            with monkeypatch.context() as broken:
                broken.setattr(ServerActor, "_on_order", lambda *_: 1 / 0)
                with pytest.raises(SupervisorError):
                    await address.ask(StopServer())
                await wait_all_tasks_blocked()
        else:
            await running.servers.disable("a")
        trio.lowlevel.remove_instrument(reader)
        assert {State.READY, None} <= {*reader.states}


# Replaced -------------------------------------------------------------------------------------------------------------


async def test_a_call_in_flight_ends_at_the_old_one_and_the_next_waits_for_the_new_one(
    autojump_clock: MockClock,
) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 10)
        before = running.servers.directory.find("a")
        await replace(running, process("-v"))
        assert running.servers.directory.find("a") is not before
        new = running.submit("a", n=2)
        await wait_all_tasks_blocked()
        assert (fakes["a"].starts, new.settled) == (1, False)
        assert await content(old) == {"s": 10}
        assert trio.current_time() == pytest.approx(10)
        assert await content(new) == {"n": 2}
        assert (fakes["a"].starts, fakes["a"].exits) == (2, 1)


async def test_the_old_one_reports_nothing_once_there_is_a_new_one(autojump_clock: MockClock) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 10)
        reported = len(running.facts)
        await replace(running, process("-v"))
        await content(old)
        await trio.sleep(60)
        assert [(fact.status.state, fact.previous) for fact in running.facts[reported:]] == [
            (State.DORMANT, State.DORMANT)
        ]
        assert (await running.status("a")).state is State.DORMANT


async def test_of_a_chain_of_quick_replacements_only_the_last_one_runs_and_gets_every_call_that_waits(
    autojump_clock: MockClock,
) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 20)
        waiting = []
        for number in range(5):
            await replace(running, process(str(number)))
            waiting.append(running.submit("a", n=number))
            await trio.sleep(1)
        assert fakes["a"].starts == 1
        assert await content(old) == {"s": 20}
        assert [await content(reply) for reply in waiting] == [{"n": number} for number in range(5)]
        assert fakes["a"].starts == 2
        await trio.sleep(60)
        assert len(running.servers._running) == len(running.servers._newest) == 1


@pytest.mark.parametrize("between", [[], [address], [address, address]])
async def test_no_process_starts_before_the_last_one_is_gone_also_where_an_address_came_between(
    autojump_clock: MockClock, between: list[Any]
) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 20)
        for other in between:
            await replace(running, other())
        await replace(running, process("again"))
        new = running.submit("a", n=1)
        await trio.sleep(19)
        assert (fakes["a"].starts, new.settled, old.settled) == (1, False, False)
        assert await content(new) == {"n": 1}
        assert old.settled


async def test_an_address_waits_for_no_process(autojump_clock: MockClock) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 20)
        await replace(running, address())
        assert await running.call("a", n=1) == {"n": 1}
        assert not old.settled
        assert await content(old) == {"s": 20}


async def test_what_takes_longer_than_its_drain_is_cut_off_with_the_reason(autojump_clock: MockClock) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 50)
        await replace(running, process("-v"), drain_s=10)
        with pytest.raises(ServerExited, match=CHANGED) as cut:
            await old.wait()
        assert cut.value.outcome == "unknown"
        assert 10 <= trio.current_time() < 16
        assert await running.call("a", n=1) == {"n": 1}


async def test_one_that_is_added_switched_off_takes_the_place_of_one_that_is_off(autojump_clock: MockClock) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        await running.call("a")
        await running.servers.disable("a")
        await running.servers.add(process("-v"), None, None, disabled=True)
        await wait_all_tasks_blocked()
        assert len(running.servers._running) == 1
        with pytest.raises(ServerDisabled):
            running.submit("a")
        await running.servers.enable("a")
        assert await running.call("a", n=1) == {"n": 1}


# Removed --------------------------------------------------------------------------------------------------------------


async def test_a_removed_one_is_not_found_though_its_calls_end_and_nothing_of_it_is_left_then(
    autojump_clock: MockClock,
) -> None:
    fakes = {"a": fake(), "b": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 10)
        await running.servers.remove("a", GONE, 30)
        await running.servers.forget("a")
        await wait_all_tasks_blocked()
        reported = len(running.facts)
        with pytest.raises(UnknownServer):
            running.submit("a")
        assert running.servers.statuses.names({}) == ["b"]
        assert await content(old) == {"s": 10}
        await trio.sleep(60)
        assert (fakes["a"].starts, fakes["a"].exits) == (1, 1)
        assert [type(fact) for fact in running.facts[reported - 1 :]] == [ServerRemoved]
        assert running.servers.journals.find("a") is None
        assert len(running.servers._running) == len(running.servers._newest) == 1


async def test_one_that_comes_back_while_it_leaves_starts_when_it_is_gone(autojump_clock: MockClock) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 10)
        await running.servers.remove("a", GONE, 30)
        await running.servers.forget("a")
        await replace(running, process())
        new = running.submit("a", n=1)
        await trio.sleep(9)
        assert (fakes["a"].starts, new.settled) == (1, False)
        assert await content(old) == {"s": 10}
        assert await content(new) == {"n": 1}
        assert (await running.status("a")).state is State.READY


async def test_one_that_is_not_there_can_be_removed(autojump_clock: MockClock) -> None:
    async with fleet({"a": fake()}) as running:
        await running.servers.remove("b", GONE, 30)
        await running.servers.forget("b")
        await wait_all_tasks_blocked()
        assert ServerRemoved(server="b") in running.facts


async def test_one_that_is_off_leaves_at_once(autojump_clock: MockClock) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        await running.call("a")
        await running.servers.disable("a")
        await running.servers.remove("a", GONE, 30)
        await running.servers.forget("a")
        await wait_all_tasks_blocked()
        assert (len(running.servers._running), len(running.servers._newest)) == (0, 0)
        with pytest.raises(UnknownServer):
            await running.servers.enable("a")


async def test_one_that_leaves_with_a_call_in_flight_ends_at_once_when_it_is_told_to(autojump_clock: MockClock) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 1000)
        await running.servers.remove("a", GONE, 900)
        await running.servers.end("a", GONE)
        assert (fakes["a"].starts, fakes["a"].exits) == (1, 1)
        assert trio.current_time() < 60
        with pytest.raises(SupervisorError):
            await old.wait()


async def test_whoever_waits_for_the_end_of_one_waits_also_before_that_is_told_to_leave(
    autojump_clock: MockClock,
) -> None:
    fakes, ended = {"a": fake()}, trio.Event()
    async with fleet(fakes) as running, trio.open_nursery() as nursery:
        await under_way(running, fakes, 10)
        newer = process("-v")

        async def wait() -> None:
            await running.servers.wait_gone("a", lambda server: server.digest != newer.digest)
            ended.set()

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        await replace(running, newer)
        await wait_all_tasks_blocked()
        assert not ended.is_set(), "its call is under way"
        await ended.wait()
        assert trio.current_time() == pytest.approx(10)
        await running.servers.wait_gone("a", lambda server: server.digest != newer.digest)


async def test_the_end_reaches_those_that_leave_and_makes_it_short(autojump_clock: MockClock) -> None:
    fakes = {"a": fake(), "b": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 1000)
        await replace(running, process("-v"), drain_s=900)
        await running.call("b")
        began = trio.current_time()
        await running.servers.stop()
        assert trio.current_time() - began < 15
        await wait_all_tasks_blocked()
        assert isinstance(old.failure, ServerExited)
        assert [(each.starts, each.exits) for each in fakes.values()] == [(1, 1), (1, 1)]
        assert len(running.servers._running) == 0


# While it crashes, and while its operator switches it -----------------------------------------------------------------


def crash(actor: Any) -> None:
    """Have the next message crash an actor."""

    def handle(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    actor.handle = handle


@pytest.fixture
def actors(monkeypatch: pytest.MonkeyPatch) -> list[ServerActor]:
    """Every actor that is run."""
    run, made = ServerActor.run, list[ServerActor]()

    async def noted(self: ServerActor) -> None:
        made.append(self)
        await run(self)

    monkeypatch.setattr(ServerActor, "run", noted)
    return made


async def test_between_two_crashes_it_leaves_at_once_and_its_successor_runs(
    autojump_clock: MockClock, actors: list[ServerActor]
) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        await running.call("a")
        crash(actors[-1])
        with pytest.raises(SupervisorError):
            await running.call("a")
        await wait_all_tasks_blocked()
        await replace(running, process("-v"))
        assert await running.call("a", n=1) == {"n": 1}
        await trio.sleep(60)
        assert len(actors) == 2
        assert len(running.servers._running) == 1


async def test_one_that_crashes_while_it_leaves_is_not_run_again_and_said_of_nothing(
    autojump_clock: MockClock, actors: list[ServerActor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.servers.children.CRASH_POLICY", NO_RESTARTS)
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 10)
        await running.servers.remove("a", GONE, 30)
        await running.servers.forget("a")
        await wait_all_tasks_blocked()
        reported = len(running.facts)
        crash(actors[-1])
        with pytest.raises(SupervisorError) as lost:
            await old.wait()
        assert lost.value.outcome == "unknown"
        await trio.sleep(60)
        assert running.facts[reported:] == []
        assert isinstance(running.servers.directory.why_not("a"), UnknownServer)
        assert len(running.servers._running) == 0


async def test_one_whose_actor_cannot_even_be_made_is_given_up_and_its_successor_runs(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        await running.call("a")
        running.crashing.add("a")
        await replace(running, process("-v"))
        with pytest.raises(ServerGaveUp, match="internal error"):
            running.submit("a")
        await wait_all_tasks_blocked()
        assert running.told("a")[-1] == (State.FAILED, False)
        assert "crashed too often" in caplog.text
        running.crashing.clear()
        await replace(running, process("-w"))
        assert await running.call("a", n=1) == {"n": 1}
        await trio.sleep(60)
        assert len(running.servers._running) == 1


@pytest.mark.parametrize("order", ["disable", "enable"])
async def test_an_order_that_waits_for_one_that_leaves_is_for_its_successor(
    autojump_clock: MockClock, order: str
) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        old = await under_way(running, fakes, 4)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.servers.disable, "a")  # it is on its way down for as long as the call takes
            await wait_all_tasks_blocked()
            nursery.start_soon(getattr(running.servers, order), "a")
            await wait_all_tasks_blocked()
            await running.servers.add(process("-v"), None, None, disabled=running.servers.is_off("a"))
        assert await content(old) == {"s": 4}
        assert running.servers.is_off("a") == (order == "disable")
        await trio.sleep(60)
        assert len(running.servers._running) == 1
        await running.servers.enable("a")
        assert await running.call("a", n=1) == {"n": 1}


@pytest.mark.parametrize("order", ["disable", "enable"])
async def test_an_order_that_waits_for_one_that_is_removed_says_so(autojump_clock: MockClock, order: str) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        await under_way(running, fakes, 4)
        refused = list[str]()

        async def ordered(name: str) -> None:
            try:
                await getattr(running.servers, name)("a")
            except UnknownServer as error:
                refused.append(error.message)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ordered, "disable")
            await wait_all_tasks_blocked()
            nursery.start_soon(ordered, order)
            await wait_all_tasks_blocked()
            await running.servers.remove("a", GONE, 30)
            await running.servers.forget("a")
        assert len(refused) == 2
        assert len(set(refused)) == 1


async def test_one_that_is_switched_on_and_off_at_once_ends_as_one_of_both(autojump_clock: MockClock) -> None:
    fakes = {"a": fake()}
    async with fleet(fakes) as running:
        await running.call("a")
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for order in 5 * (running.servers.disable, running.servers.enable):
                    nursery.start_soon(order, "a")
        await running.servers.enable("a")
        assert await running.call("a", n=1) == {"n": 1}
