"""A daemon at whose remote server each user logs in: nobody uses, begins, sees or finishes the login of another one."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.login_site import LoginSite
from tests.scenario.daemon import World, world

IDENTITY: dict[str, Any] = {
    "users": {"ana": {"role": "admin"}, "ben": {}, "cem": {}, "dan": {}},
    "teams": {"core": {"members": ["ana", "ben", "cem"], "servers": ["tickets", "shared"]}},
}
CODE = re.compile(r"<code>([A-Z2-9]{4}-[A-Z2-9]{4})</code>")


class LoginWorld(World):
    """Those who stand before a daemon, with their browsers."""

    def __init__(self, at: World) -> None:
        super().__init__(at.http, at.data)
        self.keys = at.keys

    async def begin(self, who: str, server: str = "tickets") -> dict[str, Any]:
        answer = await self[who].ask("POST", f"/api/servers/{server}/login")
        assert answer.status_code == 200, answer.text
        begun: dict[str, Any] = answer.json()
        assert begun["state"] == "pending"
        return begun

    async def say_yes(self, begun: dict[str, Any], account: str) -> httpx2.Response:
        """Return the page that the browser of somebody shows who says yes as the owner of an account there."""
        return await self.http.get(address_of(begun, account))

    async def answer(self, who: str, begun: dict[str, Any], text: str) -> httpx2.Response:
        return await self[who].ask("POST", f"/api/logins/{begun['login']}/answer", json={"answer": text})

    async def log_in(self, who: str, account: str = "", server: str = "tickets") -> None:
        begun = await self.begin(who, server)
        (code,) = CODE.findall((await self.say_yes(begun, account or who)).text)
        done = await self.answer(who, begun, code)
        assert (done.status_code, done.json()["state"]) == (200, "done"), done.text

    async def token_used(self, who: str, server: str = "tickets") -> str:
        """Return with which token a call of somebody came to the server; the error if it did not."""
        answer = await self[who].executed(f"{server}:who")
        text = str(answer["content"][0]["text"])
        used: str = text if answer.get("isError") else json.loads(text)["token"]
        return used


def address_of(begun: dict[str, Any], account: str) -> str:
    """Return where a browser ends whose user said yes."""
    query = parse_qs(urlsplit(begun["url"]).query)
    return f"{query['redirect_uri'][0]}?{urlencode({'state': query['state'][0], 'code': f'code-of-{account}'})}"


def servers_at(site: LoginSite, **more: Any) -> dict[str, Any]:
    entry = {"url": f"{site.base}/mcp", "era": "legacy", "description": "tickets of customers"}
    return {"tickets": {**entry, "oauth": {"login": "user"}, **more}, "shared": entry}


@asynccontextmanager
async def doorway(
    directory: Path, data: DataDir, site: LoginSite, *, identity: dict[str, Any] = IDENTITY, **more: Any
) -> AsyncIterator[LoginWorld]:
    people = {user: {"role": "admin"} for user in identity["users"]}
    given: dict[str, Any] = {"waits": False, "people": people, "auth": "tokens", "identity": identity}
    async with world(directory, data, servers_at(site, **more), daemon={"connect": None}, **given) as at:
        yield LoginWorld(at)


@asynccontextmanager
async def alone(directory: Path, data: DataDir, site: LoginSite) -> AsyncIterator[LoginWorld]:
    """Run a daemon that asks nobody who they are."""
    async with world(directory, data, servers_at(site), waits=False, daemon={"connect": None}) as at:
        yield LoginWorld(at)


@pytest.mark.case("H18")
async def test_each_user_has_a_login_and_no_other_one_uses_it(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        await at.log_in("ben")
        await at["ben"].until_tool("tickets__who")
        assert await at.token_used("ben") == "ben-1"
        refused = await at.token_used("cem")
        assert "wants a login" in refused
        assert "`mcpvisor login tickets`" in refused
        assert "tickets__who" not in await at["cem"].tools(), "what it offers is told to who logged in"
        await at.log_in("cem")
        await at["cem"].until_tool("tickets__who")
        assert [await at.token_used(who) for who in ("cem", "ben", "cem")] == ["cem-1", "ben-1", "cem-1"]
        assert "wants a login" in await at.token_used("ana"), "an admin has one of their own, too"
        assert "wants a login" in await at.token_used("operator")
        assert set(site.called) == {"ben-1", "cem-1"}


@pytest.mark.case("H03")
async def test_how_a_server_is_doing_that_waits_for_a_login(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        await at.log_in("ben")
        await at["ben"].until_tool("tickets__who")

        def row_of(told: Any) -> dict[str, Any]:
            return next(row for row in told["servers"] if row["server"] == "tickets")

        told = await at["cem"].until("/api/me", lambda told: row_of(told)["status"] == "requires_reauth")
        assert "`mcpvisor login tickets`" in row_of(told)["reason"]
        assert row_of(await at["ben"].page("/api/me"))["status"] == "online"
        found = await at["cem"].result("discover_mcp_tools", query="tickets of customers")
        assert "tickets wants a login" in found["structuredContent"]["notice"]


async def test_tokens_are_renewed_once_for_each_and_logins_outlive_the_daemon(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site:
        async with doorway(tmp_path, data, site) as at:
            for user in ("ben", "cem"):
                await at.log_in(user)
                await at[user].until_tool("tickets__who")
            site.expire("ben")
            used = set[str]()

            async def use(who: str) -> None:
                used.add(await at.token_used(who))

            async with trio.open_nursery() as nursery:
                for who in ("ben", "cem") * 10:
                    nursery.start_soon(use, who)
            assert used == {"ben-2", "cem-1"}
            assert site.refreshed == {"ben": 1}
        site.expire("cem")
        async with doorway(tmp_path, data, site) as at:
            assert [await at.token_used(who) for who in ("ben", "cem")] == ["ben-2", "cem-2"]
            assert site.refreshed == {"ben": 1, "cem": 1}
            assert "wants a login" in await at.token_used("ana")


async def test_a_login_is_of_its_user_whatever_token_they_come_with(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        await at.log_in("ben")
        everywhere = at.keys["ben"]
        await at.admit("ben", team="core")
        await at["ben"].until_tool("tickets__who")
        assert await at.token_used("ben") == "ben-1"
        begun = await at.begin("ben")
        at.keys["other token of ben"] = everywhere
        told = await at["other token of ben"].ask("GET", f"/api/logins/{begun['login']}")
        assert told.status_code == 400


async def test_a_logout_is_of_one_user(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        for user in ("ben", "cem"):
            await at.log_in(user)
            await at[user].until_tool("tickets__who")
        answer = await at["ben"].ask("POST", "/api/servers/tickets/logout")
        assert answer.json() == {"server": "tickets", "message": "tickets: logged out"}
        assert site.revoked == ["refresh-ben", "ben-1"]
        assert "wants a login" in await at.token_used("ben")
        assert await at.token_used("cem") == "cem-1"


async def test_a_member_logs_in_for_nobody_else_and_hears_of_nothing_foreign(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        for order in ("login", "logout"):
            told = [await at["dan"].ask("POST", f"/api/servers/{name}/{order}") for name in ("tickets", "nowhere")]
            assert [answer.status_code for answer in told] == [404, 404]
            assert told[0].text.replace("tickets", "nowhere") == told[1].text
            refused = await at["ben"].ask("POST", f"/api/servers/shared/{order}")
            assert refused.status_code == 502
            assert "an admin logs in for all" in refused.text
        begun = await at.begin("ben")
        progress = f"/api/logins/{begun['login']}"
        never = await at["cem"].ask("GET", "/api/logins/nothing")
        for who in ("cem", "ana", "dan", "operator"):
            for answer in (await at[who].ask("GET", progress), await at.answer(who, begun, address_of(begun, who))):
                assert (answer.status_code, answer.text) == (400, never.text)
        assert (await at["ben"].page(progress))["state"] == "pending"


async def test_an_admin_logs_in_for_no_user(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        await at.log_in("ben")
        await at["ben"].until_tool("tickets__who")
        launch = next(row["server"] for row in await at.launches() if row["users"] == ["ben"])
        for order in ("login", "logout"):
            refused = await at["ana"].ask("POST", f"/api/servers/{launch}/{order}")
            assert refused.status_code == 502
            assert "each of its users logs in for themself: mcpvisor login tickets" in refused.text
        assert await at.token_used("ben") == "ben-1"


async def test_a_login_that_all_share_is_the_one_of_an_admin(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        await at.log_in("ana", "company", "shared")
        await at["ben"].until_tool("shared__who")
        assert [await at.token_used(who, "shared") for who in ("ben", "cem", "ana")] == ["company-1"] * 3
        assert "wants a login" in await at.token_used("ana")


async def test_the_yes_of_a_foreign_browser_stores_nothing(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        begun = await at.begin("ben")
        page = await at.say_yes(begun, "victim")
        assert page.status_code == 200
        assert "The user ben began this login at tickets" in page.text
        assert not site.asked("/token"), "the code is not exchanged yet"
        told = await at["ben"].ask("GET", f"/api/logins/{begun['login']}")
        (shown,) = CODE.findall(page.text)
        assert shown not in told.text
        assert shown.replace("-", "") not in told.text
        assert (told.json()["state"], told.json()["confirms"]) == ("pending", True)
        again = await at.say_yes(begun, "victim")
        assert again.status_code == 400
        assert not CODE.findall(again.text)
        for left in (4, 3, 2, 1):
            wrong = await at.answer("ben", begun, "AAAA-AAAA")
            assert wrong.status_code == 400
            assert ("once more" if left == 1 else f"{left} times more") in wrong.text
        over = (await at.answer("ben", begun, "AAAA-AAAA")).json()
        assert (over["state"], "wrong 5 times" in over["message"]) == ("failed", True)
        late = (await at.answer("ben", begun, shown)).json()
        assert late["state"] == "failed"
        assert not site.asked("/token")
        assert "wants a login" in await at.token_used("ben")
        records = await at.records(action="login")
        told_of = {(record["action"], record["outcome"], record["detail"]) for record in records}
        assert ("login.finish", "failed", "of the user ben") in told_of


async def test_whose_a_login_is_stands_in_the_audit(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        await at.log_in("ben")
        await at.log_in("ana", "company", "shared")
        await at["ben"].ask("POST", "/api/servers/tickets/logout")
        records = await at.records(action="login")
        assert [(record["action"], record["user"], record["target"], record["detail"]) for record in records] == [
            ("login.begin", "ben", "tickets", "of the user ben"),
            ("login.finish", "ben", "tickets", "of the user ben"),
            ("login.begin", "ana", "shared", ""),
            ("login.finish", "ana", "shared", ""),
            ("login.forget", "ben", "tickets", "of the user ben"),
        ]


async def test_the_address_that_a_browser_ended_at_is_as_good_as_the_code(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, doorway(tmp_path, data, site) as at:
        begun, other = await at.begin("ben"), await at.begin("cem")
        foreign = await at.answer("ben", begun, address_of(other, "cem"))
        assert foreign.status_code == 400
        assert "not the address" in foreign.text
        assert "code-of-cem" not in foreign.text
        done = await at.answer("ben", begun, f"  {address_of(begun, 'ben')}\n")
        assert done.json()["state"] == "done"
        assert (await at["cem"].page(f"/api/logins/{other['login']}"))["state"] == "pending"
        await at["ben"].until_tool("tickets__who")
        assert await at.token_used("ben") == "ben-1"
        too_long = await at.answer("cem", other, f"{address_of(other, 'cem')}&x={'y' * 20_000}")
        assert too_long.status_code == 400
        assert "at most 16384 characters" in too_long.text


async def test_with_one_user_a_login_needs_no_code_and_takes_the_address(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, alone(tmp_path, data, site) as at:
        begun = await at.order("POST", "/servers/tickets/login")
        assert "confirms" not in begun
        page = await at.say_yes(begun, "me")
        assert "close this window" in page.text
        assert not CODE.findall(page.text)
        assert (await at.page(f"/api/logins/{begun['login']}"))["state"] == "done"
        begun = await at.order("POST", "/servers/shared/login")
        code = await at.answer("operator", begun, "AAAA-AAAA")
        assert "paste the whole address" in code.text
        done = await at.answer("operator", begun, address_of(begun, "company"))
        assert done.json()["state"] == "done"


async def test_whoever_is_taken_out_of_the_file_leaves_no_login_behind(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site:
        async with doorway(tmp_path, data, site) as at:
            for user in ("ben", "cem"):
                await at.log_in(user)
                await at[user].until_tool("tickets__who")
            without = {
                "users": {name: user for name, user in IDENTITY["users"].items() if name != "ben"},
                "teams": {"core": {**IDENTITY["teams"]["core"], "members": ["ana", "cem"]}},
            }
            await at.edit(servers_at(site), auth="tokens", identity=without)
            assert (await at["ben"].ask("GET", "/api/me")).status_code == 401
            while [row["users"] for row in await at.launches()] != [["cem"]]:  # noqa: ASYNC110 - nothing tells
                await trio.sleep(0.02)
            assert await at.token_used("cem") == "cem-1"
            (dropped,) = await at.records(action="login.drop")
            assert (dropped["target"], dropped["detail"], dropped["principal"]) == ("tickets", "of the user ben", "")
            await at.edit(servers_at(site), auth="tokens", identity=IDENTITY)
            assert "wants a login" in await at.token_used("ben")
        async with doorway(tmp_path, data, site) as at:
            assert "wants a login" in await at.token_used("ben")
            assert await at.token_used("cem") == "cem-1"


async def test_a_login_outlives_what_changes_of_the_entry_but_not_its_address(tmp_path: Path, data: DataDir) -> None:
    async with LoginSite().running() as site, LoginSite().running() as elsewhere, doorway(tmp_path, data, site) as at:
        await at.log_in("ben")
        await at["ben"].until_tool("tickets__who")
        servers = servers_at(site, headers={"x-tenant": "7"})
        await at.edit(servers, auth="tokens", identity=IDENTITY)
        assert await at.token_used("ben") == "ben-1"
        assert site.requests[-1].headers["x-tenant"] == "7"
        begun = await at.begin("ben")
        await at.edit(servers_at(elsewhere), auth="tokens", identity=IDENTITY)
        stale = (await at.answer("ben", begun, address_of(begun, "ben"))).json()
        assert (stale["state"], "another address" in stale["message"]) == ("failed", True)
        assert "wants a login" in await at.token_used("ben")
        assert not elsewhere.called
        assert not any("authorization" in request.headers for request in elsewhere.requests)
