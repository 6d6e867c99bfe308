"""Several instances of a launch: which of them has a call, what becomes of it, and what is told of them as one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.marks import digest_of
from actors.catalogue.trust import Pins
from actors.errors import ServerExited, ServerStarting, SupervisorError, ToolHeld, TooManyCalls
from actors.facts import InstanceChanged
from actors.life.states import State
from actors.messages import CallServer, RestartServer, ServerListed, SleepServer
from actors.principal import LOCAL
from actors.registry.pinning import Pinning
from tests.actors.server.test_dialogue import Caller
from tests.fakes.mcp_server import tool
from tests.fakes.processes import Crowd, crowd, local, remote

SIX = range(6)


async def spread(running: Crowd, count: int, seconds: float = 10.0) -> Counter[int]:
    """Return how many of so many calls at once each process had."""
    replies = [running.submit("who", {"s": seconds}) for _ in range(count)]
    before = {each.number: each.calls for each in running.made}
    for reply in replies:
        await reply.wait()
    return Counter({each.number: each.calls - before.get(each.number, 0) for each in running.made})


# Who has a call -------------------------------------------------------------------------------------------------------


async def test_calls_at_once_are_spread_over_all_and_one_after_the_other_has_the_first(
    autojump_clock: MockClock,
) -> None:
    async with crowd() as running:
        assert [await running.who() for _ in SIX] == [1] * 6
        assert await running.states() == ["ready", "dormant", "dormant"]
        await running.busy(3)
        assert await running.states() == ["ready"] * 3
        assert await spread(running, 6) == {1: 2, 2: 2, 3: 2}
        assert len(running.made) == 3


async def test_a_call_waits_for_a_start_no_longer_than_for_one_that_is_busy(autojump_clock: MockClock) -> None:
    async with crowd() as running:
        running.members["start_s"] = 5.0
        begin = trio.current_time()
        quick = [running.submit("who", {"s": 0.5}) for _ in range(2)]
        for reply in quick:
            await reply.wait()
        assert trio.current_time() - begin == pytest.approx(1.0)
        assert [each.number for each in running.made if each.calls] == [1]


async def test_a_call_does_not_wait_for_ever_for_a_start(autojump_clock: MockClock) -> None:
    async with crowd() as running:
        running.members["start_s"] = 50.0
        begin = trio.current_time()
        replies = [running.submit("who", {"s": 10}) for _ in range(2)]
        waited = [(await reply.wait()).waited_s for reply in replies]
        assert trio.current_time() - begin == pytest.approx(12.0)
        assert waited == pytest.approx([0, 2])


async def test_each_sleeps_by_itself_and_the_launch_with_the_last(autojump_clock: MockClock) -> None:
    async with crowd(local(3, idle_timeout_s=60)) as running:
        await running.busy(3)
        for _ in range(4):
            await trio.sleep(30)
            await running.who()
        assert await running.states() == ["ready", "dormant", "dormant"]
        assert (await running.status()).state is State.READY
        await running.reach("dormant", "dormant", "dormant")
        assert running.whole_states[-1] is State.DORMANT
        assert await running.who() == 4


# Failures -------------------------------------------------------------------------------------------------------------


async def test_only_the_calls_of_the_one_that_dies_fail_and_the_next_call_works_at_once(
    autojump_clock: MockClock,
) -> None:
    async with crowd() as running:
        await running.busy(3)
        replies = [running.submit("who", {"s": 10}) for _ in SIX]
        await trio.sleep(1)
        running.made[1].scope.cancel()
        ended: list[Any] = []
        for reply in replies:
            try:
                await reply.wait()
                ended.append("answered")
            except ServerExited as error:
                ended.append(error.outcome)
        assert sorted(ended) == ["answered"] * 4 + ["unknown"] * 2
        assert sum(each.calls for each in running.made) == 3 + 6  # none was made twice
        down = [f.instance.number for f in running.told(InstanceChanged) if f.instance.state is State.RESPAWNING]
        assert len(down) == 1
        assert running.whole_states.count(State.RESPAWNING) == 0


async def test_a_call_finds_another_one_while_one_is_down(autojump_clock: MockClock) -> None:
    async with crowd(local(2, backoff_initial_s=20, stable_s=1000)) as running:
        await running.busy(2)
        running.made[0].scope.cancel()
        await wait_all_tasks_blocked()
        begin = trio.current_time()
        assert await running.who() == 2
        assert trio.current_time() == begin
        assert (await running.states())[0] == "respawning"
        leading = [each.number for each in (await running.status()).instances if each.leads]
        assert leading == [2]


async def test_one_that_cannot_be_started_leaves_the_calls_to_the_others(autojump_clock: MockClock) -> None:
    async with crowd(local(2, backoff_initial_s=100)) as running:
        running.members["exits_at"] = "initialize"
        begin = trio.current_time()
        replies = [running.submit("who", {"s": 5}) for _ in range(4)]
        assert [await reply.wait() for reply in replies]
        assert trio.current_time() - begin < 12
        assert running.made[0].calls == 4


async def test_what_waits_at_one_that_dies_goes_to_another_one(autojump_clock: MockClock) -> None:
    async with crowd(local(2, max_in_flight=1, backoff_initial_s=1000, stable_s=5000)) as running:
        await running.busy(2)
        replies = [running.submit("who", {"s": 5}) for _ in range(4)]
        await trio.sleep(1)
        running.made[0].scope.cancel()
        ended = []
        for reply in replies:
            try:
                await reply.wait()
                ended.append("answered")
            except ServerExited as error:
                ended.append(error.outcome)
        assert sorted(ended) == ["answered"] * 3 + ["unknown"]
        assert trio.current_time() < 20


async def test_a_call_that_was_at_all_of_them_as_they_died_is_told_so_at_once(autojump_clock: MockClock) -> None:
    async with crowd(local(2, max_in_flight=1, backoff_initial_s=1000, stable_s=5000)) as running:
        await running.busy(2)
        _, _, last = (running.submit("who", {"s": 500}) for _ in range(3))
        await trio.sleep(1)
        for each in running.made:
            assert not last.settled
            each.scope.cancel()
            await wait_all_tasks_blocked()
        with pytest.raises((ServerExited, ServerStarting)) as raised:
            last.result()
        assert raised.value.outcome == "not_sent"


async def test_no_more_calls_wait_for_those_that_died_than_may_wait(autojump_clock: MockClock) -> None:
    async with crowd(local(3, max_in_flight=1, max_queued=1, backoff_initial_s=1000, stable_s=5000)) as running:
        await running.busy(3)
        replies = [running.submit("who", {"s": 500}) for _ in range(6)]
        await trio.sleep(1)
        for each in running.made:
            each.scope.cancel()
        await wait_all_tasks_blocked()
        assert [reply.settled for reply in replies].count(False) <= 1


async def test_what_a_call_waits_before_it_has_an_instance_and_then_there_is_of_its_time_as_one(
    autojump_clock: MockClock,
) -> None:
    async with crowd(local(2, max_in_flight=1)) as running:
        running.members["start_s"] = 50.0
        begin = trio.current_time()
        first, second = (running.submit("who", {"s": 10}) for _ in range(2))
        third = running.submit("who", {"s": 10}, deadline_s=5.0)
        with pytest.raises(ServerStarting) as raised:
            await third.wait()
        assert raised.value.outcome == "not_sent"
        assert trio.current_time() - begin == pytest.approx(5.0)
        assert [(await reply.wait()).waited_s for reply in (first, second)] == pytest.approx([0, 10])


async def test_a_call_that_gets_a_process_too_late_is_told_of_all_the_time_that_it_had(
    autojump_clock: MockClock,
) -> None:
    async with crowd(local(2, max_in_flight=1)) as running:
        await running.busy(2)
        held = [running.submit("who", {"s": s}) for s in (2, 100)]
        await wait_all_tasks_blocked()
        running.members["start_s"] = 50.0
        late = running.submit("who", {"s": 10}, deadline_s=5.0)
        await trio.sleep(1)
        running.made[0].scope.cancel()
        with pytest.raises(SupervisorError, match=r"of 5 s|within 5 s") as raised:
            await late.wait()
        assert raised.value.outcome == "not_sent"
        for reply in held:
            reply.abandon()


async def test_the_process_that_has_a_call_hears_that_nobody_waits_for_it(autojump_clock: MockClock) -> None:
    async with crowd() as running:
        reply = running.submit("who", {"s": 10})
        await trio.sleep(1)
        reply.abandon()
        await wait_all_tasks_blocked()
        assert running.made[0].count("notifications/cancelled") == 1


# Bound to one ---------------------------------------------------------------------------------------------------------


async def test_the_answers_to_a_question_reach_the_process_that_asked_or_fail(autojump_clock: MockClock) -> None:
    async with crowd(members={"probe": "modern"}) as running:
        await running.busy(3)
        asked = [running.submit("rounds") for _ in SIX]
        states = [(await running.call("rounds"))["requestState"]]
        for reply in asked:
            await reply.wait()
        # all busy but one: so the first rounds are spread
        held = [running.submit("who", {"s": 5}) for _ in range(2)]
        await wait_all_tasks_blocked()
        states.append((await running.call("rounds"))["requestState"])
        assert states[0] == "of 1" != states[1]
        for reply in held:
            await reply.wait()
        number = int(states[1][-1])
        retry = b'"inputResponses":{"q":{"action":"accept"}},"requestState":"of %d"' % number
        assert await running.call("rounds", retry=retry, resumes=True) == {"who": number, "state": states[1]}
        running.made[number - 1].scope.cancel()
        await trio.sleep(30)
        with pytest.raises(ServerExited, match="the instance that asked this has ended") as caught:
            await running.call("rounds", retry=retry, resumes=True)
        assert caught.value.outcome == "not_sent"
        with pytest.raises(ServerExited):  # a state that nobody gave
            await running.call("rounds", retry=retry.replace(b"of ", b"of 9"), resumes=True)


async def test_one_that_is_expected_to_go_on_does_not_sleep(autojump_clock: MockClock) -> None:
    settings = {"idle_timeout_s": 60, "question_timeout_s": 300}
    async with crowd(local(2, **settings), members={"probe": "modern"}) as running:
        assert (await running.call("rounds"))["requestState"] == "of 1"
        await trio.sleep(250)
        assert (await running.states())[0] == "ready"
        await running.reach("dormant", "dormant")
        assert 300 <= trio.current_time() <= 310


# Lists ----------------------------------------------------------------------------------------------------------------


async def test_lists_are_those_of_the_one_that_leads_and_a_change_of_another_one_has_it_look_again(
    autojump_clock: MockClock,
) -> None:
    async with crowd() as running:
        await running.busy(3)
        assert len(running.told(ServerListed)) == 1
        for each in running.made:
            each.tools = [{**each.tools[0], "name": "other"}]
        await running.made[2].notify("notifications/tools/list_changed")
        await trio.sleep(5)
        listed = running.told(ServerListed)
        assert [len(fact.offer.tools) for fact in listed] == [6, 1]
        assert [each.count("tools/list") for each in running.made] == [2, 1, 2]


async def test_when_the_one_that_leads_is_down_another_one_is_listened_to(autojump_clock: MockClock) -> None:
    async with crowd(local(2, backoff_initial_s=1000, stable_s=5000)) as running:
        await running.busy(2)
        running.made[0].scope.cancel()
        await trio.sleep(1)
        running.made[1].tools = running.made[1].tools[:2]
        await running.made[1].notify("notifications/tools/list_changed")
        await trio.sleep(5)
        assert [len(fact.offer.tools) for fact in running.told(ServerListed)][-1] == 2


# Orders ---------------------------------------------------------------------------------------------------------------


async def test_an_order_is_about_all_that_run(autojump_clock: MockClock) -> None:
    async with crowd() as running:
        await running.busy(2)
        await running.address.ask(RestartServer(server="a", principal=LOCAL))
        assert (len(running.made), len(running.alive)) == (4, 2)
        await running.address.ask(SleepServer(server="a", principal=LOCAL))
        assert await running.states() == ["dormant"] * 3
        await running.servers.disable("a")
        assert running.servers.directory.find("a") is None
        await running.servers.enable("a")
        assert await running.who() == 5


# Other ones than before -----------------------------------------------------------------------------------------------


async def test_other_instances_leave_those_alone_that_stay(autojump_clock: MockClock) -> None:
    async with crowd(local(1)) as running:
        long = running.submit("who", {"s": 50})
        await trio.sleep(1)
        await running.resize(local(3))
        await running.busy(4)
        assert [each.number for each in running.alive] == [1, 2, 3]
        last = running.submit("who", {"s": 10})
        await wait_all_tasks_blocked()
        third = [running.submit("who", {"s": 10}) for _ in range(2)]
        await trio.sleep(1)
        await running.resize(local(2))
        assert len((await running.status()).instances) == 3
        for reply in (last, *third):
            await reply.wait()
        await trio.sleep(10)
        assert (len(running.alive), running.made[0].exits) == (2, 0)
        assert len((await running.status()).instances) == 2
        await long.wait()
        assert [each.starts for each in running.made] == [1, 1, 1]


# Replicas -------------------------------------------------------------------------------------------------------------


async def test_a_replica_that_is_away_gets_no_calls_and_is_back_when_it_is_there_again(
    autojump_clock: MockClock,
) -> None:
    async with crowd(remote("http://two/mcp")) as running:
        await running.busy(2)
        assert {each.replica for each in running.alive} == {"", "http://two/mcp"}
        running.refuse = lambda replica: replica == ""
        running.made[0].scope.cancel()
        await wait_all_tasks_blocked()
        assert await spread(running, 4, 1.0) == {1: 0, 2: 4}
        running.refuse = lambda replica: False
        await trio.sleep(120)
        await running.busy(2)
        assert {each.replica for each in running.alive} == {"", "http://two/mcp"}


async def test_a_replica_stands_in_for_an_address_where_nobody_ever_was(autojump_clock: MockClock) -> None:
    async with crowd(remote("http://two/mcp"), refuse=lambda replica: not replica) as running:
        assert await running.who() == 1
        assert running.made[0].replica == "http://two/mcp"
        assert [fact.server for fact in running.told(ServerListed)] == ["a"]


async def test_other_replicas_leave_those_alone_that_stay(autojump_clock: MockClock) -> None:
    async with crowd(remote("http://two/mcp", "http://three/mcp")) as running:
        await running.busy(3)
        await running.resize(remote("http://three/mcp", "http://four/mcp"))
        await trio.sleep(10)
        assert {each.replica for each in running.alive} == {"", "http://three/mcp"}
        await running.busy(3)
        assert {each.replica for each in running.alive} == {"", "http://three/mcp", "http://four/mcp"}


# One for each client --------------------------------------------------------------------------------------------------


async def test_each_client_is_asked_what_its_own_process_asks(autojump_clock: MockClock) -> None:
    async with crowd(local("per_client")) as running:
        ada, bob = Caller("ada"), Caller("bob")
        replies = {name: running.submit("ask", {"message": name}, caller) for name, caller in (("a", ada), ("b", bob))}
        await ada.asked.wait()
        await bob.asked.wait()
        for caller, name in ((bob, "b"), (ada, "a")):
            ((question, reply),) = caller.questions
            assert f'"message":"{name}"' in bytes(question.params).decode().replace(" ", "")
            reply.answer(question.params)
            await replies[name].wait()
        assert len(running.alive) == 3  # and the one whose lists are those of all
        assert await running.call("who", caller=ada) == await running.call("who", caller=ada)
        assert await running.call("who", caller=ada) != await running.call("who", caller=bob)


async def test_more_clients_than_there_may_be_are_refused_until_one_sleeps(autojump_clock: MockClock) -> None:
    async with crowd(local("per_client", max_instances=2, idle_timeout_s=60)) as running:
        for name in ("ada", "bob"):
            await running.call("who", caller=Caller(name))
        with pytest.raises(TooManyCalls, match="others have all 2") as caught:
            await running.call("who", caller=Caller("eve"))
        assert (caught.value.outcome, caught.value.retry_after_s) == ("not_sent", 5)
        await trio.sleep(120)
        assert len((await running.status()).instances) == 1
        assert await running.call("who", caller=Caller("eve"))


async def test_somebody_who_opens_sessions_leaves_processes_for_others(autojump_clock: MockClock) -> None:
    async with crowd(local("per_client", max_instances=4, idle_timeout_s=60)) as running:
        mine = [Caller(("ben", str(number))) for number in range(8)]
        for caller in mine[:2]:
            await running.call("who", caller=caller)
        with pytest.raises(TooManyCalls, match="of the 4 2 are of clients of yours: end the session of one"):
            await running.call("who", caller=mine[2])
        assert await running.call("who", caller=Caller(("ana", "1")))
        assert await running.call("who", caller=Caller(("cem", "1")))


# Trust and resources --------------------------------------------------------------------------------------------------


async def test_a_call_reaches_only_what_was_read_of_the_same_process_and_approved(autojump_clock: MockClock) -> None:
    good, evil = tool("who", "Says who it is."), tool("who", "Says it to everybody.")
    keeper = Pinning(lambda server: "strict", known={"a": Pins({"who": (digest_of(good),)})})
    async with crowd(local(2), keeper=keeper, members={"tools": [good]}) as running:
        await running.busy(2)
        second = running.made[1]
        second.tools = [evil]
        await second.notify("notifications/tools/list_changed")
        held = running.submit("who", {"s": 5})
        await wait_all_tasks_blocked()
        refused = running.submit("who", {"s": 5})  # the first is busy
        with pytest.raises(ToolHeld):
            await refused.wait()
        await held.wait()
        assert (running.made[0].calls, second.calls) == (2, 1)
        running.members = {"tools": [evil]}  # so is a new process
        await running.address.ask(SleepServer(server="a", principal=LOCAL))
        with pytest.raises(ToolHeld):
            await running.call("who")
        assert running.made[2].calls == 0


async def test_a_change_of_a_resource_is_told_once_also_when_another_one_leads_then(autojump_clock: MockClock) -> None:
    told: list[str] = []
    settings = {"backoff_initial_s": 1000, "stable_s": 5000}
    async with crowd(local(2, **settings)) as running:
        await running.busy(2)
        running.servers.subscribers.add("a", "file:///x", lambda: told.append("x"))
        subscribe = CallServer(server="a", method="resources/subscribe", members=b'"uri":"file:///x"', name="file:///x")
        await running.address.ask(subscribe)
        assert [each.watched for each in running.made] == [["file:///x"], []]
        for each in running.made:
            await each.update("file:///x")
        await trio.sleep(1)
        assert told == ["x"]
        running.made[0].scope.cancel()
        await trio.sleep(1)
        assert running.made[1].watched == ["file:///x"]
        assert told == ["x", "x"]  # it may have changed in between
        await running.made[1].update("file:///x")
        await trio.sleep(1)
        assert told == ["x", "x", "x"]


async def test_one_that_does_not_lead_is_asked_for_no_resources(autojump_clock: MockClock) -> None:
    async with crowd(local(2)) as running:
        await running.busy(2)
        running.servers.subscribers.add("a", "file:///x", lambda: None)
        running.made[1].scope.cancel()
        await trio.sleep(30)
        assert [each.watched for each in running.made[1:]] == [[], []]
