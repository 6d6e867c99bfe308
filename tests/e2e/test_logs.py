"""Logs of real servers that say too much, too long or what is secret; over a restart, and over a disk that fails."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from tests.e2e.daemons import STAND_IN, Daemon, restarted, running, text
from tests.scenario.client import Json

SECRET = "correct-horse-battery-77"
LOUD = """
import os, runpy, sys, threading
def shout():
    while True:
        os.write(2, b"noise of the flood\\n" * 500)
threading.Thread(target=shout, daemon=True).start()
"""
SPILL = """
import os, runpy, sys
key = os.environb[b"API_KEY"]
os.write(2, b"my key is " + key + b"\\n" + b"z" * 3000 + key + b"\\n")
"""
ENDLESS = """
import os, runpy, sys
os.write(2, b"w" * 300_000)
os.write(2, b"\\nOk to proceed? ")
"""
ON = f"\nsys.argv = ['', 'excalidraw']\nrunpy.run_path({STAND_IN!r}, run_name='__main__')\n"
MAX_BYTES = 100_000
NAMES = ("loud", "spill", "endless")


def servers(directory: Path) -> Json:
    """Write what they run, and return their entries."""
    entries = {}
    for name, script in (("loud", LOUD), ("spill", SPILL), ("endless", ENDLESS)):
        file = directory / f"{name}.py"
        file.write_text(script + ON)
        entries[name] = {"command": sys.executable, "args": [str(file)], "env": {"API_KEY": SECRET}}
    return entries


def files(directory: Path) -> list[Path]:
    return sorted((directory / "data" / "logs").iterdir())


def bytes_of(directory: Path, server: str) -> int:
    return sum(file.stat().st_size for file in files(directory) if file.name.startswith(f"{server}-"))


async def said(daemon: Daemon) -> list[str]:
    page = await daemon.page("/api/servers/spill/logs?lines=1000&grep=key")
    return [line["text"] for line in page["lines"]]


@pytest.mark.e2e
async def test_what_servers_wrote_is_there_after_a_restart_bounded_and_without_secrets(tmp_path: Path) -> None:
    with running(tmp_path, servers(tmp_path), server_log_bytes=MAX_BYTES, log_format="json") as daemon:
        await daemon.ready()
        for name in NAMES:
            answer = await daemon.execute(f"{name}:draw", text="still here")
            assert text(answer) == "still here"
        page = await daemon.page("/api/logs?grep=key")
        assert [line["text"] for line in page["lines"]] == ["my key is ***"]
    assert bytes_of(tmp_path, "loud") > 0
    for name in NAMES:
        assert bytes_of(tmp_path, name) <= MAX_BYTES
    for file in files(tmp_path):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert SECRET[:12] not in file.read_text(encoding="utf-8")
    records = [json.loads(line) for line in daemon.log.splitlines()]
    assert {"time", "level", "logger", "message"} <= records[0].keys()
    assert any(record["message"].startswith("spill: ready after") for record in records)
    assert SECRET[:12] not in daemon.log
    with restarted(daemon) as following:
        await following.ready()
        assert await said(following) == ["my key is ***"], "it has not been started again"
        assert text(await following.execute("spill:draw", text="here")) == "here"
        assert await said(following) == ["my key is ***"] * 2
        endless = (await following.page("/api/servers/endless/logs?grep=proceed"))["lines"]
        assert [line["text"] for line in endless] == ["Ok to proceed?"] * len(endless)
        assert endless


@pytest.mark.e2e
async def test_a_directory_that_cannot_be_written_is_a_condition_and_no_call_fails(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "logs").write_text("in the way")
    with running(tmp_path, servers(tmp_path)) as daemon:
        await daemon.ready()
        assert text(await daemon.execute("spill:draw", text="here")) == "here"
        page = await daemon.page("/api/servers/spill/logs?grep=key")
        assert ([line["text"] for line in page["lines"]], page["complete"]) == (["my key is ***"], False)
        told = await daemon.until("/api/status", lambda told: told["degraded"])
        assert [row["what"] for row in told["degraded"]] == ["logs of servers"]
        assert text(await daemon.execute("loud:draw", text="here, too")) == "here, too"
