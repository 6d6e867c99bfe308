"""The lists of a server through its actor: read, re-read, kept, guarded against hiccups."""

from __future__ import annotations

import random
import sys

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer, Tool
from actors.errors import ServerError
from actors.life.states import State
from actors.messages import RefreshServer, ServerListed
from actors.protocol.listing import ListLimits
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.fakes.lines import line
from tests.fakes.mcp_server import FakeServer, tool

CHANGED = "notifications/tools/list_changed"
KNOWN = Offer(tools=(Tool(name="old"),), capabilities=msgspec.Raw(b'{"tools":{}}'))
AWAKE = ServerSettings(idle_timeout_s=0)
DAY_S = 86_400.0
NOW_S = 30 * DAY_S
FAILURE = {"tools/list": {"code": -32603, "message": "resources/list prompts/list"}}


@pytest.mark.case("L06")
@pytest.mark.parametrize("seed", range(2))
async def test_a_storm_of_changes_is_read_once_a_second_and_its_end_is_known_two_seconds_later(
    autojump_clock: MockClock, seed: int
) -> None:
    """500 changes a second for 10 s: some are of the list, and the last of those may be the last of all, or not."""
    chance = random.Random(seed)
    async with running_server(settings=AWAKE) as rig:
        await rig.wake()
        before, began = rig.fake.count("tools/list"), trio.current_time()
        number = 0
        while trio.current_time() < began + 10:
            if chance.random() < 0.2 or trio.current_time() > began + 9.9:
                number += 1
                rig.fake.tools = [tool(f"t{number}")]
            await rig.fake.notify(CHANGED, 10)
            await trio.sleep(0.02)
        lasted = trio.current_time() - began
        await trio.sleep(2)
        assert rig.listed[-1] == [f"t{number}"]
        assert rig.fake.count("tools/list") - before <= lasted + 2
        read = rig.fake.count("tools/list")
        await trio.sleep(60)
        assert rig.fake.count("tools/list") == read, "it goes on by itself"


@pytest.mark.case("L07")
async def test_a_change_during_the_first_reading_is_not_lost(autojump_clock: MockClock) -> None:
    fake = FakeServer(silent_at={"tools/list"})
    async with running_server(fake) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(rig.wake)
        await rig.reach(State.DISCOVERING)
        await fake.notify(CHANGED)
        await wait_all_tasks_blocked()
        sent = next(found for found in fake.messages if found["method"] == "tools/list")
        fake.silent_at.clear()
        fake.tools.append(tool("more"))
        await fake.write(line(id=sent["id"], result={"tools": [tool("echo")]}))
        await trio.sleep(2)
        assert rig.listed == [["echo"], ["echo", "more"]]


async def test_tools_are_wiped_only_by_a_list_that_is_still_empty_a_probe_interval_later(
    autojump_clock: MockClock,
) -> None:
    async with running_server(FakeServer(tools=[]), known=KNOWN, settings=AWAKE) as rig:
        await rig.wake()
        await rig.fake.notify(CHANGED)
        await trio.sleep(290)
        assert rig.fake.count("tools/list") == 2
        assert set(map(tuple, rig.listed)) == {("old",)}
        assert "was empty" in rig.of(ServerListed)[-1].offer.problems[0]
        await trio.sleep(20)
        assert rig.listed[-1] == []
        assert rig.fake.count("tools/list") == 3
        rig.fake.tools = [tool("back")]
        await trio.sleep(300)
        assert rig.listed[-1] == ["back"]


async def test_an_empty_list_that_was_a_hiccup_wipes_nothing(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(tools=[]), known=KNOWN, settings=AWAKE) as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        rig.fake.tools = [tool("echo")]
        await trio.sleep(310)
        assert rig.listed == [["old"], ["echo"]]
        assert rig.of(ServerListed)[-1].offer.problems == ()


async def test_a_sleeping_emptied_server_is_not_woken_every_probe_interval(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(tools=[]), known=KNOWN) as rig:
        await rig.wake()
        await trio.sleep(3600)
        assert rig.fake.starts == 1
        assert rig.actor.life.state is State.DORMANT


@pytest.mark.parametrize(("known", "listed"), [(KNOWN, ["old"]), (None, [])])
async def test_a_failing_reading_keeps_what_is_known_and_says_that_it_is_partial(
    autojump_clock: MockClock, known: Offer | None, listed: list[str]
) -> None:
    async with running_server(FakeServer(errors_at=dict(FAILURE)), known=known) as rig:
        await rig.wake()
        await trio.sleep(3)
        assert rig.listed == [listed]
        offer = rig.of(ServerListed)[0].offer
        assert offer.partial
        assert "tools/list" in offer.problems[0]


async def test_a_failing_reading_is_counted_and_told_to_who_asked_for_it_until_the_next_that_comes_to_its_end(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=AWAKE) as rig:
        await rig.wake()
        rig.fake.errors_at = dict(FAILURE)
        with pytest.raises(ServerError, match=r"its tools could not be listed: .*resources/list prompts/list"):
            await rig.actor.address.ask(RefreshServer(server="s"))
        counted = rig.actor.status().discovery
        assert (counted.count, counted.failures) == (1, 1)
        rig.fake.errors_at, rig.fake.silent_at = {}, {"tools/list"}
        asked = rig.actor.address.request(RefreshServer(server="s"))
        await trio.sleep(3)
        sent = next(found for found in reversed(rig.fake.messages) if found["method"] == "tools/list")
        await rig.fake.write(line(id=sent["id"], result={"tools": [tool("echo")]}))
        await asked.wait()
        counted = rig.actor.status().discovery
        assert (counted.count, counted.failures) == (2, 1)
        await rig.until_listed(3)
        first, failed, again = rig.of(ServerListed)
        assert [bool(each.failure) for each in (first, failed, again)] == [False, True, False]
        assert again.seconds == counted.last_s == pytest.approx(3, abs=1)


