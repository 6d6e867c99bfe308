"""Every command line of the README and of how to install, as it is written, in their order.

What runs for real: bash, mcpvisor, the daemon with examples/mcp.json as it ships, curl (or what sends the same), the
example. What cannot run here, because it would download or install, has a stand-in on the PATH that does nothing or
hands over to what is installed already; `stand_ins` is the whole list. Ports are free ones instead of 3001. A line
that `TRIED` does not know fails.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import trio

from docs.generate import MANY
from supervisor.clients.doors import address, choose, keeps_loaded, own_entry
from supervisor.config.client_table import CLIENTS
from tests.e2e import environments
from tests.e2e.daemons import ROOT, STAND_IN, Daemon, end, log_of
from tests.e2e.fork_server import forking
from tests.e2e.test_curl import fetch
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

README = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALL, _, _ = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8").partition("## Extras")
PYTHON = sys.executable


def stand_ins() -> dict[str, str]:
    """The programs on the PATH: bodies of bash scripts."""
    ours = shlex.join([*forking(), "-m", "supervisor"])
    return {
        # The installed mcpvisor; the daemon gets a free port and a data directory of its own.
        "mcpvisor": f"""
            export PYTHONPATH={ROOT}
            if [ "$1" = run ]; then exec {ours} "$@" --listen localhost:0 --data-dir "$HOME/data"; fi
            exec {ours} "$@"
        """,
        # A Python whose environments have stand-ins, too, whose pip installs nothing, and whose tests are none.
        "python3": """
            case "$*" in
                "-m venv "*)
                    mkdir -p "$3/bin"
                    cp "$0" "$3/bin/python"
                    cp "$(dirname "$0")/pip" "$(dirname "$0")/mcpvisor" "$3/bin/"
                    echo "export PATH=$PWD/$3/bin:\\$PATH" >"$3/bin/activate" ;;
                "-m pip "* | "-m pytest "*) echo "$*" >>"$HOME/asked" ;;
                "--version" | "-") echo "Python 3.11" ;;
                *) exit 64 ;;
            esac
        """,
        "pip": """echo "pip $*" >>"$HOME/asked" """,
        "pipx": """echo "pipx $*" >>"$HOME/asked" """,
        "uv": """echo "uv $*" >>"$HOME/asked" """,
        # The Python of an environment: its pip installs nothing.
        "python": """echo "$*" >>"$HOME/asked" """,
        # What installs and runs: the server of files is one of ours under that name, that of time the published one.
        "npx": f"""
            case "$*" in
                "-y @modelcontextprotocol/server-filesystem@"*) exec {PYTHON} -I -S {STAND_IN} filesystem ;;
                *) exit 64 ;;
            esac
        """,
        "uvx": f"""
            case "$*" in
                "mcp-server-time=="*) exec {shlex.join(environments.python_2())} -m mcp_server_time ;;
                "--from .[offline] "*) shift 2; exec "$@" ;;
                *) exit 64 ;;
            esac
        """,
        # Without it the scripts of .ci leave out the clients in TypeScript.
        "node": "exit 1",
    }


class Tried(msgspec.Struct, kw_only=True):
    """What a line must do: its exit code, what it prints, and what it asks of stand-ins that only write it down."""

    code: int = 0
    prints: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


DEMO = "All steps worked"
WITH_PIP = "python3 -m venv .venv && .venv/bin/pip install -c .ci/constraints.txt '.[offline]'"
RUN = "mcpvisor run --config examples/mcp.json"
TRIED = {
    "uvx --from '.[offline]' mcpvisor demo": Tried(prints=(DEMO,)),
    WITH_PIP: Tried(asks=("pip install -c .ci/constraints.txt .[offline]",)),
    f"{WITH_PIP} && .venv/bin/mcpvisor demo": Tried(
        asks=("pip install -c .ci/constraints.txt .[offline]",), prints=(DEMO,)
    ),
    "uv tool install '.[offline]'": Tried(asks=("uv tool install .[offline]",)),
    "pipx install '.[offline]'": Tried(asks=("pipx install .[offline]",)),
    ". .venv/bin/activate": Tried(),
    "mcpvisor check examples/mcp.json": Tried(prints=("filesystem", "time", "github")),
    RUN: Tried(),  # the fixture runs it, all others ask it
    "mcpvisor status": Tried(prints=("filesystem", "time", "ready")),
    'mcpvisor search "what time is it in Tokyo"': Tried(prints=("time:get_current_time",)),
    """mcpvisor call time:get_current_time '{"timezone": "Asia/Tokyo"}'""": Tried(prints=("Asia/Tokyo", "datetime")),
    "mcpvisor call time:get_current_time '{}'": Tried(code=1, prints=("timezone",)),
    "mcpvisor logs time": Tried(prints=("mcpvisor ready",)),
    "mcpvisor restart time": Tried(prints=("time is restarted and ready",)),
    "mcpvisor --version": Tried(prints=("mcpvisor, version ",)),
    ".ci/test": Tried(asks=("-e .[offline,dev,docs]", "-m pytest -q -n 4")),
}
"""Every line but those of curl."""
CURL = ("time:get_current_time", "Asia/Tokyo")
"""What the answers to the lines of curl have in them, in their order."""


def lines_of(text: str) -> list[str]:
    """Every line of every block of shell."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


