"""Orders to a whole daemon over memory transports: what is done, what is said, and what is kept."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.catalogue.snapshot import Entry
from actors.registry import indexing
from actors.search.segment import Segment
from supervisor.host.datadir import DataDir
from supervisor.servers import control
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.daemon import world

GOOD: dict[str, Any] = {"good": {"command": "x"}}
SERVERS: dict[str, Any] = {
    **GOOD,
    "bad": {"command": "x", "max_restarts": 0},
    "off": {"command": "x", "disabled": True},
    "github-john-abc123": {"command": "x", "slug": "github"},
    "typo": {"comand": "x"},
}


@pytest.fixture
def fakes() -> dict[str, FakeServer]:
    return {"good": FakeServer(), "bad": FakeServer(exits_at="initialize"), "github": FakeServer()}


async def test_orders_are_carried_out_and_say_what_was_done(
    tmp_path: Path, data: DataDir, fakes: dict[str, FakeServer]
) -> None:
    async with world(tmp_path, data, SERVERS, fakes) as at:
        assert await at.ordered("good", "restart") == "good is restarted and ready, 1 tools"
        assert fakes["good"].starts == 2
        assert await at.ordered("good", "wake") == "good was ready already, 1 tools"
        assert await at.ordered("good", "sleep") == "good is asleep; a call wakes it again"
        assert await at.ordered("good", "sleep") == "good has no process, it is dormant"
        fakes["good"].tools.append(tool("new"))
        said = await at.ordered("good", "refresh")
        assert said == "good: it lists 2 tools; 1 new: new"
        assert await at.ordered("good", "wake") == "good was ready already, 2 tools"


async def test_a_server_that_failed_at_its_first_discovery_comes_back_on_order(
    tmp_path: Path, data: DataDir, fakes: dict[str, FakeServer]
) -> None:
    async with world(tmp_path, data, SERVERS, fakes) as at:
        assert (await at.row("bad"))["state"] == "failed"
        assert "exit code 1" in await at.ordered("bad", "restart", 502)
        fakes["bad"].exits_at = None
        assert (await at.ordered("bad", "restart")).startswith("bad is restarted and ready")
        await at.until_found("bad:*", ["bad:echo"])
        assert (await at.row("bad"))["last_error"] is None
        lines = [line["text"] for line in (await at.page("/api/servers/bad/logs"))["lines"]]
        assert any("died while handshaking: exit code 1; last words: last words" in line for line in lines)
        assert "last words" in lines


async def test_a_server_switched_off_is_hidden_and_not_started_until_it_is_switched_on(
    tmp_path: Path, data: DataDir, fakes: dict[str, FakeServer]
) -> None:
    async with world(tmp_path, data, GOOD, fakes) as at:
        await at.until_found("echo", ["good:echo"])
        assert "switched off" in await at.ordered("good", "disable")
        assert "already" in await at.ordered("good", "disable")
        await at.until_found("echo", [])
        starts = fakes["good"].starts
        refused = failure(await at.call("good-echo"))
        assert refused["data"]["outcome"] == "not_sent"
        for order in ("restart", "wake", "sleep", "refresh"):
            assert "mcpvisor enable good" in await at.ordered("good", order, 409)
        assert fakes["good"].starts == starts == fakes["good"].exits
        row = await at.row("good")
        assert (row["disabled"], row["state"], row["pid"]) == (True, "stopped", None)
        assert (await at.page("/readyz"))["ready"]
        assert await at.ordered("good", "enable") == "good is switched on; a call wakes it"
        assert await at.ordered("good", "enable") == "good was not switched off"
        await at.until_found("echo", ["good:echo"])
        assert "result" in await at.call("good-echo")


async def test_a_server_stays_switched_off_over_a_restart_of_the_daemon_and_keeps_what_is_known(
    tmp_path: Path, data: DataDir, fakes: dict[str, FakeServer]
) -> None:
    async with world(tmp_path, data, GOOD, fakes) as at:
        await at.ordered("good", "disable")
    starts = fakes["good"].starts
    async with world(tmp_path, data, GOOD, fakes) as at:
        assert (await at.row("good"))["disabled"]
        assert await at.discover("echo") == []
        assert fakes["good"].starts == starts
        assert await at.ordered("good", "enable") == (
            "good is switched on: it lists 1 tools; its tools are the same as before"
        )
    async with world(tmp_path, data, GOOD, fakes) as at:
        assert not (await at.row("good"))["disabled"]
        await at.until_found("echo", ["good:echo"])


async def test_a_server_may_be_switched_while_it_crashes_and_by_several_at_once(
    tmp_path: Path, data: DataDir, fakes: dict[str, FakeServer]
) -> None:
    servers = {"bad": {"command": "x", "max_restarts": 1000, "backoff_initial_s": 0.01, "backoff_max_s": 0.01}}
    async with world(tmp_path, data, servers, fakes) as at:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(at.ordered, "bad", "disable")
        starts = fakes["bad"].starts
        fakes["bad"].exits_at = None
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(at.ordered, "bad", "enable")
        assert (await at.row("bad"))["state"] == "ready"
        assert fakes["bad"].starts == starts + 1


async def test_what_cannot_run_says_what_to_change_and_where(
    tmp_path: Path, data: DataDir, fakes: dict[str, FakeServer]
) -> None:
    async with world(tmp_path, data, SERVERS, fakes) as at:
        for order in ("enable", "restart", "wake", "sleep", "refresh"):
            said = await at.ordered("off", order, 409)
            assert "remove \"disabled\" from the entry 'off'" in said
            assert f"{tmp_path}/mcp.json" in said
        assert "already" in await at.ordered("off", "disable")
        for order in ("restart", "disable", "enable"):
            assert 'did you mean "command"?' in await at.ordered("typo", order, 502)
        logged = (await at.page("/api/servers/typo/logs"))["lines"]
        assert 'did you mean "command"?' in logged[0]["text"]


async def test_a_name_is_taken_exactly_and_a_near_one_is_only_named(
    tmp_path: Path, data: DataDir, fakes: dict[str, FakeServer]
) -> None:
    near = {"Good": "good", "godo": "good", "github-john-abc123": "github", "xyzzyxyzzy": "mcpvisor status"}
    async with world(tmp_path, data, SERVERS, fakes) as at:
        before = {server: fake.starts for server, fake in fakes.items()}
        for name, hint in near.items():
            assert hint in await at.ordered(name, "restart", 404)
        assert {server: fake.starts for server, fake in fakes.items()} == before


async def test_the_log_of_the_daemon_tells_the_story_and_is_not_flooded_by_one_server(
    tmp_path: Path,
    data: DataDir,
    fakes: dict[str, FakeServer],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    loop = {"command": "x", "max_restarts": 1000, "backoff_initial_s": 0.001, "backoff_max_s": 0.001}
    async with world(tmp_path, data, {"good": {"command": "x"}, "bad": loop}, fakes) as at:
        while fakes["bad"].starts < 60:  # noqa: ASYNC110 - the fake counts, it tells nobody
            await trio.sleep(0.01)
        await at.ordered("bad", "disable")
        await at.ordered("good", "sleep")
    told = [record for record in caplog.records if record.name == "servers"]
    good = [record.getMessage() for record in told if record.getMessage().startswith("good: ")]
    ready = re.sub(r"\d+\.\d s", "some s", good[2])
    assert [*good[:2], ready] == [
        "good: woken",
        "good: started",
        "good: ready after some s: 1 tools, protocol 2025-11-25",
    ]
    assert "good: asleep; a call wakes it" in good
    bad = [record for record in told if record.getMessage().startswith("bad: ")]
    assert 20 <= len(bad) <= 40
    died = "bad: died while handshaking: exit code 1; last words: last words"
    assert {record.levelname for record in bad if record.getMessage() == died} == {"WARNING"}


@pytest.fixture
def slow_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever changes takes a while to be searchable."""
    analysed = indexing._analyse

    def slowly(entry: Entry, tools_only: bool) -> Segment:
        threading.Event().wait(0.2)  # in a worker thread
        return analysed(entry, tools_only)

    monkeypatch.setattr(indexing, "_analyse", slowly)


