"""Two daemons of a fleet in one process, with a real engine: what one of them runs, the other one has, too."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.errors import ConfigError
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets, url_of
from supervisor.host.datadir import DataDir, open_data_dir
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fleet.valkey import ValkeyServer
from tests.scenario.client import Client, Json
from tests.scenario.daemon import World, configuration, world
from tests.scenario.fleet import KEY, fleet_engine, fleet_node
from tests.supervisor.commands.test_cli import ask as command

pytestmark = pytest.mark.process


class FleetOfTwo:
    """Both nodes by name, and the server that is shared: one fake for both, so what it was asked is seen."""

    def __init__(self, at: dict[str, World], fake: FakeServer, engine: ValkeyServer) -> None:
        self.at = at
        self.fake = fake
        self.engine = engine

    async def echo(self, node: str, text: str) -> Json:
        return await self.at[node].executed("desk:echo", text=text)

    async def told(self, node: str) -> Json:
        """What a node says of all nodes."""
        return dict(await self.at[node].page("/api/nodes"))

    async def owner(self) -> tuple[str, str]:
        """Return the name of the node that runs the server, and that of the other one."""
        return ("a", "b") if (await self.told("a"))["owns"] else ("b", "a")


@asynccontextmanager
async def fleet_of_two(
    directory: Path,
    *,
    differ: bool = False,
    lease_s: float = 60.0,
    engine_runs: bool = True,
    trust: str = "open",
    **settings: Any,
) -> AsyncIterator[FleetOfTwo]:
    """`differ`: each starts the server in its own way."""
    fakes = dict.fromkeys(("desk", "shelf"), FakeServer(tools=[tool("echo")]))

    def at(name: str) -> AbstractAsyncContextManager[World]:
        desk = {"command": "x", "args": [name] if differ else [], "trust": trust}
        return fleet_node(directory, engine, name, {"desk": desk}, {"lease_s": lease_s}, fakes=fakes, **settings)

    async with fleet_engine(directory) as engine:
        if not engine_runs:
            engine.kill()
        async with at("a") as a, at("b") as b:
            for each in (a, b) if engine_runs else ():
                await each.operator.ready()
            yield FleetOfTwo({"a": a, "b": b}, fakes["desk"], engine)


async def until_tools(two: FleetOfTwo, node: str, wanted: set[str]) -> None:
    await two.at[node].until("/api/tools", lambda told: {row["path"] for row in told["tools"]} == wanted)


async def until_answered(two: FleetOfTwo, node: str) -> None:
    while (await two.echo(node, "again")).get("isError"):  # noqa: ASYNC110 - nothing tells
        await trio.sleep(0.02)


async def test_a_call_at_either_node_reaches_the_one_process_that_there_is(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        for node in ("a", "b", "a"):
            assert (await two.echo(node, node))["structuredContent"] == {"text": node}
        assert two.fake.starts == 1


async def test_a_call_that_comes_before_a_node_is_a_member_waits_until_it_is_one(tmp_path: Path) -> None:
    answers: list[Json] = []

    async def call(url: str) -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
            answers.append(await Client(http).executed("desk:echo", text="early"))
        daemon.closing.set()

    with open_data_dir(tmp_path / "data", {}) as data:
        async with fleet_engine(tmp_path) as engine:
            config = configuration(tmp_path, {"desk": {"command": "x"}}, fleet={"engine": engine.url, "keys": [KEY]})
            sockets = open_sockets("127.0.0.1:0", 5.0)
            daemon = Daemon(config, data, sockets, connect=lambda server: MemoryTransport(FakeServer().serve))
            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(call, url_of(sockets[0]))  # it listens, and nobody accepts yet
                    await wait_all_tasks_blocked()
                    await nursery.start(daemon.run)
    assert [answer["structuredContent"] for answer in answers] == [{"text": "early"}]


async def test_a_change_of_tools_is_known_at_every_node(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        for node in "ab":
            await until_tools(two, node, {"desk:echo"})
        await two.echo("a", "it")
        two.fake.tools.append(tool("more"))
        await two.fake.notify("notifications/tools/list_changed")
        for node in "ab":
            await until_tools(two, node, {"desk:echo", "desk:more"})


async def test_an_order_reaches_the_node_that_runs_the_server(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        _, other = await two.owner()
        url = two.at[other].url
        assert "desk is restarted" in (await command(url, "restart", "desk")).stdout
        assert two.fake.starts == 2


async def test_the_nodes_are_shown_and_pages_and_metrics_of_each_say_which_one_it_is(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        owner, other = await two.owner()
        shown = await command(two.at[owner].url, "nodes")
        assert f"{owner} (this one)" in shown.stdout
        assert shown.stderr.startswith(f"{owner} runs desk; its lease lasts ")
        assert (await command(two.at[other].url, "nodes")).stderr.startswith(f"{other} runs no server;")
        told = await two.told(owner)
        assert [node["name"] for node in told["nodes"]] == ["a", "b"]
        hint = f"node {other}: what other nodes run is dormant here; mcpvisor status --node {owner}\n"
        assert hint in (await command(two.at[other].url, "status")).stdout
        assert all(node["alike"] for node in told["nodes"])
        for node in "ab":
            metrics = await two.at[node].text("/metrics")
            assert f'mcpvisor_fleet_member{{node="{node}"}} 1.0' in metrics
            assert f'mcpvisor_fleet_nodes{{node="{node}"}} 2.0' in metrics
            page = await two.at[node].text("/ui")
            assert f"This is the node <b>{node}</b>" in page
            assert "the same" in page
        owned = [await two.at[node].text("/metrics") for node in await two.owner()]
        assert [re.findall(r"fleet_owned_servers\{.*\} (\S+)\n", each) for each in owned] == [["1.0"], ["0.0"]]


async def test_without_the_engine_the_status_says_so_until_it_is_back(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, lease_s=2.0) as two:
        await two.echo("a", "it")
        two.engine.kill()
        told = await two.at["a"].until("/api/status", lambda told: told["degraded"])
        degraded = told["degraded"]
        assert degraded[0]["what"] == "fleet"
        assert "not renewed" in degraded[0]["why"] or "no member" in degraded[0]["why"]
        await two.at["a"].until("/api/nodes", lambda told: not told["member"])
        refused = await two.echo("a", "it")
        assert refused["isError"]
        assert refused["structuredContent"]["error"]["type"] == "unavailable"
        shown = (await command(two.at["a"].url, "nodes")).stderr
        assert "has no lease now, so it runs no server" in shown
        two.engine.start()
        await two.at["a"].until("/api/status", lambda told: not told["degraded"])
        await until_answered(two, "b")


async def test_a_node_that_is_drained_gives_its_servers_away_and_takes_none(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        owner, other = await two.owner()
        url = two.at[owner].url
        answers: list[dict[str, Any]] = []
        async with trio.open_nursery() as nursery:
            stopping = trio.Event()

            async def call_all_the_time(node: str) -> None:
                while not stopping.is_set():
                    answers.append(await two.echo(node, node))

            for node in "ab":
                nursery.start_soon(call_all_the_time, node)
            drained = await command(url, "drain")
            stopping.set()
        assert drained.stderr == f"{owner} takes no servers any more, and gave 1 up; it may be stopped now\n"
        assert [answer for answer in answers if answer.get("isError")] == []
        assert (await two.echo(owner, "it"))["structuredContent"] == {"text": "it"}
        assert await two.owner() == (other, owner)
        assert two.fake.starts == 2
        assert "drained" in (await command(url, "nodes")).stdout
        assert (await command(url, "drain", "--undo")).stderr == f"{owner} takes servers again\n"
        told = await two.told(owner)
        assert not told["draining"]


async def test_a_server_that_is_given_away_with_a_call_under_way_ends_with_the_lease_and_not_with_the_call(
    tmp_path: Path,
) -> None:
    async with fleet_of_two(tmp_path, lease_s=2.0) as two, trio.open_nursery() as nursery:
        two.fake.tools.append(tool("hang"))
        await two.fake.notify("notifications/tools/list_changed")
        await until_tools(two, "a", {"desk:echo", "desk:hang"})
        owner, _ = await two.owner()
        answers: list[dict[str, Any]] = []

        async def hang() -> None:
            answers.append(await two.at[owner].executed("desk:hang"))

        nursery.start_soon(hang)
        await two.fake.called.wait()
        nursery.start_soon(two.at[owner].ask, "POST", "/api/nodes/drain")
        await two.at[owner].until("/api/nodes", lambda told: told["draining"])
        assert two.fake.starts - two.fake.exits == 1, "the call has half a minute"
        two.engine.kill()
        with trio.fail_after(20):
            while not answers or two.fake.exits < two.fake.starts:  # noqa: ASYNC110 - nothing tells
                await trio.sleep(0.02)
        assert answers[0]["isError"]


async def test_nodes_that_read_a_newer_configuration_one_after_the_other_serve_all_the_time(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        for node in "ab":
            written = json.loads(two.at[node].path.read_text())
            written["mcpServers"] = {"desk": {"command": "x", "args": ["--new"]}, "shelf": {"command": "x"}}
            two.at[node].path.write_text(json.dumps(written))
            assert (await command(two.at[node].url, "reload")).exit_code == 0
            for other in "ab":
                assert (await two.echo(other, other))["structuredContent"] == {"text": other}
        for node in "ab":
            await until_tools(two, node, {"desk:echo", "shelf:echo"})
        assert (await two.told("a"))["nodes"][1]["alike"]
        assert two.fake.starts - two.fake.exits == 2  # of each launch there is one process in the end


async def test_a_node_that_starts_a_server_otherwise_runs_it_itself(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, differ=True) as two:
        for node in "abab":
            assert (await two.echo(node, node))["structuredContent"] == {"text": node}
        assert two.fake.starts == 2
        told = await two.told("a")
        assert [node["alike"] for node in told["nodes"]] == [True, False]
        assert "others, or started otherwise" in (await command(two.at["a"].url, "nodes")).stdout


async def test_a_daemon_starts_without_its_engine_and_joins_when_that_is_there(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, lease_s=2.0, engine_runs=False) as two:
        assert (await two.echo("a", "it"))["isError"]
        assert (await two.at["a"].status())["degraded"][0]["what"] == "fleet"
        two.engine.start()
        for node in "ab":
            await until_tools(two, node, {"desk:echo"})
        await until_answered(two, "b")


async def test_daemons_end_in_order_without_their_engine(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        two.engine.kill()
    assert two.fake.exits == two.fake.starts == 1


async def test_an_address_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    (taken,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = f"127.0.0.1:{taken.socket.getsockname()[1]}"
    said = re.escape(f"cannot listen at {address}: ")
    async with fleet_engine(tmp_path) as engine:
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match=said), flatten_subgroups=True):
            async with fleet_node(tmp_path, engine, "a", {}, {"listen": address}):
                raise AssertionError
    await taken.aclose()


async def test_a_daemon_alone_says_so(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {}) as at:
        assert (await at.page("/api/nodes"))["node"] == ""
        refused = await command(at.url, "status", "--node", "b")
        assert (refused.exit_code, "this daemon is alone" in refused.stderr) == (1, True), refused.stderr
        assert (await command(at.url, "nodes")).stderr.startswith("This daemon is alone.")
        assert "fleet" not in await at.status()
        refused = await command(at.url, "drain")
        assert refused.exit_code == 1
        assert "this daemon is alone" in refused.stderr
        refused = await command(at.url, "fleet", "publish")
        assert refused.exit_code == 1
        assert "this daemon is no node of a fleet" in refused.stderr
        (tmp_path / "large.json").write_text(json.dumps({"_": "x" * 300_000}))
        refused = await command(at.url, "fleet", "publish", "--file", str(tmp_path / "large.json"))
        assert refused.exit_code == 1
        assert "publish it at a node that has it as its own file" in refused.stderr


async def test_a_node_answers_that_is_named_whichever_is_asked(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        for at, name in product(two.at.values(), "ab"):
            assert (await at.page("/api/nodes", node=name))["node"] == name
            metrics = await at.ask("GET", f"/metrics?node={name}")
            assert f'mcpvisor_fleet_member{{node="{name}"}} 1.0' in metrics.text
            assert f"This is the node <b>{name}</b>" in await at.text(f"/ui?node={name}")
            at.http.cookies.clear()  # else its pages are those of that node from now on
            assert (await at.page("/api/logs", lines=1, grep="a b&c=d", node=name))["lines"] == []
            done = await at.order("POST", f"/nodes/drain?undo=true&node={name}")
            assert done == {"node": name, "moved": 0}
            assert f"{name} (this one)" in (await command(at.url, "nodes", "--node", name)).stdout
        a = two.at["a"]
        nobody = await a.ask("GET", "/api/status", params={"node": "c\x1b"})
        assert (nobody.status_code, "no node" in nobody.json()["error"]["message"]) == (404, True)
        assert "\\u001b" not in nobody.text
        assert (await a.ask("GET", "/api/status?node=a&node=b")).status_code == 400
        refused = await command(a.url, "status", "--node", "c")
        assert (refused.exit_code, "mcpvisor nodes (/api/nodes) shows" in refused.stderr) == (1, True), refused.stderr
        refused = await command(a.url, "logs", "-f", "--node", "b")
        assert "does not go with --follow" in refused.stderr


async def test_a_token_that_is_made_at_one_node_is_good_at_both_until_it_is_revoked_at_one(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, auth="tokens") as two:
        a, b = two.at.values()

        async def until_status(at: World, status: int) -> None:
            while (await at[token].send("ping")).status_code != status:  # noqa: ASYNC110 - nothing tells
                await trio.sleep(0.02)

        id_ = await a.admit("ana")
        token = a.keys["ana"]
        assert (await a[token].send("ping")).status_code == 200
        await until_status(b, 200)
        listed = (await b.operator.page("/api/access-tokens"))["tokens"]
        assert [row["id"] for row in listed] == [id_]
        await b.revoke(id_)
        assert (await b[token].send("ping")).status_code == 401
        await until_status(a, 401)
        two.engine.kill()
        assert "/api/status" in await a.said("POST", "/access-tokens", 503, {"user": "ben"})


async def test_a_server_that_is_switched_off_at_one_node_is_off_at_both(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        assert (await two.echo("a", "x"))["structuredContent"] == {"text": "x"}
        runs, other = await two.owner()
        for node in (other, runs):
            assert "desk is switched off" in await two.at[node].ordered("desk", "disable")
            for each in "ab":
                await two.at[each].until("/api/servers/desk", lambda row: row["disabled"])
                assert "switched off by its operator" in (await two.echo(each, "x"))["content"][0]["text"]
                await until_tools(two, each, set())
            await two.at[node].ordered("desk", "enable")
            for each in "ab":
                await two.at[each].until("/api/servers/desk", lambda row: not row["disabled"])
                await until_tools(two, each, {"desk:echo"})
                assert (await two.echo(each, "y"))["structuredContent"] == {"text": "y"}


async def test_what_is_approved_at_one_node_is_so_at_both(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, trust="strict") as two:
        for node in "ab":
            await until_tools(two, node, {"desk:echo"})
        await two.echo("a", "it")
        for turn, name in enumerate(("more", "most")):
            two.fake.tools.append(tool(name))
            await two.fake.notify("notifications/tools/list_changed")
            for node in "ab":
                while f'"{name}"' not in await two.at[node].text("/api/trust"):  # noqa: ASYNC110
                    await trio.sleep(0.02)
                told = await two.at[node].page("/api/tools")
                assert f"desk:{name}" not in {row["path"] for row in told["tools"]}
            assert (await command(two.at["ab"[turn]].url, "approve", "desk", "--yes")).exit_code == 0
            for node in "ab":
                await until_tools(two, node, {"desk:echo", *(f"desk:{each}" for each in ("more", "most")[: turn + 1])})
                assert "isError" not in await two.at[node].executed(f"desk:{name}")
