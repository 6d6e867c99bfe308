"""Every example runs, is short, and is named in the README beside it."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from supervisor.daemon_client.client import DaemonClient, connect
from supervisor.demo.setting import DemoDaemon, configuration, running_daemon
from supervisor.operations import READINESS
from tests.e2e import environments
from tests.e2e.fork_server import forking

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
MAX_LINES = 60


@asynccontextmanager
async def small_daemon(directory: Path) -> AsyncIterator[tuple[DemoDaemon, DaemonClient]]:
    """A daemon with three of the demo's servers, all discovered."""
    document = configuration()
    document["mcpServers"] = {name: document["mcpServers"][name] for name in ("calculator", "notes", "weather-desk")}
    with trio.fail_after(60):
        async with running_daemon(directory, document, forking()) as daemon, connect(daemon.url) as client:
            await discovered(client)
            yield daemon, client


async def discovered(client: DaemonClient) -> None:
    while True:
        if (await client.perform(READINESS))["ready"]:
            return
        await trio.sleep(0.02)


async def run(name: str, *arguments: str) -> str:
    done = await trio.run_process(
        [*environments.python_2(), str(EXAMPLES / name), *arguments], capture_stdout=True, stdin=b"", cwd=ROOT
    )
    return done.stdout.decode()


@pytest.mark.process
async def test_an_example_finds_a_tool_by_its_purpose_and_runs_it(tmp_path: Path) -> None:
    async with small_daemon(tmp_path) as (daemon, _):
        output = await run("find_and_call.py", "calculate an expression", '{"expression": "6 * 7"}', daemon.url)
    assert output.endswith('calculator:calculate answers: {"value": 42}\n')


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("find_and_call.py",), "[URL]"),
        (("find_and_call.py", "a", "{}", "http://127.0.0.1:1"), "refused"),
        (("find_and_call.py", "a", "{", "b", "c"), "[URL]"),
        (("official_client.py", "http://127.0.0.1:1"), "Start it with"),
        (("follow_changes.py", "http://127.0.0.1:1"), "Start it with"),
    ],
)
async def test_an_example_that_is_called_wrongly_says_how_and_shows_no_traceback(
    words: tuple[str, ...], said: str
) -> None:
    name, *arguments = words
    command = [*environments.python_2(), str(EXAMPLES / name), *arguments]
    done = await trio.run_process(command, capture_stderr=True, stdin=b"", check=False)
    assert done.returncode == 1
    assert said in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


@pytest.mark.process
async def test_the_official_client_sees_four_tools_and_the_resources(tmp_path: Path) -> None:
    async with small_daemon(tmp_path) as (daemon, _):
        lines = (await run("official_client.py", daemon.url, "calculate")).splitlines()
    assert lines[0] == "connected with protocol version 2026-07-28"
    assert len([line for line in lines if line.startswith("tool ")]) == 4
    first = next(line for line in lines if line.startswith('"calculate" finds '))
    assert first.startswith('"calculate" finds calculator:calculate, ')
    assert any(line.startswith("resource ") and "welcome" in line for line in lines)


@pytest.mark.process
async def test_an_example_hears_of_a_change_over_websocket(tmp_path: Path) -> None:
    async with small_daemon(tmp_path) as (daemon, client):
        command = [*environments.python_2(), str(EXAMPLES / "follow_changes.py"), daemon.url, "1"]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdout is not None
        output = b""
        while not output.endswith(b"\n"):
            output += await process.stdout.receive_some()
        assert output == b"connected to mcpvisor\n"
        await client.call("weather-desk-open_station", {"place": "Oslo"})
        async for chunk in process.stdout:
            output += chunk
        assert await process.wait() == 0
    assert output.endswith(b"change 1: search again\n")


def test_examples_are_short_and_listed_beside_them() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = [file for file in EXAMPLES.iterdir() if file.suffix in (".py", ".json")]
    assert len(files) >= 5
    assert "| `grafana/dashboard.json` |" in listed
    for file in files:
        assert f"| `{file.name}` |" in listed
        assert len(file.read_text(encoding="utf-8").splitlines()) < MAX_LINES, file.name


def test_every_script_has_a_test() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    for script in EXAMPLES.glob("*.py"):
        assert f'"{script.name}"' in tests
