"""A server actor before a remote server: sessions, eras, what is said meanwhile, and what becomes of its faults."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from actors.errors import ServerGaveUp, SupervisorError
from actors.kit import Starts
from actors.life.policy import RestartPolicy
from actors.messages import Note, ServerListed
from actors.principal import LOCAL, ClientKey
from actors.protocol.agreement.versions import Era
from actors.protocol.exchanges import Interest
from actors.protocol.wire.weight import LARGE_BYTES
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.http.transport import HttpTransport
from tests.actors.server.rig import Rig
from tests.actors.transport.behind import before, behind
from tests.actors.transport.http.test_authorization import Purse
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import RemoteServer, Request

LIMITS = HttpLimits(max_line_bytes=100_000, max_event_bytes=100_000, connect_timeout_s=2)


@asynccontextmanager
async def remote(
    server: RemoteServer,
    fake: FakeServer,
    era: Era | None = None,
    starts: Starts | None = None,
    policy: RestartPolicy | None = None,
    *,
    limits: HttpLimits = LIMITS,
    within_s: float = 20,
) -> AsyncIterator[Rig]:
    async with behind(server, limits=limits, within_s=within_s, era=era, starts=starts, policy=policy) as rig:
        yield rig
    assert fake.starts == fake.exits


@pytest.mark.parametrize("probe", ["error", "modern"])
@pytest.mark.parametrize("plain", [False, True])
async def test_a_remote_server_is_called_like_a_local_one(probe: str, plain: bool) -> None:
    fake = FakeServer(probe=probe)  # type: ignore[arg-type]
    server = RemoteServer(fake.serve, modern=probe == "modern", plain=plain)
    async with remote(server, fake) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        assert rig.eras == (["modern"] if probe == "modern" else ["legacy"])
        assert (await rig.status()).transport == "http"
    posts = [request for request in server.requests if request.verb == "POST"]
    assert {request.headers["authorization"] for request in posts} == {"Bearer t"}
    (call,) = [request for request in posts if request.method == "tools/call"]
    if probe == "modern":
        assert (call.headers["mcp-method"], call.headers["mcp-name"]) == ("tools/call", "echo")
        assert {request.headers["mcp-protocol-version"] for request in posts} == {"2026-07-28"}
    else:
        assert [request.method for request in posts][:3] == [
            "server/discover",
            "initialize",
            "notifications/initialized",
        ]
        assert "mcp-protocol-version" not in posts[1].headers
        assert call.headers["mcp-protocol-version"] == "2025-11-25"
        assert server.count("DELETE") == 1


@pytest.mark.parametrize("size", [0, 2 * LARGE_BYTES])
@pytest.mark.parametrize("plain", [False, True])
async def test_the_token_of_a_login_is_in_nothing_that_a_server_says_however_large(plain: bool, size: int) -> None:
    token, fake = "an-access-token-of-a-login", FakeServer()
    server = RemoteServer(fake.serve, plain=plain)
    async with server.running(), before(HttpTransport(Remote(url=server.url), authorizer=Purse(token))) as rig:
        said = await rig.call("echo", token=token, pad="x" * size, end=f"Bearer {token}")
        assert said == {"token": "***", "pad": "x" * size, "end": "Bearer ***"}


@pytest.mark.parametrize("plain", [False, True])
async def test_an_answer_of_5_mb_passes_whichever_way_its_server_answers(plain: bool) -> None:
    fake, pad = FakeServer(), "x" * 5_000_000
    async with remote(RemoteServer(fake.serve, plain=plain), fake, limits=HttpLimits()) as rig:
        assert await rig.call("echo", pad=pad) == {"pad": pad}


async def test_a_session_that_a_server_opens_for_a_probe_that_it_refuses_is_ended() -> None:
    fake = FakeServer()

    async def mints(request: Request) -> None:
        refusal = b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no session"}}'
        await request.respond(400, refusal, mcp_session_id="of-the-probe")

    server = RemoteServer(fake.serve, faults={"server/discover": mints})
    async with remote(server, fake) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        ended = await server.until(lambda request: request.verb == "DELETE")
        assert ended.headers["mcp-session-id"] == "of-the-probe"
    assert [each.headers["mcp-session-id"] for each in server.requests if each.verb == "DELETE"] == [
        "of-the-probe",
        "session-1",
    ]


class Hearer:
    def __init__(self) -> None:
        self.notes: list[tuple[str, object]] = []

    @property
    def identity(self) -> ClientKey:
        return LOCAL, self

    def note(self, note: Note) -> bool:
        self.notes.append((note.method, json.loads(note.params)))
        return True


async def test_what_is_told_before_an_answer_reaches_its_caller() -> None:
    fake, hearer = FakeServer(), Hearer()
    async with remote(RemoteServer(fake.serve), fake, "legacy") as rig:
        await rig.call("progress", exchange=hearer, interest=Interest(b"7"), progress=[1, 2])  # type: ignore[arg-type]
    assert [(method, told["progress"], told["progressToken"]) for method, told in hearer.notes] == [  # type: ignore[index]
        ("notifications/progress", 1, 7),
        ("notifications/progress", 2, 7),
    ]


@pytest.mark.parametrize("calls", [1, 3])
async def test_a_forgotten_session_is_begun_anew_and_no_call_is_carried_out_twice(calls: int) -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve, session_calls=calls)
    async with remote(server, fake, "legacy") as rig:
        for number in range(6):
            assert await rig.call("echo", n=number) == {"n": number}
        assert rig.story[3:5] == ["its session is over, a new one begins", "started"]
        assert (await rig.status()).last_error is None
    carried_out = [each["params"]["arguments"]["n"] for each in fake.messages if each.get("method") == "tools/call"]
    assert carried_out == list(range(6))
    assert server.count("POST", "initialize") == -(-6 // calls)


@pytest.mark.case("H09")
async def test_many_calls_while_sessions_are_forgotten_again_and_again_have_each_its_own_answer() -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve, session_calls=1)
    answers: dict[int, object] = {}
    async with remote(server, fake, "legacy", starts=Starts(per_s=1000.0)) as rig:

        async def call(number: int) -> None:
            answers[number] = await rig.call("echo", n=number)

        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(call, number)
    assert answers == {number: {"n": number} for number in range(12)}
    carried_out = [each["params"]["arguments"]["n"] for each in fake.messages if each.get("method") == "tools/call"]
    assert sorted(carried_out) == list(range(12))
    assert server.count("POST", "initialize") == 12


class Forgetful(RemoteServer):
    """Forgets all sessions at each seventh of the requests that `counts`, whether it takes them or not."""

    def __init__(self, fake: FakeServer, counts: Callable[[Request], bool]) -> None:
        super().__init__(fake.serve)
        self._counts = counts
        self._counted = 0

    async def _answer(self, request: Request) -> bool:
        self._counted += self._counts(request)
        if self._counts(request) and self._counted % 7 == 0:
            self._behind.clear()
        return await super()._answer(request)


@pytest.mark.case("H09")
@pytest.mark.parametrize(
    "counts",
    [
        pytest.param(lambda request: request.method == "tools/call", id="calls"),
        pytest.param(lambda request: request.verb == "POST", id="whatever is posted"),
    ],
)
async def test_thirty_calls_at_once_of_a_server_that_forgets_its_sessions_are_all_answered_and_none_runs_twice(
    counts: Callable[[Request], bool],
) -> None:
    fake = FakeServer()
    server = Forgetful(fake, counts)
    answers: dict[int, object] = {}
    async with remote(server, fake, "legacy", Starts(per_s=1000.0), within_s=60) as rig:

        async def call(number: int) -> None:
            answers[number] = await rig.call("echo", n=number)

        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(call, number)
    assert answers == {number: {"n": number} for number in range(30)}
    carried_out = [each["params"]["arguments"]["n"] for each in fake.messages if each.get("method") == "tools/call"]
    assert sorted(carried_out) == list(range(30))


async def test_calls_under_way_in_a_session_that_is_forgotten_may_still_be_answered() -> None:
    fake = FakeServer(tools=[tool("sleep")])
    server = Forgetful(fake, lambda request: request.method == "tools/call")
    limits = HttpLimits(stop_s=0.02)
    async with (
        remote(server, fake, "legacy", Starts(per_s=1000.0), limits=limits) as rig,
        trio.open_nursery() as nursery,
    ):
        for _ in range(14):
            nursery.start_soon(partial(rig.call, "sleep", s=0.3))


async def test_a_call_of_a_server_that_forgets_every_session_at_once_is_tried_a_few_times_and_was_not_sent() -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve, session_calls=0)
    policy = RestartPolicy(backoff_initial_s=0.05, backoff_max_s=0.2)
    async with remote(server, fake, "legacy", Starts(per_s=1000.0), policy) as rig:
        with pytest.raises(ServerGaveUp, match="its session is over") as raised:
            await rig.call("echo")
        assert raised.value.outcome == "not_sent"
    assert 3 < server.count("POST", "tools/call") < 20
    assert not [each for each in fake.messages if each.get("method") == "tools/call"]


async def test_an_answer_that_does_not_end_is_given_up() -> None:
    fake = FakeServer(silent_at={"tools/list"})
    async with behind(RemoteServer(fake.serve), limits=HttpLimits(call_max_s=0.2), era="legacy") as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        problems = rig.of(ServerListed)[0].offer.problems
        assert problems == ("tools/list: it did not end its answer within 0.2 s",)


@pytest.mark.case("H01")
async def test_a_server_that_is_away_is_told_to_be() -> None:
    async with before(HttpTransport(Remote(url="http://127.0.0.1:9/mcp"), LIMITS), era=None) as rig:
        with pytest.raises(SupervisorError) as raised:
            await rig.call("echo", deadline_s=0.3)
        assert raised.value.outcome == "not_sent"
        assert "cannot be reached" in ((await rig.status()).last_error or "")
        assert "disconnected because it cannot be reached (Connection refused)" in rig.story
