"""`mcpvisor stdio`: to which daemon it goes, and which one it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.bridge.address import DEFAULT_URL, read_address
from supervisor.commands import stdio

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        (None, DEFAULT_URL),
        ("127.0.0.1:4000", "http://127.0.0.1:4000"),
        ("0.0.0.0:4000", "http://127.0.0.1:4000"),
        ("[::]:4000", "http://[::1]:4000"),
        ("127.0.0.1:0", DEFAULT_URL),
        ("nonsense", DEFAULT_URL),
    ],
)
def test_the_address_is_that_of_the_configuration(tmp_path: Path, listen: str | None, url: str) -> None:
    settings = {} if listen is None else {"listen": listen}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {}, "supervisor": settings}))
    assert stdio._address_of(config, {}) == url


def test_without_a_configuration_it_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {}, "supervisor": {"listen": "127.0.0.1:4000"}}))
    assert stdio._address_of(None, {}) == DEFAULT_URL  # that is of a project, not of the daemon of all
    assert stdio._address_of(tmp_path / "none.json", {}) == DEFAULT_URL
    os.mkfifo(tmp_path / "pipe.json")
    assert stdio._address_of(tmp_path / "pipe.json", {}) == DEFAULT_URL


def test_it_loads_only_what_a_bridge_needs() -> None:
    code = (
        "import sys; before = set(sys.modules); import supervisor.__main__, supervisor.cli, supervisor.commands.stdio"
    )
    code += "; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    heavy = {
        "numpy",
        "quart",
        "httpx2",
        "rich",
        "sqlite3",
        "tiktoken",
        "asyncio",
        "supervisor.config",
        "supervisor.store",
    }
    assert heavy & set(done.stdout.split()) == set()


@pytest.mark.parametrize("url", ["https://127.0.0.1:3001", "http://10.0.0.1:3001", "http://mcp.example.com"])
def test_nothing_is_started_for_another_machine(url: str) -> None:
    assert stdio._starter(read_address(url), None, listens=True) is None
