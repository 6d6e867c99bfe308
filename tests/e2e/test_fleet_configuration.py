"""Two nodes with one configuration: what is published at one of them the other one takes, keeps, and starts with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from tests.e2e.daemons import Daemon, restarted, running, stand_in, text, write_config
from tests.fleet.valkey import settle, valkey
from tests.scenario.client import PATIENCE_S, Json
from tests.supervisor.commands.test_cli import ask

pytestmark = pytest.mark.e2e

ISSUE = {"repo": "r", "title": "it"}


async def nodes(daemon: Daemon) -> Json:
    told: Json = await daemon.page("/api/nodes")
    return told


async def all_alike(daemon: Daemon, number: int) -> Json:
    """Wait until a daemon sees so many nodes, which start the same servers."""
    with trio.fail_after(PATIENCE_S):
        while True:
            told = await nodes(daemon)
            if [node["alike"] for node in told["nodes"]] == [True] * number:
                return told
            await trio.sleep(0.05)


async def test_what_is_published_at_one_node_is_served_by_the_other_one_also_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    with valkey(tmp_path / "engine") as engine:
        await settle(engine)
        fleet = {"engine": engine.url, "keys": ["the key of this fleet, which is long"], "lease_s": 60.0}
        own, taking = {**fleet, "node": "a"}, {**fleet, "node": "b", "configuration": "published"}
        servers = {"desk": stand_in("github")}
        with running(tmp_path / "a", servers, fleet=own) as a:
            with running(tmp_path / "b", {}, fleet=taking) as b:
                published = await ask(a.url, "fleet", "publish")
                assert published.exit_code == 0, published.stderr
                assert ", with 1 server: 1 server added (desk)" in published.stdout
                assert published.stdout.splitlines()[-1].split() == ["b", "as", "published"]
                assert text(await b.execute("desk:create_issue", **ISSUE)) == "created 'it' in r"
                first = (await all_alike(b, 2))["published"]
                assert (first["by"], first["node"]) == ("the operator", "a")

                servers["shelf"] = stand_in("excalidraw")
                write_config(tmp_path / "a", servers, call_timeout_s=50.0, fleet=own)
                planned = await ask(a.url, "fleet", "publish", "--dry-run")
                assert planned.stdout == "+ shelf: added\n~ setting call_timeout_s\n"
                assert (await nodes(b))["published"] == first
                again = json.loads((await ask(a.url, "fleet", "publish", "--json")).stdout)
                assert [node["published"] for node in again["nodes"]] == ["", again["digest"]]
                assert sorted(await b.rows()) == ["desk", "shelf"]
                await all_alike(b, 2)

                for name, wrong in (("no.json", "[1"), ("mcp.json", '{"mcpServers": {\n"desk": {"comand": "x"}}}')):
                    (tmp_path / "a" / name).write_text(wrong)
                    file = ["--file", str(tmp_path / "a" / name)] if name == "no.json" else []
                    refused = await ask(a.url, "fleet", "publish", *file)
                    assert refused.exit_code == 1
                    assert f"{tmp_path}/a/{name}:" in refused.stderr
                assert (await nodes(b))["published"]["digest"] == again["digest"]
                of_b = await ask(b.url, "fleet", "publish")
                assert of_b.exit_code == 1
                assert "b itself takes what is published" in of_b.stderr

                write_config(tmp_path / "c", {"desk": servers["desk"]})
                by_file = await ask(b.url, "fleet", "publish", "--file", str(tmp_path / "c" / "mcp.json"))
                assert by_file.exit_code == 0, by_file.stderr
                assert sorted(await b.rows()) == ["desk"]
                shown = await ask(b.url, "nodes")
                assert "was published" in shown.stderr
                assert "its own" in shown.stdout
            engine.kill()
            with restarted(b) as following:
                assert sorted(await following.rows()) == ["desk"]
                assert "published for the fleet: " in following.log
