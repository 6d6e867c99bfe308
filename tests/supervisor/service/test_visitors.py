"""Who hears that the visit of a client to an address is over, and who does not."""

from __future__ import annotations

import msgspec
import pytest

from actors.messages import Caller, Question
from actors.protocol.agreement.capabilities import ELICIT
from supervisor.service.asking.exchange import Exchange, QuestionTable
from supervisor.service.asking.rounds import Rounds
from supervisor.service.client import Client, Updates
from supervisor.service.tasks import HeldTask, TaskVoice
from tests.fakes.exchanges import Ear, exchange

ABLE = msgspec.Raw(b'{"elicitation":{"url":{}}}')
FORMS = msgspec.Raw(b'{"elicitation":{}}')
VISIT = Question(ELICIT, msgspec.Raw(b'{"mode":"url","url":"https://example.com","elicitationId":"a"}'))


def asked(capabilities: msgspec.Raw = ABLE, *, modern: bool = False, spoken: bool = True) -> Exchange:
    """One request of a client; `spoken`: it can be told something before the answer."""
    client = Client(version="2025-11-25", capabilities=capabilities)
    if modern:
        client = Client(era="modern", version="2026-07-28", capabilities=capabilities)
    questions, updates = (None, None) if modern else (QuestionTable(), Updates())
    ear = Ear() if spoken else None
    return exchange(client, "tools/call", ear=ear, questions=questions, updates=updates)


@pytest.mark.parametrize(
    ("request_", "by_question", "by_error"),
    [
        (asked(), True, True),
        (asked(spoken=False), False, True),
        (asked(FORMS), False, False),
        (asked(modern=True), False, False),
    ],
)
def test_a_legacy_client_hears_of_what_it_was_asked_for(request_: Exchange, by_question: bool, by_error: bool) -> None:
    task = HeldTask("t", request_.client.principal, request_.client.program, "s", "own", "legacy", "", 1.0)
    callers: tuple[Caller, ...] = (request_, Rounds(request_), TaskVoice(request_, task))
    for caller in callers:
        assert [caller.visitor(VISIT) is not None, caller.visitor() is not None] == [by_question, by_error]


def test_nobody_hears_where_the_request_is_over_that_was_asked() -> None:
    rounds = Rounds(asked())
    rounds.pause()
    assert rounds.visitor(VISIT) is None
