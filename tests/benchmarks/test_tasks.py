"""The benchmark of tasks: what it plays, and what a model's turns and tokens are in either manner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks import strict_server
from benchmarks.tasks.__main__ import JOINED, PLAIN, report, total
from benchmarks.tasks.player import Cost, Player, callable_by
from benchmarks.tasks.script import Call, Task, fill, load_answers, load_tasks
from supervisor.service.results import picks

TASK = Task(
    asked="Put it there.",
    calls=(
        Call(tool="a:find", query="find it", arguments={}, wants=("$.id",)),
        Call(tool="b:place", query="find a place", arguments={}),
        Call(tool="a:put", query="put it", arguments={"id": 1}, after=frozenset({0, 1})),
    ),
)


class Desk:
    """Answers as a gateway does that knows these tools, each by the query it is found by; notes what it is asked."""

    def __init__(self, task: Task, *, hides: str = "") -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._by_query = {call.query: call.tool for call in task.calls if call.tool != hides}
        self._tools = {call.tool for call in task.calls}

    def send(self, call: tuple[str, dict[str, Any]]) -> Any:
        self.asked.append(call)
        name, given = call
        text = f"ran {given.get('tool_path')}"
        if name == "discover_mcp_tools":
            queries = [given["query"], *given.get("queries", [])]
            shown = {self._by_query.get(query, query) for query in queries} & self._tools
            text = json.dumps({"tools": [{"tool_path": path, "inputSchema": {}} for path in sorted(shown)]})
        return {"result": {"content": [{"type": "text", "text": text}], "isError": False}}


def played(desk: Desk, *, joined: bool) -> Cost:
    return Player(desk.send, lambda text: len(text.split()), joined=joined).play(TASK)


def test_one_by_one_each_need_and_each_call_is_a_turn() -> None:
    desk = Desk(TASK)
    cost = played(desk, joined=False)
    assert cost.turns == len(desk.asked) == 6
    assert not any({"queries", "calls", "pick"} & given.keys() for _, given in desk.asked)


def test_joined_the_needs_are_one_turn_and_each_wave_of_calls_is_one() -> None:
    desk = Desk(TASK)
    cost = played(desk, joined=True)
    assert cost.turns == 3
    assert [name for name, _ in desk.asked] == ["discover_mcp_tools", "execute_mcp_tool", "execute_mcp_tool"]
    assert desk.asked[0][1]["queries"] == ["find a place", "put it"]
    assert desk.asked[1][1]["calls"] == [{"tool_path": "b:place", "arguments": {}}]
    assert desk.asked[1][1]["pick"] == ["$.id"]


@pytest.mark.parametrize("joined", [False, True])
def test_a_tool_that_is_not_shown_is_asked_for_by_its_path(joined: bool) -> None:
    desk = Desk(TASK, hides="a:put")
    cost = played(desk, joined=joined)
    assert (cost.again, cost.failed) == (1, [])
    assert ("discover_mcp_tools", {"query": "a:put"}) in desk.asked


@pytest.mark.parametrize(
    ("row", "callable_"),
    [
        ({"inputSchema": {}}, True),
        ({"signature": "put(id: integer, place?: string, ...)"}, True),
        ({"signature": "put(id, ...)"}, False),
        ({}, False),
    ],
)
def test_a_row_is_enough_that_names_what_is_required(row: dict[str, Any], callable_: bool) -> None:
    assert callable_by(row) == callable_


def test_twenty_tasks_call_tools_that_answer_and_want_what_is_there() -> None:
    tasks, answers = load_tasks(), load_answers()
    assert len(tasks) == 20
    for task in tasks:
        for place, call in enumerate(task.calls):
            server, _, tool = call.tool.partition(":")
            assert all(before < place for before in call.after)
            for path in call.wants:
                assert picks.select(json.loads(answers[server][tool]), picks.read(path)) != []


def test_a_template_is_filled_row_by_row() -> None:
    template = {"all": {"$rows": 2, "row": {"id": "#{n*3+1}", "name": "it {n} of {nn}", "none": None}}}
    assert fill(template) == {
        "all": [{"id": 4, "name": "it 1 of 01", "none": None}, {"id": 7, "name": "it 2 of 02", "none": None}]
    }


def test_the_server_answers_what_it_is_told_to() -> None:
    tools = [{"name": "find", "inputSchema": {}}]
    params = {"name": "find", "arguments": {}}
    told = strict_server.answer("a", tools, "tools/call", params, {"find": "here"})
    assert told["result"]["content"][0]["text"] == "here"


def test_the_table_has_each_task_and_the_whole() -> None:
    plain = Cost(turns=6, discovery=100, results=50)
    joined = Cost(turns=3, discovery=60, results=10, again=1, failed=["a:put: no"])
    text = report([TASK], {PLAIN: [plain], JOINED: [joined]})
    assert "Put it there. 6 -> 3; 100 -> 60; 50 -> 10" in text
    assert "turns: 6 -> 3 (-50 %)" in text
    assert "failed: a:put: no" in text
    assert total([joined, joined]).failed == ["a:put: no"] * 2
