"""An actor handles what has gathered in its mailbox in one turn of the loop, within a bound."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit import Actor, Ask, Reply
from actors.kit.mailbox import MAX_BURST


class Say(Ask[int], frozen=True):
    number: int


class Listener(Actor[Say]):
    def __init__(self) -> None:
        super().__init__(4 * MAX_BURST)
        self.heard: list[int] = []
        self.last = -1

    def handle(self, message: Say, reply: Reply[Any] | None) -> None:
        self.heard.append(message.number)
        if message.number == self.last:
            self.finish()
        if reply is not None:
            reply.answer(message.number)


class Steps(trio.abc.Instrument):
    """Notes how much an actor had heard whenever a task got its turn."""

    def __init__(self, actor: Listener) -> None:
        self.actor = actor
        self.heard: set[int] = set()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.heard.add(len(self.actor.heard))


async def test_a_burst_is_handled_in_order_and_others_have_their_turn_after_its_bound() -> None:
    actor = Listener()
    steps = Steps(actor)
    async with trio.open_nursery() as nursery:
        await nursery.start(actor.run)
        for number in range(MAX_BURST + 5):
            actor.address.tell_nowait(Say(number))
        trio.lowlevel.add_instrument(steps)
        await wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(steps)
        nursery.cancel_scope.cancel()
    assert actor.heard == list(range(MAX_BURST + 5))
    assert steps.heard == {0, MAX_BURST, MAX_BURST + 5}
