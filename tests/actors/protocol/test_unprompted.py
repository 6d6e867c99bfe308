"""Questions of a legacy server: whose they are, and what is answered without asking anybody."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.messages import CallServer
from actors.protocol.facts import CallAsked
from actors.protocol.outbound import Outbound
from actors.protocol.unprompted import Unprompted
from actors.protocol.wire.mirrors import no_mirrors
from actors.protocol.wire.peer import Asked
from tests.fakes.clock import Clock

ALL = frozenset({"elicitation", "sampling", "roots"})


class Rig:
    """A server with the test for its mouth."""

    def __init__(self, allowed: frozenset[str] = ALL, roots: bytes = b"") -> None:
        self.clock = Clock()
        self.out = Outbound("s1", no_mirrors)
        self.unprompted = Unprompted(self.out, allowed, self.clock, roots)
        self._ids: dict[int, bytes] = {}

    def call(self, number: int, method: str = "tools/call") -> bytes:
        asked = CallServer(server="s", method=method, members=b"")
        id_ = self._ids[number] = self.out.call(number, asked)
        self.unprompted.begin(number, id_, asked)
        self.out.messages.clear()
        return id_

    def ask(self, method: str = "elicitation/create", stream: bytes = b"", **params: Any) -> Any:
        """Return the call that is asked, "several", or what was answered instead."""
        asked = Asked(b"9", method, msgspec.Raw(json.dumps(params).encode()))
        match self.unprompted.on_question(asked, stream):
            case CallAsked(call=None):
                return "several"
            case CallAsked(call=call):
                return call
        (message,) = self.out.messages
        self.out.messages.clear()
        answer = json.loads(message.body)
        return answer.get("result", answer.get("error", {}).get("code"))


def test_a_question_is_about_the_only_call_in_flight() -> None:
    rig = Rig()
    assert rig.ask() == -32601
    rig.call(1)
    assert rig.ask() == 1


def test_of_several_calls_the_one_is_meant_on_whose_stream_it_comes() -> None:
    rig = Rig()
    first, second = rig.call(1), rig.call(2)
    assert (rig.ask(stream=first)) == 1
    rig.unprompted.answer(b"9", b"{}")
    assert (rig.ask(stream=second)) == 2
    rig.unprompted.answer(b"9", b"{}")
    rig.out.messages.clear()
    assert rig.ask(stream=b'"s1-99"') == -32601


def test_or_whose_progress_token_it_repeats() -> None:
    rig = Rig()
    rig.call(1)
    token = json.loads(rig.call(2))
    assert rig.ask(_meta={"progressToken": token}) == 2


@pytest.mark.parametrize("meta", [{"progressToken": 7}, {"progressToken": "s1-99"}, {"progressToken": ""}, []])
def test_a_token_that_is_not_ours_says_nothing(meta: Any) -> None:
    rig = Rig()
    rig.call(1)
    rig.call(2)
    assert rig.ask(_meta=meta) == "several"


def test_methods_that_lead_to_no_questions_are_not_meant() -> None:
    rig = Rig()
    rig.call(1, "completion/complete")
    rig.call(2)
    assert rig.ask() == 2


def test_a_call_that_ended_is_not_meant() -> None:
    rig = Rig()
    rig.call(1)
    rig.call(2)
    assert rig.unprompted.asker() is None
    rig.unprompted.end(1)
    assert rig.unprompted.asker() == 2
    assert rig.ask() == 2


def test_what_was_not_declared_is_refused_whoever_it_is_about() -> None:
    rig = Rig(frozenset())
    rig.call(1)
    assert [rig.ask(method) for method in ("elicitation/create", "roots/list", "x/y")] == [-32601] * 3
    assert rig.ask("ping") == {}


def test_roots_outside_of_calls_and_before_the_first_answer_are_none() -> None:
    rig = Rig()
    assert rig.ask("roots/list") == {"roots": []}
    id_ = rig.call(1)
    assert rig.ask("roots/list") == {"roots": []}  # perhaps because it is initialized: all calls would share them
    assert rig.ask("roots/list", stream=id_) == 1
    rig.unprompted.answer(b"9", b"{}")
    rig.out.messages.clear()
    rig.unprompted.on_page()
    assert rig.ask("roots/list") == 1


def test_a_call_that_was_answered_shows_that_it_is_at_work_one_taken_back_does_not() -> None:
    rig = Rig()
    rig.call(1)
    rig.unprompted.leave(1)
    rig.call(2)
    assert rig.ask("roots/list") == {"roots": []}
    rig.unprompted.end(2)
    rig.call(3)
    assert rig.ask("roots/list") == 3


def test_configured_roots_are_told_whoever_calls() -> None:
    rig = Rig(roots=b'{"roots":[{"uri":"file:///a"}]}')
    assert rig.ask("roots/list", stream=rig.call(1)) == {"roots": [{"uri": "file:///a"}]}
