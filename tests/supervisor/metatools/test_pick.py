"""Where models write `pick`, and when it is an argument of the tool's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.catalogue.lists import tool
from supervisor.metatools.execution import Execute, execute
from supervisor.service.calls.tool_calls import with_own_pick
from tests.fakes.json_texts import raw

CALL = {"tool_path": "a:b", "arguments": {"x": 1}}
PATHS = ["$.id"]


def parts(call: Execute) -> tuple[str, Any, Any]:
    return call.tool_path, json.loads(bytes(call.arguments)), json.loads(bytes(call.pick) or b"null")


@pytest.mark.parametrize(
    "written",
    [
        {**CALL, "pick": PATHS},
        {"tool_path": "a:b", "args": {"x": 1}, "pick": PATHS},
        {"arguments": {**CALL, "pick": PATHS}},
        {"tool_path": {**CALL, "pick": PATHS}},
        {"tool_path": "a:b", "arguments": {**CALL, "pick": PATHS}},
        {"tool_path": "a:b", "x": 1, "pick": PATHS},
        {**CALL, "pick": PATHS, "continuation": "mcpvisor-1"},
    ],
)
def test_it_is_read_beside_the_call_it_is_for(written: Any) -> None:
    assert parts(execute(raw(written))) == ("a:b", {"x": 1}, PATHS)


@pytest.mark.parametrize("written", [CALL, {"tool_path": "a:b", "x": 1}])
def test_without_it_all_is_wanted(written: Any) -> None:
    assert parts(execute(raw(written))) == ("a:b", {"x": 1}, None)


def test_an_argument_of_that_name_among_the_tools_own_is_never_ours() -> None:
    assert parts(execute(raw({"tool_path": "a:b", "arguments": {"pick": 5}}))) == ("a:b", {"pick": 5}, None)


@pytest.mark.parametrize("has", [True, False])
def test_beside_the_path_alone_it_is_the_tools_if_the_tool_has_one(has: bool) -> None:
    schema = {"type": "object", "properties": {"pick": {"type": "string"}} if has else {}}
    call = with_own_pick(
        tool(raw({"name": "b", "inputSchema": schema})), execute(raw({"tool_path": "a:b", "pick": "x"}))
    )
    assert parts(call) == ("a:b", {"pick": "x"} if has else {}, None if has else "x")
    given = execute(raw({**CALL, "pick": PATHS}))
    assert with_own_pick(tool(raw({"name": "b", "inputSchema": schema})), given) == given
