"""Fifty parallel calls of ten clients, during each of which the server asks twice: nobody hears of a foreign one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running
from tests.e2e.test_remote_servers import wait_for
from tests.scenario.client import message

pytestmark = pytest.mark.e2e

SERVER = str(Path(__file__).with_name("asking_server.py"))
CLIENTS, CALLS = 10, 5
MODERN = "2026-07-28"
ABLE: dict[str, Any] = {"elicitation": {"form": {}}}


@contextmanager
def listening(python: Sequence[str]) -> Iterator[dict[str, str]]:
    """The entry of a server that listens during the block."""
    with subprocess.Popen([*python, SERVER, "http"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            wait_for(port)
            yield {"url": f"http://127.0.0.1:{port}/mcp"}
        finally:
            process.kill()


@contextmanager
def asking(place: Path, **settings: object) -> Iterator[Daemon]:
    """A daemon with four servers that ask, each with these settings: of both SDKs, and in both ways."""
    python_1, python_2 = environments.python_1(), environments.python_2()
    with listening(python_1) as one, listening(python_2) as two:
        servers: dict[str, dict[str, Any]] = {
            "one-stdio": environments.entry(python_1, SERVER, "stdio"),
            "one-http": one,
            "two-stdio": environments.entry(python_2, SERVER, "stdio"),
            "two-http": {**two, "era": "modern"},  # it speaks both, and its tool asks by results alone
        }
        with running(place, {name: {**entry, **settings} for name, entry in servers.items()}) as daemon:
            trio.run(daemon.ready)
            yield daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with asking(tmp_path_factory.mktemp("fifty"), call_timeout_s=600) as daemon:
        yield daemon


class Client:
    """One client; `answered` are the questions it was asked, and `results` what its calls gave, by their labels."""

    def __init__(self, name: str, url: str, http: httpx2.AsyncClient) -> None:
        self.name = name
        self._url = url
        self._http = http
        self.answered: list[str] = []
        self.results: dict[str, Any] = {}

    def answer(self, label: str, params: Any) -> Any:
        """Answer a question that has to be about the call with this label."""
        assert params["message"].rpartition("/")[0] == label, "a foreign question"
        self.answered.append(params["message"])
        return {"action": "accept", "content": {"text": f"{params['message']} by {self.name}"}}

    def ended(self, label: str, result: Any) -> None:
        assert not result.get("isError"), result
        self.results[label] = json.loads(result["content"][0]["text"])

    @property
    def labels(self) -> list[str]:
        return [f"{self.name}.{number}" for number in range(CALLS)]

    @property
    def expected(self) -> dict[str, Any]:
        return {label: [f"{label}/{number} by {self.name}" for number in (1, 2)] for label in self.labels}

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            for number, label in enumerate(self.labels):
                nursery.start_soon(self.call, label, number)

    async def call(self, label: str, number: int) -> None:
        raise NotImplementedError


class Legacy(Client):
    """It is asked on the streams of its calls; all clients use the same ids."""

    session = ""

    async def open(self) -> None:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": ABLE,
            "clientInfo": {"name": self.name, "version": "1"},
        }
        opened = await self._http.post(self._url, json=message("initialize", hello))
        self.session = opened.headers["mcp-session-id"]

    async def call(self, label: str, number: int) -> None:
        headers = {"mcp-session-id": self.session, "accept": "application/json, text/event-stream"}
        body = message("tools/call", {"name": "ask_twice", "arguments": {"label": label}}, number)
        async with self._http.stream("POST", self._url, json=body, headers=headers) as stream:
            async for line in stream.aiter_lines():
                if not line.startswith("data: {"):  # the first event has an id and no message
                    continue
                said = json.loads(line.removeprefix("data: "))
                if said.get("method") == "elicitation/create":
                    result = {"jsonrpc": "2.0", "id": said["id"], "result": self.answer(label, said["params"])}
                    await self._http.post(self._url, json=result, headers=headers)
                elif "id" in said:
                    assert said["id"] == number
                    self.ended(label, said["result"])


class Modern(Client):
    """It is asked by results."""

    async def open(self) -> None:
        await trio.lowlevel.checkpoint()

    async def call(self, label: str, number: int) -> None:
        prefix = "io.modelcontextprotocol/"
        meta = {f"{prefix}protocolVersion": MODERN, f"{prefix}clientCapabilities": ABLE}
        params: dict[str, Any] = {"name": "ask_twice", "arguments": {"label": label}, "_meta": meta}
        headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "ask_twice"}
        for _ in range(3):
            answer = (
                await self._http.post(self._url, json=message("tools/call", params, number), headers=headers)
            ).json()
            assert answer["id"] == number
            result = answer["result"]
            if result["resultType"] == "complete":
                self.ended(label, result)
                return
            asked = result["inputRequests"]
            responses = {key: self.answer(label, each["params"]) for key, each in asked.items()}
            params = {**params, "inputResponses": responses}
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise AssertionError(f"{label} has no result")


async def play(daemon: Daemon, server: str, kind: type[Legacy | Modern]) -> None:
    limits = httpx2.Limits(max_connections=200)
    async with httpx2.AsyncClient(timeout=600, trust_env=False, limits=limits) as http:
        url = f"{daemon.url}/mcp/servers/{server}"
        clients = [kind(f"{kind.__name__}{number}", url, http) for number in range(CLIENTS)]
        for client in clients:
            await client.open()
        if server == "one-stdio":
            early = [kind(f"early{number}", url, http) for number in range(2)]
            for client in early:
                await client.open()
            await meet(daemon, early)
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(client.run)
        for client in clients:
            assert client.results == client.expected
            assert sorted(client.answered) == sorted(f"{label}/{n}" for label in client.labels for n in (1, 2))


async def meet(daemon: Daemon, clients: Sequence[Client]) -> None:
    """Call twice at once: nobody knows whose a question on the pipe is, and from then on calls take turns."""
    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(_call, client)
    assert (await daemon.rows())["one-stdio"]["one_at_a_time"]


async def _call(client: Client) -> None:
    with suppress(json.JSONDecodeError):  # its server was told that it cannot ask
        await client.call(f"{client.name}.early", 99)


@pytest.mark.case("H16")
@pytest.mark.parametrize("kind", [Legacy, Modern])
@pytest.mark.parametrize("server", ["one-stdio", "one-http", "two-stdio", "two-http"])
def test_every_question_reaches_its_own_client_and_every_answer_its_own_call(
    daemon: Daemon, server: str, kind: type[Legacy | Modern]
) -> None:
    trio.run(play, daemon, server, kind)
