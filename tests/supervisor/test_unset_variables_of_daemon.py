"""A variable that is not set: the page says which and how to give it, and what it says works while the daemon runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import trio

from supervisor.host.datadir import DataDir
from tests.fakes.page_figures import read
from tests.scenario.daemon import world
from tests.supervisor.commands.test_cli import invoke


async def test_a_missing_variable_is_named_with_the_command_that_gives_it_and_no_restart(
    tmp_path: Path, data: DataDir
) -> None:
    entry = {"command": "x", "env": {"API_KEY": "${NOWHERE_SET}"}}
    async with world(tmp_path, data, {"one": entry}, reload_on_change=True) as at:
        for path in ("/ui", "/ui/servers/one"):
            shown = read((await at.ask("GET", path)).text).one("main")
            assert "the environment variable NOWHERE_SET is not set" in shown.text
            assert "Restart" not in [button.text for button in shown.all("button")], "it would do nothing"
            (told,) = set(re.findall(r"mcpvisor (edit one --set env\.API_KEY=VALUE)", shown.text))
        words = [*shlex.split(told.replace("VALUE", "'the key'")), "--config", str(at.path)]
        done = await trio.to_thread.run_sync(lambda: invoke(*words))
        assert done.exit_code == 0, done.output
        await at.until("/api/servers/one", lambda row: row["status"] == "online")
