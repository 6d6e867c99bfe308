"""From an empty home: a daemon runs, the servers of a client come to it, and the client comes to the daemon."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import trio

from tests.e2e.daemons import ROOT, end, stand_in, start, write_config
from tests.e2e.fork_server import forking
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e


async def test_what_cursor_has_is_served_and_cursor_is_connected(tmp_path: Path) -> None:
    write_config(tmp_path, {})
    cursor = tmp_path / "home" / ".cursor" / "mcp.json"
    cursor.parent.mkdir(parents=True)
    cursor.write_text(json.dumps({"mcpServers": {"ours": stand_in("growing", env={"SECRET": "canary"})}}, indent=2))
    daemon = start(tmp_path)
    environ = {**os.environ, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT), "MCPVISOR_URL": daemon.url}

    async def run(*arguments: str) -> str:
        done = await trio.run_process(
            [*forking(), "-m", "supervisor", *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
        )
        return done.stdout.decode()

    try:
        with trio.fail_after(PATIENCE_S / 2):
            async with daemon.events() as events:
                told = await run("import", "--into", str(tmp_path / "mcp.json"), "--move", "--yes")
                await events.state("ours", "ready")
            assert "ours: env.SECRET" in told
            assert "canary" not in told
            assert "canary" in (tmp_path / "mcp.json").read_text()
            assert "ours:grow" in await daemon.discover("*")
            told = await run("connect", "cursor", "--yes")
        assert json.loads(cursor.read_text()) == {
            "mcpServers": {"mcpvisor": {"type": "http", "url": f"{daemon.url}/mcp/all"}}
        }, "it searches tools itself"
        assert "Cursor" in told
    finally:
        end(daemon)
