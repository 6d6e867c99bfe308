"""Which node answers a request of a fleet, and how its answer comes back; the other nodes are faked."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import msgspec
import pytest
import trio

from actors.principal import LOCAL
from supervisor.config import Settings
from supervisor.fleet.engine import Elsewhere, EngineAway, LeaseEnded, Node, NodeAway
from supervisor.fleet.links.frames import AnswerBegun, AnswerEnded, AnswerPart, FrameStream
from supervisor.fleet.links.requests import SentRequest
from supervisor.front.http.elsewhere import RequestHead, shared_memory
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.sessions import Sealer, SessionMemory, Sessions
from supervisor.service.drain import RequestDrain
from tests.fakes.front_server import running
from tests.fakes.service import FakeService, OneDoor

KEY = b"k" * 32
OURS, THEIRS = "00" * 8, "11" * 8
THERE, OTHER = Node(name="there", incarnation="t/1", life=THEIRS), Node(name="other", incarnation="o/1", life="22" * 8)
HEAD = msgspec.msgpack.Decoder(RequestHead)


class Silent:
    """A stream on which nothing is sent: the other node is this test."""

    gone = False

    def __init__(self) -> None:
        self.said: list[str] = []

    def send(self, frame: object) -> None:
        self.said.append(type(frame).__name__)


class FakePeers:
    """Implements `Peers`. `members` are by their lives, `heirs` who takes over; `asked` is what was sent to which."""

    def __init__(self, life: str = OURS) -> None:
        self.life = life
        self.members: dict[str, Node] = {}
        self.taken_over_by: Node | None = None
        self.ended: set[str] = set()
        self.told_ended: list[str] = []
        self.asked_engine = 0
        self.failing: Exception | None = None
        self.asked: list[tuple[Node, RequestHead, bytes]] = []
        self.parts: list[bytes] = [b'{"jsonrpc":"2.0",', b'"id":1,"result":{}}']
        self.whole = True
        self.broken: Exception | None = None
        self.endless = False
        self.stream = Silent()

    name = "ours"

    def others(self) -> list[Node]:
        return [*self.members.values()]

    def find(self, life: str) -> Node | None:
        return self.members.get(life)

    def heir(self, session: str) -> Node | None:
        if self.failing is not None:
            raise self.failing
        return self.taken_over_by

    async def has_ended(self, session: str) -> bool:
        await trio.lowlevel.checkpoint()
        self.asked_engine += 1
        if self.failing is not None:
            raise self.failing
        return session in self.ended

    def note_ended(self, session: str, expires_at: float) -> None:
        self.told_ended.append(session)

    async def flush_sessions(self) -> None:
        await trio.lowlevel.checkpoint()

    def answer_with(self, answer: Any) -> None:
        raise AssertionError

    async def request(self, node: Node, head: bytes, body: bytes) -> SentRequest:
        await trio.lowlevel.checkpoint()
        if self.failing is not None:
            raise self.failing
        self.asked.append((node, HEAD.decode(head), body))
        sent = SentRequest(cast("FrameStream", self.stream), 1)
        sent.take(AnswerBegun(1, 200, ((b"content-type", b"application/json"),), self.whole))
        for part in self.parts:
            sent.take(AnswerPart(1, part))
        if self.broken is not None:
            sent.fail(self.broken)
        elif not self.endless:
            sent.take(AnswerEnded(1))
        return sent


class Client:
    """Asks one node."""

    def __init__(self, http: httpx2.AsyncClient, app: McpHttp) -> None:
        self.http = http
        self.app = app

    async def open(self) -> str:
        greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        answer = await self.post("initialize", "", **greeting)
        return str(answer.headers["mcp-session-id"])

    async def post(self, method: str, session: str, **params: Any) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post("/mcp", json=body, headers={"mcp-session-id": session} if session else {})

    async def ping(self, session: str) -> httpx2.Response:
        return await self.post("ping", session)


@asynccontextmanager
async def node(peers: FakePeers, closing: trio.Event | None = None) -> AsyncIterator[Client]:
    service, closing = FakeService(), trio.Event() if closing is None else closing
    drain = RequestDrain(service, closing)
    app = McpHttp(drain, sealer=Sealer(KEY), doors=OneDoor(service), memory=shared_memory(SessionMemory(), peers))

    async def handler(request: Any) -> None:
        await app.serve("", request)

    async with running(handler, closing) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with httpx2.AsyncClient(base_url=url, timeout=20) as http:
            yield Client(http, app)


async def session_of(life: str) -> str:
    """Return the id of a session that another process has opened."""
    async with node(FakePeers(life)) as theirs:
        return await theirs.open()


async def test_a_session_of_our_own_is_answered_here_whoever_else_there_is() -> None:
    peers = FakePeers()
    peers.members, peers.taken_over_by = {THEIRS: THERE}, OTHER
    async with node(peers) as ours:
        assert (await ours.ping(await ours.open())).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert (await ours.ping("made up")).status_code == 404
    assert (peers.asked, peers.asked_engine) == ([], 0)


async def test_a_session_of_another_node_is_answered_there_and_no_credential_goes_with_it() -> None:
    peers, session = FakePeers(), await session_of(THEIRS)
    peers.members = {THEIRS: THERE}
    async with node(peers) as ours:
        answer = await ours.http.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "ping"},
            headers={"mcp-session-id": session, "authorization": "Bearer secret", "cookie": "secret", "x-more": "1"},
        )
        assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert (await ours.http.delete("/mcp", headers={"mcp-session-id": session})).status_code == 200
    (there, head, body), (_, deleted, nothing) = peers.asked
    assert (there, head.method, head.target) == (THERE, "POST", b"/mcp")
    assert json.loads(body)["method"] == "ping"
    assert (b"x-more", b"1") in head.headers
    assert b"secret" not in b"".join(value for _, value in head.headers)
    assert (deleted.method, nothing) == ("DELETE", b"")
    assert peers.asked_engine == 0


async def test_of_a_node_that_is_gone_one_takes_over_and_asks_the_engine_once() -> None:
    peers, session = FakePeers(), await session_of(THEIRS)
    async with node(peers) as ours:
        for _ in range(3):
            assert (await ours.ping(session)).json()["result"] == {}
        assert peers.asked_engine == 1
        peers.taken_over_by = OTHER  # which has come to the fleet meanwhile: all nodes say the same
        await ours.ping(session)
        peers.members = {THEIRS: THERE}  # it was cut off, and is back
        await ours.ping(session)
    assert [each[0] for each in peers.asked] == [OTHER, THERE]
    assert peers.told_ended == []


async def test_a_session_that_was_ended_anywhere_is_not_taken_over() -> None:
    peers, session = FakePeers(), await session_of(THEIRS)
    async with node(peers) as ours:
        known = ours.app.sessions.read(session.encode())
        assert known is not None
        peers.ended = {known.digest}
        assert (await ours.ping(session)).status_code == 404


async def test_what_ends_here_all_nodes_are_told() -> None:
    peers = FakePeers()
    async with node(peers) as ours:
        session = await ours.open()
        assert (await ours.http.delete("/mcp", headers={"mcp-session-id": session})).status_code == 204
        assert (await ours.ping(session)).status_code == 404
    assert len(peers.told_ended) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (EngineAway(), "engine of the fleet does not answer"),
        (LeaseEnded("no member", retry_after_s=1.0), "no member"),
        (NodeAway("no way there", retry_after_s=2.0), "no way there"),
        (Elsewhere(None), "the node there ends"),
    ],
)
async def test_where_nobody_can_answer_that_is_said_in_the_form_of_the_request(error: Exception, message: str) -> None:
    peers, session = FakePeers(), await session_of(THEIRS)
    peers.failing = error
    peers.members = {THEIRS: THERE} if isinstance(error, NodeAway | Elsewhere) else {}
    async with node(peers) as ours:
        answer = await ours.ping(session)
        assert message in answer.json()["error"]["message"]
        assert (answer.json()["id"], answer.headers["retry-after"].isdigit()) == (1, True)
        deleted = await ours.http.delete("/mcp", headers={"mcp-session-id": session})
        assert (deleted.status_code, deleted.json()["id"]) == (503, None)


async def test_what_breaks_before_it_is_whole_is_an_error_and_what_is_a_stream_is_cut_short() -> None:
    peers, session = FakePeers(), await session_of(THEIRS)
    peers.members, peers.broken = {THEIRS: THERE}, NodeAway("it broke", outcome="unknown")
    async with node(peers) as ours:
        answer = (await ours.ping(session)).json()
        assert (answer["error"]["message"][:8], answer["error"]["data"]["outcome"]) == ("it broke", "unknown")
        peers.whole = False
        with pytest.raises(httpx2.RemoteProtocolError):
            await ours.ping(session)


async def test_a_stream_of_another_node_ends_with_this_one_and_with_its_client() -> None:
    peers, session, closing = FakePeers(), await session_of(THEIRS), trio.Event()
    peers.members, peers.whole, peers.endless = {THEIRS: THERE}, False, True
    headers = {"mcp-session-id": session, "accept": "text/event-stream"}
    async with node(peers, closing) as ours:
        async with ours.http.stream("GET", "/mcp", headers=headers) as left:
            assert left.status_code == 200
        with trio.fail_after(20):
            while "RequestLeft" not in peers.stream.said:
                await trio.lowlevel.checkpoint()
        peers.stream.said.clear()
        async with ours.http.stream("GET", "/mcp", headers=headers) as ended:
            assert ended.status_code == 200
            closing.set()
            assert await ended.aread() == b"".join(peers.parts)  # raises if it is cut short
        assert "RequestLeft" in peers.stream.said


async def test_what_falls_idle_is_over_for_all_only_at_its_own_node() -> None:
    own, foreign = await session_of(OURS), await session_of(THEIRS)
    ended: list[str] = []
    moment = [0.0]
    memory = SessionMemory(ended=lambda digest, expires_at: ended.append(digest), peers=FakePeers())
    sessions = Sessions(Sealer(KEY), Settings(session_idle_s=10.0), memory, now=time.time, clock=lambda: moment[0])
    for id_ in (own, foreign):
        assert sessions.find(id_.encode(), LOCAL) is not None
    moment[0] = 11.0
    assert sessions.find(own.encode(), LOCAL) is None
    sessions.sweep()
    assert len(sessions) == 0
    known = sessions.read(own.encode())
    assert known is not None
    assert ended == [known.digest]
    assert sessions.find(foreign.encode(), LOCAL) is not None
