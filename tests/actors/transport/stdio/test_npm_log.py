"""npm's own log, as it writes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from actors.transport.stdio.installer import failure, failure_in, install_failure, logs_of

HEAD = """\
0 verbose cli /usr/bin/node /usr/lib/npm-cli.js
1 info using npm@11.0.0
8 verbose argv "exec" "--yes" "--" "{package}"
"""
SCRIPT_FAILED = """\
773 http cache zod@https://registry.example/zod.tgz 0ms (cache hit)
774 info run c@1.0.0 install node_modules/c node check.js
775 info run c@1.0.0 install { code: 0, signal: null }
776 info run browser@2.1.0 postinstall node_modules/browser node install.mjs
777 info run browser@2.1.0 postinstall { code: 1, signal: null }
778 silly unfinished npm timer reify 1
786 verbose exit 1
787 verbose code 1
"""
REFUSED = """\
80 verbose stack Error: ENOSPC: no space left on device
81 error code ENOSPC
82 error ENOSPC: no space left on device, write
83 error A complete log of this run can be found in: /x
"""
SAID = "the postinstall script of browser@2.1.0 failed with code 1: node install.mjs"


def log(directory: Path, number: int, package: str, tail: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    name = f"2026-01-01T00_00_{number:02}_000Z-debug-0.log"
    (directory / name).write_text(HEAD.format(package=package) + "50 silly x\n" * 10_000 + tail)


@pytest.mark.parametrize("named", ["a-server", "a-server@latest"])
def test_the_script_that_failed_is_found_in_the_newest_log_about_the_package(tmp_path: Path, named: str) -> None:
    log(tmp_path, 1, named, REFUSED)
    log(tmp_path, 2, named, SCRIPT_FAILED)
    log(tmp_path, 3, "another", REFUSED)
    assert failure_in(str(tmp_path), "a-server") == SAID


def test_without_a_script_the_errors_are_told(tmp_path: Path) -> None:
    log(tmp_path, 1, "a-server", REFUSED)
    assert failure_in(str(tmp_path), "a-server") == (
        "Error: ENOSPC: no space left on device | ENOSPC: no space left on device, write"
    )


def test_a_script_that_was_killed_is_told_with_the_signal() -> None:
    tail = SCRIPT_FAILED.replace("{ code: 1, signal: null }", "{ code: null, signal: SIGKILL }")
    assert "failed with signal SIGKILL" in failure([(HEAD.format(package="a"), tail)], "a")


def test_a_dependency_that_git_cannot_fetch_is_named() -> None:
    head = HEAD.format(package="a") + "27 silly fetch manifest b@github:somebody/b\n"
    ended = "1059 verbose exit 128\n1060 verbose code 128\n"
    assert failure([(head, ended)], "a") == "git cannot fetch what it depends on: b@github:somebody/b"
    assert failure([(head, ended.replace("128", "1"))], "a") == ""


def test_a_secret_in_a_log_is_not_shown() -> None:
    tail = "9 error 401 Unauthorized - GET https://me:hunter2@registry.example/a\n"
    told = failure([(HEAD.format(package="a"), tail)], "a")
    assert "registry.example" in told
    assert "hunter2" not in told


def test_where_there_is_no_log_nothing_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "2026-01-01T00_00_01_000Z-debug-0.log")  # whoever opens it waits for ever
    assert failure_in(str(tmp_path), "a-server") == ""
    assert failure_in(str(tmp_path / "none"), "a-server") == ""


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({"HOME": "/home/me"}, "/home/me/.npm/_logs"),
        ({"HOME": "/home/me", "npm_config_cache": "/c"}, "/c/_logs"),
        ({"HOME": "/home/me", "npm_config_logs_dir": "/l"}, "/l"),
        ({}, ""),
    ],
)
def test_the_logs_are_where_npm_keeps_them(env: dict[str, str], place: str) -> None:
    assert logs_of(env) == place


async def test_only_what_npm_starts_is_looked_up(tmp_path: Path) -> None:
    log(tmp_path / ".npm" / "_logs", 1, "a-server", SCRIPT_FAILED)
    env = {"HOME": str(tmp_path)}
    with trio.fail_after(30):
        assert await install_failure("npx", ["-y", "a-server"], env) == SAID
        assert await install_failure("uvx", ["a-server"], env) == ""
