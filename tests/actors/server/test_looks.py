"""Lists that grow old or are doubtful are looked at again, without being asked and without getting in the way."""

from __future__ import annotations

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer, Tool
from actors.life.states import State
from actors.messages import ServerListed
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.fakes.mcp_server import FakeServer, tool

KNOWN = Offer(tools=(Tool(name="old"),), capabilities=msgspec.Raw(b'{"tools":{}}'))
AWAKE = ServerSettings(idle_timeout_s=0)
DAY_S = 86_400.0
NOW_S = 30 * DAY_S


def read(age_s: float) -> Offer:
    return msgspec.structs.replace(KNOWN, read_at=NOW_S - age_s)


@pytest.mark.parametrize(("asked", "starts"), [(True, 1), (False, 0), (None, 0)])
async def test_fresh_lists_start_no_process_and_old_ones_only_if_that_is_wanted(
    asked: bool | None, starts: int, autojump_clock: MockClock
) -> None:
    settings = ServerSettings(refresh_asleep=asked)
    async with running_server(known=read(0.5 * DAY_S), settings=settings, now_s=NOW_S) as rig:
        await trio.sleep(0.35 * DAY_S)
        assert rig.fake.starts == 0
        await trio.sleep(0.3 * DAY_S)
        assert rig.fake.starts == starts


async def test_a_server_that_is_not_woken_for_old_lists_is_asked_when_it_is_woken_for_a_call(
    autojump_clock: MockClock,
) -> None:
    fake = FakeServer(tools=[tool("echo"), tool("new")])
    async with running_server(fake, known=read(3 * DAY_S), now_s=NOW_S) as rig:
        await trio.sleep(3 * DAY_S)
        assert rig.listed == []
        await rig.call()
        await wait_all_tasks_blocked()
        assert rig.listed == [["echo", "new"]]


@pytest.mark.case("L19")
@pytest.mark.parametrize(
    ("ttl", "least_s", "readings"),
    [
        pytest.param(120_000, 60.0, (8, 11), id="as the server says"),
        pytest.param(1000, 300.0, (3, 5), id="no sooner than is set"),
        pytest.param(10**14, 60.0, (1, 1), id="no later than is set, which is a day"),
        pytest.param(0, 60.0, (1, 1), id="none"),
        pytest.param(-1, 60.0, (1, 1), id="negative"),
        pytest.param(10**40, 60.0, (1, 1), id="no sane number"),
        pytest.param("soon", 60.0, (1, 1), id="no number"),
    ],
)
async def test_a_server_that_says_for_how_long_its_lists_are_good_is_asked_again_after_that(
    ttl: object, least_s: float, readings: tuple[int, int], autojump_clock: MockClock
) -> None:
    fake = FakeServer(probe="modern", ttl=ttl)
    settings = ServerSettings(idle_timeout_s=0, catalogue_min_age_s=least_s)
    async with running_server(fake, settings=settings, era="modern") as rig:
        await rig.wake()
        await trio.sleep(1200)
        least, most = readings
        assert least <= fake.count("tools/list") <= most


async def test_a_server_is_not_woken_for_its_own_time_and_none_counts_where_age_does_not_matter(
    autojump_clock: MockClock,
) -> None:
    asleep = ServerSettings(refresh_asleep=True, idle_timeout_s=10)
    ageless = ServerSettings(catalogue_max_age_s=0, idle_timeout_s=0)
    for settings in (asleep, ageless):
        fake = FakeServer(probe="modern", ttl=60_000)
        async with running_server(fake, settings=settings, era="modern") as rig:
            await rig.wake()
            await trio.sleep(3600)
            assert fake.count("tools/list") == 1


