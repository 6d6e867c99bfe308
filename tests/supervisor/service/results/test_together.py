"""Several results as one: in order, labelled, each with what it had, once."""

from __future__ import annotations

import json
from typing import Any

from supervisor.service.calls.side_by_side import MAX_TEXT_BYTES, Outcome, has_failed, part_of, together

IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


def outcome(path: str, *blocks: Any, waits: bool = False, **members: Any) -> Outcome:
    return Outcome(path=path, body=json.dumps({"content": list(blocks), **members}).encode(), waits=waits)


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def joined(*outcomes: Outcome, order: tuple[int, ...] | None = None) -> Any:
    parts = [*map(part_of, outcomes)]
    order = order or tuple(range(len(outcomes)))
    head = {"resultType": "complete", "_meta": {"ours": 1}}
    modern = json.loads(together(parts, order, json.dumps(head).encode(), "m4rk"))
    whole = json.loads(together(parts, order, b"{}", "m4rk"))
    assert modern == {**whole, **head, "_meta": {**whole.get("_meta", {}), "ours": 1}}
    assert whole.get("isError", False) == has_failed(parts)
    return whole


def test_blocks_stay_and_are_labelled_and_structured_content_has_each_once() -> None:
    whole = joined(
        outcome("s:a", text('one "quoted"\n'), IMAGE, text("two")),
        outcome("s:b", text('{"n":1}'), structuredContent={"n": 1}, _meta={"own": 1}),
        outcome("s:c", text("no"), isError=True),
        outcome("s:d", text("ask"), structuredContent={"status": "input_required"}, waits=True),
    )
    assert whole["content"] == [
        text("[1 m4rk] s:a"),
        text('one "quoted"\n'),
        IMAGE,
        text("two"),
        text("[2 m4rk] s:b"),
        text('{"n":1}'),
        text("[3 m4rk] s:c failed"),
        text("no"),
        text("[4 m4rk] s:d waits for an answer"),
        text("ask"),
    ]
    assert whole["structuredContent"]["results"] == [
        {"tool_path": "s:a", "text": 'one "quoted"\n\ntwo', "in_content": ["image"]},
        {"tool_path": "s:b", "structuredContent": {"n": 1}},
        {"tool_path": "s:c", "isError": True, "text": "no"},
        {"tool_path": "s:d", "structuredContent": {"status": "input_required"}},
    ]
    assert whole["_meta"] == {"mcpvisor/results": [None, {"own": 1}, None, None]}


def test_a_text_that_fits_no_model_is_not_there_twice() -> None:
    whole = joined(outcome("s:a", text("x" * (MAX_TEXT_BYTES + 1)), IMAGE), outcome("s:b", text("y")))
    assert whole["structuredContent"]["results"] == [
        {"tool_path": "s:a", "in_content": ["text", "image"]},
        {"tool_path": "s:b", "text": "y"},
    ]


def test_what_is_no_result_of_a_tool_is_passed_on_as_it_is() -> None:
    whole = joined(Outcome(path="s:a", body=b'{"content":"odd"}'), outcome("s:b"))
    assert whole["structuredContent"]["results"][0] == {"tool_path": "s:a", "result": {"content": "odd"}}
