"""Entries as READMEs of servers have them, whose package manager fails: the status says why, and what to do."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from actors.server.operators.record import SILENT
from actors.transport.stdio.causes import cause_of
from actors.transport.stdio.remedies import how_to_install
from supervisor.host.datadir import DataDir
from tests.actors.server.operators.test_last_words import TOO_OLD, TOO_OLD_BEFORE
from tests.actors.transport.stdio.test_causes import MCP_1, OTHER_ENGINE, USE_MCP_1
from tests.actors.transport.stdio.test_npm_log import HEAD, SAID, SCRIPT_FAILED
from tests.scenario.daemon import world

pytestmark = pytest.mark.process


def program(path: Path, script: str) -> str:
    """Write a program that a package manager of this name may be."""
    path.write_text(f"#!/bin/sh\n{script}\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def says(text: str) -> str:
    return f"printf %s {shlex.quote(text)} >&2"


LOG = "$npm_config_cache/_logs/2026-01-01T00_00_01_000Z-debug-0.log"
NOTED = shlex.quote(HEAD.format(package="a-server") + SCRIPT_FAILED)
NEWER_PYTHON = (
    "; last words: the current Python version (3.11.7) does not satisfy Python>=3.12; "
    'put "--python", "3.12" first into its args'
)
OPTIONS = "  --option   What it is for, which is required\n" * 400
WRAPPED = '{"level":60,"time":1,"msg":"the key is missing"}\nError: Command failed: node server.js\n'
CASES: dict[str, tuple[str, str, str]] = {
    "is-for-a-newer-python": ("uvx", says(TOO_OLD), NEWER_PYTHON),
    "is-for-a-newer-python-as-was-said-before": ("uvx", says(TOO_OLD_BEFORE), NEWER_PYTHON),
    "has-a-script-that-fails-in-silence": (
        "npx",
        f'mkdir -p "${{npm_config_cache}}/_logs"; printf %s {NOTED} >"{LOG}"',
        f"; npx: {SAID}; to see why: npx --foreground-scripts -y a-server",
    ),
    "is-one-of-which-npm-notes-nothing": ("npx", "", "; to see why: npx --foreground-scripts -y a-server"),
    "is-what-npm-complains-of": (
        "npx",
        says("npm error code EAI_AGAIN\nnpm error request to x failed"),
        f"; last words: npm error: request to x failed; {cause_of('npm error code EAI_AGAIN').advice}",
    ),
    "explains-its-use-after-the-error": (
        "npx",
        says(f"{OTHER_ENGINE}Error: no token was given\nUsage: a-server\n{OPTIONS}"),
        "; last words: Error: no token was given",
    ),
    "has-its-cause-in-a-log-of-json": ("wrapper", says(WRAPPED), "exit code 1; last words: the key is missing"),
    "is-for-an-older-package": ("uvx", says(MCP_1), f"; {USE_MCP_1}"),
    "ends-without-a-word": ("server", "", f"exit code 1; {SILENT}"),
}
"""Of each server: the program that is to start it, what that does, and how what is told of it ends, or all of it."""


async def test_each_server_that_fails_says_why_and_what_to_do(tmp_path: Path, data: DataDir) -> None:
    servers: dict[str, Any] = {"is-missing": {"command": "npx", "args": ["a-server@1"], "env": {"PATH": "/nowhere"}}}
    for name, (command, script, _) in CASES.items():
        (tmp_path / name).mkdir()
        started = {"command": program(tmp_path / name / command, script), "args": ["-y", "a-server"]}
        servers[name] = {**started, "env": {"npm_config_cache": str(tmp_path / name / "npm")}}
    servers = {name: {**entry, "max_restarts": 0} for name, entry in servers.items()}
    async with world(tmp_path, data, servers, daemon={"connect": None}) as at:
        told = {name: str((await at.until_state(name, "failed"))["last_error"]) for name in servers}
        log = await at.text("/api/servers/is-missing/logs")
    missing = told.pop("is-missing")
    assert missing == f"command 'npx' was not found on PATH /nowhere; {how_to_install('npx')}"
    assert missing in log
    wanted = {name: end for name, (_, _, end) in CASES.items()}
    assert {name: text[text.find(wanted[name]) :] for name, text in told.items()} == wanted
    whole = {name: end for name, end in wanted.items() if end.startswith("exit")}
    assert {name: told[name] for name in whole} == whole
