"""The first moments of a daemon that knows its servers from an earlier run."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from actors.catalogue.snapshot import segment_of
from actors.registry import indexing
from actors.search.segment import Segment
from supervisor.host.datadir import DataDir
from supervisor.service.lookup import visible
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.daemon import A, world


async def test_right_after_a_restart_what_is_read_so_far_is_found_and_all_can_be_called(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = {name: {"command": "x"} for name in ("letter", "parcel")}
    fakes = {name: FakeServer(tools=[tool("echo"), tool(f"send_{name}")]) for name in servers}
    async with world(tmp_path, data, servers, fakes):
        pass
    released = threading.Event()

    def slow(server: str, *of: Any) -> Segment:
        """Analyse one server at once, and the other one when the test says so."""
        if server == "parcel":
            released.wait(60)
        return segment_of(server, *of)

    async def page(query: str) -> Any:
        return (await at.result("discover_mcp_tools", query=query))["structuredContent"]

    monkeypatch.setattr(indexing, "segment_of", slow)
    monkeypatch.setattr(indexing, "PIECE", 1, raising=False)
    monkeypatch.setattr(visible, "INDEX_WAIT_S", 0.5, raising=False)
    async with world(tmp_path, data, servers, fakes, waits=False) as at:
        try:
            while not (found := await page("send a letter"))["tools"]:
                assert "can search" in found["notice"]
            assert found["tools"][0]["tool_path"] == "letter:send_letter"
            assert "The daemon has just started and can search 1 of 2 servers so far" in found["notice"]
            listed = await page("parcel:*")
            assert [row["tool_path"] for row in listed["tools"]] == ["parcel:echo", "parcel:send_parcel"]
            assert "notice" not in listed
            assert (await at.executed("parcel:echo", n=1))["structuredContent"] == {"n": 1}
        finally:
            released.set()
        await at.ready()
        assert "notice" not in await page("send a parcel")


async def test_a_server_that_never_sleeps_is_started_with_the_daemon_and_one_that_sleeps_by_a_call(
    tmp_path: Path, data: DataDir
) -> None:
    fakes = {name: FakeServer() for name in ("kept", "lazy", "each")}
    awake = {"command": "x", "idle_timeout_s": 0}
    servers = {"kept": awake, "lazy": A, "each": {**awake, "instances": "per_client"}}
    async with world(tmp_path, data, servers, fakes):
        pass
    before = {name: fake.starts for name, fake in fakes.items()}
    async with world(tmp_path, data, servers, fakes, waits=False) as at:
        await at.until_state("kept", "ready")
        assert {name: fake.starts - before[name] for name, fake in fakes.items()} == {"kept": 1, "lazy": 0, "each": 0}
        await at.edit({**servers, "lazy": awake})
        await at.until_state("lazy", "ready")
        await at.until_state("kept", "ready")
        await at.ordered("kept", "disable")
        assert await at.ordered("kept", "enable") == "kept is switched on, and ready"
        await at.until_state("kept", "ready")
        assert (await at.row("lazy"))["state"] == "ready"


@pytest.mark.process
def test_what_takes_megabytes_and_few_need_is_not_loaded_before_it_is_needed() -> None:
    large = ("cryptography", "opentelemetry")
    code = f"import sys, supervisor.daemon; print([name for name in sys.modules if name.startswith({large!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
