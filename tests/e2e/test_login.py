"""Logins at a real authorization server, the official Python SDK's, in front of a real server of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from benchmarks.machine import free_port
from tests.e2e import environments
from tests.e2e.daemons import Daemon, client, end, running, start, text, write_config
from tests.e2e.fork_server import forking
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

SERVER = Path(__file__).parents[1] / "fakes" / "login_server.py"
WANTED = "`mcpvisor login guarded`"


class Guarded:
    """The server and its pages for tests."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.entry: dict[str, Any] = {"guarded": {"url": f"{self.base}/mcp"}}

    async def counts(self) -> dict[str, int]:
        async with client() as http:
            counted: dict[str, int] = (await http.get(f"{self.base}/control/counts")).json()
        return counted

    async def order(self, order: str) -> None:
        async with client() as http:
            assert (await http.post(f"{self.base}/control/{order}")).status_code == 200


def listening(directory: Path, life_s: int) -> tuple[subprocess.Popen[bytes], int]:
    """Start the server; return it, and its port."""
    port = free_port()
    with (directory / "guarded.log").open("ab") as log:
        command = [*environments.python_2(), str(SERVER), str(port), str(life_s)]
        return subprocess.Popen(command, stdout=log, stderr=log), port


@asynccontextmanager
async def guarded(directory: Path, life_s: int = 3600) -> AsyncIterator[Guarded]:
    process, port = listening(directory, life_s)
    try:
        server = Guarded(port)
        with trio.fail_after(PATIENCE_S):
            while True:
                with suppress(httpx2.ConnectError):
                    await server.counts()
                    break
                await trio.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


async def log_in(daemon: Daemon) -> str:
    """Log in as a browser does whose user says yes; return the page that it sees in the end."""
    async with client() as http:
        begun = (await http.post(f"{daemon.url}/api/servers/guarded/login")).json()
        assert begun.get("state") == "pending", begun
        said_yes = await http.get(begun["url"])
        page = await http.get(said_yes.headers["location"])
        told = await http.get(f"{daemon.url}/api/logins/{begun['login']}", params={"wait_s": "10"})
    assert told.json()["state"] == "done", told.text
    assert page.status_code == 200
    return page.text


async def row(daemon: Daemon) -> dict[str, Any]:
    return (await daemon.rows())["guarded"]


async def echoed(daemon: Daemon) -> str:
    return text(await daemon.execute("guarded:echo", text="hello"))


async def test_a_login_lasts_until_the_logout(tmp_path: Path) -> None:
    async with guarded(tmp_path) as server:
        with running(tmp_path, server.entry) as daemon:
            await daemon.ready()
            before = await row(daemon)
            assert before["requires_reauth"]
            assert before["state"] == "failed"
            assert WANTED in before["last_error"]
            assert WANTED in await echoed(daemon)
            async with daemon.events() as events:
                page = await log_in(daemon)
                await events.state("guarded", "ready")
            assert "close this window" in page
            assert await echoed(daemon) == "hello"
            assert not (await row(daemon))["requires_reauth"]
            await daemon.settled()
        with running(tmp_path, server.entry) as daemon:
            assert await echoed(daemon) == "hello"
            assert (await server.counts())["exchanged"] == 1
            async with client() as http:
                told = (await http.post(f"{daemon.url}/api/servers/guarded/logout")).json()
            assert told["message"] == "guarded: logged out"
            assert await server.counts() == {
                "registered": 1,
                "exchanged": 1,
                "refreshed": 0,
                "revoked": 2,
                "access": 0,
                "refresh": 0,
            }
            assert WANTED in await echoed(daemon)


