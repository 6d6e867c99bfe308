"""The logins of a daemon are opened by the first configuration that needs them, and once."""

from __future__ import annotations

from pathlib import Path

import trio

from actors.kit import Latest
from supervisor.oauth.accounts import OAuthAccounts
from supervisor.oauth.late import LateAccounts
from supervisor.servers.launches.names import AccountName
from supervisor.store import open_store
from tests.fakes.deployments import KEY, read

FAR = {"url": "https://example.com/mcp"}


async def test_logins_are_there_from_the_first_server_on_that_may_ask_for_one(tmp_path: Path) -> None:
    async def woken(account: AccountName) -> None:
        raise AssertionError(account)

    deployments = [
        read({"near": {"command": "x"}}),
        read({"near": {"command": "x"}, "given": {**FAR, "headers": {"Authorization": "Bearer x-canary-value"}}}),
        read({"far": FAR, "off": {**FAR, "oauth": False}}),
        read({"far": FAR, "farther": {"url": "https://example.org/mcp"}}),
        read({}),
    ]
    cell = Latest(deployments[0])
    async with open_store(tmp_path / "store.db") as store, trio.open_nursery() as nursery:
        late = LateAccounts(cell, store, KEY, lambda: 0.0, "http://127.0.0.1:1/oauth/callback", woken)
        seen = list[OAuthAccounts | None]()
        for deployment in deployments:
            cell.set(deployment)
            assert (
                all(late.authorizer(server) is None for server in deployment.servers.values()) or seen[-1] is not None
            )
            await late.open(nursery, deployment)
            seen.append(late.now())
            able = {name for name, server in deployment.servers.items() if late.authorizer(server) is not None}
            assert able == {name for name, server in deployment.servers.items() if server.config.logs_in}
        assert [accounts is None for accounts in seen] == [True, True, False, False, False]
        assert seen[2] is seen[3] is seen[4]
        nursery.cancel_scope.cancel()
