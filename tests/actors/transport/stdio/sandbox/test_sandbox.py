"""Servers in a real sandbox: what is denied, and that starts, stops and ends are as without one."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.errors import SpawnFailed
from actors.kit.paths import is_file
from actors.transport.stdio import sandbox
from actors.transport.stdio.command import INHERITED, Launch
from actors.transport.stdio.containment import GroupContainment, ShimContainment
from actors.transport.stdio.process import ProcessConnection, ProcessTransport
from actors.transport.stdio.resources.figures import read_trees
from actors.transport.stdio.sandbox import Sandbox
from tests.actors.transport.stdio.children import (
    HASTY,
    PATIENCE_S,
    decoded,
    monitor,
    no_child_and_no_descriptor_is_left,
    parent_of,
    send,
)
from tests.actors.transport.stdio.sandbox.bwrap import home, needs_bwrap

__all__ = ["home", "no_child_and_no_descriptor_is_left"]

pytestmark = pytest.mark.process

SCRIPT = Path(__file__).with_name("confined.py").resolve()
KEPT = str(SCRIPT)


class Confined:
    """A server that tries things."""

    def __init__(self, connection: ProcessConnection) -> None:
        self.connection = connection

    async def attempt(self, what: str, place: object = "") -> Any:
        await send(self.connection, json.dumps({"id": 1, "params": [what, str(place)]}).encode())
        with trio.fail_after(PATIENCE_S):
            return decoded((await self.connection.receive()).lines)[0]["result"]


@asynccontextmanager
async def confined(home: Path, sandbox: Sandbox | None, cwd: Path | None = None) -> AsyncIterator[Confined]:
    launch = Launch(command=sys.executable, args=("-I", "-S", KEPT), cwd=str(cwd or ""), sandbox=sandbox)
    containment = ShimContainment(private=(home / "data", home / "mcp.json"))
    async with ProcessTransport(launch, HASTY, containment=containment).connect() as connection:
        yield Confined(connection)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.case("X14")
@needs_bwrap
@pytest.mark.parametrize("inside", [False, True])
async def test_what_is_denied_in_a_sandbox_is_allowed_without_one(home: Path, port: int, inside: bool) -> None:
    sandbox = Sandbox(read=(KEPT, f"{home}/notes"), write=(f"{home}/other",)) if inside else None
    async with confined(home, sandbox, home / "project") as server:
        denied = [
            await server.attempt("write", home / "x"),
            await server.attempt("write", home / "notes" / "x"),
            await server.attempt("read", home / ".ssh" / "id"),
            await server.attempt("read", home / "mcp.json"),
            await server.attempt("list", home / "data"),
            await server.attempt("connect", port),
        ]
        allowed = [
            await server.attempt("list", home / "notes"),
            await server.attempt("write", home / "project" / "y"),
            await server.attempt("write", home / "other" / "y"),
            await server.attempt("cwd"),
        ]
    if inside:
        assert denied == ["EROFS", "EROFS", "ENOENT", "ENOENT", "ENOENT", "ECONNREFUSED"]
    else:
        assert denied == ["ok", "ok", "ok", "ok", [], "ok"]
    assert allowed[1:] == ["ok", "ok", str(home / "project")]
    assert (home / "project" / "y").read_text() == (home / "other" / "y").read_text() == "x"
    assert (home / "x").is_file() is not inside


@needs_bwrap
async def test_a_sandbox_with_a_network_and_without_a_directory(home: Path, port: int) -> None:
    async with confined(home, Sandbox(read=(KEPT,), network=True)) as server:
        assert await server.attempt("connect", port) == "ok"
        assert await server.attempt("cwd") == "/tmp"
        assert await server.attempt("write", "/tmp/only-in-there") == "ok"
    assert not is_file("/tmp/only-in-there")


@needs_bwrap
async def test_a_server_gets_the_same_environment(home: Path) -> None:
    async with confined(home, Sandbox(read=(KEPT,))) as server:
        environment = await server.attempt("environment")
    assert environment.pop("PWD") == "/tmp"
    assert environment.pop("TMPDIR", "/tmp") == "/tmp"
    assert environment == {name: os.environ[name] for name in INHERITED if name in os.environ and name != "TMPDIR"}


@needs_bwrap
async def test_its_end_of_input_and_sigterm_reach_it_and_its_exit_is_its_own(home: Path) -> None:
    async with confined(home, Sandbox(read=(KEPT,))) as server:
        await server.attempt("cwd")
        with trio.fail_after(PATIENCE_S):
            await server.connection.stop()
        exit_ = await server.connection.wait()
    assert (exit_.code, exit_.signal) == (3, None)
    assert exit_.denial.startswith("no network")


@needs_bwrap
async def test_one_that_ends_at_once_was_in_a_sandbox_all_the_same(home: Path) -> None:
    """It may have ended before anybody has looked for its process."""
    launch = Launch(command="/bin/sh", args=("-c", "exit 4"), sandbox=Sandbox())
    for _ in range(5):
        async with ProcessTransport(launch, HASTY, containment=ShimContainment()).connect() as connection:
            with trio.fail_after(PATIENCE_S):
                exit_ = await connection.wait()
        assert (exit_.code, exit_.signal) == (4, None)


@needs_bwrap
async def test_one_that_stays_is_killed(home: Path) -> None:
    async with confined(home, Sandbox(read=(KEPT,))) as server:
        await server.attempt("stay")
        with trio.fail_after(PATIENCE_S):
            await server.connection.stop()
        assert (await server.connection.wait()).signal == signal.SIGKILL


@needs_bwrap
async def test_its_death_is_seen_and_its_figures_are_there(home: Path) -> None:
    async with confined(home, Sandbox(read=(KEPT,))) as server:
        await server.attempt("cwd")
        init = server.connection.pid
        assert init is not None
        (inner,) = children_of(init)
        assert read_trees("/proc", os.getpid())[init].private_pages > 300
        os.kill(inner, signal.SIGKILL)
        with trio.fail_after(PATIENCE_S):
            exit_ = await server.connection.wait()
    assert (exit_.code, exit_.signal, exit_.asked) == (None, signal.SIGKILL, False)


@needs_bwrap
async def test_nothing_outlives_a_shim_that_is_killed(home: Path) -> None:
    async with monitor() as lives:
        seen = str(Path(lives.address).parent)
        async with confined(home, Sandbox(read=(KEPT,), write=(seen,))) as server:
            assert await server.attempt("live", lives.address) == "ok"
            pulse = (await lives.pulses("server"))["server"]
            assert server.connection.pid is not None
            os.kill(parent_of(parent_of(server.connection.pid)), signal.SIGKILL)
            await pulse.stopped()
            with trio.fail_after(PATIENCE_S):
                assert (await server.connection.wait()).signal == signal.SIGKILL


@needs_bwrap
async def test_it_outlives_the_thread_that_started_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process is tied to by `--die-with-parent` is a thread; those of trio end after ten idle seconds."""
    monkeypatch.setattr("trio._core._thread_cache.IDLE_TIMEOUT", 0.01)
    before = {*threading.enumerate()}
    async with confined(home, Sandbox(read=(KEPT,))) as server:
        for thread in {*threading.enumerate()} - before:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert await server.attempt("cwd") == "/tmp"


