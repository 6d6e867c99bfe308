"""Calls of `execute_mcp_tool` that go on with an earlier one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.errors import InvalidArguments
from supervisor.metatools.execution import answers_of, execute
from tests.fakes.json_texts import raw

CALL = {"tool_path": "a:b", "arguments": {"x": 1.0}}


def test_the_call_is_the_same_with_and_without_its_continuation() -> None:
    plain = execute(raw(CALL))
    continued = execute(raw({**CALL, "continuation": "mcpvisor-1", "answers": {"q": {"name": "Ada"}}}))
    assert (continued.tool_path, bytes(continued.arguments)) == (plain.tool_path, bytes(plain.arguments))
    assert continued.continuation is not None
    assert continued.continuation.state == "mcpvisor-1"
    assert json.loads(bytes(continued.continuation.answers)) == {"q": {"action": "accept", "content": {"name": "Ada"}}}


def test_a_tool_may_have_such_an_argument_itself() -> None:
    flat = execute(raw({"tool_path": "a:b", "continuation": "page 2"}))
    assert flat.continuation is None
    assert json.loads(bytes(flat.arguments)) == {"continuation": "page 2"}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (b"{}", {}),
        (b'{"q":{"action":"decline"}}', {"q": {"action": "decline"}}),
        (b'{"q":{"action":"accept","content":{"n":1e2}}}', {"q": {"action": "accept", "content": {"n": 100.0}}}),
        (b'"{\\"q\\":{\\"n\\":1}}"', {"q": {"action": "accept", "content": {"n": 1}}}),
    ],
)
def test_answers_are_read_generously(given: bytes, read: Any) -> None:
    assert json.loads(bytes(answers_of(msgspec.Raw(given)))) == read


@pytest.mark.parametrize("given", [b"7", b'{"q":7}', b"[1]"])
def test_but_they_are_objects(given: bytes) -> None:
    with pytest.raises(InvalidArguments, match="'answers' must be an object of objects"):
        answers_of(msgspec.Raw(given))
