"""Entries as READMEs of servers have them, whose package manager fails: the status says why, and what to do."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.server.operators.record import SILENT
from actors.transport.stdio.causes import cause_of
from actors.transport.stdio.remedies import how_to_install
from supervisor.host.datadir import open_data_dir
from tests.actors.server.operators.test_last_words import TOO_OLD, TOO_OLD_BEFORE
from tests.actors.transport.stdio.test_causes import MCP_1, OTHER_ENGINE, USE_MCP_1
from tests.actors.transport.stdio.test_npm_log import HEAD, SAID, SCRIPT_FAILED
from tests.scenario.daemon import World, world

pytestmark = pytest.mark.process


def program(path: Path, script: str) -> str:
    """Write a program that a package manager of this name may be."""
    path.write_text(f"#!/bin/sh\n{script}\nexit 1\n")
    path.chmod(0o755)
    return str(path)


@asynccontextmanager
async def given_up(directory: Path, command: str, *args: str, **entry: Any) -> AsyncIterator[tuple[World, str]]:
    """Run a daemon until its only server is given up, and tell why that was."""
    servers = {"a": {"command": command, "args": args or ["-y", "a-server"], "max_restarts": 0, **entry}}
    with open_data_dir(directory / "data", {}) as data:
        async with world(directory, data, servers, waits=False, daemon={"connect": None}) as at:
            yield at, str((await at.until_state("a", "failed"))["last_error"])


async def why_it_failed(directory: Path, command: str, **entry: Any) -> str:
    async with given_up(directory, command, **entry) as (_, why):
        return why


@pytest.mark.parametrize("said", [TOO_OLD, TOO_OLD_BEFORE])
async def test_a_server_for_a_newer_python_says_which_to_ask_for(tmp_path: Path, said: str) -> None:
    uvx = program(tmp_path / "uvx", f"printf %s {shlex.quote(said)} >&2")
    assert (await why_it_failed(tmp_path, uvx)).endswith(
        "; last words: the current Python version (3.11.7) does not satisfy Python>=3.12; "
        'put "--python", "3.12" first into its args'
    )


async def test_a_package_whose_script_fails_in_silence_is_told_from_npms_log(tmp_path: Path) -> None:
    log = shlex.quote(HEAD.format(package="a-server") + SCRIPT_FAILED)
    name = "2026-01-01T00_00_01_000Z-debug-0.log"
    npx = program(
        tmp_path / "npx", f'mkdir -p "$npm_config_cache/_logs"; printf %s {log} >"$npm_config_cache/_logs/{name}"'
    )
    error = await why_it_failed(tmp_path, npx, env={"npm_config_cache": str(tmp_path / "npm")})
    assert error.endswith(f"; npx: {SAID}; to see why: npx --foreground-scripts -y a-server")


async def test_where_npm_notes_nothing_either_the_command_that_shows_more_is_named(tmp_path: Path) -> None:
    npx = program(tmp_path / "npx", "")
    error = await why_it_failed(tmp_path, npx, env={"npm_config_cache": str(tmp_path / "npm")})
    assert error.endswith("; to see why: npx --foreground-scripts -y a-server")


async def test_a_program_that_is_missing_is_told_with_how_to_install_it_in_status_and_log(tmp_path: Path) -> None:
    async with given_up(tmp_path, "npx", "a-server@1", env={"PATH": "/nowhere"}) as (at, error):
        log = (await at.ask("GET", "/api/servers/a/logs")).text
    assert error == f"command 'npx' was not found on PATH /nowhere; {how_to_install('npx')}"
    assert error in log


async def test_what_a_package_manager_complains_of_is_told_with_what_to_do(tmp_path: Path) -> None:
    npx = program(tmp_path / "npx", "printf 'npm error code EAI_AGAIN\\nnpm error request to x failed' >&2")
    error = await why_it_failed(tmp_path, npx)
    assert error.endswith(
        f"; last words: npm error: request to x failed; {cause_of('npm error code EAI_AGAIN').advice}"
    )


async def test_a_server_that_explains_its_use_after_the_error_is_told_with_the_error(tmp_path: Path) -> None:
    said = "Error: no token was given\nUsage: a-server\n" + "  --option   What it is for, which is required\n" * 400
    npx = program(tmp_path / "npx", f"printf %s {shlex.quote(OTHER_ENGINE + said)} >&2")
    assert (await why_it_failed(tmp_path, npx)).endswith("; last words: Error: no token was given")


async def test_a_cause_in_a_log_of_json_is_told_and_not_that_its_wrapper_failed(tmp_path: Path) -> None:
    said = '{"level":60,"time":1,"msg":"the key is missing"}\nError: Command failed: node server.js\n'
    wrapper = program(tmp_path / "wrapper", f"printf %s {shlex.quote(said)} >&2")
    assert (await why_it_failed(tmp_path, wrapper)) == "exit code 1; last words: the key is missing"


async def test_a_server_for_an_older_package_is_told_with_the_arguments_that_it_needs(tmp_path: Path) -> None:
    uvx = program(tmp_path / "uvx", f"printf %s {shlex.quote(MCP_1)} >&2")
    assert (await why_it_failed(tmp_path, uvx)).endswith(f"; {USE_MCP_1}")


async def test_a_server_that_ends_without_a_word_is_told_with_what_to_do(tmp_path: Path) -> None:
    server = program(tmp_path / "server", "")
    assert (await why_it_failed(tmp_path, server)) == f"exit code 1; {SILENT}"
