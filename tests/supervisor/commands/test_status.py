"""What `mcpvisor status` says of a server beside its state."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.commands.status import breaker_text, instances_text, list_node


@pytest.mark.parametrize(
    ("breaker", "until", "expected"),
    [
        ({"breaker": "server"}, 130.0, "left alone for 30s more: all calls"),
        ({"breaker": "tool", "tool": "t"}, 130.0, "left alone for 30s more: tool t"),
        ({"breaker": "discovery"}, 99.0, "left alone until a call has succeeded: its lists"),
    ],
)
def test_what_is_left_alone_is_said_with_its_time_and_reason(
    breaker: dict[str, Any], until: float, expected: str
) -> None:
    told = breaker_text({"tool": "", **breaker, "until": until, "reason": "it is silent"}, 100.0)
    assert told == f"{expected}; failed the last time: it is silent"


def test_instances_are_told_by_what_each_does() -> None:
    states = ["ready", "dormant", "dormant", "failed"]
    rows = [{"number": number, "state": state} for number, state in enumerate(states, 1)]
    assert instances_text(rows) == "1 of 4 instances up, 2 asleep: 4 is failed"
    assert instances_text(rows[:1]) == "1 of 1 instances up"


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ({}, []),
        ({"node": "a", "others": []}, []),
        (
            {"node": "a", "others": ["b", "c"]},
            ["node a: what other nodes run is dormant here; mcpvisor status --node b or c"],
        ),
        (
            {"node": "c", "others": list("abde")},
            ["node c: what other nodes run is dormant here; mcpvisor status --node a or b or d; all: mcpvisor nodes"],
        ),
    ],
    ids=["alone", "the only node", "three", "many"],
)
def test_a_node_says_of_which_one_its_status_is(nodes: dict[str, Any], says: list[str]) -> None:
    assert [line.plain for line in list_node(nodes)] == says
