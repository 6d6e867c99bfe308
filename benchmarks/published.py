"""`python -m benchmarks.published`: published servers from an empty package cache, and what the status says of each.

Every entry is as its README has it (`published.json`, or `--config FILE`). The home directory is a new one, so that no
package is there: what is measured is the first day of a user. Needs the package indexes of npm and PyPI, and Node.js;
where there is no `uvx` on the PATH, it is installed beside. Nothing is compared: the table says what came up, when, and
why the rest did not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.client import page
from benchmarks.machine import ROOT, free_port, pause, program
from supervisor.commands.status import savings_line
from supervisor.config.file import read_text
from supervisor.config.jsonc import read_document

STEP_S = 2.0
COUNTING_TRIES = 15
SHOWN_CHARS = 240


class Seen(msgspec.Struct, kw_only=True):
    """What was seen of one server. `listed_s`: seconds from the start of the daemon until its lists were there."""

    listed_s: float | None = None
    row: dict[str, Any] = msgspec.field(default_factory=dict)
    told: list[str] = msgspec.field(default_factory=list)


def main() -> int:
    """Run the servers until all are listed or the time is over; print the table. Return 0."""
    arguments = _parser().parse_args()
    servers = read_document(read_text(arguments.config), str(arguments.config)).value["mcpServers"]
    with tempfile.TemporaryDirectory(prefix="published-") as directory:
        home = Path(directory) / "home"
        repository = home / "repository"
        repository.mkdir(parents=True)
        subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
        path = f"{uvx_beside(Path(directory))}{os.environ['PATH']}"
        states, saved = watched(servers, {"HOME": str(home), "PATH": path, **_no_cache()}, Path(directory), arguments)
        if arguments.log is not None:
            shutil.copy(Path(directory) / "daemon.log", arguments.log)
    print(table(servers, states))
    print(saved)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__)
    parser.add_argument(
        "--config", type=Path, default=ROOT / "benchmarks" / "published.json", help="the servers to run"
    )
    parser.add_argument("--minutes", type=float, default=15.0, help="end after this time, whatever is still missing")
    parser.add_argument("--log", type=Path, help="keep the daemon's log there")
    return parser


def _no_cache() -> dict[str, str]:
    """Return what keeps the caches in the new home, whatever the environment says of them."""
    names = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "UV_CACHE_DIR", "npm_config_cache")
    return {name: "" for name in names if name in os.environ}


def uvx_beside(directory: Path) -> str:
    """Return the beginning of a PATH that has `uvx`, empty if the present one has it."""
    if shutil.which("uvx"):
        return ""
    environment = directory / "uv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    # Only its programs: the environment's `python` must not be found before the system's.
    programs = directory / "bin"
    programs.mkdir()
    for name in ("uv", "uvx"):
        (programs / name).symlink_to(environment / "bin" / name)
    return f"{programs}:"


def watched(
    servers: Mapping[str, Any], env: Mapping[str, str], directory: Path, arguments: argparse.Namespace
) -> tuple[dict[str, Seen], str]:
    """Run a daemon with the servers; return what was seen of each until all are listed, or the time is over.

    The text is what the meta-tools save then, in tokens.
    """
    port = free_port()
    own = {"listen": f"127.0.0.1:{port}", "data_dir": str(directory / "data")}
    config = directory / "published.json"
    config.write_bytes(msgspec.json.encode({"mcpServers": servers, "supervisor": own}))
    seen = {name: Seen() for name in servers}
    started = time.monotonic()
    command = [sys.executable, "-m", "supervisor", "run", "--config", str(config)]
    with program(command, port, directory / "daemon.log", env=env):
        while (
            any(one.listed_s is None for one in seen.values()) and time.monotonic() - started < arguments.minutes * 60
        ):
            pause(STEP_S)
            rows = page(port, "/api/status")["servers"]
            _note(seen, rows, time.monotonic() - started)
            _show(seen, time.monotonic() - started)
        saved = _savings(port)
    print(file=sys.stderr)
    return seen, saved


def _savings(port: int) -> str:
    """Return the line of `mcpvisor status` about tokens, once they are counted."""
    for _ in range(COUNTING_TRIES):
        status = page(port, "/api/status")
        if status["tokens"]["counted"]:
            break
        pause(STEP_S)
    return savings_line(status["totals"], status["tokens"])


def _note(seen: dict[str, Seen], rows: list[dict[str, Any]], now: float) -> None:
    for row in rows:
        one = seen.get(row["server"])
        if one is None:
            continue
        one.row = row
        if one.listed_s is None and row.get("tools") is not None:
            one.listed_s = now
        said = row.get("last_error")
        if said and (not one.told or one.told[-1] != said):
            one.told.append(said)


def _show(seen: dict[str, Seen], now: float) -> None:
    missing = [name for name, one in seen.items() if one.listed_s is None]
    text = f"{now:5.0f} s: {len(seen) - len(missing)} of {len(seen)} are there; missing: {', '.join(missing) or 'none'}"
    print(
        f"\r\x1b[K{text[:150]}" if sys.stderr.isatty() else text,
        end="" if sys.stderr.isatty() else "\n",
        file=sys.stderr,
    )


def table(servers: Mapping[str, Any], seen: Mapping[str, Seen]) -> str:
    """Return what was seen as a table of Markdown, and a line that counts."""
    lines = [
        "| server | starts with | tools | listed after | starts failed | state | the status says |",
        "| --- " * 7 + "|",
    ]
    for name, one in seen.items():
        said = (one.told[-1] if one.listed_s is None and one.told else "") or ""
        words = " ".join(said.split()).replace("|", "\\|")[:SHOWN_CHARS]
        when = "never" if one.listed_s is None else f"{one.listed_s:.0f} s"
        tools, state = one.row.get("tools", "-"), one.row.get("state", "-")
        failed = one.row.get("restarts", "-")
        lines.append(f"| {name} | {servers[name]['command']} | {tools} | {when} | {failed} | {state} | {words} |")
    up = sum(one.listed_s is not None for one in seen.values())
    return "\n".join([*lines, "", f"{up} of {len(seen)} servers came up."])


if __name__ == "__main__":
    sys.exit(main())
