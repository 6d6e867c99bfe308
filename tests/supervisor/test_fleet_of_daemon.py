"""Two daemons of a fleet in one process, with a real engine: what one of them runs, the other one has, too."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.errors import ConfigError
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets, url_of
from supervisor.host.datadir import open_data_dir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fleet.valkey import ValkeyServer, settle, valkey
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running
from tests.supervisor.commands.test_cli import ask as command

pytestmark = pytest.mark.process

KEY = "the key of this fleet, which is long"


class FleetOfTwo:
    """Their clients by name, and the server that is shared: one fake for both, so what it was asked is seen."""

    def __init__(self, clients: dict[str, httpx2.AsyncClient], fake: FakeServer, engine: ValkeyServer) -> None:
        self.clients = clients
        self.fake = fake
        self.engine = engine

    async def call(self, node: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer: dict[str, Any] = (await self.clients[node].post("/mcp", json=request)).json()["result"]
        return answer

    async def echo(self, node: str, text: str) -> dict[str, Any]:
        return await self.call(node, "execute_mcp_tool", {"tool_path": "desk:echo", "arguments": {"text": text}})

    async def tools(self, node: str) -> set[str]:
        rows = (await self.clients[node].get("/api/tools")).json()["tools"]
        return {row["path"] for row in rows}

    async def owner(self) -> tuple[str, str]:
        """Return the name of the node that runs the server, and that of the other one."""
        told = (await self.clients["a"].get("/api/nodes")).json()
        return ("a", "b") if told["owns"] else ("b", "a")


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
    fake = FakeServer(tools=[tool("echo")])

    def connect(server: DeployedServer) -> MemoryTransport:
        del server
        return MemoryTransport(fake.serve)

    (directory / "engine").mkdir()
    with valkey(directory / "engine") as engine, ExitStack() as stack:
        configurations, data = {}, {}
        for name in "ab":
            (directory / name).mkdir()
            fleet = {"engine": engine.url, "keys": [KEY], "node": name, "lease_s": lease_s}
            desk = {"command": "x", "args": [name] if differ else [], "trust": trust}
            configurations[name] = configuration(directory / name, {"desk": desk}, fleet=fleet, **settings)
            data[name] = stack.enter_context(open_data_dir(directory / name / "data", {}))
        await settle(engine)
        if not engine_runs:
            engine.kill()
        async with (
            running(configurations["a"], data["a"], connect=connect) as a,
            running(configurations["b"], data["b"], connect=connect) as b,
        ):
            for client in (a, b) if engine_runs and not settings else ():
                await Client(client).ready()
            yield FleetOfTwo({"a": a, "b": b}, fake, engine)


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    while not await condition():  # noqa: ASYNC110 - nothing tells a page
        await trio.sleep(0.02)


async def until_tools(two: FleetOfTwo, node: str, wanted: set[str]) -> None:
    async def there() -> bool:
        return await two.tools(node) == wanted

    await until(there)


async def test_a_call_at_either_node_reaches_the_one_process_that_there_is(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        for node in ("a", "b", "a"):
            assert (await two.echo(node, node))["structuredContent"] == {"text": node}
        assert two.fake.starts == 1


async def test_a_call_that_comes_before_a_node_is_a_member_waits_until_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    fake = FakeServer(tools=[tool("echo")])
    answers: list[dict[str, Any]] = []

    async def call(url: str) -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            answers.append(await FleetOfTwo({"a": client}, fake, engine).echo("a", "early"))
        daemon.closing.set()

    with valkey(tmp_path / "engine") as engine, open_data_dir(tmp_path / "data", {}) as data:
        await settle(engine)
        config = configuration(tmp_path, {"desk": {"command": "x"}}, fleet={"engine": engine.url, "keys": [KEY]})
        sockets = open_sockets("127.0.0.1:0", 5.0)
        daemon = Daemon(config, data, sockets, connect=lambda server: MemoryTransport(fake.serve))
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
        url = str(two.clients[other].base_url)
        assert "desk is restarted" in (await command(url, "restart", "desk")).stdout
        assert two.fake.starts == 2


async def test_the_nodes_are_shown(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        owner, other = await two.owner()
        shown = await command(str(two.clients[owner].base_url), "nodes")
        assert f"{owner} (this one)" in shown.stdout
        assert shown.stderr.startswith(f"{owner} runs desk; its lease lasts ")
        assert (await command(str(two.clients[other].base_url), "nodes")).stderr.startswith(f"{other} runs no server;")
        told = (await two.clients[owner].get("/api/nodes")).json()
        assert [node["name"] for node in told["nodes"]] == ["a", "b"]
        hint = f"node {other}: what other nodes run is dormant here; mcpvisor status --node {owner}\n"
        assert hint in (await command(str(two.clients[other].base_url), "status")).stdout
        assert all(node["alike"] for node in told["nodes"])


async def test_without_the_engine_the_status_says_so_until_it_is_back(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, lease_s=2.0) as two:
        await two.echo("a", "it")
        two.engine.kill()
        client = two.clients["a"]

        async def degraded_now() -> Any:
            return (await client.get("/api/status")).json()["degraded"]

        async def alone() -> bool:
            return not (await client.get("/api/nodes")).json()["member"]

        async def well() -> bool:
            return not await degraded_now() and not (await two.echo("b", "again")).get("isError")

        await until(degraded_now)
        degraded = await degraded_now()
        assert degraded[0]["what"] == "fleet"
        assert "not renewed" in degraded[0]["why"] or "no member" in degraded[0]["why"]
        await until(alone)
        refused = await two.echo("a", "it")
        assert refused["isError"]
        assert refused["structuredContent"]["error"]["type"] == "unavailable"
        shown = (await command(str(client.base_url), "nodes")).stderr
        assert "has no lease now, so it runs no server" in shown
        two.engine.start()
        await until(well)


async def test_a_node_that_is_drained_gives_its_servers_away_and_takes_none(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        owner, other = await two.owner()
        url = str(two.clients[owner].base_url)
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
        told = (await two.clients[owner].get("/api/nodes")).json()
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
            answers.append(await two.call(owner, "execute_mcp_tool", {"tool_path": "desk:hang", "arguments": {}}))

        async def is_called() -> bool:
            return any(message.get("method") == "tools/call" for message in two.fake.messages)

        async def is_draining() -> bool:
            return bool((await two.clients[owner].get("/api/nodes")).json()["draining"])

        async def has_ended() -> bool:
            return bool(answers) and two.fake.exits == two.fake.starts

        nursery.start_soon(hang)
        await until(is_called)
        nursery.start_soon(two.clients[owner].post, "/api/nodes/drain")
        await until(is_draining)
        assert two.fake.starts - two.fake.exits == 1, "the call has half a minute"
        two.engine.kill()
        with trio.fail_after(20):
            await until(has_ended)
        assert answers[0]["isError"]


async def test_nodes_that_read_a_newer_configuration_one_after_the_other_serve_all_the_time(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        for node in "ab":
            file = tmp_path / node / "mcp.json"
            written = json.loads(file.read_text())
            written["mcpServers"] = {"desk": {"command": "x", "args": ["--new"]}, "shelf": {"command": "x"}}
            file.write_text(json.dumps(written))
            assert (await command(str(two.clients[node].base_url), "reload")).exit_code == 0
            for other in "ab":
                assert (await two.echo(other, other))["structuredContent"] == {"text": other}
        for node in "ab":
            await until_tools(two, node, {"desk:echo", "shelf:echo"})
        assert (await two.clients["a"].get("/api/nodes")).json()["nodes"][1]["alike"]
        assert two.fake.starts - two.fake.exits == 2  # of each launch there is one process in the end


async def test_a_node_that_starts_a_server_otherwise_runs_it_itself(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, differ=True) as two:
        for node in "abab":
            assert (await two.echo(node, node))["structuredContent"] == {"text": node}
        assert two.fake.starts == 2
        told = (await two.clients["a"].get("/api/nodes")).json()
        assert [node["alike"] for node in told["nodes"]] == [True, False]
        assert "others, or started otherwise" in (await command(str(two.clients["a"].base_url), "nodes")).stdout


async def test_a_daemon_starts_without_its_engine_and_joins_when_that_is_there(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, lease_s=2.0, engine_runs=False) as two:
        refused = await two.call("a", "execute_mcp_tool", {"tool_path": "desk:echo", "arguments": {}})
        assert refused["isError"]
        assert (await two.clients["a"].get("/api/status")).json()["degraded"][0]["what"] == "fleet"
        two.engine.start()
        for node in "ab":
            await until_tools(two, node, {"desk:echo"})

        async def answers() -> bool:
            return not (await two.echo("b", "it")).get("isError")

        await until(answers)


async def test_daemons_end_in_order_without_their_engine(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        await two.echo("a", "it")
        two.engine.kill()
    assert two.fake.exits == two.fake.starts == 1


async def test_an_address_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    (taken,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = f"127.0.0.1:{taken.socket.getsockname()[1]}"
    (tmp_path / "engine").mkdir()
    with valkey(tmp_path / "engine") as engine, open_data_dir(tmp_path / "data", {}) as data:
        fleet = {"engine": engine.url, "keys": [KEY], "listen": address}
        said = re.escape(f"cannot listen at {address}: ")
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match=said), flatten_subgroups=True):
            async with running(configuration(tmp_path, {}, fleet=fleet), data):
                raise AssertionError
    await taken.aclose()


async def test_a_daemon_alone_says_so(tmp_path: Path) -> None:
    with open_data_dir(tmp_path / "data", {}) as data:
        async with running(configuration(tmp_path, {}), data) as client:
            assert (await client.get("/api/nodes")).json()["node"] == ""
            refused = await command(str(client.base_url), "status", "--node", "b")
            assert (refused.exit_code, "this daemon is alone" in refused.stderr) == (1, True), refused.stderr
            assert (await command(str(client.base_url), "nodes")).stderr.startswith("This daemon is alone.")
            assert "fleet" not in (await client.get("/api/status")).json()
            refused = await command(str(client.base_url), "drain")
            assert refused.exit_code == 1
            assert "this daemon is alone" in refused.stderr
            refused = await command(str(client.base_url), "fleet", "publish")
            assert refused.exit_code == 1
            assert "this daemon is no node of a fleet" in refused.stderr
            (tmp_path / "large.json").write_text(json.dumps({"_": "x" * 300_000}))
            refused = await command(str(client.base_url), "fleet", "publish", "--file", str(tmp_path / "large.json"))
            assert refused.exit_code == 1
            assert "publish it at a node that has it as its own file" in refused.stderr


async def test_a_node_answers_that_is_named_whichever_is_asked(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        for at, name in ((at, name) for at in "ab" for name in "ab"):
            client, named = two.clients[at], {"node": name}
            assert (await client.get("/api/nodes", params=named)).json()["node"] == name
            assert f'mcpvisor_fleet_member{{node="{name}"}} 1.0' in (await client.get("/metrics", params=named)).text
            assert f"This is the node <b>{name}</b>" in (await client.get("/ui", params=named)).text
            client.cookies.clear()  # else its pages are those of that node from now on
            assert (await client.get("/api/logs", params={"lines": 1, "grep": "a b&c=d", **named})).json()[
                "lines"
            ] == []
            done = (await client.post("/api/nodes/drain", params={"undo": "true", **named})).json()
            assert done == {"node": name, "moved": 0}
            assert f"{name} (this one)" in (await command(str(client.base_url), "nodes", "--node", name)).stdout
        client = two.clients["a"]
        nobody = await client.get("/api/status", params={"node": "c\x1b"})
        assert (nobody.status_code, "no node" in nobody.json()["error"]["message"]) == (404, True)
        assert "\\u001b" not in nobody.text
        assert (await client.get("/api/status?node=a&node=b")).status_code == 400
        refused = await command(str(client.base_url), "status", "--node", "c")
        assert (refused.exit_code, "mcpvisor nodes (/api/nodes) shows" in refused.stderr) == (1, True), refused.stderr
        refused = await command(str(client.base_url), "logs", "-f", "--node", "b")
        assert "does not go with --follow" in refused.stderr


async def test_pages_and_metrics_of_a_node_say_which_one_it_is(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        for node in "ab":
            metrics = (await two.clients[node].get("/metrics")).text
            assert f'mcpvisor_fleet_member{{node="{node}"}} 1.0' in metrics
            assert f'mcpvisor_fleet_nodes{{node="{node}"}} 2.0' in metrics
            page = (await two.clients[node].get("/ui")).text
            assert f"This is the node <b>{node}</b>" in page
            assert "the same" in page
        owned = [(await two.clients[node].get("/metrics")).text for node in await two.owner()]
        assert [re.findall(r"fleet_owned_servers\{.*\} (\S+)\n", each) for each in owned] == [["1.0"], ["0.0"]]


async def test_a_token_that_is_made_at_one_node_is_good_at_both_until_it_is_revoked_at_one(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path, auth="tokens") as two:
        operator = {name: (tmp_path / name / "data" / "page.key").read_bytes().hex() for name in "ab"}

        async def ask(node: str, key: str, method: str, path: str, **more: Any) -> httpx2.Response:
            headers = {"authorization": f"Bearer {key}"}
            return await two.clients[node].request(method, path, headers=headers, **more)

        async def is_answered(node: str, status: int) -> bool:
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            return (await ask(node, made["token"], "POST", "/mcp", json=ping)).status_code == status

        made = (await ask("a", operator["a"], "POST", "/api/access-tokens", json={"user": "ana"})).json()
        assert await is_answered("a", 200)
        await until(lambda: is_answered("b", 200))
        listed = (await ask("b", operator["b"], "GET", "/api/access-tokens")).json()["tokens"]
        assert [row["id"] for row in listed] == [made["id"]]
        assert (await ask("b", operator["b"], "DELETE", f"/api/access-tokens/{made['id']}")).status_code == 200
        assert await is_answered("b", 401)
        await until(lambda: is_answered("a", 401))
        two.engine.kill()
        refused = await ask("a", operator["a"], "POST", "/api/access-tokens", json={"user": "ben"})
        assert refused.status_code == 503
        assert "/api/status" in refused.json()["error"]["message"]


async def test_a_server_that_is_switched_off_at_one_node_is_off_at_both(tmp_path: Path) -> None:
    async with fleet_of_two(tmp_path) as two:
        assert (await two.echo("a", "x"))["structuredContent"] == {"text": "x"}
        runs, other = await two.owner()

        async def is_off(node: str, off: bool) -> bool:
            (row,) = (await two.clients[node].get("/api/status")).json()["servers"]
            return bool(row["disabled"]) == off

        for node in (other, runs):
            said = (await two.clients[node].post("/api/servers/desk/disable")).json()
            assert "desk is switched off" in said["message"]
            for each in "ab":
                await until(partial(is_off, each, True))
                assert "switched off by its operator" in (await two.echo(each, "x"))["content"][0]["text"]
                await until_tools(two, each, set())
            assert (await two.clients[node].post("/api/servers/desk/enable")).status_code == 200
            for each in "ab":
                await until(partial(is_off, each, False))
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

            async def waits(at: str, name: str = name) -> bool:
                return f'"{name}"' in (await two.clients[at].get("/api/trust")).text

            for node in "ab":
                await until(partial(waits, node))
                assert f"desk:{name}" not in await two.tools(node)
            url = str(two.clients["ab"[turn]].base_url)
            assert (await command(url, "approve", "desk", "--yes")).exit_code == 0
            for node in "ab":
                await until_tools(two, node, {"desk:echo", *(f"desk:{each}" for each in ("more", "most")[: turn + 1])})
                call = {"tool_path": f"desk:{name}", "arguments": {}}
                assert "isError" not in await two.call(node, "execute_mcp_tool", call)
