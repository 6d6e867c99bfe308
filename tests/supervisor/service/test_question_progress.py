"""What a client tells of its work on a question, and what it is asked for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from actors.kit import Reply
from actors.messages import Question
from actors.protocol.agreement.capabilities import ELICIT
from supervisor.service.asking.exchange import QuestionTable
from supervisor.service.asking.rounds import Rounds
from supervisor.service.client import Client
from tests.fakes.exchanges import Ear, exchange

ABLE = msgspec.Raw(b'{"elicitation":{}}')
LEGACY = Client(version="2025-11-25", capabilities=ABLE)
MODERN = Client(era="modern", version="2026-07-28", capabilities=ABLE)
PARAMS = msgspec.Raw(b'{"message":"?","_meta":{"progressToken":"theirs","a":1}}')


def told(token: Any, progress: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"progressToken": token, "progress": progress}))


@pytest.mark.parametrize("written", [int, str])
def test_a_client_is_asked_with_an_integer_and_answers_with_it_however_it_writes_it(
    written: Callable[[int], int | str],
) -> None:
    ear, table, heard = Ear(), QuestionTable(), list[bytes]()
    reply = exchange(LEGACY, "tools/call", ear=ear, questions=table).ask(Question(ELICIT, PARAMS, heard.append))
    (asked,) = ear.heard
    assert type(asked["id"]) is int
    table.on_progress(told(written(asked["id"]), 1))
    assert len(heard) == 1
    assert table.on_answer(written(asked["id"]), msgspec.Raw(b'{"action":"accept"}'), msgspec.Raw(b""))
    assert reply.settled


@pytest.mark.parametrize("modern", [True, False])
def test_where_nobody_hears_of_it_the_token_is_left_out(modern: bool) -> None:
    ear, table = Ear(), QuestionTable()
    if modern:
        rounds = Rounds(exchange(MODERN, "tools/call", ear=ear))
        rounds.ask(Question(ELICIT, PARAMS, lambda params: None))
        (request,) = rounds.requests.values()
        params = msgspec.json.decode(request.params)
    else:
        reply: Reply[msgspec.Raw] = exchange(LEGACY, "tools/call", ear=ear, questions=table).ask(
            Question(ELICIT, PARAMS)
        )
        assert not reply.settled
        params = ear.heard[0]["params"]
        table.on_progress(told(ear.heard[0]["id"], 1))
    assert params == {"message": "?", "_meta": {"a": 1}}
