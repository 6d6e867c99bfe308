"""`login` waits for a browser and for what is typed in at the same time, and ends with whatever is first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.commands import logins
from supervisor.commands.logins import log_in
from supervisor.daemon_client.client import RequestRefused
from supervisor.daemon_client.client import connect as connect_daemon
from supervisor.host.datadir import DataDir
from tests.fakes.login_site import LoginSite
from tests.supervisor.commands.test_cli import ask
from tests.supervisor.test_logins_of_daemon import CODE, address_of, alone, doorway

Answer = dict[str, Any]


class Terminal:
    """Somebody at a terminal: types the lines that each page of the browser suggests."""

    def __init__(self, *lines: str, browse: Callable[[Answer], Awaitable[str]] | None = None) -> None:
        self.lines = list(lines)
        self.browse = browse
        self.shown = trio.Event()
        self.begun: Answer = {}

    def show(self, begun: Answer) -> None:
        self.begun = begun
        self.shown.set()

    async def read(self) -> str | None:
        if self.lines:
            await trio.lowlevel.checkpoint()
            return self.lines.pop(0)
        if self.browse is None:
            await trio.sleep_forever()
        assert self.browse is not None
        return await self.browse(self.begun)


async def test_a_member_types_the_code_of_their_browser(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:

        async def browse(begun: Answer) -> str:
            (code,) = CODE.findall((await at.say_yes(begun, "ben")).text)
            return f" {code.lower()} \n"

        monkeypatch.setenv("MCPVISOR_TOKEN", at.keys["ben"])
        terminal = Terminal("AAAA-AAAA", "", "https://elsewhere.example/?state=x", browse=browse)
        async with connect_daemon(at.url) as daemon:
            ended = await log_in(daemon, "tickets", 60, terminal.show, terminal.read)
            assert (ended["state"], ended["message"]) == ("done", "tickets: logged in")
            with pytest.raises(RequestRefused, match="an admin logs in for all"):
                await log_in(daemon, "shared", 60, terminal.show, terminal.read)
        said = capsys.readouterr().err.splitlines()
        assert said.count(logins.CODE) == 4
        assert "no browser has come back yet" in said[1]
        assert "4 times more" in said[4]
        logged_out = await ask(at.url, "logout", "tickets")
        assert logged_out.stdout == "tickets: logged out\n"


async def test_the_operator_needs_no_token_for_it(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:

        async def browse(begun: Answer) -> str:
            await trio.lowlevel.checkpoint()
            return address_of(begun, "company")

        async with connect_daemon(at.url) as daemon:
            for server in ("shared", "tickets"):
                terminal = Terminal(browse=browse)
                ended = await log_in(daemon, server, 60, terminal.show, terminal.read)
                assert ended["message"] == f"{server}: logged in"


async def test_it_ends_with_the_browser_whatever_is_not_typed(tmp_path: Path, data: DataDir) -> None:
    async def end_of_input(begun: Answer) -> Any:
        await trio.lowlevel.checkpoint()

    async with LoginSite().running() as site, alone(tmp_path, data, site) as at, connect_daemon(at.url) as daemon:
        for query, closed in product(("error=access_denied", "code=code-of-me"), (True, False)):
            terminal = Terminal(browse=end_of_input if closed else None)

            async def say(terminal: Terminal = terminal, query: str = query) -> None:
                await terminal.shown.wait()
                address, _, state = address_of(terminal.begun, "me").partition("?")
                await at.http.get(f"{address}?{state.partition('&')[0]}&{query}")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(say)
                ended = await log_in(daemon, "tickets", 60, terminal.show, terminal.read)
            assert ended["state"] == ("failed" if "error" in query else "done"), (query, closed)


async def test_it_ends_by_itself(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, alone(tmp_path, data, site) as at, connect_daemon(at.url) as daemon:
        terminal = Terminal()
        ended = await log_in(daemon, "tickets", 0.2, terminal.show, terminal.read)
        assert (ended["state"], ended["message"]) == ("failed", "tickets: no login within 0.2 s")


async def test_one_user_pastes_the_address_into_the_command(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, alone(tmp_path, data, site) as at, connect_daemon(at.url) as daemon:

        async def browse(begun: Answer) -> str:
            await trio.lowlevel.checkpoint()
            return address_of(begun, "me")

        terminal = Terminal("AAAA-AAAA", browse=browse)
        assert (await log_in(daemon, "tickets", 60, terminal.show, terminal.read))["state"] == "done"