@pytest.mark.usefixtures("slow_index")
async def test_an_order_is_answered_when_searches_and_calls_see_its_effect(
    tmp_path: Path, data: DataDir, fakes: dict[str, FakeServer]
) -> None:
    async with world(tmp_path, data, GOOD, fakes) as at:
        await at.until_found("good:*", ["good:echo"])
        fakes["good"].tools.append(tool("new"))
        await at.ordered("good", "refresh")
        assert await at.discover("good:*") == ["good:echo", "good:new"]
        assert "isError" not in (await at.call("good-new"))["result"]
        await at.ordered("good", "disable")
        assert await at.discover("good:*") == []
        await at.ordered("good", "enable")
        assert await at.discover("good:*") == ["good:echo", "good:new"]


async def test_an_order_whose_effect_cannot_be_seen_for_want_of_resources_says_so_in_time(
    tmp_path: Path,
    data: DataDir,
    fakes: dict[str, FakeServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacks(*_: object) -> None:
        raise MemoryError

    async with world(tmp_path, data, GOOD, fakes) as at:
        await at.until_found("good:*", ["good:echo"])
        monkeypatch.setattr(indexing, "_reindex", lacks)
        monkeypatch.setattr(control, "SHOWN_S", 0.05)
        fakes["good"].tools.append(tool("new"))
        assert await at.ordered("good", "refresh") == "good: it lists 2 tools; 1 new: new" + control.LATER
