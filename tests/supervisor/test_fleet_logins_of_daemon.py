"""A login at a fleet behind one address: whichever node its browser, and who began it, come back to."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.fakes.login_site import LoginSite
from tests.scenario.fleet import fleet_engine, fleet_node, until_known
from tests.supervisor.test_logins_of_daemon import CODE, IDENTITY, LoginWorld, address_of, servers_at

pytestmark = pytest.mark.process


async def test_a_login_that_was_begun_at_one_node_is_finished_by_way_of_another_one(tmp_path: Path) -> None:
    more: dict[str, Any] = {"auth": "tokens", "identity": IDENTITY, "daemon": {"connect": None}}
    async with LoginSite().running() as site, fleet_engine(tmp_path) as engine:
        servers = servers_at(site)
        async with (
            fleet_node(tmp_path, engine, "a", servers, **more) as a,
            fleet_node(tmp_path, engine, "b", servers, **more) as b,
        ):
            at = {"a": LoginWorld(a), "b": LoginWorld(b)}
            await at["a"].admit("ben", role="admin")
            at["b"].keys["ben"] = at["a"].keys["ben"]
            for each in at.values():
                await until_known(each, "ben")
            begun = await at["a"].begin("ben")
            came_back = urlsplit(address_of(begun, "ben"))
            shown = await at["b"].http.get(f"{came_back.path}?{came_back.query}")
            (code,) = CODE.findall(shown.text)
            assert (await at["b"]["ben"].page(f"/api/logins/{begun['login']}"))["state"] == "pending"
            done = await at["b"].answer("ben", begun, code)
            assert (done.status_code, done.json()["state"]) == (200, "done"), done.text
            for each in at.values():
                await each["ben"].until_tool("tickets__who")
                assert await each.token_used("ben") == "ben-1"
            nobody = await at["b"].http.get("/oauth/callback?state=AAAAAAAAAAAAAAAA&code=x")
            assert (nobody.status_code, "Nobody waits" in nobody.text) == (400, True)
