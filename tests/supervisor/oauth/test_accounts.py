"""Logins from the order to the logout, at a server whose faults are data: what is asked, and who is never asked."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio
import trio.lowlevel

from actors.errors import LoginFailed
from actors.kit import Latest
from actors.principal import LOCAL
from supervisor.config import parse
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.people import OPERATOR, Person
from supervisor.identity.requester import ORIGIN, Requester, RequestOrigin
from supervisor.oauth.accounts import OAuthAccounts
from supervisor.oauth.issuers.fetch import MAX_BODY_BYTES
from supervisor.oauth.port import CallbackQuery, LoginStatus
from supervisor.servers.deployment import deploy
from supervisor.servers.launches.names import AccountName
from supervisor.store import open_store
from tests.fakes.issuer_server import ISSUER, MCP, RESOURCE, IssuerServer, Reply
from tests.fakes.kept_audit import KeptAudit

CALLBACK = "http://127.0.0.1:1/oauth/callback"
ELSEWHERE = "https://evil.example"
PLAIN = {"issuer": "BASE", "token_endpoint": "BASE/token"}


class Scene:
    """Accounts for the server `far`; `woken` is every server with a new login."""

    def __init__(self, accounts: OAuthAccounts, server: IssuerServer, deployment: Any) -> None:
        self.accounts = accounts
        self.server = server
        self.deployment = deployment

    async def begun(self) -> dict[str, str]:
        """Begin a login; return what the browser is sent away with."""
        status = await self.accounts.login("far", OPERATOR)
        assert status.state == "pending"
        return {name: values[0] for name, values in parse_qs(urlsplit(status.url).query).items()}

    async def done(self, **members: Any) -> LoginStatus:
        """Say yes."""
        state = (await self.begun())["state"]
        status = await self.accounts.callback(CallbackQuery(state=state, code="c", **members))
        assert isinstance(status, LoginStatus)
        return status

    async def refused(self) -> str:
        """Return why no login is possible."""
        with pytest.raises(LoginFailed) as raised:
            await self.accounts.login("far", OPERATOR)
        return raised.value.message

    async def token(self) -> str:
        keeper = self.accounts.authorizer(self.deployment.value.servers["far"])
        assert keeper is not None
        return await keeper.token()


@asynccontextmanager
async def scene(
    directory: Path, server: IssuerServer, key: bytes = b"k" * 32, audit: Audit = NO_AUDIT, **oauth: Any
) -> AsyncIterator[tuple[Scene, list[str]]]:
    entry = {"url": f"{server.base}/mcp", "oauth": oauth}
    text = json.dumps({"mcpServers": {"far": entry, "near": {"command": "x"}}})
    deployment = Latest(deploy(parse(text, directory / "mcp.json", {"HOME": "/"}), key=b"l" * 32))
    woken: list[str] = []

    async def wake(account: AccountName) -> None:
        woken.append(account[1])
        await trio.lowlevel.checkpoint()

    async with open_store(directory / "store.sqlite3") as store, trio.open_nursery() as nursery:
        accounts = OAuthAccounts(deployment, store, key, time.time, CALLBACK, wake, audit)
        await nursery.start(accounts.run)
        yield Scene(accounts, server, deployment), woken
        nursery.cancel_scope.cancel()


async def test_a_login_from_its_order_to_its_logout(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, woken):
        sent = await at.begun()
        assert sent["resource"] == f"{server.base}/mcp"
        assert (sent["client_id"], sent["scope"], sent["redirect_uri"]) == ("given", "read", CALLBACK)
        status = await at.accounts.callback(CallbackQuery(state=sent["state"], code="the code"))
        assert isinstance(status, LoginStatus)
        assert (status.state, woken) == ("done", ["far"])
        form = server.form("/token")
        assert (form["code"], form["resource"], form["redirect_uri"]) == ("the code", f"{server.base}/mcp", CALLBACK)
        assert len(form["code_verifier"]) >= 43
        assert await at.token() == "a1"
        assert await at.accounts.callback(CallbackQuery(state=sent["state"], code="again")) is None
        assert (await at.accounts.logout("far", OPERATOR)) == "far: logged out"
        assert [request.body.decode().split("&")[0] for request in server.asked("/revoke")] == ["token=r1", "token=a1"]
        assert await at.token() == ""
        assert (await at.accounts.logout("far", OPERATOR)) == "far: there was no login"


async def test_a_login_outlives_the_daemon_and_nothing_else_does(tmp_path: Path) -> None:
    async with IssuerServer().running() as server:
        async with scene(tmp_path, server) as (at, _):
            assert (await at.done()).state == "done"
        async with scene(tmp_path, server) as (at, _):
            assert await at.token() == "a1"
            await at.begun()  # as the same client
            assert len(server.asked("/register")) == 1
        async with scene(tmp_path, server, client_id="other") as (at, _):
            assert await at.token() == ""
        async with scene(tmp_path, server, b"x" * 32) as (at, _):
            assert await at.token() == ""
        async with IssuerServer().running() as moved, scene(tmp_path, moved) as (at, _):
            assert await at.token() == ""


async def test_how_a_login_is_doing_can_be_waited_for(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _), trio.open_nursery() as nursery:
        status = await at.accounts.login("far", OPERATOR)
        assert await at.accounts.progress("nothing", 5, LOCAL) is None
        pending = await at.accounts.progress(status.login, 0, LOCAL)
        assert pending is not None
        assert pending.state == "pending"
        state = parse_qs(urlsplit(status.url).query)["state"][0]
        nursery.start_soon(at.accounts.callback, CallbackQuery(state=state, code="c"))
        done = await at.accounts.progress(status.login, 20, LOCAL)
        assert done is not None
        assert (done.state, done.url) == ("done", "")


async def test_one_login_of_an_account_is_begun_at_a_time(tmp_path: Path) -> None:
    said: list[str] = []
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):

        async def begin() -> None:
            try:
                said.append((await at.accounts.login("far", OPERATOR)).state)
            except LoginFailed as failed:
                said.append(failed.message)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(begin)
            nursery.start_soon(begin)
        assert len(server.asked("/register")) == 1
        assert await at.begun()
    assert said == [
        "far: no login is possible: another login at it is being begun at this moment: try again",
        "pending",
    ]


async def test_a_browser_that_comes_from_elsewhere_gets_no_code_anywhere(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, woken):
        assert "another authorization server" in (await at.done(iss=ELSEWHERE)).message
        server.pages[ISSUER] = Reply(server.metadata(authorization_response_iss_parameter_supported=True))
        assert "does not say" in (await at.done()).message
        assert not server.asked("/token")
        assert woken == []


async def test_a_code_that_is_refused_is_no_login(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        server.pages["/token"] = Reply({"error": "invalid_grant", "error_description": "secret"}, 400)
        status = await at.done()
        assert status.state == "failed"
        assert "invalid_grant" in status.message
        assert "secret" not in status.message
        server.pages["/token"] = Reply(status=307, headers={"location": f"{server.base}/canary"})
        assert "sends us elsewhere" in (await at.done()).message
        server.pages["/token"] = Reply(status=503)
        assert "not available" in (await at.done()).message
        assert not server.asked("/canary")


@pytest.mark.parametrize(
    ("path", "reply", "said"),
    [
        (RESOURCE, {"resource": f"{ELSEWHERE}/mcp", "authorization_servers": ["BASE"]}, "another resource"),
        (RESOURCE, {"resource": "BASE/mcp", "authorization_servers": []}, "no authorization server"),
        (RESOURCE, {"resource": "BASE/mcp", "authorization_servers": ["what"]}, "no plain https address"),
        (RESOURCE, {"resource": "BASE/mcp", "authorization_servers": ["http://169.254.169.254/x"]}, "without TLS"),
        (RESOURCE, {"resource": "BASE/mcp", "authorization_servers": ["https://169.254.169.254"]}, "private network"),
        (RESOURCE, {"resource": "BASE/mcp", "authorization_servers": ["https://10.0.0.1"]}, "private network"),
        (ISSUER, {"issuer": ELSEWHERE, "token_endpoint": "BASE/token"}, "another issuer"),
        (ISSUER, {"issuer": "BASE/", "token_endpoint": "BASE/token"}, "another issuer"),
        (ISSUER, {"issuer": "BASE"}, "no token endpoint"),
        (ISSUER, {"issuer": "BASE", "token_endpoint": "BASE/token"}, "PKCE"),
        (ISSUER, {**PLAIN, "authorization_endpoint": "BASE/x", "code_challenge_methods_supported": ["plain"]}, "PKCE"),
        (ISSUER, {**PLAIN, "code_challenge_methods_supported": ["S256"]}, "no authorization endpoint"),
        ("/register", {"error": "invalid_redirect_uri"}, "no registration"),
    ],
)
async def test_what_does_not_fit_together_is_no_login(tmp_path: Path, path: str, reply: Any, said: str) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        server.pages[path] = Reply(json.dumps(reply).replace("BASE", server.base).encode())
        assert said in await at.refused()
        assert not server.asked("/token")


@pytest.mark.case("H03")
async def test_a_challenge_leads_nowhere_it_should_not(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        for place in (
            "https://169.254.169.254/latest",
            "https://192.168.0.1/x",
            "file:///etc/passwd",
            "http://a.example",
        ):
            server.pages[MCP] = Reply(status=401, headers={"www-authenticate": f'Bearer resource_metadata="{place}"'})
            assert "far: no login is possible" in await at.refused()
        server.pages[MCP] = Reply(
            status=401, headers={"www-authenticate": f'Bearer resource_metadata="{server.base}/moved"'}
        )
        server.pages["/moved"] = Reply(status=302, headers={"location": "https://10.0.0.1/x"})
        assert "private network" in await at.refused()
        server.pages["/moved"] = Reply(status=302, headers={"location": f"{server.base}/moved"})
        assert "leads on and on" in await at.refused()
        server.pages["/moved"] = Reply(status=302, headers={"location": f"{server.base}{RESOURCE}"})
        assert (await at.begun())["resource"] == f"{server.base}/mcp"
        server.pages["/moved"] = Reply(status=404)
        assert "cannot be read" in await at.refused()


@pytest.mark.case("X10")
@pytest.mark.parametrize(
    "page",
    [
        *("javascript:alert(1)", "file:///etc/passwd", "a:$(touch /tmp/x)", "http://evil.example/authorize"),
        *("https://a.example/$(id) ;reboot", 'https://a.example/"|calc', "https://a.example/\n;reboot"),
    ],
)
async def test_no_page_of_a_login_is_anything_but_a_plain_https_address(tmp_path: Path, page: str) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        server.pages[ISSUER] = Reply(server.metadata(authorization_endpoint=page))
        if '"' in page:
            assert (await at.accounts.login("far", OPERATOR)).url.startswith("https://a.example/")
        else:
            assert "far: no login is possible" in await at.refused()


async def test_too_much_is_not_read(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        server.pages[RESOURCE] = Reply(b" " * (MAX_BODY_BYTES + 1))
        assert f"over {MAX_BODY_BYTES} bytes" in await at.refused()


async def test_a_server_of_the_first_revision_is_its_own_issuer(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        del server.pages[RESOURCE], server.pages[ISSUER]
        assert (await at.done()).state == "done"
        assert server.form("/token")["resource"] == f"{server.base}/mcp"


async def test_a_machine_needs_nobody(tmp_path: Path) -> None:
    async with (
        IssuerServer().running() as server,
        scene(tmp_path, server, grant="client_credentials", client_id="robot", client_secret="s") as (at, woken),
    ):
        keeper = at.accounts.authorizer(at.deployment.value.servers["far"])
        assert keeper is not None
        assert (await keeper.on_refused("", 401, ['Bearer scope="read"'])).token == "a1"
        form = server.form("/token")
        assert (form["grant_type"], form["scope"]) == ("client_credentials", "read")
        assert (await at.accounts.login("far", OPERATOR)).state == "done"
        with trio.fail_after(30):
            while not woken:
                await trio.lowlevel.checkpoint()
        server.pages["/token"] = Reply({"error": "invalid_client"}, 401)
        assert "invalid_client" in await at.refused()


async def test_a_revocation_that_fails_is_a_logout_all_the_same(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        await at.done()
        server.pages["/revoke"] = Reply(status=400)
        assert "could not be revoked" in await at.accounts.logout("far", OPERATOR)
        assert await at.token() == ""
        server.pages[ISSUER] = Reply(server.metadata(revocation_endpoint=None))
        await at.done()
        assert "end by themselves" in await at.accounts.logout("far", OPERATOR)


async def test_servers_without_a_login_say_so(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server, enabled=False) as (at, _):
        assert "switched off" in await at.refused()
        for name, said in (("near", "local server"), ("nowhere", "mcpvisor status")):
            with pytest.raises(LoginFailed, match=said):
                await at.accounts.login(name, OPERATOR)


async def test_a_server_that_wants_no_login_and_publishes_nothing_of_one_is_said_to_be_so(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        del server.pages[RESOURCE], server.pages[ISSUER]
        server.pages["/mcp"] = Reply({"jsonrpc": "2.0", "id": 0, "result": {}})
        assert "no login is possible: it answers without one" in await at.refused()


@pytest.mark.parametrize("repaired", ['Bearer scope="read"', "Bearer", ""])
async def test_a_login_works_at_once_after_a_broken_challenge_was_repaired(tmp_path: Path, repaired: str) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        keeper = at.accounts.authorizer(at.deployment.value.servers["far"])
        assert keeper is not None
        broken = f'Bearer resource_metadata="{server.base}/broken"'
        server.pages[MCP] = Reply(status=401, headers={"www-authenticate": broken})
        assert (await keeper.on_refused("", 401, [broken])).login
        assert "cannot be read" in await at.refused()
        server.pages[MCP] = Reply(status=401, headers={"www-authenticate": repaired} if repaired else {})
        assert (await at.done()).state == "done"


async def test_a_login_asks_for_the_rights_that_a_call_lacked(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        assert (await at.done()).state == "done"
        keeper = at.accounts.authorizer(at.deployment.value.servers["far"])
        assert keeper is not None
        assert (await keeper.on_refused("a1", 403, ['Bearer error="insufficient_scope", scope="write"'])).login
        assert set((await at.begun())["scope"].split()) == {"read", "write"}


async def test_a_login_at_a_server_that_wants_one_for_some_calls_goes_by_what_they_were_told(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, scene(tmp_path, server) as (at, _):
        server.pages[MCP] = Reply({"jsonrpc": "2.0", "id": 0, "result": {}})
        server.pages["/elsewhere"] = server.pages.pop(RESOURCE)
        keeper = at.accounts.authorizer(at.deployment.value.servers["far"])
        assert keeper is not None
        challenge = f'Bearer scope="write", resource_metadata="{server.base}/elsewhere"'
        assert (await keeper.on_refused("", 401, [challenge])).login
        assert (await at.begun())["scope"] == "write"


async def test_the_end_of_a_login_is_recorded_once_as_of_whoever_began_it(tmp_path: Path) -> None:
    kept, began = KeptAudit(), RequestOrigin(Requester(person=Person(user="ana")), "192.0.2.1", "/api")
    async with IssuerServer().running() as server, scene(tmp_path, server, audit=kept) as (at, _):
        ORIGIN.set(began)
        sent = await at.begun()
        ORIGIN.set(RequestOrigin(address="192.0.2.2"))
        await at.accounts.callback(CallbackQuery(state=sent["state"], code="c"))
        await at.accounts.callback(CallbackQuery(state=sent["state"], code="again"))
        ORIGIN.set(began)
        await at.begun()
        sent = await at.begun()
        server.pages["/token"] = Reply({"error": "invalid_grant", "error_description": "secret"}, 400)
        await at.accounts.callback(CallbackQuery(state=sent["state"], code="c"))
    assert kept.notes == [("login.finish", "far", outcome, "") for outcome in ("done", "failed", "failed")]
    assert kept.origins == [began] * 3


async def test_a_login_without_a_user_is_recorded(tmp_path: Path) -> None:
    kept = KeptAudit()
    own: dict[str, Any] = {"grant": "client_credentials", "client_id": "c", "client_secret": "s"}
    async with IssuerServer().running() as server, scene(tmp_path, server, audit=kept, **own) as (at, _):
        assert (await at.accounts.login("far", OPERATOR)).state == "done"
    assert kept.notes == [("login.finish", "far", "done", "")]
