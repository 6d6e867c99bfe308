"""A browser at a fleet: whichever node it reaches, its pages come from one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import trio

from tests.e2e.daemons import Daemon, client, running, stand_in
from tests.e2e.fork_server import forking
from tests.fakes.event_reader import reading
from tests.fleet.valkey import settle, valkey
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

SERVERS = {"memo": stand_in("memo")}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Daemon]]:
    """Two, at which everybody has to show who they are."""
    (tmp_path / "engine").mkdir()
    with valkey(tmp_path / "engine") as engine, ExitStack() as stack:
        trio.run(settle, engine)
        settings = {"engine": engine.url, "keys": ["the key of this fleet, which is long"], "lease_s": 6.0}
        yield [
            stack.enter_context(
                running(tmp_path / name, SERVERS, leaves_calls=True, auth="tokens", fleet={**settings, "node": name})
            )
            for name in "ab"
        ]


async def make_token(node: Daemon) -> str:
    command = [*forking(), "-m", "supervisor", "token", "create", "--user", "ana", "--role", "admin"]
    made = await trio.run_process([*command, "--url", node.url], capture_stdout=True)
    (token,) = re.findall(r"mcpv_\w+", made.stdout.decode())
    return str(token)


async def knows_both(node: Daemon, token: str) -> bool:
    async with client() as http:
        told = await http.get(f"{node.url}/api/nodes", headers={"authorization": f"Bearer {token}"})
    return told.status_code == 200 and len(told.json()["nodes"]) == 2


class Browser:
    """Keeps its cookies, and sends them to every node: they are those of one host."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    @property
    def cookies(self) -> dict[str, str]:
        return {each.name: str(each.value) for each in self._http.cookies.jar}

    @property
    def cookie(self) -> dict[str, str]:
        """The header that has them."""
        return {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}

    async def get(self, node: Daemon, path: str) -> httpx2.Response:
        return await self._http.get(node.url + path)

    async def sign_in(self, node: Daemon, token: str) -> httpx2.Response:
        return await self._http.post(f"{node.url}/ui/sign-in", data={"secret": token, "next": "/ui"})

    async def sign_out(self, node: Daemon) -> httpx2.Response:
        """Press the button, which is a form with a token of its own."""
        (token,) = set(re.findall(r'name="token" value="([^"]+)"', (await self.get(node, "/ui")).text))
        return await self._http.post(f"{node.url}/ui/sign-out", data={"token": token})


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    async with client() as http:
        yield Browser(http)


async def test_who_signed_in_at_one_node_is_so_at_each_until_that_one_is_gone(nodes: list[Daemon]) -> None:
    a, b = nodes
    token = await make_token(a)
    with trio.fail_after(PATIENCE_S):
        while not (await knows_both(a, token) and await knows_both(b, token)):  # noqa: ASYNC110
            await trio.sleep(0.05)
    async with browsing() as browser:
        assert (await browser.get(a, "/ui/sign-in")).status_code == 200
        life = browser.cookies["mcpvisor-node"]
        assert (await browser.sign_in(b, token)).status_code == 303
        for node in (a, b):
            shown = await browser.get(node, "/ui")
            assert (shown.status_code, "Sign in" in shown.text) == (200, False)
            told = (await browser.get(node, "/api/nodes")).json()
            assert told["node"] == "a"
            assert (await browser.get(node, "/api/nothing")).status_code == 404
        assert browser.cookies["mcpvisor-node"] == life
        async with reading(b.url, "/api/events?brief=true&here=true", browser.cookie) as reader:
            assert (await reader.next())[1] == "hello"
        async with reading(b.url, headers=browser.cookie) as reader:
            assert (await reader.next())[2]["nodes"] == ["a", "b"]
        assert (await browser.sign_out(b)).status_code == 303
        assert (await browser.get(a, "/ui")).status_code == 303
        assert (await browser.sign_in(b, token)).status_code == 303
        await a.kill()
        with trio.fail_after(PATIENCE_S):
            while (answer := await browser.get(b, "/ui")).status_code != 303:
                assert answer.status_code in (200, 503)
                await trio.sleep(0.1)
        assert answer.headers["location"] == "/ui/sign-in?next=/ui"
        assert (await browser.get(b, "/ui/sign-in")).status_code == 200
        assert browser.cookies["mcpvisor-node"] != life
        assert (await browser.sign_in(b, token)).status_code == 303
        assert (await browser.get(b, "/ui")).status_code == 200


async def test_a_cookie_of_nobody_leads_nowhere(nodes: list[Daemon]) -> None:
    async with client() as http:
        for life in ("", "x", "f" * 16, "f" * 5000):
            headers = {"cookie": f"mcpvisor-node={life}"}
            answer = await http.get(f"{nodes[0].url}/ui", headers=headers)
            assert (answer.status_code, answer.headers["location"]) == (303, "/ui/sign-in?next=/ui")
            assert (await http.get(f"{nodes[0].url}/api/nodes", headers=headers)).status_code == 401
