"""The pages in docs/start as they are written, from an empty home: lines run, and print what the page shows below them.

What would install or download has a stand-in on the PATH, see `stand_ins`; all else is real, the two servers included.
Numbers, times and the home of the reader differ from those on the page; `...` is what the page leaves out.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import ROOT, Daemon, end, log_of
from tests.e2e.fork_server import forking
from tests.e2e.test_readme import make_home
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

START = ROOT / "docs" / "start"
PAGE = (START / "quickstart.md").read_text(encoding="utf-8")
RUN = "mcpvisor run"
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
STEPS = re.findall(r"```sh\n(.*?)```\n+```text\n(.*?)```", PAGE, re.DOTALL)
"""Each block of lines, and what the page shows of their output."""
NOWHERE = "http://127.0.0.1:1"
QUESTION = "[y/N]: "
_DIFFERS = (
    (re.compile(r"[A-Z][a-z]+day\b"), "a day"),
    (re.compile(r"\d+"), "0"),
    (re.compile(r"0m 0s|0m|0s"), "0s"),
    (re.compile(r"\s+"), " "),
)


def stand_ins() -> dict[str, str]:
    """The programs on the PATH: bodies of bash scripts."""
    ours, python = shlex.join([*forking(), "-m", "supervisor"]), shlex.join(environments.python_2())
    return {
        "mcpvisor": f"""
            export PYTHONPATH={ROOT}
            if [ "$1" = run ]; then exec {ours} "$@" --listen 127.0.0.1:0; fi
            exec {ours} "$@"
        """,
        "uv": """[ "$*" = "tool install .[offline]" ] && echo "Installed 1 executable: mcpvisor" """,
        "uvx": f"""
            case "$*" in
                "mcp-server-time=="*) exec {python} -m mcp_server_time ;;
                "mcp-server-git=="*) exec {python} -m mcp_server_git ;;
                *) exit 64 ;;
            esac
        """,
    }


def normalised(text: str) -> str:
    """What a text says without what differs from run to run."""
    for differs, same in _DIFFERS:
        text = differs.sub(same, text)
    return text.strip()


def shows(page: str, printed: str) -> bool:
    """Whether what the page shows was printed, with anything in place of `...`."""
    pieces = [re.escape(normalised(piece)) for piece in page.split("...")]
    return re.search(".*".join(pieces), normalised(printed)) is not None


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home, with the stand-ins beside it."""
    return make_home(tmp_path, stand_ins())


def environment(home: Path, url: str) -> dict[str, str]:
    keep = {name: os.environ[name] for name in ("LANG", "TMPDIR", "TIKTOKEN_CACHE_DIR") if name in os.environ}
    path = f"{home.parent / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    return {**keep, "PATH": path, "HOME": str(home), "MCPVISOR_URL": url, "COLUMNS": "100", "TERM": "dumb"}


def run(home: Path, line: str, url: str) -> str:
    """Return what a line prints on a terminal, where y is the answer to every question."""
    reader, terminal = pty.openpty()
    command = ["bash", "-c", line]
    try:
        with subprocess.Popen(
            command, cwd=home, env=environment(home, url), stdin=terminal, stdout=terminal, stderr=terminal
        ) as process:
            os.close(terminal)
            try:
                return "".join(answered(reader))
            except BaseException:
                process.kill()
                raise
    finally:
        os.close(reader)


def answered(reader: int) -> Iterator[str]:
    """Yield what is printed on a terminal until nobody has it any more."""
    while True:
        assert select.select([reader], [], [], PATIENCE_S)[0], "neither an end nor a question"
        try:
            printed = os.read(reader, 65536).decode()
        except OSError:  # Linux says so when the last one has closed it
            return
        if printed.endswith(QUESTION):
            os.write(reader, b"y\n")
        yield printed


@contextmanager
def daemon(home: Path) -> Iterator[Daemon]:
    """The daemon that the page's own line starts, with its servers up."""
    with log_of(home).open("ab") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {RUN}"], cwd=home, env=environment(home, NOWHERE), stdout=log, stderr=log, text=True
        )
    started = Daemon(process, NOWHERE, home, data := home / ".local" / "state" / "mcpvisor")
    try:
        started = Daemon(process, trio.run(address, started), home, data)
        trio.run(started.ready)
        yield started
    finally:
        end(started)


async def address(started: Daemon) -> str:
    with trio.fail_after(PATIENCE_S):
        while not (said := re.search(r"^listening on (\S+)$", started.log, re.MULTILINE)):  # noqa: ASYNC110 - its start
            await trio.sleep(0.05)
    return said[1]


def test_every_block_of_lines_has_its_output() -> None:
    assert [block for block, _ in STEPS] == BLOCKS
    assert len(STEPS) == 11


def test_every_step_prints_what_the_page_shows(home: Path) -> None:
    with ExitStack() as stack:
        url = NOWHERE
        for block, output in STEPS:
            if block.strip() == RUN:
                running = stack.enter_context(daemon(home))
                trio.run(running.counted)
                url, printed = running.url, running.log
            else:
                printed = "".join(run(home, line, url) for line in block.splitlines())
            printed = printed.replace(str(home), "/home/you")
            assert shows(output, printed), f"{block}{printed}"
        written = (home / ".config" / "mcpvisor" / "mcp.json").read_text()
        assert f"```json\n{written.rstrip()}\n```" in PAGE


def test_what_import_and_connect_print_is_what_their_pages_show(home: Path) -> None:
    git = {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "env": {}}
    key = {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefghij0123456789abcdefgh"}
    github = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": key}
    for file, servers in ((".claude.json", {"git": git}), (".cursor/mcp.json", {"github": github})):
        (home / file).parent.mkdir(exist_ok=True)
        (home / file).write_text(json.dumps({"mcpServers": servers}))
    (home / ".claude").mkdir()
    run(home, "mcpvisor add time -- uvx mcp-server-time==2026.10.19", NOWHERE)
    imported = run(home, "mcpvisor import --dry-run", NOWHERE)
    connected = run(home, "mcpvisor connect claude-code --yes >/dev/null && mcpvisor connect 2>&1 | cat", NOWHERE)
    for page, printed in (("import", imported), ("clients", connected)):
        shown = re.findall(r"```text\n(.*?)```", (START / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
        assert len(shown) == 1
        assert shows(shown[0], printed.replace(str(home), "/home/you")), printed
