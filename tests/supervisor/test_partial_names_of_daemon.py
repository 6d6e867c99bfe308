"""Names of servers that a person types into the dashboard, whole or in part."""

from __future__ import annotations

from pathlib import Path

from supervisor.host.datadir import DataDir
from tests.fakes.page_figures import read
from tests.scenario.daemon import A, world


async def test_a_part_of_the_name_of_a_server_leads_to_it_or_to_a_choice(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, dict.fromkeys(("github-main", "github-old", "clock"), A)) as at:
        for start in ("/ui/servers/", "/ui/tools?servers="):
            one = await at.ask("GET", f"{start}Clo")
            assert (one.status_code, one.headers.get("location")) == (303, f"{start}clock")
            assert (await at.ask("GET", f"{start}clock")).status_code == 200
            for asked, names in (("git", ("github-main", "github-old")), ("clokc", ("clock",))):
                several = await at.ask("GET", f"{start}{asked}")
                links = [each.attributes["href"] for each in read(several.text).one("ul", id="likely").all("a")]
                assert (several.status_code, links) == (200, [f"{start}{name}" for name in names])
            none = await at.ask("GET", f"{start}zzzzzz")
            assert (none.status_code, "there is no server" in none.text) == (404, True)
