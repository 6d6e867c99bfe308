"""A result over its budget: what a model gets of it, that it stays a result, and that nothing of it is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.service.results.cutting import META_KEY, Cut, cut, tokens_of

BUDGET = 1000
LONG = "\n".join(f"{number}: a line of a log with some words" for number in range(2000))
ROWS = {"rows": [{"id": number, "name": "some words"} for number in range(500)], "total": 500}
IMAGE = {"type": "image", "data": "A" * 100_000, "mimeType": "image/png"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def taken(**members: Any) -> Cut:
    found = cut(json.dumps(members).encode(), BUDGET)
    assert found is not None
    return found


def result(**members: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(taken(**members).result("ID", 900.0)[0])
    return made


@pytest.mark.parametrize(
    "body",
    [
        b'{"content":[{"type":"text","text":"short"}]}',
        json.dumps({"content": [IMAGE]}).encode(),
        json.dumps({"content": [{"type": "resource", "resource": {"uri": "x", "blob": "A" * 9000}}]}).encode(),
        b"[]",
        b"no json",
        b'{"content":5}',
        b'{"content":[5]}',
        b"{}",
    ],
)
def test_what_fits_or_is_no_text_is_left_alone(body: bytes) -> None:
    assert cut(body, BUDGET) is None


def test_the_beginning_the_size_and_the_way_to_the_rest_are_there() -> None:
    made = result(content=[text(LONG)], isError=True, _meta={"a": 1}, resultType="complete")
    head, note = made["content"]
    assert LONG.startswith(head["text"])
    assert head["text"].endswith("\n")
    shown = made["_meta"][META_KEY]["shown_lines"]
    assert f"(lines 1-{shown} of 2,000)" in note["text"]
    assert f"mcpvisor-result://ID?lines={shown + 1}-{shown + 100}" in note["text"]
    assert "kept for 15 minutes" in note["text"]
    assert (made["isError"], made["_meta"]["a"], made["resultType"]) == (True, 1, "complete")
    assert "structuredContent" not in made
    assert made["_meta"][META_KEY]["bytes"] == len(LONG)


def test_json_has_its_shape_and_can_be_read_by_paths() -> None:
    made = result(content=[text(json.dumps(ROWS))], structuredContent=ROWS)
    note = made["content"][-1]["text"]
    assert '{"rows": [500 x {"id": number, "name": string}], "total": number}' in note
    assert "?path=" in note
    assert made["structuredContent"] == {"note": note, "head": made["content"][0]["text"]}


def test_what_is_no_text_stays_where_it_is_not_in_the_way() -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    embedded = {"type": "resource", "resource": {"uri": "file:///b", "text": LONG}}
    made = taken(content=[IMAGE, embedded, link])
    assert json.loads(made.result("ID", 60.0)[0])["content"][1:3] == [IMAGE, link]
    assert made.long_text.text == f"[file:///b]\n{LONG}".encode()
    assert "kept for 60 s" in made.result("ID", 60.0)[0].decode()


@pytest.mark.parametrize(
    ("said", "structured", "kept"),
    [
        (json.dumps(ROWS), ROWS, ROWS),
        (LONG, {"result": LONG}, LONG),
        (json.dumps(ROWS), {"result": ROWS}, ROWS),
        (LONG, {"content": LONG}, LONG),
        (LONG, {"content": None}, {"content": LONG, "structuredContent": {"content": None}}),
        ("500 rows", ROWS, {"content": "500 rows", "structuredContent": ROWS}),
        (json.dumps([1]), ROWS, {"content": [1], "structuredContent": ROWS}),
        (LONG, {"lines": 2000}, {"content": LONG, "structuredContent": {"lines": 2000}}),
    ],
)
def test_texts_and_structured_content_are_one_document_with_all_of_both(said: str, structured: Any, kept: Any) -> None:
    long_text = taken(content=[text(said)], structuredContent=structured).long_text
    assert (long_text.value() if long_text.is_json else long_text.text.decode()) == kept


def test_structured_content_alone_is_the_document() -> None:
    assert taken(content=[], structuredContent=ROWS).long_text.value() == ROWS
    assert taken(structuredContent=ROWS).long_text.value() == ROWS


def test_what_is_too_much_to_be_compared_is_kept_one_after_the_other_and_cut_off_at_the_end() -> None:
    numbers = {"a": [0] * 400_000}
    made = taken(content=[text(LONG)], structuredContent=numbers)
    assert made.long_text.text.startswith(LONG.encode() + b'\n{"a": [0, 0')
    huge = taken(content=[text("x" * 5_000_000)])
    note = json.loads(huge.result("ID", 900.0)[0])["content"][-1]["text"]
    assert "Of its 5,000,000 bytes the first 4,194,304 are kept." in note


@pytest.mark.case("X11")
@given(
    st.lists(st.text(st.sampled_from("ab \n\u20ac{"), min_size=1, max_size=300), min_size=20, max_size=60),
    st.integers(BUDGET, 3 * BUDGET),
    st.booleans(),
)
def test_what_a_model_gets_is_within_its_budget(lines: list[str], budget: int, structured: bool) -> None:
    said = "\n".join(lines) * 20
    members = {"content": [text(said)], **({"structuredContent": {"result": said}} if structured else {})}
    found = cut(json.dumps(members).encode(), budget)
    if found is None:
        assert tokens_of(json.dumps(said).encode()) <= 2 * budget
        return
    made = json.loads(found.result("I" * 22, 900.0)[0])
    got = sum(tokens_of(block["text"].encode()) for block in made["content"])
    assert got <= budget
    assert said.startswith(made["content"][0]["text"])
    assert found.long_text.text == said.encode()
