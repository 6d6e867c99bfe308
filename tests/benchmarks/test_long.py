"""The two long benchmarks: what counts as an answer without a type, and what the table of published servers says."""

from __future__ import annotations

import random
from typing import Any

import pytest

from benchmarks.published import Seen, table
from benchmarks.soak import MOODS, Told, messages
from benchmarks.soak_server import Server


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"content": []}},
        {"error": {"code": -31502, "message": "down", "data": {"type": "crashed"}}},
        {"error": {"code": -32050, "message": "the desk is closed", "data": {"opens": "tomorrow"}}},
    ],
)
def test_a_result_a_typed_error_and_the_servers_own_error_are_answers(answer: dict[str, Any]) -> None:
    told = Told()
    told.note("a call", answer)
    assert (told.requests, told.untyped) == (1, [])


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {},
        {"error": "broken"},
        {"error": {"code": -32603, "message": "internal error"}},
        {"error": {"code": -31502, "message": "", "data": {"type": "crashed"}}},
    ],
)
def test_whatever_else_comes_is_counted_as_untyped(answer: Any) -> None:
    told = Told()
    told.note("a call", answer)
    assert [text.partition(":")[0] for text in told.untyped] == ["a call"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_load_asks_for_everything(era: str) -> None:
    luck = random.Random(1)
    asked = [messages(luck, era) for _ in range(2000)]
    kinds = {name.partition(" (")[0] for name, _ in asked}
    assert {"execute", "direct", "discover", "list resources", "read resource", "tools/list", "no/such"} <= kinds
    assert {mood for name, _ in asked for mood in MOODS if f"({mood})" in name} == set(MOODS)
    assert all(("_meta" in message["params"]) == (era == "modern") for _, message in asked)


def test_the_failing_server_fails_in_both_ways_and_the_restless_one_changes_its_lists() -> None:
    failing, restless = Server("failing"), Server("restless")
    call = {"method": "tools/call", "params": {"arguments": {"text": "x"}}}
    assert failing.answer(call)["error"]["code"] == -32050
    assert failing.answer(call)["result"]["isError"]
    before = restless.tools()
    for _ in range(5):
        restless.answer(call)
    assert b"list_changed" in restless.aside()
    assert restless.tools() != before


def test_the_table_says_what_came_up_and_why_the_rest_did_not() -> None:
    up = Seen(listed_s=12.3, row={"tools": 3, "restarts": 0, "state": "ready"}, told=["an old trouble"])
    down = Seen(row={"restarts": 2, "state": "failed"}, told=["exit code 1; last words: a | b\nc"])
    lines = table({"one": {"command": "npx"}, "two": {"command": "uvx"}}, {"one": up, "two": down}).splitlines()
    assert lines[2] == "| one | npx | 3 | 12 s | 0 | ready |  |"
    assert lines[3] == "| two | uvx | - | never | 2 | failed | exit code 1; last words: a \\| b c |"
    assert lines[-1] == "1 of 2 servers came up."
