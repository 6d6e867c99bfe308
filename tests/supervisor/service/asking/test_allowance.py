"""How much a server may ask: of one call, in a minute, and in bytes that wait for answers, in both eras."""

from __future__ import annotations

import json
from contextlib import suppress

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CannotAsk, SupervisorError
from actors.kit import Reply
from actors.messages import Caller, CallServer, Question, Result
from actors.protocol.agreement.versions import Era
from supervisor.config import ServerConfig
from supervisor.service.asking.exchange import Exchange, QuestionTable
from supervisor.service.asking.rounds import InputNeeded, Parking
from supervisor.service.client import Client
from tests.fakes.deployments import deployment
from tests.fakes.exchanges import Ear, exchange
from tests.fakes.router import FakeRouter
from tests.supervisor.service.asking.test_round_trips import round_trips

EVERYTHING = msgspec.Raw(b'{"elicitation":{"form":{}},"sampling":{},"roots":{}}')
CLIENTS: dict[Era, Client] = {
    "legacy": Client(version="2025-11-25", capabilities=EVERYTHING),
    "modern": Client(era="modern", version="2026-07-28", capabilities=EVERYTHING),
}
SAMPLE = Question("sampling/createMessage", msgspec.Raw(b'{"messages":[]}'))
ROOTS = Question("roots/list", msgspec.Raw(b"{}"))
LARGE = Question("sampling/createMessage", msgspec.Raw(b'{"x":"' + b"x" * (4 * 1024 * 1024 - 8) + b'"}'))
ANSWER = msgspec.Raw(b'{"model":"m"}')
PER_MINUTE, PER_CALL, ALL_BYTES = 300, 256, 64 * 1024 * 1024

both = pytest.mark.parametrize("era", ["legacy", "modern"])


class Callers:
    """What servers speak to during calls of clients of one era."""

    def __init__(self, nursery: trio.Nursery, era: Era) -> None:
        self._nursery = nursery
        self._era = era
        self._sessions: list[tuple[Ear, QuestionTable]] = []
        self._router = FakeRouter()
        entries = [ServerConfig(name=name, command="x") for name in ("s", "other")]
        self._trips = round_trips(self._router, deployment(*entries), Parking(bytes(32)))

    async def begin(self, server: str = "s") -> Caller:
        """Begin a call; who made it."""
        ear, table = Ear(1000), QuestionTable()
        self._sessions.append((ear, table))
        legacy = self._era == "legacy"
        request = exchange(
            CLIENTS[self._era], "tools/call", ear=ear if legacy else None, questions=table if legacy else None
        )
        message = CallServer(server=server, method="tools/call", members=b"", name="t", exchange=request)
        self._nursery.start_soon(self._made, request, message)
        await wait_all_tasks_blocked()
        caller = self._router.calls[-1][0].exchange
        assert caller is not None
        return caller

    def answer(self, reply: Reply[msgspec.Raw]) -> None:
        """Let the client answer what it was asked last."""
        for ear, table in self._sessions:
            if ear.heard:
                table.on_answer(ear.heard[-1]["id"], ANSWER, msgspec.Raw(b""))
        reply.answer(ANSWER)

    async def _made(self, request: Exchange, message: CallServer) -> None:
        with suppress(InputNeeded):  # then the call is parked
            await self._trips.result(request, message)


def refused(reply: Reply[msgspec.Raw]) -> bool:
    return reply.settled and reply.value is None


async def why(reply: Reply[msgspec.Raw]) -> SupervisorError:
    with pytest.raises(CannotAsk) as error:
        await reply.wait()
    return error.value


@both
async def test_a_server_does_not_spend_more_samples_than_a_minute_and_a_call_may_have(
    era: Era, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery, era)
        first, second = await callers.begin(), await callers.begin()
        asked = []
        for minute in range(4):
            for number in range(PER_MINUTE + 1):
                caller = second if minute == 0 and number % 2 else first
                reply = caller.ask(SAMPLE)
                asked.append(not refused(reply))
                callers.answer(reply)
                if not asked[-1]:
                    error = await why(reply)
            if minute == 0:
                assert asked.count(True) == PER_MINUTE
                assert (error.code, error.data()["retry_after_ms"]) == (-31429, 60_000)
            await trio.sleep(60)
        assert asked.count(True) == PER_CALL + PER_MINUTE // 2
        assert "max_questions_per_call" in error.message
        assert not refused(first.ask(ROOTS))
        assert not refused((await callers.begin("other")).ask(SAMPLE))
        nursery.cancel_scope.cancel()


@both
async def test_large_questions_of_one_call_do_not_pile_up(era: Era, autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        caller = await Callers(nursery, era).begin()
        replies = [caller.ask(LARGE) for _ in range(32)]
        assert [refused(reply) for reply in replies] == [False] * 2 + [True] * 30
        assert ((await why(replies[2])).code, "are the most" in (await why(replies[2])).message) == (-31429, True)
        replies[0].answer(ANSWER)
        assert not refused(caller.ask(LARGE))
        nursery.cancel_scope.cancel()


@both
async def test_large_questions_of_one_server_leave_room_for_those_of_others(
    era: Era, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery, era)
        replies = [(await callers.begin()).ask(LARGE) for _ in range(20)]
        kept = [reply for reply in replies if not refused(reply)]
        assert len(kept) == ALL_BYTES // 2 // len(LARGE.params)
        assert "max_question_bytes" in (await why(replies[-1])).message
        assert not refused((await callers.begin("other")).ask(LARGE))
        for reply in kept[:2]:
            reply.abandon()
        assert not refused((await callers.begin()).ask(LARGE))
        nursery.cancel_scope.cancel()


async def test_a_modern_server_asks_a_modern_client_no_more_than_a_minute_may_have(autojump_clock: MockClock) -> None:
    asked = {f"q{number}": {"method": SAMPLE.method, "params": {}} for number in range(30)}
    body = json.dumps({"resultType": "input_required", "inputRequests": asked, "requestState": "s"}).encode()
    router = FakeRouter(lambda message: Result(msgspec.Raw(body), "modern"))
    entry = ServerConfig(name="s", command="x")
    trips = round_trips(router, deployment(entry), Parking(bytes(32)))
    message = CallServer(server="s", method="tools/call", members=b"", name="t")
    for _ in range(PER_MINUTE // 30):
        with pytest.raises(InputNeeded):
            await trips.result(exchange(CLIENTS["modern"], "tools/call"), message)
    with pytest.raises(SupervisorError) as error:
        await trips.result(exchange(CLIENTS["modern"], "tools/call"), message)
    assert (error.value.code, error.value.outcome) == (-31429, "unknown")
