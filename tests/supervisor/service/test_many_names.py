"""One member who calls its clients differently each time takes its part: another one always has a place."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
import pytest
from trio.testing import MockClock

from actors import subscribers
from actors.errors import CannotAsk, TooManyCalls
from actors.facts import FactLog
from actors.kit import Reply
from actors.messages import Question, Result
from actors.principal import Principal
from actors.subscribers import Subscribers
from supervisor.config import ServerConfig
from supervisor.config.values import MIB
from supervisor.host.workbench import Workbench
from supervisor.service import tasks
from supervisor.service.asking import elicitations, rounds
from supervisor.service.asking.elicitations import CallElicitations, Elicitations
from supervisor.service.asking.rounds import Parked, Parking, Rounds
from supervisor.service.client import Client
from supervisor.service.results.keeper import KeptResults
from supervisor.service.tasks import HeldTasks
from tests.fakes.deployments import deployment
from tests.fakes.exchanges import exchange
from tests.fakes.turns import at_once

Take = Callable[[Client], Awaitable[bool]]
"""Takes one more of what clients share; says whether there was room for it."""
LIMIT = 64
TEXT = json.dumps({"content": [{"type": "text", "text": "a line of a long text\n" * 400}]}).encode()
FORM = {"message": "who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


def places_for_parked_calls() -> Take:
    calls = Parking(bytes(32))

    async def take(client: Client) -> bool:
        try:
            calls.park(Parked(client.principal, b"", math.inf, None, Rounds(exchange(client, "tools/call"))))
        except CannotAsk:
            return False
        return True

    return take


def places_for_tasks() -> Take:
    held = HeldTasks(deployment(ServerConfig(name="t", command="x")), bytes(32))

    async def take(client: Client) -> bool:
        made = Result(msgspec.Raw(b'{"task":{"taskId":"a","status":"working"}}'), "legacy")
        return held.admits(client) and held.take_created(client, "t", made) is not None

    return take


def places_for_subscriptions() -> Take:
    subscribed, taken = Subscribers(at_once), [0]

    async def take(client: Client) -> bool:
        taken[0] += 1
        try:
            subscribed.add("s", f"a:{taken[0]}", lambda: None, client.program)
        except TooManyCalls:
            return False
        return True

    return take


def room_for_results() -> Take:
    entry = ServerConfig(name="s", command="x", result_token_budget=1000)
    kept = KeptResults(deployment(entry, max_kept_result_bytes=MIB), Workbench())

    async def take(client: Client) -> bool:
        made, _ = await kept.shorten(exchange(client, "tools/call"), "s", "t", msgspec.Raw(b""), TEXT)
        return made != TEXT

    return take


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MAX_PARKED", LIMIT)
    monkeypatch.setattr(tasks, "MAX_TASKS", LIMIT)
    monkeypatch.setattr(subscribers, "MAX_URIS", LIMIT)
    monkeypatch.setattr(elicitations, "MAX_OPEN", LIMIT)
    monkeypatch.setattr(elicitations, "MAX_OPEN_OF_ONE", LIMIT // 4)


@pytest.mark.parametrize(
    "shared", [places_for_parked_calls, places_for_tasks, places_for_subscriptions, room_for_results]
)
async def test_names_that_a_member_makes_up_keep_nobody_out(
    autojump_clock: MockClock, shared: Callable[[], Take]
) -> None:
    take = shared()
    got = [await take(Client(principal=Principal("ben"), name=f"client {number}")) for number in range(4 * LIMIT)]
    assert got[0]
    assert not got[-1], "it has its part"
    theirs = [await take(Client(principal=Principal("ana"), name="calm")) for _ in range(3)]
    assert theirs == [True] * 3


async def test_however_many_people_have_questions_open_there_is_a_place_for_one_more(autojump_clock: MockClock) -> None:
    all_ = Elicitations(FactLog(lambda: 0.0))
    question = Question("elicitation/create", msgspec.Raw(json.dumps(FORM).encode()))

    def ask(user: str, number: int) -> None:
        client = Client(principal=Principal(user), name=f"client {number}")
        CallElicitations(all_, "s", client=client, timeout_s=60).offer(question, Reply())

    for user in "abcdef":
        with suppress(CannotAsk):
            for number in range(LIMIT):
                ask(user, number)
    ask("one more", 0)