async def refusal(home: Path) -> SpawnFailed:
    with pytest.raises(SpawnFailed) as caught:
        async with confined(home, Sandbox(read=(KEPT,))):
            pytest.fail("it started")
    return caught.value


@pytest.mark.parametrize(
    ("said", "permanent", "scarce"),
    [
        ("No permissions to create a new namespace", True, False),
        ("Creating new namespace failed: Resource temporarily unavailable", False, True),
    ],
)
async def test_where_bwrap_may_not_work_nothing_is_started(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: str, permanent: bool, scarce: bool
) -> None:
    fake = home / "other" / "bwrap"
    fake.write_text(f"#!/bin/sh\necho 'bwrap: {said}' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sandbox, "SEARCHED", str(fake.parent))
    error = await refusal(home)
    assert error.message == f"its sandbox could not be made: {said}"
    assert (error.permanent, error.scarce) == (permanent, scarce)
    assert ("user namespaces" in error.hint) is permanent


@pytest.mark.case("X14")
async def test_without_bwrap_nothing_is_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "SEARCHED", "/nowhere")
    error = await refusal(home)
    assert error.permanent
    assert "install bubblewrap" in error.hint


async def test_there_is_no_sandbox_beyond_linux() -> None:
    with pytest.raises(SpawnFailed, match="Linux only") as caught:
        await GroupContainment().spawn(["/bin/true"], env={}, cwd="/", sandbox=Sandbox())
    assert caught.value.permanent