async def test_the_shortest_time_of_all_pages_counts(autojump_clock: MockClock) -> None:
    fake = FakeServer(tools=[tool("a"), tool("b"), tool("c")], probe="modern", page=1)
    fake.ttls = [900_000, 120_000, 600_000]
    async with running_server(fake, settings=AWAKE, era="modern") as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        assert rig.of(ServerListed)[0].offer.good_for_s == 120


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(read(-DAY_S), id="of the future"),
        pytest.param(KNOWN, id="never read to their end"),
        pytest.param(msgspec.structs.replace(read(60), tools=()), id="empty"),
        pytest.param(msgspec.structs.replace(read(60), partial=True), id="partial"),
    ],
)
async def test_a_tool_added_while_the_daemon_was_down_is_found_without_a_call(
    known: Offer, autojump_clock: MockClock
) -> None:
    async with running_server(FakeServer(tools=[tool("old"), tool("new")]), known=known, now_s=NOW_S) as rig:
        await trio.sleep(20)
        assert rig.listed == [["old", "new"]]
        assert rig.of(ServerListed)[0].offer.read_at == NOW_S
        assert rig.actor.life.state is State.DORMANT
        assert rig.fake.starts == 1


async def test_a_list_that_many_servers_lack_does_not_make_the_others_old(autojump_clock: MockClock) -> None:
    capabilities: dict[str, object] = {"tools": {}, "resources": {}, "prompts": {}}  # it answers -32601 to the last two
    async with running_server(FakeServer(capabilities=capabilities), now_s=NOW_S) as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        assert rig.of(ServerListed)[0].offer.read_at == NOW_S


async def test_an_empty_list_that_is_not_believed_yet_is_looked_at_after_a_restart(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(tools=[]), known=read(60), now_s=NOW_S) as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        assert rig.listed == [["old"]]
        assert rig.of(ServerListed)[0].offer.read_at == 0


async def test_a_server_without_tools_that_never_had_any_to_announce_is_left_alone(autojump_clock: MockClock) -> None:
    known = Offer(read_at=NOW_S - 60)
    async with running_server(FakeServer(capabilities={}), known=known, now_s=NOW_S) as rig:
        await trio.sleep(100)
        assert rig.fake.starts == 0


async def test_age_can_be_switched_off(autojump_clock: MockClock) -> None:
    settings = ServerSettings(catalogue_max_age_s=0)
    async with running_server(known=KNOWN, settings=settings, now_s=NOW_S) as rig:
        await trio.sleep(5 * DAY_S)
        assert rig.fake.starts == 0


async def test_a_call_that_comes_while_a_server_is_looked_at_keeps_it_awake(autojump_clock: MockClock) -> None:
    fake = FakeServer(start_s=3)
    async with running_server(fake, known=KNOWN, now_s=NOW_S) as rig:
        await rig.reach(State.HANDSHAKING)
        assert await rig.call(a=1) == {"a": 1}
        await trio.sleep(10)
        assert rig.actor.life.state is State.READY


async def test_a_server_that_cannot_be_started_to_be_looked_at_stays_usable(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(exits_at="initialize"), known=KNOWN, now_s=NOW_S) as rig:
        await trio.sleep(0.5 * DAY_S)
        assert State.FAILED not in rig.states
        assert rig.actor.life.state is State.DORMANT
        assert 2 <= rig.fake.starts <= 10
        rig.fake.exits_at = None
        await trio.sleep(2 * DAY_S)
        assert rig.listed[0] == ["echo"]


async def test_a_server_that_stays_awake_is_looked_at_once_a_day(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=0, watch_interval_s=0)) as rig:
        await rig.wake()
        await trio.sleep(2 * DAY_S)
        assert 2 <= rig.fake.count("tools/list") <= 3


async def test_a_look_that_is_due_while_the_lists_are_read_does_not_read_them_twice(autojump_clock: MockClock) -> None:
    fake = FakeServer(silent_at={"tools/list"})
    async with running_server(fake, known=KNOWN, settings=AWAKE, now_s=NOW_S) as rig:
        await rig.wake()
        await trio.sleep(50)
        assert rig.fake.count("tools/list") == 1
        await trio.sleep(100)
        assert rig.fake.count("tools/list") == 1


async def test_a_server_that_was_ordered_to_restart_while_it_was_looked_at_stays_awake(
    autojump_clock: MockClock,
) -> None:
    async with running_server(FakeServer(start_s=3), known=KNOWN, now_s=NOW_S) as rig:
        await rig.reach(State.HANDSHAKING)
        await rig.restart()
        await trio.sleep(10)
        assert rig.actor.life.state is State.READY
