"""What becomes of a call that an instance gives back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec

from actors.errors import ServerExited
from actors.instances.dispatch import InstanceDispatch
from actors.instances.instance import Instance
from actors.kit import Reply
from actors.life.states import State
from actors.messages import CallServer, Result
from actors.server import ServerSettings
from actors.server.inbox import Seat

CALL = CallServer(server="s", method="tools/call", members=b'"name":"x"', name="x")


class Post:
    """A mailbox that keeps what is put into it."""

    def __init__(self) -> None:
        self.given: list[Reply[Result]] = []

    def request(self, message: CallServer) -> Reply[Result]:
        self.given.append(Reply())
        return self.given[-1]


def instance(number: int, state: State) -> Instance:
    made = Instance.__new__(Instance)
    made.number, made.address, made.client = number, f"http://{number}", None
    made.actor = cast("Any", SimpleNamespace(life=SimpleNamespace(state=state)))
    made.post = cast("Any", Post())
    made.breakers = cast("Any", SimpleNamespace(troubled=False))
    made.seat = Seat(run=f"run-{number}")
    made.open, made.not_before = 0, 0.0
    made.starting = made.leaving = made.proven = False
    return made


def become(made: Instance, state: State) -> None:
    cast("Any", made.actor.life).state = state


def given(made: Instance) -> list[Reply[Result]]:
    return cast("Post", made.post).given


def given_back(first: Instance, second: Instance, outcome: Any) -> tuple[InstanceDispatch, Reply[Result]]:
    """Make a call, and have the first instance give it back."""
    dispatch = InstanceDispatch("s", {1: first, 2: second}, lambda: first, ServerSettings(), lambda: None)
    reply = Reply[Result]()
    dispatch.take(CALL, reply)
    given(first)[0].fail(ServerExited("away", server="s", outcome=outcome))
    return dispatch, reply


async def test_what_was_not_sent_does_not_go_to_the_same_run_again_though_that_still_counts_as_up() -> None:
    first, second = instance(1, State.READY), instance(2, State.READY)
    dispatch, reply = given_back(first, second, "not_sent")
    dispatch.pump()
    body = msgspec.Raw(b"{}")
    given(second)[0].answer(Result(body, "legacy"))
    assert reply.result().body is body
    assert len(given(first)) == 1


async def test_what_was_not_sent_waits_for_the_next_run_of_the_only_one_that_comes() -> None:
    first, second = instance(1, State.READY), instance(2, State.STOPPED)
    dispatch, reply = given_back(first, second, "not_sent")
    become(first, State.HANDSHAKING)
    dispatch.pump()
    assert len(given(first)) == 1
    assert not reply.settled
    first.seat.run = "run-3"
    become(first, State.READY)
    dispatch.pump()
    assert len(given(first)) == 2


async def test_what_may_have_run_goes_nowhere_else() -> None:
    first, second = instance(1, State.READY), instance(2, State.READY)
    dispatch, reply = given_back(first, second, "unknown")
    dispatch.pump()
    assert isinstance(reply.failure, ServerExited)
    assert not given(second)
