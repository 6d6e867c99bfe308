"""The benchmark of published clients: its model plays a script over both APIs, and what it was asked is read."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from benchmarks.clients import APPLICATIONS, Application, ClaudeCode, Codex, Door, names_of, script
from benchmarks.played_model import Call, Model, played

DOOR = Door("`/mcp`", {"mcpvisor": "http://x/mcp"}, ("mcpvisor", "execute_mcp_tool"), {"tool_path": "a:b"}, finds=True)
TURNS = [[Call("first", {"n": 1})], [Call("second", {}, "mcp__space"), Call("tool_search", {"query": "x"})]]
TOOLS = [{"name": "first"}]


def ask(model: Model, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{model.port}/v1/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    return text if body.get("stream") else json.loads(text)


def test_the_model_plays_its_turns_over_messages() -> None:
    with played(TURNS) as model:
        said: list[Any] = [{"role": "user", "content": "hello"}]
        names = []
        for _ in range(3):
            answer = ask(model, "messages?beta=true", {"messages": said, "tools": TOOLS})
            said += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": []}]
            names.append([block.get("name") for block in answer["content"]])
        assert names == [["first"], ["second", "tool_search"], [None]]
        assert [len(asked.body["messages"]) for asked in model.asked] == [1, 3, 5]
        ask(model, "messages", {"messages": said[:1]})
        assert len(model.asked) == 3, "what has no tools is no turn"
        streamed = ask(model, "messages", {"messages": said[:1], "tools": TOOLS, "stream": True})
        assert '"partial_json": "{\\"n\\": 1}"' in streamed


def test_the_model_plays_its_turns_over_responses() -> None:
    with played(TURNS) as model:
        items: list[Any] = [{"type": "message", "role": "user"}]
        kinds = []
        for _ in range(3):
            answer = ask(model, "responses", {"input": items, "tools": TOOLS})
            items += [*answer["output"], {"type": "function_call_output", "output": "x"}]
            kinds.append([(item["type"], item.get("namespace")) for item in answer["output"]])
        calls = [("function_call", "mcp__space"), ("tool_search_call", None)]
        assert kinds == [[("function_call", None)], calls, [("message", None)]]
        assert "response.output_item.done" in ask(model, "responses", {"input": [], "tools": TOOLS, "stream": True})


def test_a_model_searches_only_for_what_is_held_back() -> None:
    for kind in APPLICATIONS:
        application = kind.__new__(kind)
        assert len(script(application, DOOR, ())) == 3
        searched, found, reads, read = script(application, DOOR, [DOOR.reader])
        assert (len(searched), "execute_mcp_tool" in searched[0].arguments["query"]) == (1, True)
        assert (found[0].arguments, reads) == ({"query": "look up an entry of the archive"}, 3 * read)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ClaudeCode, {"messages": [{"content": [{"type": "tool_result", "content": "x"}, {"type": "text"}]}]}),
        (Codex, {"input": [{"type": "function_call_output", "output": "x"}, {"type": "message"}]}),
    ],
)
def test_the_results_of_a_request_are_told_apart(kind: type[Application], body: dict[str, Any]) -> None:
    assert len(kind.__new__(kind).results(body)) == 1


def test_tools_of_a_namespace_have_its_name() -> None:
    assert names_of([{"name": "a"}, {"name": "mcp__x", "tools": [{"name": "b"}]}, {"type": "web"}]) == [
        *("a", "", "mcp__x__b"),
    ]
