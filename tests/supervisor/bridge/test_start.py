"""Starting a daemon where none is, step by step."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from actors.errors import ConfigError
from supervisor.bridge import start as module
from supervisor.bridge.start import OTHER_S, START_S, NotStarted, Starter
from supervisor.host.datadir import open_data_dir

pytestmark = pytest.mark.process

PORT = 1
"""Nobody listens there: a daemon that is started in earnest gets another one."""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}


def data_of(environ: dict[str, str]) -> Path:
    return Path(environ["XDG_STATE_HOME"]) / "mcpvisor"


def until(starter: Starter, now: float = 0.0) -> str:
    """Take steps until something is to be seen of one. Raises `NotStarted`."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if said := starter.step(now):
            return said
    raise AssertionError("nothing happened")


@pytest.fixture
def starter(environ: dict[str, str], tmp_path: Path) -> Iterator[Starter]:
    """What starts a daemon with a configuration that is broken."""
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"x": 7,}')
    starter = Starter(PORT, lambda: ["--config", str(config)], environ)
    yield starter
    wait(starter)


def wait(starter: Starter) -> None:
    """Wait for the end of what was started."""
    for process in (starter._process, starter._former):
        if process is not None:
            assert process.wait(60) is not None
    starter.finish()


def test_why_it_ended_is_told_in_its_words(starter: Starter, tmp_path: Path) -> None:
    said = until(starter)
    assert said.startswith("no daemon is there: started one, process ")
    assert f"log {tmp_path}/state/mcpvisor/daemon-{PORT}.log" in said
    with pytest.raises(NotStarted, match=rf"ended with exit code 78: {tmp_path}/mcp.json:1: .*") as raised:
        until(starter)
    assert "\n" not in str(raised.value)
    assert until(starter).startswith("no daemon is there")  # somebody may have mended it


def test_what_it_writes_is_for_its_user_only(starter: Starter, environ: dict[str, str]) -> None:
    until(starter)
    files = {path.name: path.stat().st_mode & 0o777 for path in data_of(environ).iterdir()}
    assert files == {f"start-{PORT}.lock": 0o600, f"daemon-{PORT}.log": 0o600}


def test_a_long_log_is_put_aside(starter: Starter, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_LOG_BYTES", 10)
    starter.step(0.0)
    log = data_of(environ) / f"daemon-{PORT}.log"
    log.write_text("x" * 11)
    until(starter)
    assert log.with_suffix(".log.old").read_text() == "x" * 11
    assert "x" * 11 not in log.read_text()


def test_whoever_else_starts_one_is_left_to_it(starter: Starter, environ: dict[str, str]) -> None:
    other = Starter(PORT, lambda: pytest.fail("it was not its turn"), environ)
    until(starter)
    for _ in range(10):
        assert other.step(0.0) == ""
    elsewhere = Starter(PORT + 1, refuse, environ)
    with pytest.raises(NotStarted, match="there is no configuration"):
        until(elsewhere)


def refuse() -> Sequence[str]:
    raise ConfigError("there is no configuration", hint="write one")


def test_without_a_configuration_it_says_what_to_do_and_frees_the_way(environ: dict[str, str]) -> None:
    starter = Starter(PORT, refuse, environ)
    with pytest.raises(NotStarted, match=r"there is no configuration \(write one\)"):
        until(starter)
    lock = os.open(data_of(environ) / f"start-{PORT}.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)


def test_without_a_place_for_data_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match="neither XDG_STATE_HOME nor HOME"):
        until(Starter(PORT, refuse, {}))
    (tmp_path / "file").write_text("")
    with pytest.raises(NotStarted, match="cannot be used"):
        until(Starter(PORT, refuse, {"HOME": str(tmp_path / "file")}))


def test_without_a_process_it_says_so(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(NotStarted, match="no daemon can be started: No such file"):
        until(Starter(PORT, list, environ))


def test_a_daemon_that_has_the_data_may_be_about_to_listen(environ: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {}}))
    starter = Starter(PORT, lambda: ["--config", str(config), "--listen", "127.0.0.1:0"], environ)
    with open_data_dir(None, environ):
        until(starter)
        end = time.monotonic() + 60
        while starter._process is not None and time.monotonic() < end:
            assert starter.step(0.0) == ""
        assert starter.step(OTHER_S - 1) == ""
        with pytest.raises(NotStarted, match="another daemon uses this data directory"):
            starter.step(OTHER_S)
        wait(starter)


def test_one_that_never_listens_is_given_up(environ: dict[str, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mcp.json")  # it is read for ever
    starter = Starter(PORT, lambda: ["--config", str(tmp_path / "mcp.json")], environ)
    until(starter)
    process = starter._process
    assert process is not None
    try:
        assert starter.step(START_S - 1) == ""
        assert starter._process is process
        assert starter.step(START_S) == ""
        assert starter._process is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("home", ["", "relative", "/no/such/directory"])
def test_it_works_in_the_home_directory_or_in_the_root(environ: dict[str, str], home: str) -> None:
    assert Starter(PORT, refuse, environ)._home() == environ["HOME"]
    assert Starter(PORT, refuse, {**environ, "HOME": home})._home() == "/"