@pytest.mark.case("H25")
async def test_fifty_calls_after_a_revocation_are_one_renewal(tmp_path: Path) -> None:
    async with guarded(tmp_path) as server:
        with running(tmp_path, server.entry) as daemon:
            await daemon.ready()
            await log_in(daemon)
            assert await echoed(daemon) == "hello"
            await server.order("forget")
            said: list[str] = []

            async def one() -> None:
                said.append(await echoed(daemon))

            async with trio.open_nursery() as nursery:
                for _ in range(50):
                    nursery.start_soon(one)
            assert said == ["hello"] * 50
            assert (await server.counts())["refreshed"] == 1


async def test_an_access_token_that_ends_is_renewed(tmp_path: Path) -> None:
    async with guarded(tmp_path, life_s=1) as server:
        with running(tmp_path, server.entry) as daemon:
            await daemon.ready()
            await log_in(daemon)
            for _ in range(3):
                assert await echoed(daemon) == "hello"
                await trio.sleep(0.7)
            assert (await server.counts())["refreshed"] >= 1


async def test_a_login_that_is_taken_back_has_to_be_made_again(tmp_path: Path) -> None:
    async with guarded(tmp_path) as server:
        with running(tmp_path, server.entry) as daemon:
            await daemon.ready()
            await log_in(daemon)
            assert await echoed(daemon) == "hello"
            async with daemon.events() as events:
                await server.order("forget?refresh")
                said = await echoed(daemon)
                assert WANTED in said
                assert "invalid_grant" in said
                await events.state("guarded", "failed")
                assert (await row(daemon))["requires_reauth"]
                await log_in(daemon)
                await events.state("guarded", "ready")
            assert await echoed(daemon) == "hello"
            assert (await server.counts())["registered"] == 1


async def test_tokens_for_somebody_else_are_not_renewed_without_end(tmp_path: Path) -> None:
    async with guarded(tmp_path) as server:
        with running(tmp_path, server.entry) as daemon:
            await daemon.ready()
            await log_in(daemon)
            assert await echoed(daemon) == "hello"
            await server.order("other")
            for _ in range(4):
                assert WANTED in await echoed(daemon)
            assert (await server.counts())["refreshed"] == 1


async def test_a_login_leaves_no_secret_anywhere(tmp_path: Path) -> None:
    async with guarded(tmp_path) as server:
        write_config(tmp_path, server.entry, log_level="debug", show_debug=True)
        daemon = start(tmp_path)
        try:
            await daemon.ready()
            page = await log_in(daemon)
            assert await echoed(daemon) == "hello"
            await daemon.settled()
            async with client() as http:
                secrets: list[str] = (await http.get(f"{server.base}/control/secrets")).json()
            assert len(secrets) >= 3
            shown = [page, daemon.log]
            pages = ("/api/status", "/api/status/debug", "/api/servers/guarded/logs")
            shown += [(await daemon.ask("GET", path)).text for path in pages]
        finally:
            end(daemon)
        kept = [file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file()]
        for secret in secrets:
            assert not any(secret in each for each in shown)
            assert not any(secret.encode() in each for each in kept)


async def test_a_login_by_the_command(tmp_path: Path) -> None:
    async with guarded(tmp_path) as server:
        with running(tmp_path, server.entry) as daemon:
            await daemon.ready()
            command = [*forking(), "-m", "supervisor", "login", "guarded", "--url", daemon.url]
            said = b""
            with trio.fail_after(PATIENCE_S):
                async with trio.open_nursery() as nursery:
                    process = await nursery.start(
                        partial(trio.run_process, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                    )  # nobody types anything
                    while b"/authorize?" not in said or not said.endswith(b"\n\n"):
                        said += await process.stdout.receive_some()
                    async with client() as http:
                        url = said.decode().split("\n\n")[1].strip()
                        await http.get((await http.get(url)).headers["location"])
                    while part := await process.stdout.receive_some():
                        said += part
            assert said.decode().endswith("guarded: logged in\n")
            again = await trio.run_process(
                [*forking(), "-m", "supervisor", "logout", "guarded", "--json", "--url", daemon.url],
                capture_stdout=True,
            )
            assert json.loads(again.stdout)["message"] == "guarded: logged out"
