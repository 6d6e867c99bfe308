"""Names of servers that a person types into the dashboard, whole or in part."""

from __future__ import annotations

from pathlib import Path

from supervisor.host.datadir import open_data_dir
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport
from tests.fakes.page_figures import read
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running


async def test_a_part_of_the_name_of_a_server_leads_to_it_or_to_a_choice(tmp_path: Path) -> None:
    servers = {name: {"command": "x"} for name in ("github-main", "github-old", "clock")}
    config = configuration(tmp_path, servers)
    with open_data_dir(tmp_path / "data", {}) as data:
        async with running(config, data, connect=lambda _: MemoryTransport(FakeServer().serve)) as client:
            await Client(client).ready()
            for start in ("/ui/servers/", "/ui/tools?servers="):
                one = await client.get(f"{start}Clo", follow_redirects=False)
                assert (one.status_code, one.headers.get("location")) == (303, f"{start}clock")
                assert (await client.get(f"{start}clock", follow_redirects=False)).status_code == 200
                for asked, names in (("git", ("github-main", "github-old")), ("clokc", ("clock",))):
                    several = await client.get(f"{start}{asked}", follow_redirects=False)
                    links = [each.attributes["href"] for each in read(several.text).one("ul", id="likely").all("a")]
                    assert (several.status_code, links) == (200, [f"{start}{name}" for name in names])
                none = await client.get(f"{start}zzzzzz", follow_redirects=False)
                assert (none.status_code, "there is no server" in none.text) == (404, True)
