"""Mailboxes, replies, actors, cells, gates, timers and the reporter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ActorStopped, MailboxFull
from actors.kit import Actor, Address, Ask, Feed, Gate, Latest, Mailbox, Outbox, Reply, Turn
from actors.kit.mailbox import MAX_BURST
from actors.kit.reporter import Reporter
from actors.kit.timers import Timers
from tests.fakes.garbage import no_search
from tests.fakes.late_clock import lasting


class Call(Ask[str], frozen=True, kw_only=True):
    tool: str


class Abandoned(Ask[None], frozen=True, kw_only=True):
    tool: str


Message = Call | Abandoned


class Worker(Actor[Message]):
    def __init__(self) -> None:
        super().__init__(8)
        self.abandoned: list[str] = []

    def handle(self, message: Message, reply: Reply[Any] | None) -> None:
        match message:
            case Call(tool="crash"):
                raise RuntimeError("bug")
            case Call(tool="last"):
                assert reply is not None
                reply.answer("LAST")
                self.finish()
            case Call(tool=tool):
                assert reply is not None
                reply.on_abandon(lambda: self.address.tell_nowait(Abandoned(tool=tool)))
                self.nursery.start_soon(self._work, tool, reply)
            case Abandoned(tool=tool):
                self.abandoned.append(tool)

    async def _work(self, tool: str, reply: Reply[Any]) -> None:
        await trio.sleep(10)
        reply.answer(tool.upper())


class Forwarder(Actor[Message]):
    def __init__(self, target: Address[Message]) -> None:
        super().__init__(8)
        self._target = target

    def handle(self, message: Message, reply: Reply[Any] | None) -> None:
        self._target.forward(message, reply)


class Diary(Actor[str]):
    """Notes what it handles, and when it rests."""

    def __init__(self) -> None:
        super().__init__(100)
        self.pages: list[str] = []

    def handle(self, message: str, reply: Reply[Any] | None) -> None:
        self.pages.append(message)

    def rest(self) -> None:
        self.pages.append("rest")


async def test_an_actor_rests_when_nothing_waits_and_after_many_messages() -> None:
    diary = Diary()
    async with trio.open_nursery() as nursery:
        await nursery.start(diary.run)
        diary.address.tell_nowait("alone")
        await wait_all_tasks_blocked()
        for number in range(MAX_BURST + 1):
            diary.address.tell_nowait(str(number))
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    burst = [str(number) for number in range(MAX_BURST)]
    assert diary.pages == ["rest", "alone", "rest", *burst, "rest", str(MAX_BURST), "rest"]


async def test_a_cancelled_waiter_is_heard_by_who_holds_the_reply(autojump_clock: MockClock) -> None:
    worker = Worker()
    forwarder = Forwarder(worker.address)
    async with trio.open_nursery() as nursery:
        await nursery.start(worker.run)
        await nursery.start(forwarder.run)
        with trio.move_on_after(1):
            await forwarder.address.ask(Call(tool="slow"))
        await wait_all_tasks_blocked()
        assert worker.abandoned == ["slow"]
        nursery.cancel_scope.cancel()


async def test_a_crash_fails_the_held_and_the_unread_and_the_late_requests(autojump_clock: MockClock) -> None:
    worker = Worker()
    forwarder = Forwarder(worker.address)
    errors: list[tuple[str, str]] = []

    async def ask(tool: str) -> None:
        try:
            await forwarder.address.ask(Call(tool=tool))
        except ActorStopped as error:
            errors.append((tool, error.outcome))

    async def doomed() -> None:
        try:
            await worker.run()
        except* RuntimeError:
            errors.append(("crashed", ""))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(doomed)
        await nursery.start(forwarder.run)
        nursery.start_soon(ask, "held")
        await wait_all_tasks_blocked()
        worker.address.tell_nowait(Call(tool="crash"))
        nursery.start_soon(ask, "unread")
        await wait_all_tasks_blocked()
        nursery.start_soon(ask, "late")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert sorted(errors) == [("crashed", ""), ("held", "unknown"), ("late", "not_sent"), ("unread", "not_sent")]


async def test_an_actor_that_finishes_leaves_nobody_waiting(autojump_clock: MockClock) -> None:
    worker = Worker()
    async with trio.open_nursery() as nursery:
        await nursery.start(worker.run)
        held = worker.address.request(Call(tool="held"))
        last = worker.address.request(Call(tool="last"))
        unread = worker.address.request(Call(tool="unread"))
        assert await last.wait() == "LAST"
        for reply in held, unread:
            with pytest.raises(ActorStopped):
                await reply.wait()
    with pytest.raises(ActorStopped):
        worker.address.tell_nowait(Call(tool="late"))
    with pytest.raises(ActorStopped):
        await worker.address.tell(Call(tool="late"))


async def test_a_full_mailbox_refuses_questions_and_makes_tellers_wait(autojump_clock: MockClock) -> None:
    box: Mailbox[Message] = Mailbox(1)
    box.address.tell_nowait(Call(tool="a"))
    with pytest.raises(MailboxFull):
        await box.address.ask(Call(tool="b"))
    reply: Reply[str] = Reply()
    box.address.forward(Call(tool="c"), reply)
    with pytest.raises(MailboxFull):
        await reply.wait()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.address.tell, Call(tool="d"))
        await wait_all_tasks_blocked()
        assert len(box) == 1
        assert (await box.receive()).message == Call(tool="a")
        assert (await box.receive()).message == Call(tool="d")


async def test_a_reply_settles_once_and_tells_everybody_who_asked() -> None:
    reply: Reply[int] = Reply()
    heard: list[str] = []
    reply.on_settled(lambda: heard.append("first"))
    reply.on_settled(lambda: heard.append("second"))
    reply.on_abandon(lambda: heard.append("abandoned"))
    reply.answer(1)
    reply.answer(2)
    reply.fail(RuntimeError())
    reply.abandon()
    reply.on_settled(lambda: heard.append("late"))
    assert await reply.wait() == 1
    assert heard == ["first", "second", "late"]


class Caller:
    """Knows its reply, and is told by it: a circle, for as long as it waits."""

    def __init__(self, reply: Reply[int]) -> None:
        self.reply = reply
        self.told = 0
        reply.on_abandon(self.tell)
        reply.on_settled(self.tell)

    def tell(self) -> None:
        self.told += 1


@pytest.mark.parametrize(
    ("settle", "told"),
    [(lambda reply: reply.answer(1), 1), (lambda reply: reply.abandon(), 2)],
    ids=["answer", "abandon"],
)
def test_who_asked_is_freed_without_a_search_once_it_is_told(settle: Callable[[Reply[int]], None], told: int) -> None:
    with no_search() as alive:
        caller = Caller(Reply())
        settle(caller.reply)
        assert caller.told == told
        caller.reply.on_abandon(caller.tell)
        caller.reply.on_settled(caller.tell)
        assert caller.told == told + 1, "it had settled"
        del caller
        assert alive(Caller, Reply) == 0


async def test_a_reply_that_nobody_waits_for_when_it_is_read_is_not_kept() -> None:
    box: Mailbox[Call] = Mailbox(4)
    with no_search() as alive:
        box.address.request(Call(tool="a")).abandon()
        box.address.request(Call(tool="b"))
        await box.receive()
        assert (await box.receive()).message == Call(tool="b")
        assert alive(Reply) == 1


async def test_latest_tells_whoever_is_to_be_told_of_each_new_value() -> None:
    cell = Latest("a")
    told: list[str | int] = []
    cell.set("b")
    with cell.on_set(lambda: told.append(cell.value)), cell.on_set(lambda: told.append(cell.version)):
        cell.set("c")
        cell.set("d")
    cell.set("e")
    assert told == ["c", 2, "d", 3]


async def test_latest_skips_what_a_slow_reader_missed() -> None:
    cell = Latest("a")
    cell.set("b")
    cell.set("c")
    assert await cell.wait_newer(0) == 2
    async with trio.open_nursery() as nursery:
        seen: list[int] = []

        async def read() -> None:
            seen.append(await cell.wait_newer(2))

        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        assert seen == []
        cell.set("d")
    assert (seen, cell.value) == ([3], "d")


async def test_a_feed_counts_what_was_missed() -> None:
    feed: Feed[int] = Feed(3)
    for number in range(1, 8):
        feed.append(number)
    assert await feed.after(6) == (7, 0, [7])
    assert await feed.after(4) == (7, 0, [5, 6, 7])
    assert await feed.after(1) == (7, 3, [5, 6, 7])
    assert await feed.after(0) == (7, 4, [5, 6, 7])


async def test_a_reader_of_a_feed_waits_for_news() -> None:
    feed: Feed[int] = Feed(3)
    feed.append(1)
    feed.append(2)
    news: list[Any] = []

    async def read() -> None:
        news.append(await feed.after(2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        assert news == []
        feed.append(3)
    assert news == [(3, 0, [3])]


async def test_an_outbox_is_bounded_but_takes_any_single_message() -> None:
    outbox: Outbox[str] = Outbox(10, ahead_bytes=4)
    assert outbox.put("large", 50)
    assert not outbox.put("y", 1)
    assert outbox.here == 50
    assert await outbox.take(100) == ["large"]
    assert not outbox.put("y", 1)  # nothing of it has left
    outbox.mark_sent(1)
    assert not outbox.put("y", 1)  # nor has all of it
    outbox.finish()
    assert outbox.put("a", 1)
    assert outbox.put("b", 1)
    assert await outbox.take(100) == ["a", "b"]


async def test_an_outbox_hands_over_about_as_much_as_was_asked_for() -> None:
    outbox: Outbox[int] = Outbox(1000, ahead_bytes=4)
    for number in range(5):
        outbox.put(number, 10)
    assert await outbox.take(20) == [0, 1]
    assert await outbox.take(21) == [2, 3, 4]


async def test_an_outbox_gives_all_of_a_little_while_nobody_else_hands_over() -> None:
    outbox: Outbox[str] = Outbox(1000, ahead_bytes=10)
    assert outbox.take_all(10) == []
    outbox.put("a", 5)
    outbox.put("b", 5)
    assert outbox.take_all(9) == []
    assert outbox.take_all(10) == ["a", "b"]
    outbox.put("c", 1)
    assert outbox.take_all(100) == []  # what was taken is still here
    outbox.put_back(["a", "b"])
    assert await outbox.take(100) == ["a", "b", "c"]
    outbox.mark_sent(3)
    assert outbox.take_all(100) == []
    outbox.finish()
    outbox.put("d", 1)
    assert outbox.take_all(100) == ["d"]


async def test_an_outbox_tells_who_wants_to_say_much_when_to_go_on() -> None:
    outbox: Outbox[str] = Outbox(1000, ahead_bytes=10)
    assert outbox.fits(50)
    for size in (44, 3, 3):
        outbox.put("x", size)
    assert not outbox.fits(1)
    assert len(await outbox.take(44)) == 1
    outbox.mark_sent(1)
    assert not outbox.fits(1)  # what is leaving is still here
    assert not outbox.finish()
    assert not outbox.fits(5)
    assert len(await outbox.take(3)) == 1
    outbox.mark_sent(1)
    assert outbox.finish()
    assert not outbox.finish()  # told once
    assert outbox.fits(7)
    assert not outbox.fits(8)
    await outbox.take(3)
    outbox.mark_sent(1)
    assert outbox.finish()
    outbox.put("y", 7)
    await outbox.take(1000)
    outbox.mark_sent(1)
    assert not outbox.finish()  # nobody was refused


async def test_a_mark_knows_whether_what_came_after_it_has_left() -> None:
    outbox: Outbox[str] = Outbox(1000, ahead_bytes=10)
    first = outbox.mark()
    outbox.put("abc", 3)
    second = outbox.mark()
    outbox.put("de", 2)
    assert await outbox.take(100) == ["abc", "de"]
    assert (first.passed, second.passed) == (False, False)
    outbox.mark_sent(1)
    assert (first.passed, second.passed) == (True, False)
    outbox.mark_sent(1)
    assert (first.passed, second.passed) == (True, True)


async def test_a_gate_hands_places_to_the_urgent_first_and_else_in_order(autojump_clock: MockClock) -> None:
    gate = Gate(1)
    order: list[str] = []

    async def hold(name: str, turn: Turn) -> None:
        async with gate.place(turn):
            order.append(name)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        late = Turn(urgent=False)
        for name, turn in {
            "first": Turn(urgent=False),
            "second": Turn(urgent=False),
            "third": late,
            "urgent": Turn(urgent=True),
        }.items():
            nursery.start_soon(hold, name, turn)
            await wait_all_tasks_blocked()
        assert len(gate.waiting) == 3
        await trio.sleep(1.5)
        late.urgent = True
    assert order == ["first", "urgent", "third", "second"]
    assert (len(gate.waiting), gate.free) == (0, 1)


async def test_a_gate_says_whether_a_patient_one_could_enter_at_once(autojump_clock: MockClock) -> None:
    """Not for a place that is kept for the urgent, nor before others, nor before its pace allows it."""
    gate = Gate(2, kept=1, interval_s=1.0)
    seen = [gate.has_room]
    async with gate.place(Turn(urgent=True)):
        seen.append(gate.has_room)
        async with gate.place(Turn(urgent=True)):
            seen.append(gate.has_room)
    seen.append(gate.has_room)
    await trio.sleep(1)
    assert [*seen, gate.has_room] == [True, False, False, False, True]


async def test_a_gate_loses_no_place_to_cancellation(autojump_clock: MockClock) -> None:
    gate = Gate(2)
    scopes = [trio.CancelScope() for _ in range(6)]

    async def hold(scope: trio.CancelScope) -> None:
        with scope:
            async with gate.place(Turn(urgent=False)):
                await trio.sleep(100)

    async with trio.open_nursery() as nursery:
        for scope in scopes:
            nursery.start_soon(hold, scope)
            await wait_all_tasks_blocked()
        scopes[0].cancel()
        scopes[2].cancel()  # it waits, and is handed the place in the same instant
        scopes[3].cancel()
        await wait_all_tasks_blocked()
        assert len(gate.waiting) == 0 or gate.free == 0
        for scope in scopes:
            scope.cancel()
    assert (len(gate.waiting), gate.free) == (0, 2)


async def test_a_newcomer_does_not_take_a_place_that_was_handed_over(autojump_clock: MockClock) -> None:
    gate = Gate(1)
    order: list[str] = []

    async def hold(name: str) -> None:
        async with gate.place(Turn(urgent=False)):
            order.append(name)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        async with gate.place(Turn(urgent=False)):
            nursery.start_soon(hold, "waited")
            await wait_all_tasks_blocked()
        nursery.start_soon(hold, "newcomer")
    assert order == ["waited", "newcomer"]


async def test_a_timer_that_was_replaced_after_it_fired_does_not_count(autojump_clock: MockClock) -> None:
    fired: list[tuple[str, int]] = []

    async def fire(name: str, number: int) -> None:
        await trio.lowlevel.checkpoint()
        fired.append((name, number))

    async with trio.open_nursery() as nursery:
        timers = Timers(fire, nursery.start_soon)
        timers.start("a", 1)
        await trio.sleep(2)
        assert timers.runs("a")
        timers.start("a", 1)
        assert not timers.take(*fired[0])
        await trio.sleep(2)
        assert timers.take(*fired[1])
        assert not timers.take(*fired[1])
        timers.start("a", 1)
        timers.cancel("a")
        await trio.sleep(2)
    assert len(fired) == 2


async def test_a_timer_is_moved_forward_but_never_back(autojump_clock: MockClock) -> None:
    fired: list[float] = []

    async def fire(name: str, number: int) -> None:
        await trio.lowlevel.checkpoint()
        fired.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        timers = Timers(fire, nursery.start_soon)
        for moment in (10, 20, 5, 7):
            timers.start_by("a", moment)
    assert fired == [lasting(5)]


async def test_a_timer_that_is_asked_for_again_by_the_same_moment_is_not_started_again() -> None:
    """On the real clock, which goes on between any two looks at it."""
    started: list[object] = []

    async def fire(name: str, number: int) -> None:
        raise AssertionError

    timers = Timers(fire, lambda *task: started.append(task))
    moment = trio.current_time() + 60
    for _ in range(1000):
        timers.start_by("a", moment)
    await trio.lowlevel.checkpoint()
    assert len(started) == 1


async def taken(box: Mailbox[Any]) -> list[Any]:
    """Everything that comes until nobody has anything to add."""
    messages = []
    await wait_all_tasks_blocked()
    while len(box):
        messages.append((await box.receive()).message)
        await wait_all_tasks_blocked()
    return messages


async def test_a_reporter_conflates_what_finds_no_room_and_delivers_the_last(autojump_clock: MockClock) -> None:
    box: Mailbox[Any] = Mailbox(1)
    reporter = Reporter(box.address)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reporter.run)
        for number in range(5):
            reporter.report(number)
            reporter.report(str(number))
        assert await taken(box) == [0, "4", 4]
        nursery.cancel_scope.cancel()


async def test_a_fact_that_comes_while_the_older_of_its_kind_waits_for_room_is_delivered_too() -> None:
    box: Mailbox[Any] = Mailbox(1)
    reporter = Reporter(box.address)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reporter.run)
        reporter.report("fills the box")
        reporter.report(1)
        await wait_all_tasks_blocked()
        reporter.report(2)
        assert await taken(box) == ["fills the box", 1, 2]
        nursery.cancel_scope.cancel()


async def test_a_fact_does_not_pass_those_that_wait_when_there_is_room_again() -> None:
    box: Mailbox[Any] = Mailbox(1)
    reporter = Reporter(box.address)
    reporter.report("first")
    reporter.report(2)
    assert (await box.receive()).message == "first"
    reporter.report(3.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reporter.run)
        assert await taken(box) == [2, 3.0]
        nursery.cancel_scope.cancel()


async def test_a_reporter_whose_reader_is_gone_drops_its_facts(autojump_clock: MockClock) -> None:
    box: Mailbox[Any] = Mailbox(1)
    reporter = Reporter(box.address)
    reporter.report(1)
    reporter.report(2)
    with box:
        pass
    reporter.report(3)
    await reporter.run()
