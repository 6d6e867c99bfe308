"""Logins of a fleet: whoever logs in at one node is logged in at all, and tokens are renewed by one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import trio
from msgspec.structs import replace

from actors.principal import LOCAL
from supervisor.identity.people import OPERATOR, People, User, principal_of
from supervisor.oauth.accounts import OAuthAccounts
from supervisor.oauth.issuers.issuer import Tokens
from supervisor.oauth.late import LateAccounts
from supervisor.oauth.shared import SharedLogins
from tests.fakes.issuer_server import IssuerServer
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.sharing import Sharing, running
from tests.supervisor.oauth.test_accounts import Scene, scene
from tests.supervisor.oauth.test_keeper import GRANT

TEST_S = 30.0


class Opened:
    """Stands for `LateAccounts` whose accounts are there."""

    def __init__(self, accounts: OAuthAccounts) -> None:
        self._accounts = accounts

    async def wait_opened(self) -> OAuthAccounts:
        return self._accounts


class Node:
    """One node: `at` has its accounts, `woken` is every server with a new login."""

    def __init__(self, at: Scene, woken: list[str]) -> None:
        self.at = at
        self.woken = woken

    async def has(self, token: str) -> None:
        """Wait until it has that token."""
        while await self.at.token() != token:  # noqa: ASYNC110 - nothing tells us
            await trio.sleep(0.01)


def made(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return directory


@asynccontextmanager
async def node(engine: MemoryEngine, directory: Path, server: IssuerServer) -> AsyncIterator[Node]:
    sharing = Sharing(engine)
    key = directory.name.encode() * 32
    with trio.fail_after(TEST_S):
        async with scene(made(directory), server, key) as (at, woken), trio.open_nursery() as nursery:
            await at.token()  # so that there is an account, as that of a server that waits for its login
            shared = SharedLogins(sharing.records, cast("LateAccounts", Opened(at.accounts)), directory.name * 16)
            nursery.start_soon(shared.run)
            async with running(sharing):
                yield Node(at, woken)
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def two(directory: Path, server: IssuerServer) -> AsyncIterator[tuple[Node, Node]]:
    async with AsyncExitStack() as stack:
        engine = MemoryEngine(600.0)
        a, b = [await stack.enter_async_context(node(engine, directory / name, server)) for name in "ab"]
        yield a, b


async def test_a_login_at_one_node_holds_at_all_until_a_logout_at_any(tmp_path: Path) -> None:
    async with IssuerServer().running() as server, two(tmp_path, server) as (a, b):
        await a.at.done()
        await b.has("a1")
        assert b.woken == ["far"]
        await b.at.accounts.logout("far", OPERATOR)
        await a.has("")
    async with IssuerServer().running() as server, scene(tmp_path / "a", server, b"a" * 32) as (at, _):
        assert await at.token() == ""


async def test_a_node_that_comes_later_has_the_logins_of_all(tmp_path: Path) -> None:
    engine = MemoryEngine(600.0)
    async with IssuerServer().running() as server, node(engine, tmp_path / "a", server) as a:
        await a.at.done()
        async with node(engine, tmp_path / "b", server) as b:
            await b.has("a1")
        async with node(MemoryEngine(600.0), tmp_path / "b", server) as b, node(engine, tmp_path / "c", server) as c:
            await c.has("a1")
            assert await b.at.token() == "a1"


async def test_what_a_node_has_kept_the_others_get(tmp_path: Path) -> None:
    engine = MemoryEngine(600.0)
    async with IssuerServer().running() as server:
        async with scene(made(tmp_path / "a"), server, b"a" * 32) as (at, _):
            await at.done()
        async with node(engine, tmp_path / "b", server) as b:
            assert await b.at.token() == ""
            async with node(engine, tmp_path / "a", server):
                await b.has("a1")


async def test_a_login_of_somebody_who_is_not_known_here_yet_waits_for_the_configuration(tmp_path: Path) -> None:
    engine = MemoryEngine(600.0)
    name = principal_of("ana"), "far"
    grant = replace(GRANT, tokens=Tokens(access="anas"))
    async with IssuerServer().running() as server, node(engine, tmp_path / "a", server) as a:
        accounts, deployment = a.at.accounts, a.at.deployment

        def know(*users: str) -> None:
            people = People(users={user: User() for user in users})
            deployment.set(replace(deployment.value, settings=replace(deployment.value.settings, identity=people)))

        know("ben")
        accounts.hear(name, grant)
        assert accounts.kept.find(name) is None
        know("ben", "ana")
        while accounts.kept.find(name) != grant:  # noqa: ASYNC110 - nothing tells us
            await trio.sleep(0.01)


async def test_nodes_do_not_renew_tokens_at_one_moment() -> None:
    sharing = Sharing(MemoryEngine(600.0))
    of = [SharedLogins(sharing.records, cast("LateAccounts", None), life).of((LOCAL, "far")) for life in ("a", "b")]
    assert of[0].haste != of[1].haste
    assert all(0.5 <= each.haste < 1.0 for each in of)
