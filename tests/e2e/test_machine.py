"""Several nodes on one machine: one address, one data directory, one process to end. A node and the engine are killed
under load; whatever becomes of the process that started them, nothing is left of them.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from supervisor import operations
from supervisor.daemon_client.client import connect
from tests.e2e.daemons import Daemon, running, stand_in, text
from tests.e2e.invariants import Process, below, is_alive, wait
from tests.e2e.test_fleet import LOCKED, SERVERS, Fleet, Load
from tests.fleet.valkey import server_program
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e
NODES = 2
MEMO = "memo|memo://one"


@pytest.fixture(autouse=True)
def _engine_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(server_program()).parent}{os.pathsep}{os.environ['PATH']}")


@contextmanager
def machine(directory: Path) -> Iterator[Fleet]:
    """Run the nodes of a machine, as a fleet of one address."""
    servers = {name: {"command": sys.executable, "args": ["-I", LOCKED, name, str(directory)]} for name in SERVERS}
    servers["memo"] = stand_in("memo")
    settings = {"nodes": NODES, "node": "host", "lease_s": 4.0}
    with running(directory / "host", servers, leaves_calls=True, fleet=settings) as daemon:
        yield Fleet({"host": daemon}, directory)


def processes(daemon: Daemon, word: bytes) -> list[Process]:
    """The processes that have a word in their command, the newest last."""
    commands = {each: Path(f"/proc/{each.pid}/cmdline").read_bytes().split(b"\0") for each in below(daemon.process.pid)}
    return sorted((each for each, words in commands.items() if word in words), key=lambda each: each.began)


def nodes(daemon: Daemon) -> list[Process]:
    return processes(daemon, b"--as-node")


def engine(daemon: Daemon) -> Process:
    (shim,) = processes(daemon, b"--unixsocket")
    return next(iter(below(shim.pid)))


async def members(daemon: Daemon) -> set[str]:
    """Ask until each node has answered, and is a member; return the names of all that they know then."""
    known: dict[str, set[str]] = {}
    with trio.fail_after(PATIENCE_S):
        while len(known) < NODES:
            told = await daemon.page("/api/nodes")
            if told["member"] and len(told["nodes"]) == NODES:
                known[told["node"]] = {each["name"] for each in told["nodes"]}
            await trio.sleep(0.01)
    assert len(set(map(frozenset, known.values()))) == 1
    return next(iter(known.values()))


async def logged(daemon: Daemon, pattern: str) -> None:
    with trio.fail_after(PATIENCE_S):
        while not re.search(pattern, daemon.log):  # noqa: ASYNC110 - nothing else tells of it
            await trio.sleep(0.01)


async def test_all_of_it_works_at_one_address_and_goes_on_without_a_node_or_the_engine(tmp_path: Path) -> None:
    with machine(tmp_path) as fleet:
        daemon = fleet.nodes["host"]
        assert await members(daemon) == {"host-1", "host-2"}
        await fleet.all_answered()
        for _ in range(4):  # each is another connection
            found = await daemon.discover("note a key")
            assert {f"{server}:note" for server in SERVERS} <= {*found}
            listed = await daemon.call("list_mcp_resources")
            assert MEMO in text(listed)
            read = await daemon.call("read_mcp_resource", uri=MEMO)
            assert "nothing" in text(read), read
        load = Load(fleet, 6)
        async with load.on():
            for victim, told in (
                (nodes(daemon)[0], r"host-\d has ended \(signal 9"),
                (engine(daemon), "engine .*signal 9"),
            ):
                await trio.sleep(1.0)
                os.kill(victim.pid, signal.SIGKILL)
                await logged(daemon, told)  # until then it may take connections
                await fleet.all_answered()
                assert await members(daemon) == {"host-1", "host-2"}
        load.check(lost_at_most=len(load.answers))
        assert len(nodes(daemon)) == NODES
        assert "is started again in" in daemon.log


async def test_nothing_is_left_of_one_that_was_killed_and_the_next_one_knows_what_it_knew(tmp_path: Path) -> None:
    servers = {"growing": stand_in("growing")}
    fleet = {"nodes": NODES, "lease_s": 4.0}
    with running(tmp_path, servers, auth="tokens") as alone:
        async with connect(alone.url) as operator:
            for label in ("good", "bad"):
                made = await operator.perform(operations.MAKE_TOKEN, body={"user": "anne", "label": label})
    listen = f"127.0.0.1:{alone.port}"
    with running(tmp_path, servers, listen, auth="tokens", fleet=fleet) as several:
        assert await tokens_at(several) == {"good", "bad"}
        left = below(several.process.pid)
        assert len(left) >= NODES + 2
        await several.kill()
        assert wait(lambda: not any(map(is_alive, left)), PATIENCE_S)
    with running(tmp_path, servers, listen, auth="tokens") as alone:
        async with connect(alone.url) as operator:
            await operator.perform(operations.REVOKE_TOKEN, id_=made["id"])
    with running(tmp_path, servers, listen, auth="tokens", fleet=fleet) as again:
        assert await tokens_at(again) == {"good"}, "the second node had missed the end of one"


async def tokens_at(daemon: Daemon) -> set[str]:
    """The labels of the tokens that all nodes know, which show the same key."""
    labels = set()
    for _ in range(8):  # each is another connection
        async with connect(daemon.url) as operator:
            told = await operator.perform(operations.ACCESS_TOKENS)
            labels.add(frozenset(each["label"] for each in told["tokens"]))
    (same,) = labels
    return set(same)
