"""A daemon with the sentence model: tools are found by meaning, none is embedded twice, nothing is imported late."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from supervisor.cli import cli
from supervisor.neural import MINILM
from tests.e2e import daemons
from tests.e2e.daemons import Daemon, restarted, running, stand_in
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

INSTALLED = Path(sys.prefix) / "model"  # by `.ci/environment`
QUERY = "create a bug report for the team"
"""Of all tools only `github:create_issue` has a word of it."""


async def until_embedded(daemon: Daemon) -> list[str]:
    """Poll until tools of the last server are found, which only their meaning can do; return all that is found then."""
    found: list[str] = []
    with trio.fail_after(PATIENCE_S):
        while not any(path.startswith("growing:") for path in found):
            await trio.sleep(0.05)
            found = await daemon.discover(QUERY)
    await daemon.settled()
    return found


def vectors(daemon: Daemon) -> set[int]:
    """Return the numbers of the rows that have a vector: one that is written again gets a new number."""
    with closing(sqlite3.connect(daemon.directory / "data" / "store.sqlite3")) as connection:
        return {row for (row,) in connection.execute("SELECT rowid FROM vectors")}


async def test_a_daemon_embeds_its_tools_once_and_imports_nothing_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (INSTALLED / MINILM.module).exists() and "CI" not in os.environ:
        pytest.skip(f"{MINILM.distribution} is not installed in {INSTALLED}: run .ci/environment")
    monkeypatch.setenv("PYTHONPATH", str(INSTALLED))
    monkeypatch.setattr(daemons, "COMMAND", (sys.executable, "-X", "importtime", "-m", "supervisor", "run"))
    servers = {role: stand_in(role) for role in ("github", "filesystem", "growing")}
    with running(tmp_path, servers, rerank="neural") as daemon:
        before = len(daemon.log)
        await daemon.ready()
        assert "github:create_issue" in await daemon.discover(QUERY), "by words, whether there is a model yet or not"
        found = await until_embedded(daemon)
        assert found[0] == "github:create_issue"
        assert "search compares meanings" in daemon.log
        shown = await trio.to_thread.run_sync(partial(CliRunner().invoke, cli, ["search", QUERY, "--url", daemon.url]))
        assert shown.stdout.endswith(" ms by words and meanings; a score of 0 is best\n")
        late = [line for line in daemon.log[before:].splitlines() if line.startswith("import time:")]
        assert late == []
        kept = vectors(daemon)
        assert kept
        (weights,) = (daemon.directory / "data" / "model").iterdir()
        made = weights.stat().st_mtime_ns
    with restarted(daemon) as again:
        await again.ready()
        assert await until_embedded(again) == found
        assert vectors(again) >= kept, "while those of what else is done in the world are still added"
        assert weights.stat().st_mtime_ns == made
