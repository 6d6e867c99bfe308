"""A remote server that is away is marked, left alone for as long as it asks, tried again, and found when it is back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import trio

from actors.catalogue.offer import Offer, Tool
from actors.errors import LoginRequired, ServerError, ServerExited, ServerGaveUp, ServerStarting
from actors.kit import Starts
from actors.life.policy import RestartPolicy
from actors.life.states import State, Timer
from actors.messages import ServerChanged
from actors.protocol.agreement.versions import Era
from actors.server import ServerSettings
from actors.server.calls.queue import MAX_UNREACHED
from actors.server.parts import recovery
from actors.transport.http.authorization import Authorizer, Denial
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.http.site import Site
from actors.transport.http.transport import HttpTransport
from tests.actors.server.rig import Rig, content, running_server
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import Fault, RemoteServer, Request

SOON = RestartPolicy(backoff_initial_s=0.05, backoff_max_s=0.2)
ONCE = RestartPolicy(max_restarts=1, backoff_initial_s=0.02, backoff_max_s=0.02)
LATER = RestartPolicy(backoff_initial_s=100, backoff_max_s=100)
KNOWN = Offer(tools=(Tool(name="old"),))


@asynccontextmanager
async def remote(
    server: RemoteServer,
    policy: RestartPolicy = SOON,
    *,
    known: Offer | None = None,
    era: Era | None = "legacy",
    settings: ServerSettings | None = None,
    authorizer: Authorizer | None = None,
    limits: HttpLimits | None = None,
) -> AsyncIterator[Rig]:
    with trio.fail_after(30):
        async with server.running():
            transport = HttpTransport(Remote(url=server.url), limits, authorizer=authorizer)
            starts = Starts(per_s=1000.0)
            async with running_server(
                transport=transport, policy=policy, known=known, era=era, starts=starts, settings=settings
            ) as rig:
                yield rig
                await rig.stop()


def status(code: int, body: bytes = b"", kind: str = "text/html", **headers: str) -> Fault:
    async def answer(request: Request) -> None:
        await request.respond(code, body, kind, **headers)

    return answer


async def until(rig: Rig, state: State, times: int = 1) -> None:
    while entered(rig, state) < times:
        await rig.told.wait()


def entered(rig: Rig, state: State) -> int:
    """How often the server came into a state; of one that it is in, more may be told."""
    return sum(fact.status.state is state and fact.previous is not state for fact in rig.of(ServerChanged))


def down(server: RemoteServer, fault: Fault) -> None:
    for verb in ("POST", "GET"):
        server.faults[verb] = fault


async def hang_up(request: Request) -> None:
    del request


@pytest.mark.case("H01")
@pytest.mark.parametrize("fault", [hang_up, status(503), status(502, b"<html>Bad Gateway</html>"), status(429)])
async def test_a_server_that_is_down_at_first_is_tried_until_it_is_there(fault: Fault) -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    down(server, fault)
    async with remote(server, ONCE) as rig:
        with pytest.raises(ServerStarting, match="is away: "):
            await rig.wake(urgent=False)
        await until(rig, State.RESPAWNING, 4)
        told = await rig.status()
        assert told.next_start is not None or told.state is not State.RESPAWNING
        assert told.last_error
        server.faults.clear()
        await until(rig, State.READY)
        assert State.FAILED not in rig.states
        assert await rig.call(n=1) == {"n": 1}
        assert (await rig.status()).last_error is None


async def test_a_server_that_goes_down_is_marked_by_a_call_that_finds_nobody_and_comes_back_as_another() -> None:
    fake = FakeServer(tools=[tool("echo"), tool("old", "tells the time")])
    server = RemoteServer(fake.serve)
    async with remote(server) as rig:
        await rig.wake()
        await rig.until_listed(1)
        down(server, status(503))
        with pytest.raises(ServerError, match="not available"):
            await rig.call()
        await until(rig, State.RESPAWNING, 3)
        assert rig.listed == [["echo", "old"]]
        fake.tools[1] = tool("new", "tells the time")
        server.faults.clear()
        await until(rig, State.READY, 2)
        await rig.until_listed(2)
        assert rig.listed[-1] == ["echo", "new"]
        assert rig.story[-1] == "its tools changed: renamed: 1 (old -> new); 2 now"


@asynccontextmanager
async def just_gone(policy: RestartPolicy) -> AsyncIterator[tuple[Rig, FakeServer, int]]:
    """A server that was there, and has ended; with the port at which it was."""
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    leave, left = trio.Event(), trio.Event()

    async def be_there(*, task_status: trio.TaskStatus[None]) -> None:
        async with server.running():
            task_status.started()
            await leave.wait()
        left.set()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(be_there)
            transport = HttpTransport(Remote(url=server.url))
            async with running_server(fake, transport=transport, policy=policy, starts=Starts(per_s=1000.0)) as rig:
                await rig.wake()
                leave.set()
                await left.wait()
                yield rig, fake, urlsplit(server.url).port or 0
                await rig.stop()


async def test_a_call_that_finds_a_remote_server_just_gone_is_answered_once_that_is_back() -> None:
    async with just_gone(SOON) as (rig, fake, port):
        call = rig.submit("echo", n=1)
        await until(rig, State.RESPAWNING)
        async with RemoteServer(fake.serve).running(port):
            assert await content(call) == {"n": 1}


async def test_a_call_that_finds_a_remote_server_just_gone_is_told_when_to_try_again() -> None:
    async with just_gone(LATER) as (rig, _, _):
        with pytest.raises(ServerStarting, match=r"cannot be reached .*; a call tries it again after") as caught:
            await rig.call()
        data = caught.value.data()
        assert (data["outcome"], data["retryable"]) == ("not_sent", True)
        assert 5_000 < data["retry_after_ms"] <= 15_000


async def test_one_call_that_finds_nobody_costs_nobody_else_anything() -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    async with remote(server) as rig, trio.open_nursery() as nursery:
        await rig.wake()
        answers: list[object] = []

        async def long() -> None:
            answers.append(await rig.call("sleep", s=0.5))

        nursery.start_soon(long)
        await fake.called.wait()
        down(server, status(503))
        with pytest.raises(ServerError):
            await rig.call()
        await trio.testing.wait_all_tasks_blocked(0.1)
        server.faults.clear()
        while not answers:
            await rig.call()
        assert State.RESPAWNING not in rig.states
        assert answers == [{"s": 0.5}]


async def test_a_server_is_left_alone_for_as_long_as_it_asks() -> None:
    server = RemoteServer(FakeServer().serve)
    down(server, status(503, retry_after="120"))
    async with remote(server, known=KNOWN) as rig:
        with pytest.raises(ServerStarting) as raised:
            await rig.call()
        assert raised.value.retry_after_s == pytest.approx(120, abs=1)
        assert raised.value.outcome == "not_sent"
        asked = len(server.requests)
        for _ in range(3):
            with pytest.raises(ServerStarting, match=r"it is tried again in 1[12]"):
                await rig.call()
        assert len(server.requests) == asked


async def test_a_call_tries_a_server_that_is_away_but_not_each_call_does(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    down(server, hang_up)
    async with remote(server, LATER, known=KNOWN) as rig:
        for _ in range(5):
            with pytest.raises(ServerStarting, match="is away"):
                await rig.call()
        assert entered(rig, State.RESPAWNING) == 1
        monkeypatch.setattr(recovery, "ASK_AGAIN_S", 0.0)
        server.faults.clear()
        await rig.refresh()
        down(server, hang_up)
        with pytest.raises(ServerExited):
            await rig.call()
        await until(rig, State.RESPAWNING, 2)
        server.faults.clear()
        assert await rig.call(n=2) == {"n": 2}


@pytest.mark.case("H21")
@pytest.mark.parametrize("modern", [True, False])
async def test_a_server_that_comes_back_in_the_other_era_is_found(modern: bool) -> None:
    fake = FakeServer(probe="error" if modern else "modern")
    server = RemoteServer(fake.serve, modern=not modern)
    async with remote(server, known=KNOWN, era=None) as rig:
        await rig.wake()
        await until(rig, State.READY)
        assert rig.eras == (["legacy"] if modern else ["modern"])
        down(server, status(502))
        with pytest.raises(ServerError):
            await rig.call()
        await until(rig, State.RESPAWNING)
        fake.probe = "modern" if modern else "error"
        server.become(modern=modern)
        server.faults.clear()
        await until(rig, State.READY, 2)
        assert rig.eras[-1] == ("modern" if modern else "legacy")
        assert await rig.call(n=1) == {"n": 1}


@pytest.mark.case("H21")
async def test_a_server_that_becomes_modern_between_two_calls_is_probed_once() -> None:
    fake = FakeServer(probe="error")
    server = RemoteServer(fake.serve)
    async with remote(server, era=None) as rig:
        assert await rig.call(n=0) == {"n": 0}
        probes = server.count("POST", "server/discover")
        fake.probe = "modern"
        server.become(modern=True)
        assert [await rig.call(n=number) for number in range(1, 4)] == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert rig.eras == ["legacy", "modern"]
        assert server.count("POST", "server/discover") == probes + 1
        assert (await rig.status()).restarts == 0


@pytest.mark.case("H21")
async def test_a_server_that_becomes_legacy_between_two_calls_is_greeted_anew() -> None:
    fake = FakeServer(probe="modern")
    server = RemoteServer(fake.serve, modern=True)
    limits = HttpLimits(settle_s=0.2)  # nothing answers what was under way
    async with remote(server, era=None, settings=ServerSettings(probe_timeout_s=0.5), limits=limits) as rig:
        assert await rig.call(n=0) == {"n": 0}
        fake.probe = "error"
        server.become(modern=False)
        assert [await rig.call(n=number) for number in range(1, 4)] == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert rig.eras == ["modern", "legacy"]
        assert (await rig.status()).restarts == 0


class NoLogin:
    """Has no token, and says that a login would help."""

    async def token(self) -> str:
        return ""

    def on_accepted(self, token: str) -> None:
        pass

    async def on_refused(self, token: str, status: int, challenges: Sequence[str]) -> Denial:
        return Denial(login=True, reason="log in")


async def test_one_call_that_is_refused_without_a_login_bars_nothing_if_other_things_are_answered() -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    async with remote(server, authorizer=NoLogin()) as rig:
        assert await rig.call(n=0) == {"n": 0}
        server.faults["tools/call"] = status(401)
        with pytest.raises(LoginRequired, match="log in"):
            await rig.call()
        server.faults.clear()
        assert await rig.call(n=1) == {"n": 1}
        assert (await rig.status()).incarnation == 1


async def test_a_server_that_answers_nothing_without_a_login_is_barred() -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    async with remote(server, authorizer=NoLogin()) as rig:
        assert await rig.call(n=0) == {"n": 0}
        server.faults["POST"] = status(401)
        with pytest.raises(LoginRequired, match="log in"):
            await rig.call()
        await until(rig, State.FAILED)
        assert rig.actor.life.barred


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(status(200, b"<html>Down for maintenance</html>"), "text/html, which is not MCP", id="a page"),
        pytest.param(status(404), "no MCP server at its address", id="another site"),
    ],
)
async def test_who_is_there_but_is_no_server_is_told_of_and_tried_again_by_itself(fault: Fault, said: str) -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    down(server, fault)
    policy = RestartPolicy(backoff_initial_s=0.05, probe_interval_s=0.3, retry_max_s=0.3)
    async with remote(server, policy, known=KNOWN, era=None) as rig:
        with pytest.raises(ServerGaveUp, match=said):
            await rig.call()
        assert rig.actor.life.state is State.FAILED
        assert "Down for" not in str((await rig.status()).last_error)
        server.faults.clear()
        await until(rig, State.READY)
        assert await rig.call(n=1) == {"n": 1}


@pytest.mark.parametrize(("refused", "tries"), [(2, 3), (100, 1 + MAX_UNREACHED)])
async def test_a_call_that_cannot_connect_at_a_server_that_answers_others_is_tried_again_a_few_times(
    monkeypatch: pytest.MonkeyPatch, refused: int, tries: int
) -> None:
    fake, tried, asked = FakeServer(), [], Site.request

    def flaky(site: Site, verb: str, head: dict[str, str], body: bytes | None = None, **more: Any) -> Any:
        if body is not None and b"tools/call" in body:
            tried.append(body)
            if len(tried) <= refused:
                raise httpx2.ConnectError("refused")
        return asked(site, verb, head, body, **more)

    monkeypatch.setattr(Site, "request", flaky)
    async with remote(RemoteServer(fake.serve), LATER) as rig:
        await rig.wake()
        if tries > refused:
            assert await rig.call(n=1) == {"n": 1}
        else:
            with pytest.raises(ServerStarting, match="nothing was sent") as caught:
                await rig.call()
            assert (caught.value.outcome, caught.value.data()["retry_after_ms"]) == ("not_sent", 1000)
        assert len(tried) == tries
        assert rig.actor.life.state is State.READY


WATCH = ServerSettings(idle_timeout_s=0, watch_interval_s=0.1, unresponsive_s=0.1)


async def hold(request: Request) -> None:
    await request.left_within(30.0)


@pytest.mark.parametrize("fault", [hang_up, status(503), hold])
async def test_a_server_that_goes_away_is_known_to_be_away_before_it_is_called(fault: Fault) -> None:
    server = RemoteServer(FakeServer().serve)
    async with remote(server, LATER, settings=WATCH) as rig:
        await rig.wake()
        await asked_for_life(server)
        down(server, fault)
        await until(rig, State.RESPAWNING)
        told = await rig.status()
        assert (told.down, told.restarts) == ("offline", 0)
        with pytest.raises(ServerStarting, match="is away") as caught:
            await rig.call()
        assert caught.value.outcome == "not_sent"


async def asked_for_life(server: RemoteServer) -> None:
    """Wait until a server was asked for a sign of life."""
    await server.until(lambda request: request.method == "ping")


async def test_a_server_that_counts_requests_is_not_asked_before_the_time_that_it_names() -> None:
    server = RemoteServer(FakeServer().serve)
    async with remote(server, settings=WATCH) as rig:
        await rig.wake()
        server.faults["ping"] = status(429, retry_after="200")
        await asked_for_life(server)
        due = rig.actor._timers.remaining_s(Timer.WATCH)
        while due is None or due < 100:  # its answer is on its way
            await trio.sleep(0.01)
            due = rig.actor._timers.remaining_s(Timer.WATCH)
        assert rig.actor.life.state is State.READY


async def test_a_session_that_is_over_is_renewed_by_the_question_and_counts_for_nothing() -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    async with remote(server, settings=WATCH) as rig:
        await rig.wake()
        await asked_for_life(server)
        server.faults["ping"] = status(404)
        await until(rig, State.SPAWNING, 2)
        server.faults.clear()
        await until(rig, State.READY, 2)
        assert (await rig.status()).restarts == 0
        assert State.RESPAWNING not in rig.states
        assert await rig.call(n=1) == {"n": 1}