LINES = list(dict.fromkeys(lines_of(README) + lines_of(INSTALL)))
CURL_LINES = [line for line in LINES if line.startswith("curl ")]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the lines need of a checkout, with the stand-ins beside it."""
    directory = tmp_path_factory.mktemp("readme")
    for name in (".ci", "examples", "tests/e2e/clients"):
        shutil.copytree(ROOT / name, directory / "checkout" / name)
    shutil.copy(ROOT / "pyproject.toml", directory / "checkout")
    make_home(directory, stand_ins())
    return directory / "checkout"


def make_home(directory: Path, programs: dict[str, str]) -> Path:
    """Return an empty home in a directory; beside it, in `bin`, are programs: bodies of bash scripts."""
    (directory / "home").mkdir()
    (directory / "bin").mkdir()
    for name, body in programs.items():
        file = directory / "bin" / name
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)
    return directory / "home"


def environment(checkout: Path, url: str = "") -> dict[str, str]:
    beside = checkout.parent
    keep = {name: os.environ[name] for name in ("LANG", "TMPDIR", "TIKTOKEN_CACHE_DIR") if name in os.environ}
    own = {"PATH": f"{beside / 'bin'}:/usr/local/bin:/usr/bin:/bin", "HOME": str(beside / "home"), "MCPVISOR_URL": url}
    return {**keep, **own, "COLUMNS": "100"}


@pytest.fixture(scope="module")
def daemon(checkout: Path) -> Iterator[Daemon]:
    """The daemon that the README's own line starts."""
    assert RUN in LINES
    with log_of(checkout).open("ab") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {RUN}"],
            cwd=checkout,
            env=environment(checkout),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
    url = process.stdout.readline().removeprefix("listening on ").strip() if readable else ""
    started = Daemon(process, url or "http://nowhere:0", checkout, checkout.parent / "home" / "data")
    try:
        assert url, started.log
        trio.run(started.ready)
        yield started
    finally:
        end(started)


def test_every_line_is_tried() -> None:
    assert {line for line in LINES if not line.startswith("curl ")} == TRIED.keys()
    assert len(CURL_LINES) == len(CURL)


@pytest.mark.parametrize("line", [line for line in LINES if line in TRIED and line != RUN])
def test_a_line_does_what_the_readme_says(daemon: Daemon, checkout: Path, line: str) -> None:
    tried = TRIED[line]
    asked = checkout.parent / "home" / "asked"
    asked.unlink(missing_ok=True)
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=checkout,
        env=environment(checkout, daemon.url),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == tried.code, printed
    for text in tried.prints:
        assert text in printed
    for text in tried.asks:
        assert text in asked.read_text()


@pytest.mark.parametrize(("line", "wanted"), list(zip(CURL_LINES, CURL, strict=False)))
def test_a_line_of_curl_gives_something_with_the_example_as_it_ships(daemon: Daemon, line: str, wanted: str) -> None:
    answer = fetch(daemon, line)
    assert wanted in msgspec.json.encode(answer).decode().replace("\\n", "\n")
    assert "error" not in answer


def test_the_lines_for_clients_name_the_address_of_the_daemon() -> None:
    clients = README[README.index("## Connect a client") : README.index("## First calls")]
    items = re.findall(r"^- \*\*(.+?)\*\*(.*?)(?=^- |\n\n)", clients, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in items] == ["Claude Code:", "Claude Desktop", "Any other client:"]
    for name, text in items[:-1]:
        assert leads_to_the_daemon(text), name
    assert f"[{len(CLIENTS)} that it knows]" in clients


def test_the_entries_by_hand_name_the_address_of_the_daemon() -> None:
    page = (ROOT / "docs" / "start" / "clients-by-hand.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    written = {name: re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL) for name, text in sections}
    assert len([name for name, blocks in written.items() if blocks]) == 7
    for name, blocks in written.items():
        for kind, text in blocks:
            assert leads_to_the_daemon(f"`{' '.join(text.split())}`" if kind == "json" else text), name


def test_the_entries_by_hand_are_those_that_connect_would_write() -> None:
    page = (ROOT / "docs" / "start" / "clients-by-hand.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    shown = [client for client in CLIENTS if client.title in sections]
    assert len(shown) == 7
    for client in shown:
        door = choose(client.facts, MANY).door
        url = address("http://127.0.0.1:3001/mcp", door)
        entry = own_entry(client, url, ["mcpvisor", "stdio"], keeps_loaded(client.facts, door))
        blocks = dict(re.findall(r"```(\w+)\n(.*?)```", sections[client.title], re.DOTALL))
        document = tomllib.loads(blocks["toml"]) if client.format == "toml" else msgspec.json.decode(blocks["json"])
        (key,) = client.servers
        assert document == {key: {"mcpvisor": entry}}, client.name
        if client.command:
            assert url in blocks.get("sh", url), client.name


def leads_to_the_daemon(text: str) -> bool:
    """Whether a text names the daemon's address once, or starts the bridge, which has it by itself."""
    for entry in re.findall(r"`(\{.*?\})`", text, re.DOTALL):
        (section,) = msgspec.json.decode(entry).values()
        assert list(section) == ["mcpvisor"]
    bridge = re.findall(r'"command": "mcpvisor", "args": \["stdio"\]', text)
    return len(bridge) + text.count("http://127.0.0.1:3001/mcp") == 1
