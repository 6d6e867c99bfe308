"""What a node begins with and reads again that takes what is published: with which copy, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from click.testing import Result

from actors.errors import ConfigError
from supervisor import process
from supervisor.commands.fleet import configuration_of, progress_of
from supervisor.commands.run import find_published
from supervisor.config import Configuration
from supervisor.config.file import digest_of
from supervisor.host.datadir import PUBLISHED, DataDir, previous_of
from supervisor.servers.reloading.reload import Read
from tests.supervisor.commands.test_cli import invoke

FLEET = {"engine": "redis://127.0.0.1:1", "keys": ["k" * 32], "configuration": "published"}


def published(*names: str, **settings: Any) -> str:
    return json.dumps({"mcpServers": {name: {"command": "/bin/cat"} for name in names}, "supervisor": settings})


class Begun:
    """What a daemon would run with, by the command `run`; `kept` is where it keeps what was published."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = directory / "mcp.json"
        self.kept = directory / "data" / PUBLISHED
        self.kept.parent.mkdir(mode=0o700)
        self.configuration: Configuration
        self.read: Read
        self._options = ("--config", str(self.file), "--listen", "127.0.0.1:0")
        monkeypatch.setattr(process, "run", self._take)

    def own(self, value: Any = None) -> None:
        self.file.write_text(json.dumps(value or {"supervisor": {"data_dir": "data", "fleet": FLEET}}))

    def run(self) -> Result:
        return invoke("run", *self._options)

    @property
    def servers(self) -> list[str]:
        return [server.name for server in self.configuration.servers]

    def _take(self, configuration: Configuration, data: DataDir, sockets: list[socket], *more: Any) -> int:
        assert data.root == self.kept.parent
        self.configuration, self.read = configuration, more[1]
        for each in sockets:
            each.close()
        return 0


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begun:
    return Begun(tmp_path, monkeypatch)


def test_a_node_begins_with_the_copy_that_it_kept(begun: Begun) -> None:
    begun.own()
    begun.kept.write_text(published("a", log_level="warning"))
    result = begun.run()
    assert begun.servers == ["a"]
    assert begun.configuration.settings.log_level == "warning"
    assert f"published for the fleet: {digest_of(begun.kept.read_text())}" in result.stderr


def test_a_node_that_cannot_use_the_newest_begins_with_the_one_before_and_reads_the_newest_again(begun: Begun) -> None:
    begun.own()
    begun.kept.write_text(published("b", unheard_of=1))
    previous_of(begun.kept).write_text(published("a"))
    result = begun.run()
    assert begun.servers == ["a"]
    assert f"not used, as published: {begun.kept}:1: supervisor.unheard_of: unknown key" in result.stderr
    with pytest.raises(ConfigError, match="unheard_of"):
        begun.read("", lambda text: text)
    begun.kept.write_text(published("c"))
    assert [server.name for server in begun.read("", lambda text: text).servers] == ["c"]


def test_a_node_that_can_use_neither_begins_with_its_own_file(begun: Begun) -> None:
    begun.own()
    begun.kept.write_text("{")
    previous_of(begun.kept).write_text("{")
    assert "the file ends before" in begun.run().stderr
    assert begun.servers == []


def test_a_fault_of_the_own_file_is_what_is_said(begun: Begun) -> None:
    begun.own({"supervisor": {"data_dir": "data", "fleet": FLEET, "logg_level": 1}})
    begun.kept.write_text(published("a"))
    result = begun.run()
    assert result.exit_code == 78
    assert f'{begun.file}:1: supervisor.logg_level: unknown key (did you mean "log_level"?)' in result.stderr


def test_who_may_come_in_changes_at_a_start_alone(begun: Begun) -> None:
    begun.own()
    begun.run()
    begun.kept.write_text(published("a", auth="tokens"))
    with pytest.raises(ConfigError, match="auth: it takes effect when this node is started again"):
        begun.read("", lambda text: text)
    begun.run()
    assert begun.configuration.settings.auth == "tokens"
    assert begun.read("", lambda text: text).settings.auth == "tokens"


def test_a_node_that_reads_its_own_file_knows_nothing_of_a_copy(begun: Begun) -> None:
    begun.own({"supervisor": {"data_dir": "data", "fleet": {**FLEET, "configuration": "own"}}})
    begun.kept.write_text(published("a"))
    begun.run()
    assert begun.servers == []


@pytest.mark.parametrize(
    ("supervisor", "option", "place"),
    [
        ({"fleet": FLEET}, None, "state/mcpvisor/published.json"),
        ({"fleet": FLEET, "data_dir": "${PLACE}"}, None, "etc/here/published.json"),
        ({"fleet": FLEET, "data_dir": "${NOWHERE}"}, None, None),
        ({"fleet": FLEET, "data_dir": "x"}, "y", "y/published.json"),
        ({"fleet": {}}, "y", None),
        (None, "y", None),
    ],
)
def test_the_copy_is_in_the_data_directory(
    tmp_path: Path, supervisor: Any, option: str | None, place: str | None
) -> None:
    (tmp_path / "etc").mkdir()
    file = tmp_path / "etc" / "mcp.json"
    file.write_text(json.dumps({"supervisor": supervisor}))
    environ = {"XDG_STATE_HOME": f"{tmp_path}/state", "PLACE": "here"}
    kept = find_published(file, environ, None if option is None else tmp_path / option)
    assert (kept and os.path.relpath(kept, tmp_path)) == place
    assert find_published(tmp_path / "missing.json", environ) is None


@pytest.mark.parametrize(
    ("node", "progress", "words"),
    [
        (("", ""), "done", "its own"),
        (("new", ""), "done", "as published"),
        (("old", "new"), "refused", "refuses what was published: see mcpvisor status there"),
        (("old", "older"), "waiting", "as published before"),
        (("none", ""), "waiting", "its own, and nothing published yet"),
    ],
)
def test_what_a_node_reads_is_said_in_words(node: tuple[str, str], progress: str, words: str) -> None:
    row = {"published": node[0], "refused": node[1]}
    assert (progress_of(row, "new"), configuration_of(row, "new")) == (progress, words)
