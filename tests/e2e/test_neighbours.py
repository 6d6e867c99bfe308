"""Servers that fail, sleep and change, each without disturbing the others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_websocket import WebSocketConnection

from tests.e2e.daemons import Daemon, running, stand_in, text
from tests.fakes.failures import failure
from tests.scenario.client import PATIENCE_S, message

pytestmark = pytest.mark.e2e


async def test_a_broken_entry_and_a_crash_loop_do_not_disturb_their_neighbour(tmp_path: Path) -> None:
    hasty: dict[str, Any] = {"backoff_initial_s": 0.05, "backoff_max_s": 0.1, "max_restarts": 3}
    servers = {
        "growing": stand_in("growing"),
        "crashing": stand_in("crashing", **hasty),
        "missing": {"command": "/no/such/program"},
        "nonsense": {"command": 5},
        "misspelt": {"comand": "true"},
    }
    with running(tmp_path, servers) as daemon:
        await daemon.ready()
        async with daemon.events() as events:
            before = await daemon.rows()
            if before["crashing"]["state"] != "failed":
                await events.state("crashing", "failed")
        for number in range(5):
            assert text(await daemon.execute("growing:echo", text=str(number))) == str(number)
        after = await daemon.rows()
        assert {name: row["state"] for name, row in after.items()} == {
            "growing": "ready",
            "crashing": "failed",
            "missing": "failed",
            "nonsense": "failed",
            "misspelt": "failed",
        }
        assert (after["growing"]["incarnation"], after["growing"]["failures"]) == (1, 0)
        assert "exit code 3" in after["crashing"]["last_error"]
        assert "comand" in after["misspelt"]["last_error"]
        assert daemon.log.count("mcpServers.misspelt.comand: unknown key") == 1
        assert daemon.log.count("mcpServers.nonsense.command: must be") == 1
        (line,) = (await daemon.page("/api/servers/misspelt/logs"))["lines"]
        assert line["text"].startswith("cannot run: ")
        assert (await daemon.page("/readyz"))["failed"] == ["crashing", "missing", "misspelt", "nonsense"]
        reasons = {
            "crashing": "exit code 3",
            "missing": "no such file",
            "nonsense": "must be a string",
            "misspelt": "unknown key",
        }
        for name, reason in reasons.items():
            error = failure(await daemon.execute(f"{name}:anything"))
            assert (error["data"]["type"], error["data"]["server"]) == ("unavailable", name)
            assert reason in error["message"]


async def test_a_call_to_a_server_that_is_not_discovered_yet_may_be_tried_again(tmp_path: Path) -> None:
    mute = {"command": "sleep", "args": ["1000"], "stop_eof_s": 0.1, "call_timeout_s": 1}
    with running(tmp_path, {"mute": mute, "growing": stand_in("growing")}) as daemon:
        error = failure(await daemon.execute("mute:anything"))["data"]
        assert (error["type"], error["outcome"], error["retryable"]) == ("starting", "not_sent", True)
        assert error["retry_after_ms"] > 0
        read = await daemon.rpc("resources/read", uri="mute|memo://anything")
        assert read["error"]["data"]["type"] == "starting"
        unknown = failure(await daemon.execute("nobody:anything"))["data"]
        assert unknown["type"] == "not_found"


async def test_an_idle_server_sleeps_and_wakes_for_a_call(tmp_path: Path) -> None:
    with running(tmp_path, {"growing": stand_in("growing", idle_timeout_s=1)}) as daemon:
        async with daemon.events() as events:
            first = await events.until("mcp.server.dormant", server_slug="growing")
            assert (await daemon.rows())["growing"]["pid"] is None
            assert "growing:echo" in await daemon.discover("growing echo")
            assert text(await daemon.execute("growing:echo", text="awake")) == "awake"
            second = await events.until("mcp.server.respawned", server_slug="growing")
            assert second["process_id"] not in (None, first["process_id"])
            await events.state("growing", "dormant")


@asynccontextmanager
async def listening(daemon: Daemon) -> AsyncIterator[WebSocketConnection]:
    """A client that has greeted and reads what comes."""
    async with daemon.websocket("/ws") as socket:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}
        await socket.send_message(json.dumps(message("initialize", hello)))
        assert "result" in json.loads(await socket.get_message())
        await socket.send_message(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        await socket.send_message(json.dumps(message("ping", {}, "greeted")))
        assert json.loads(await socket.get_message())["id"] == "greeted"
        yield socket


async def test_a_change_that_is_found_on_waking_is_told_to_clients(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.write_text("alpha gone")
    with running(tmp_path, {"listed": stand_in("listed", str(tools), idle_timeout_s=1)}) as daemon:
        async with daemon.events() as events:
            await daemon.ready()
            assert sorted(await daemon.discover("*")) == ["listed:alpha", "listed:gone"]
            await events.state("listed", "dormant")
            tools.write_text("alpha beta")
            async with listening(daemon) as socket:
                assert text(await daemon.execute("listed:alpha", text="woken")) == "woken"
                with trio.fail_after(PATIENCE_S):
                    told = json.loads(await socket.get_message())
                assert told == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            assert sorted(await daemon.discover("*")) == ["listed:alpha", "listed:beta"]
            changed = await events.until("mcp.tools.updated", server_slug="listed")
            assert (changed["added_tools"], changed["removed_tools"]) == (["beta"], ["gone"])


async def test_a_server_that_changes_while_nobody_calls_it_is_read_again(tmp_path: Path) -> None:
    with running(tmp_path, {"growing": stand_in("growing")}) as daemon:
        await daemon.ready()
        async with daemon.events() as events, listening(daemon) as socket:
            sprout = text(await daemon.execute("growing:grow"))
            await events.until("mcp.tools.updated", added_tools=[sprout])
            with trio.fail_after(PATIENCE_S):
                assert json.loads(await socket.get_message())["method"] == "notifications/tools/list_changed"
            assert text(await daemon.execute(f"growing:{sprout}", text="new")) == "new"
