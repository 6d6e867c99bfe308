"""What an actor passes on is no longer its own; what it was to report, or to be found by, ends when it says so."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.errors import ActorStopped, MailboxFull, UnknownServer
from actors.kit import Actor, Ask, Mailbox, Reply
from actors.kit.directory import Directory
from actors.kit.reporter import Reporter


class Call(Ask[str], frozen=True, kw_only=True):
    """`how` the actor goes on: it passes the call on, keeps it, or ends."""

    how: str = "pass"


class Forwarder(Actor[Call]):
    def __init__(self, to: Mailbox[Any]) -> None:
        super().__init__(8)
        self._to = to

    def handle(self, message: Call, reply: Reply[Any] | None) -> None:
        if message.how == "pass":
            self._to.address.forward(message, reply)
        elif message.how == "end":
            assert reply is not None
            reply.answer("ended")
            self.finish()


async def test_an_actor_that_ends_fails_what_it_holds_and_not_what_it_passed_on() -> None:
    target: Mailbox[Any] = Mailbox(8)
    actor = Forwarder(target)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        passed, kept = (actor.address.request(Call(how=how)) for how in ("pass", "keep"))
        await actor.address.ask(Call(how="end"))
    assert isinstance(kept.failure, ActorStopped)
    assert not passed.settled
    envelope = await target.receive()
    assert envelope.reply is passed
    with target:
        pass  # it is that one's now, also to fail
    assert isinstance(passed.failure, ActorStopped)


async def test_what_cannot_be_passed_on_is_refused_to_whoever_waits() -> None:
    full, gone = Mailbox[Any](1), Mailbox[Any](1)
    full.address.tell_nowait("fills it")
    with gone:
        pass
    for target, refusal in ((full, MailboxFull), (gone, ActorStopped)):
        actor = Forwarder(target)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            passed = actor.address.request(Call())
            await actor.address.ask(Call(how="end"))
        assert type(passed.failure) is refusal


async def test_a_released_reply_is_nobodys_until_it_is_taken_again() -> None:
    reply: Reply[str] = Reply()
    reply.release()
    box: Mailbox[Any] = Mailbox(1)
    box.address.forward(Call(), reply)
    with box:
        assert (await box.receive()).reply is reply
        reply.release()
        reply.release()
    assert not reply.settled
    reply.answer("late")
    assert reply.result() == "late"


async def test_a_question_put_in_turn_waits_for_room_and_not_for_its_answer() -> None:
    box: Mailbox[Any] = Mailbox(1)
    replies: list[Reply[str]] = []

    async def ask() -> None:
        replies.append(await box.address.request_in_turn(Call()))

    async with trio.open_nursery() as nursery:
        box.address.tell_nowait("fills it")
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert replies == []
        await box.receive()
        await wait_all_tasks_blocked()
        assert [reply.settled for reply in replies] == [False]
        envelope = await box.receive()
        assert envelope.reply is not None
        envelope.reply.answer("yes")
        assert replies[0].result() == "yes"
        with box:
            pass
        with pytest.raises(ActorStopped):
            await box.address.request_in_turn(Call())


async def test_a_reporter_that_has_ended_reports_nothing_also_not_what_waits() -> None:
    box: Mailbox[Any] = Mailbox(1)
    reporter = Reporter(box.address)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reporter.run)
        reporter.report("fills it")
        reporter.report(1)
        reporter.report(2.0)
        await wait_all_tasks_blocked()  # 1 waits for room
        reporter.end()
        reporter.report(3)
        told = []
        for _ in range(4):
            with trio.move_on_after(0.01):
                told.append((await box.receive()).message)
        assert told == ["fills it", 1], "what is on its way cannot be taken back"
        nursery.cancel_scope.cancel()


async def test_one_that_is_withdrawn_is_not_found_and_its_end_takes_nothing_from_its_successor() -> None:
    directory: Directory[Any] = Directory()
    old, new = Mailbox[Any](1).address, Mailbox[Any](1).address
    with directory.register("a", old):
        directory.withdraw("a")
        directory.withdraw("a")
        assert directory.find("a") is None
        assert isinstance(directory.why_not("a"), UnknownServer)
        registered = directory.register("a", new)
        registered.__enter__()
    assert directory.find("a") is new
    registered.__exit__(None, None, None)
    assert directory.find("a") is None
