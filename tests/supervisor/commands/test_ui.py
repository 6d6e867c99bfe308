"""`ui`: the address of the dashboard; with a ticket, where the daemon asks who comes in."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from supervisor.host.datadir import DataDir
from tests.supervisor.commands.test_cli import ask
from tests.supervisor.commands.test_token import url
from tests.supervisor.test_daemon import configuration, running
from tests.supervisor.test_identity_of_daemon import data, doorway

__all__ = ["data"]


async def test_it_signs_in_whoever_asks_once(tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_it(address: str) -> bool:
        opened.append(address)
        return False

    monkeypatch.setattr(webbrowser, "open", open_it)
    async with doorway(tmp_path, data, {}) as at:
        told = await ask(url(at), "ui", "--open")
        address = told.stdout.strip()
        assert address.startswith(f"{url(at)}/ui/sign-in?ticket=")
        assert told.stderr == (
            "It is good once, for 30 s: whoever opens it is signed in.\nThere is no browser to open it with.\n"
        )
        assert opened == [address]
        first = await at.client.get(address)
        assert (first.status_code, first.headers["location"]) == (303, "/ui")
        at.client.cookies.clear()
        assert (await at.client.get(address)).status_code == 400
        at.client.cookies.update(first.cookies)
        assert (await at.client.get("/ui/people")).status_code == 200
        assert (await at.client.get("/api/status")).status_code == 200
        changed = await at.client.post("/api/servers/none/restart")
        assert changed.status_code == 401, "a cookie changes nothing by itself"
        assert (await at.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 401


async def test_where_nobody_has_to_show_who_they_are_it_is_the_address(tmp_path: Path, data: DataDir) -> None:
    async with running(configuration(tmp_path, {}), data) as client:
        base = str(client.base_url).rstrip("/")
        told = await ask(base, "ui")
        assert (told.stdout, told.stderr) == (f"{base}/ui\n", "")
        answer = await client.get("/ui/sign-in")
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui")
