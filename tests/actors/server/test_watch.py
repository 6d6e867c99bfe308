"""Quiet servers are asked for a sign of life, calls to them are held for it, and only what is lost is replaced."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ServerExited, ServerStarting
from actors.facts import Fact, FactLog, InquiryEnded
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.protocol.agreement.versions import Era
from actors.server import ServerSettings
from actors.server.parts.liveness import QUIET_S
from actors.transport.base import Work
from tests.actors.server.rig import Rig, running_server
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryConnection, MemoryPeer

AWAKE = ServerSettings(idle_timeout_s=0)
HOUR_S = 3600.0
SOON = RestartPolicy(backoff_initial_s=0.1, backoff_max_s=0.1)
QUESTIONS = {"legacy": "ping", "modern": "server/discover"}


class Thawing(FakeServer):
    """Each process of it answers everything at first."""

    async def serve(self, peer: MemoryPeer) -> int:
        self.silent_at = set()
        return await super().serve(peer)


def settings(**changes: Any) -> ServerSettings:
    return ServerSettings(idle_timeout_s=0, **changes)


async def prove(rig: Rig) -> None:
    """Have the server be known to answer, and be quiet again."""
    await rig.wake()
    await trio.sleep(70)
    assert rig.fake.count("ping") == 1


def look(rig: Rig, work: Work) -> None:
    assert rig.fake.peer is not None
    rig.fake.peer.work = work


def untouched(rig: Rig) -> bool:
    return (rig.actor.life.state, rig.actor.life.incarnation) == (State.READY, 1)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_quiet_server_is_asked_once_in_each_interval_in_the_words_of_its_era(
    autojump_clock: MockClock, era: Era
) -> None:
    fake = FakeServer(probe="modern" if era == "modern" else "error")
    async with running_server(fake, settings=AWAKE, era=era) as rig:
        await rig.wake()
        before = fake.count(QUESTIONS[era])
        await trio.sleep(HOUR_S)
        asked = fake.count(QUESTIONS[era]) - before
        assert 59 <= asked <= 61
        assert untouched(rig)
        sign = (await rig.status()).last_sign_at
        assert sign is not None
        assert trio.current_time() - sign <= 61


async def test_a_server_that_says_anything_by_itself_is_not_asked(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await rig.wake()
        for _ in range(30):
            await trio.sleep(29)
            await rig.fake.notify("notifications/message")
        assert rig.fake.count("ping") == 0


async def test_who_is_not_to_be_watched_is_asked_nothing_and_no_call_waits(autojump_clock: MockClock) -> None:
    async with running_server(settings=settings(watch_interval_s=0)) as rig:
        await rig.wake()
        await trio.sleep(HOUR_S)
        look(rig, Work(frozen=True))
        assert await rig.call(a=1) == {"a": 1}
        assert rig.fake.count("ping") == 0
        assert untouched(rig)


async def test_questions_wake_nobody_and_keep_nobody_awake(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=180)) as rig:
        await rig.wake()
        await rig.reach(State.DORMANT)
        assert trio.current_time() < 200
        asked = rig.fake.count("ping")
        assert 2 <= asked <= 4
        await trio.sleep(HOUR_S)
        assert (rig.fake.starts, rig.fake.count("ping")) == (1, asked)


async def test_a_server_that_never_answers_is_asked_once_and_lives_for_ever(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(silent_at={"ping"}), settings=AWAKE) as rig:
        await rig.wake()
        for number in range(3):
            await trio.sleep(HOUR_S)
            assert await rig.call(a=number) == {"a": number}
        assert rig.fake.count("ping") == 1
        assert untouched(rig)


async def test_one_that_answers_late_is_asked_again_after_that(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(silent_at={"ping"}), settings=AWAKE) as rig:
        await rig.wake()
        await trio.sleep(HOUR_S)
        question = next(each for each in rig.fake.messages if each.get("method") == "ping")
        rig.fake.silent_at = set()
        await rig.fake.write(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % question["id"])
        await trio.sleep(HOUR_S)
        assert rig.fake.count("ping") > 50
        assert untouched(rig)


async def test_a_call_after_a_pause_waits_for_one_answer_and_the_next_one_for_none(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await prove(rig)
        await trio.sleep(10)
        before = len(rig.fake.messages)
        assert await rig.call(a=1) == {"a": 1}
        assert await rig.call(a=2) == {"a": 2}
        assert [each["method"] for each in rig.fake.messages[before:]] == ["ping", "tools/call", "tools/call"]


async def test_a_sign_of_life_counts_from_when_it_was_heard(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await prove(rig)
        while rig.fake.count("ping") == 1:  # noqa: ASYNC110 - a virtual clock
            await trio.sleep(0.01)
        await trio.sleep(QUIET_S + 0.05)  # less than that since the inquiry ended, which looks later for what was said
        assert await rig.call(a=1) == {"a": 1}
        assert rig.fake.count("ping") == 3


async def test_calls_that_come_while_it_is_asked_wait_too_and_go_in_their_order(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await prove(rig)
        await trio.sleep(10)
        rig.fake.silent_at = {"ping"}
        replies = [rig.submit(n=number) for number in range(5)]
        await wait_all_tasks_blocked()
        assert rig.fake.count("tools/call") == 0
        await rig.fake.notify("notifications/message")
        for reply in replies:
            await reply.wait()
        called = [each["params"]["arguments"]["n"] for each in rig.fake.messages if each["method"] == "tools/call"]
        assert called == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("proven", [True, False])
async def test_a_call_to_a_frozen_server_goes_to_the_next_process_alone(
    autojump_clock: MockClock, proven: bool
) -> None:
    async with running_server(Thawing(), settings=AWAKE, policy=SOON) as rig:
        await rig.wake()
        rig.fake.silent_at = set() if proven else {"ping"}
        await trio.sleep(HOUR_S)
        rig.fake.silent_at = {"ping", "tools/call"}
        look(rig, Work(frozen=True))
        began = trio.current_time()
        assert await rig.call(a=1) == {"a": 1}
        assert trio.current_time() - began < 2
        assert (rig.fake.starts, rig.fake.count("tools/call")) == (2, 1)
        assert "disconnected because it is frozen (stopped by a signal)" in rig.story
        assert (await rig.status()).restarts == 1


async def test_a_call_in_flight_is_told_when_its_server_freezes(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE, policy=SOON) as rig:
        await rig.wake()
        reply = rig.submit("hang")
        await trio.sleep(20)
        assert not reply.settled
        look(rig, Work(frozen=True))
        began = trio.current_time()
        with pytest.raises(ServerExited, match="frozen") as caught:
            await reply.wait()
        assert trio.current_time() - began < 5
        assert caught.value.outcome == "unknown"


@pytest.mark.parametrize("works", [False, True])
async def test_one_that_used_to_answer_and_does_nothing_at_all_is_replaced(
    autojump_clock: MockClock, works: bool
) -> None:
    async with running_server(settings=AWAKE, policy=SOON) as rig, trio.open_nursery() as nursery:
        await prove(rig)
        rig.fake.silent_at = {"ping"}

        async def work() -> None:
            while works:
                await trio.sleep(0.5)
                look(rig, Work(cpu_s=trio.current_time() / 100))

        nursery.start_soon(work)
        reply = rig.submit(a=1)
        with trio.fail_after(10):
            await reply.wait()
        assert (rig.fake.starts, rig.fake.count("tools/call")) == (1 if works else 2, 1)
        assert untouched(rig) is works
        nursery.cancel_scope.cancel()


async def test_a_call_that_was_held_until_its_deadline_was_not_sent(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await prove(rig)
        rig.fake.silent_at = {"ping"}
        with pytest.raises(ServerStarting) as caught:
            await rig.call(deadline_s=3.0)
        assert caught.value.outcome == "not_sent"
        assert rig.fake.count("tools/call") == 0


async def test_what_was_looked_at_before_a_server_was_sent_to_sleep_does_not_cut_its_calls_short(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = trio.Event()

    async def work(connection: MemoryConnection) -> Work:
        del connection
        await looked.wait()
        return Work(frozen=True)

    monkeypatch.setattr(MemoryConnection, "work", work)
    async with running_server(settings=AWAKE) as rig, trio.open_nursery() as nursery:
        await rig.wake()
        reply = rig.submit("hang")
        await trio.sleep(20)
        began = trio.current_time()
        nursery.start_soon(rig.sleep)
        await wait_all_tasks_blocked()
        looked.set()
        with pytest.raises(ServerExited):
            await reply.wait()
        assert trio.current_time() - began >= 5
        assert not any("frozen" in line for line in rig.story)


@pytest.mark.parametrize(
    ("silent", "work", "verdict"),
    [
        (False, Work(), "alive"),
        (True, Work(), "deaf"),
        (True, Work(frozen=True), "frozen"),
        (True, Work(active=True), "unknown"),
    ],
)
async def test_each_question_is_counted_by_what_was_found(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, silent: bool, work: Work, verdict: str
) -> None:
    verdicts: list[str] = []

    def note(log: FactLog, fact: Fact) -> None:
        del log
        if isinstance(fact, InquiryEnded):
            verdicts.append(f"{fact.launch}: {fact.verdict}")

    monkeypatch.setattr(FactLog, "note", note)
    async with running_server(settings=AWAKE, policy=SOON) as rig:
        await prove(rig)
        rig.fake.silent_at = {"ping"} if silent else set()
        look(rig, work)
        await trio.sleep(65)
        assert verdicts == ["s: alive", f"s: {verdict}"]
