"""A variable that is not set: the page says which and how to give it, and what it says works while the daemon runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import httpx2
import trio
from click.testing import CliRunner

from supervisor.commands.servers import edit
from supervisor.host.datadir import open_data_dir
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport
from tests.fakes.page_figures import read
from tests.scenario.daemon import configuration, running


async def test_a_missing_variable_is_named_with_the_command_that_gives_it_and_no_restart(tmp_path: Path) -> None:
    fake = FakeServer()
    with open_data_dir(tmp_path / "data", {}) as data:
        config = configuration(tmp_path, {"one": {"command": "x", "env": {"API_KEY": "${NOWHERE_SET}"}}})
        async with running(config, data, connect=lambda _: MemoryTransport(fake.serve)) as client:
            for path in ("/ui", "/ui/servers/one"):
                shown = read((await client.get(path)).text).one("main")
                assert "the environment variable NOWHERE_SET is not set" in shown.text
                assert "Restart" not in [button.text for button in shown.all("button")], "it would do nothing"
                (told,) = set(re.findall(r"mcpvisor (edit one --set env\.API_KEY=VALUE)", shown.text))
            words = [*shlex.split(told.replace("VALUE", "'the key'")), "--config", str(config.path)]
            done = await trio.to_thread.run_sync(lambda: CliRunner().invoke(edit, words[1:]))
            assert done.exit_code == 0, done.output
            await until_online(client)


async def until_online(client: httpx2.AsyncClient) -> None:
    while True:
        if (await client.get("/api/servers/one")).json()["status"] == "online":
            return
        await trio.sleep(0.02)