@pytest.mark.case("L05")
async def test_a_server_whose_lists_hang_answers_calls_if_its_tools_are_known(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(silent_at={"tools/list"}), known=KNOWN) as rig:
        assert await rig.call(deadline_s=120, a=1) == {"a": 1}
        assert trio.current_time() < 1
        await trio.sleep(61)
        assert (await rig.status()).last_error == "its lists could not be read in time"
        assert rig.actor.life.state is State.READY


async def test_a_server_whose_first_lists_hang_is_started_again(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(silent_at={"tools/list"})) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(rig.wake)
        await rig.reach(State.RESPAWNING)
        rig.fake.silent_at.clear()
        await rig.reach(State.READY)
        assert rig.listed == [["echo"]]


async def test_a_server_that_announces_no_list_is_ready_with_what_tools_it_has_all_the_same(
    autojump_clock: MockClock,
) -> None:
    for refuses in (True, False):
        refusal = {"tools/list": {"code": -32601, "message": "Method not found"}} if refuses else {}
        async with running_server(FakeServer(capabilities={}, errors_at=refusal)) as rig:
            await rig.wake()
            assert rig.actor.life.state is State.READY
            await wait_all_tasks_blocked()
            assert rig.listed == [[] if refuses else ["echo"]]
            assert rig.of(ServerListed)[-1].offer.problems == ()


# Lists that are long, broken or late ---------------------------------------------------------------------------------


@pytest.mark.case("L09")
async def test_one_bad_tool_costs_that_tool_and_not_the_server(autojump_clock: MockClock) -> None:
    deep: dict[str, object] = {}
    for _ in range(900):
        deep = {"a": deep}
    bad: list[dict[str, object]] = [
        {"name": "deep", "inputSchema": deep},
        {"name": "huge", "x": 10**5000},
        {"name": "nan", "x": float("nan")},
    ]
    bad.append({"name": "half", "x": "\ud800"})
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        fake = FakeServer(tools=[tool("first"), *bad, tool("last")])
        async with running_server(fake) as rig:
            await rig.wake()
            await wait_all_tasks_blocked()
            assert rig.listed == [["first", "last"]]
            assert trio.current_time() < 1
            problems = rig.of(ServerListed)[0].offer.problems
            assert [problem.split("'")[1] for problem in problems] == ["deep", "huge", "nan", "half"]
    finally:
        sys.set_int_max_str_digits(limit)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (b'{"name":"deep","inputSchema":' + b'{"a":' * 1600 + b"1" + b"}" * 1601, "deep"),
        (b'{"name":"bad","description":"\xff\xfe"}', "'bad'"),
    ],
    ids=["nested deeper than any parser goes", "no UTF-8"],
)
async def test_a_tool_that_no_parser_reads_costs_that_tool(autojump_clock: MockClock, bad: bytes, named: str) -> None:
    fake = FakeServer(silent_at={"tools/list"})
    async with running_server(fake) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(rig.wake)
        await rig.reach(State.DISCOVERING)
        await wait_all_tasks_blocked()
        id_ = next(found["id"] for found in fake.messages if found["method"] == "tools/list")
        await fake.write(b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[%b,{"name":"good"}]}}\n' % (id_, bad))
        await rig.reach(State.READY)
        assert rig.listed == [["good"]]
        assert named in rig.of(ServerListed)[0].offer.problems[0]
        assert trio.current_time() < 1


@pytest.mark.case("L03")
async def test_a_server_with_small_pages_shows_all_its_tools(autojump_clock: MockClock) -> None:
    names = [f"t{number}" for number in range(300)]
    async with running_server(FakeServer(tools=[tool(name) for name in names], page=1)) as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        assert rig.listed == [names]
        assert rig.of(ServerListed)[0].offer.problems == ()


async def test_a_list_that_is_cut_says_so_and_takes_nothing_away(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("parts.discovery", "parts.processes", "lists"):
        monkeypatch.setattr(f"actors.server.{module}.LIST_LIMITS", ListLimits(max_entries=3))
    fake = FakeServer(tools=[tool(f"t{number}") for number in range(9)], page=2)
    async with running_server(fake, known=KNOWN) as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        offer = rig.of(ServerListed)[0].offer
        assert [tool.name for tool in offer.tools] == ["t0", "t1", "t2"]
        assert offer.partial
        assert "cut at 3 entries" in offer.problems[0]
        rig.fake.tools = rig.fake.tools[:1]
        rig.fake.page = 1
        rig.fake.errors_at = dict(FAILURE)
        await rig.fake.notify(CHANGED)
        await trio.sleep(3)
        assert rig.listed[-1] == ["t0", "t1", "t2"]


async def test_what_was_listed_before_the_server_fell_silent_counts(autojump_clock: MockClock) -> None:
    capabilities: dict[str, object] = {"tools": {}, "prompts": {}}
    async with running_server(FakeServer(silent_at={"prompts/list"}, capabilities=capabilities)) as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        assert rig.listed == [["echo"]]
        assert rig.fake.starts == 1
        assert rig.of(ServerListed)[0].offer.problems == ("prompts/list: not answered within 60 s",)


async def test_a_server_is_not_put_to_sleep_while_its_lists_are_read(autojump_clock: MockClock) -> None:
    settings = ServerSettings(idle_timeout_s=5)
    async with running_server(FakeServer(), settings=settings, known=KNOWN) as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        rig.fake.silent_at.add("tools/list")
        await rig.fake.notify(CHANGED)
        await trio.sleep(30)
        assert State.DRAINING not in rig.states
        await trio.sleep(60)
        assert State.DRAINING in rig.states
