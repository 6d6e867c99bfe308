"""`ui`: the address of the dashboard; with a ticket, where the daemon asks who comes in."""

from __future__ import annotations

import re
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import trio
from trio_websocket import ConnectionRejected

from supervisor.commands import ui as command
from supervisor.host.datadir import DataDir
from tests.scenario.client import message
from tests.scenario.daemon import world
from tests.supervisor.commands.test_cli import ask
from tests.supervisor.test_identity_of_daemon import doorway

TYPED = {"sec-fetch-site": "none"}
"""What a browser says of an address that its user has given it."""


async def test_it_signs_in_whoever_asks_once(tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    async with doorway(tmp_path, data, {}) as at:
        told = await ask(at.url, "ui", "--open")
        address = told.stdout.strip()
        assert address.startswith(f"{at.url}/ui/sign-in?ticket=")
        assert told.stderr == (
            "There is no browser to open it with.\nIt is good once, for 30 s: whoever opens it is signed in.\n"
        )
        assert not [*(tmp_path / "state" / "mcpvisor").iterdir()]
        first = await at.http.get(address, headers=TYPED)
        assert (first.status_code, first.headers["location"]) == (303, "/ui")
        at.http.cookies.clear()
        assert (await at.http.get(address, headers=TYPED)).status_code == 400
        at.http.cookies.update(first.cookies)
        assert (await at.http.get("/ui/people")).status_code == 200
        assert (await at.http.get("/api/status")).status_code == 200
        changed = await at.http.post("/api/servers/none/restart")
        assert changed.status_code == 401, "a cookie changes nothing by itself"
        assert (await at.http.post("/mcp", json=message("ping"))).status_code == 401


async def test_a_browser_is_given_the_link_by_a_file_that_nobody_else_reads_and_that_goes(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, str, int]] = []

    def open_it(address: str) -> bool:
        file = Path(unquote(urlsplit(address).path))
        opened.append((address, file.read_text(), file.stat().st_mode & 0o777))
        return True

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(webbrowser, "open", open_it)
    monkeypatch.setattr(command, "GOOD_FOR_S", 0.0)
    async with doorway(tmp_path, data, {}) as at:
        told = await ask(at.url, "ui", "--open")
        ((address, page, mode),) = opened
        (link,) = re.findall(r'href="([^"]+)"', page)
        ticket = link.rpartition("=")[2]
        assert (told.stdout, mode) == (f"{at.url}/ui\n", 0o600)
        assert ticket not in address + told.stdout + told.stderr
        while await trio.Path(unquote(urlsplit(address).path)).exists():  # noqa: ASYNC110 - another process removes it
            await trio.sleep(0.02)
        assert (await at.http.get(link, headers=TYPED)).status_code == 303


async def test_the_page_of_another_site_signs_nobody_in_as_somebody_else(tmp_path: Path, data: DataDir) -> None:
    """Whoever types a key then would give it to whose sign-in it is."""
    async with doorway(tmp_path, data, {}, "ben", "ana") as at:
        for site in ("cross-site", "same-site", None):
            at.http.cookies.clear()
            head = {} if site is None else {"sec-fetch-site": site}
            mine = await at["ana"].ticket(purpose="sign-in")
            assert (await at.http.get(f"/ui/sign-in?ticket={mine}", headers=TYPED)).status_code == 303, site
            theirs = await at["ben"].ticket(purpose="sign-in")
            asked = await at.http.get(f"/ui/sign-in?ticket={theirs}", headers=head)
            assert (asked.status_code, "set-cookie" in asked.headers) == (200, False), site
            assert "signs this browser in as <strong>ben</strong>" in asked.text
            if site is not None:
                for form in ({"ticket": theirs}, {"secret": at.keys["ben"]}):
                    sent = await at.http.post("/ui/sign-in", data=form, headers=head)
                    assert (sent.status_code, "set-cookie" in sent.headers) == (403, False), site
            foreign = {"origin": "https://evil.example"}
            sent = await at.http.post("/ui/sign-in", data={"ticket": theirs}, headers=foreign)
            assert (sent.status_code, "set-cookie" in sent.headers) == (403, False), site
            assert (await at.page("/api/me"))["user"] == "ana"
            same = {"sec-fetch-site": "same-origin"}
            sent = await at.http.post("/ui/sign-in", data={"ticket": theirs}, headers=same)
            assert sent.status_code == 303, "who has read it may go on"
            assert (await at.page("/api/me"))["user"] == "ben"


async def test_a_ticket_for_a_socket_signs_nobody_in_and_the_other_way_round(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}, "ben") as at:
        socket = await at["ben"].ticket()
        answer = await at.http.get(f"/ui/sign-in?ticket={socket}", headers=TYPED)
        assert (answer.status_code, "set-cookie" in answer.headers) == (400, False)
        async with at.websocket(f"/ws?ticket={socket}"):
            pass
        page = await at["ben"].ticket(purpose="sign-in")
        with pytest.RaisesGroup(ConnectionRejected):
            async with at.websocket(f"/ws?ticket={page}"):
                pass
        assert (await at["ben"].ask("POST", "/api/tickets?purpose=all")).status_code == 400


async def test_what_no_form_has_is_refused_before_it_is_taken_apart(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}) as at:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        large = await at.http.post("/ui/sign-in", content=b"a&" * 130_000, headers=kind)
        assert large.status_code == 413
        many = await at.http.post("/ui/sign-in", content=b"a&" * 8_000, headers=kind)
        assert (many.status_code, "has more than 8 fields" in many.text) == (400, True)
        await at.admit("ben")
        ticket = await at["ben"].ticket(purpose="sign-in")
        await at.http.get(f"/ui/sign-in?ticket={ticket}", headers=TYPED)
        for path in ("/ui/values", "/ui/sign-out"):
            many = await at.http.post(path, content=b"a&" * 120_000, headers=kind)
            assert (many.status_code, "has more than 1000 fields" in many.text) == (400, True)


async def test_behind_a_proxy_the_cookie_is_for_tls_alone_and_guesses_count_for_who_makes_them(
    tmp_path: Path, data: DataDir
) -> None:
    shared: dict[str, Any] = {"public_url": "https://mcp.example", "trusted_proxies": ["127.0.0.1"]}
    by_proxy = {"x-forwarded-for": "10.1.2.3"}
    async with doorway(tmp_path, data, {}, "ben", **shared) as at:
        heads: tuple[dict[str, str], ...] = ({}, {"host": "mcp.example"}, by_proxy)
        for head in heads:
            at.http.cookies.clear()
            entered = await at.http.post("/ui/sign-in", data={"secret": at.keys["ben"]}, headers=head)
            assert ("Secure" in entered.headers["set-cookie"]) == bool(head), head
        codes = [
            (await at.http.post("/ui/sign-in", data={"secret": "wrong"}, headers=by_proxy)).status_code
            for _ in range(11)
        ]
        assert codes == [400] * 10 + [429]
        other = await at.http.post("/ui/sign-in", data={"secret": "x"}, headers={"x-forwarded-for": "10.1.2.4"})
        assert other.status_code == 400


async def test_where_nobody_has_to_show_who_they_are_it_is_the_address(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {}) as at:
        told = await ask(at.url, "ui")
        assert (told.stdout, told.stderr) == (f"{at.url}/ui\n", "")
        answer = await at.ask("GET", "/ui/sign-in")
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui")
