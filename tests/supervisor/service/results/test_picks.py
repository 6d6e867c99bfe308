"""What is picked of a result: only that, with a line about the rest; and when it stays whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from actors.errors import InvalidArguments
from supervisor.service.results.picks import (
    MAX_BYTES,
    MAX_NODES,
    MAX_PATHS,
    META_KEY,
    Picked,
    pick,
    read_picks,
    with_note,
)
from tests.fakes.json_texts import raw
from tests.supervisor.service.results.test_paths import VALUES, places

ROWS: dict[str, Any] = {
    "total": 1200,
    "items": [{"id": n, "name": f"row {n}", "user": {"login": "x", "url": "y"}} for n in range(50)],
}
FEW = {"items": [{"id": 0}, {"id": 1, "odd": True}, {"id": 2}]}


def result(*texts: str, **members: Any) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": text} for text in texts], **members}).encode()


def picked(body: bytes, *paths: str) -> tuple[str, Picked]:
    """The text of the result, and all of it."""
    made = pick(body, read_picks(raw(paths)))
    text: str = json.loads(made.body)["content"][0]["text"]
    return text, made


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["$.items[:2].id"], [0, 1]),
        (["$.total"], 1200),
        (["$.items[0].user"], {"login": "x", "url": "y"}),
        (["$.items[:2]['id','name']"], {"items": [{"id": 0, "name": "row 0"}, {"id": 1, "name": "row 1"}]}),
        (["$.items[1].id", "$.total"], {"items": [{"id": 1}], "total": 1200}),
        (
            ["$.items[2].user.login", "$.items[2].user", "/items/2/id"],
            {"items": [{"user": ROWS["items"][2]["user"], "id": 2}]},
        ),
        (["$.total", "$.nothing"], {"total": 1200}),
    ],
)
def test_a_result_has_only_what_was_picked_minified(paths: list[str], expected: Any) -> None:
    text, made = picked(result(json.dumps(ROWS, indent=2)), *paths)
    assert text == json.dumps(expected, separators=(",", ":"))
    assert made.tokens > 1000
    assert json.loads(made.body)["_meta"][META_KEY]["picked_bytes"] == len(text)


def test_rows_that_lack_a_member_keep_those_they_have() -> None:
    text, _ = picked(result(json.dumps(FEW)), "$.items[*].id", "$.items[*].odd")
    assert json.loads(text) == FEW


def test_a_text_is_no_quoted_text() -> None:
    text, _ = picked(result(json.dumps({"body": 'two\n"lines"'})), "$.body")
    assert text == 'two\n"lines"'


def test_it_is_told_what_was_left_out_at_each_level() -> None:
    _, made = picked(result(json.dumps(ROWS)), "$.items[:2].user.login", "$.items[:2].naem")
    assert (
        "Left out: of $ total; of $.items 48 of 50 elements; of $.items[*] id, name; of $.items[*].user url."
        in made.told
    )
    assert (
        "Not there: nothing is at ['naem'] of $['items'][:2]: that is an object with 'id', 'name', 'user'" in made.told
    )
    assert made.whole is not None


def test_many_names_are_counted_and_none_can_hide() -> None:
    names = {f"n{number}": 0 for number in range(30)}
    _, made = picked(result(json.dumps({"\u200bx": 0, **names})), "$.n29")
    assert "of $ \\u200bx, n0" in made.told
    assert "and 22 more" in made.told


def test_names_on_the_way_are_shown_as_what_they_are() -> None:
    _, made = picked(result(json.dumps({"a\n\x1b]": {"b": 1, "c": 2}})), "$['a\n\x1b]'].b")
    assert "of $.a\\n\\u001b] c" in made.told


def test_of_many_paths_to_nothing_a_few_are_told() -> None:
    body = result(json.dumps({"a": 1, **{f"name{number}" * 9: 0 for number in range(12)}}))
    absent = [f"$.{'b' * 30}{number}" for number in range(19)]
    _, made = picked(body, "$.a", *absent)
    assert made.told.endswith("; and 16 more.")
    assert len(made.told) < 3000
    assert len(pick(body, read_picks(raw(absent))).told) < 3000


def test_nothing_is_told_where_nothing_was_left_out() -> None:
    text, made = picked(result(json.dumps(ROWS, indent=2)), "$")
    assert json.loads(text) == ROWS
    assert (made.told, made.whole) == ("", None)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (result(json.dumps(ROWS)), "nothing is at ['x'] of $: that is an object with 'total', 'items'"),
        (result("plain prose"), "no JSON"),
        (result("5"), "no JSON"),
        (result(json.dumps("x" * 5_000_000)), "too large"),
        (result("[" + "[]," * 400_000 + "[]]"), "too large"),
    ],
)
def test_what_has_nothing_of_it_stays_as_it_is(body: bytes, told: str) -> None:
    made = pick(body, read_picks(raw(["$.x"])))
    assert made.body == body
    assert told in made.told


@pytest.mark.parametrize("body", [result(json.dumps(ROWS), isError=True), b'{"resultType":"input_required"}', b"[]"])
def test_a_failure_and_what_is_no_result_pass(body: bytes) -> None:
    assert pick(body, read_picks(raw(["$.total"]))) == Picked(body) or pick(body, read_picks(raw("$"))).body == body
    assert pick(body, read_picks(raw(["$.total"]))).told == ""


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (result("see the data", structuredContent=ROWS), "$.items[3].name"),
        (result(json.dumps(ROWS["items"]), structuredContent={"result": ROWS["items"]}), "$[3].name"),
        (result(*map(json.dumps, ROWS["items"]), structuredContent={"result": ROWS["items"]}), "$.result[3].name"),
        (result(*map(json.dumps, ROWS["items"])), "$[3].name"),
        (result("Found 50:", json.dumps(ROWS["items"])), "$[3].name"),
    ],
)
def test_a_path_goes_by_whichever_form_of_the_result_it_fits(body: bytes, path: str) -> None:
    text, made = picked(body, path)
    assert text == "row 3"
    structured = json.loads(made.body).get("structuredContent")
    assert structured == ({"picked": "row 3"} if b"structuredContent" in body else None)


def test_what_is_no_text_and_other_members_stay() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    body = json.dumps(
        {"content": [image, {"type": "text", "text": "[1,2]"}], "_meta": {"a": 1}, "isError": False}
    ).encode()
    made = json.loads(pick(body, read_picks(raw("$[0]"))).body)
    assert made["content"] == [{"type": "text", "text": "1"}, image]
    assert (made["_meta"]["a"], made["isError"]) == (1, False)


def test_a_note_is_in_the_structured_content_if_that_is_an_object() -> None:
    made = json.loads(with_note(with_note(result("x", structuredContent={"picked": 1}), "[a]"), "[b]"))
    assert made["structuredContent"] == {"picked": 1, "note": "[a] [b]"}
    for body in (result("x"), result("x", structuredContent=[1]), b"no result"):
        assert with_note(body, "[a]") == body


@given(VALUES)
def test_whatever_stands_somewhere_can_be_picked_alone_or_in_its_place(value: Any) -> None:
    body = result(json.dumps({"v": value, "w": 0}))
    for at, expected in places(value, "$.v"):
        text, _ = picked(body, at)
        assert (text if isinstance(expected, str) else json.loads(text)) == expected
        text, _ = picked(body, at, "$.v", "$.w")
        assert json.loads(text) == {"v": value, "w": 0}


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        (["$.a", "$.a"], 1),
        ("$.a", 1),
        ("$.a, $['b']", 2),
        ('["$.a","$.b"]', 2),
        ([], 0),
        (None, 0),
        ("", 0),
        (["items[0]"], 1),
    ],
)
def test_paths_are_read_as_models_write_them(written: Any, paths: int) -> None:
    assert len(read_picks(raw(written))) == paths


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (["$..id"], "not understood from '..id' on"),
        ({"id": True}, "a list of JSON paths"),
        ([1], "a list of JSON paths"),
        ([f"$.a{number}" for number in range(MAX_PATHS + 1)], "21 paths, 20 are the most"),
        (["$" + ".a" * 65], "65 names"),
        ([f"$[{number},{'*,' * 40}*]" for number in range(4)], "168 names and places, 128 are the most"),
        (["x" * MAX_BYTES], f"bytes, {MAX_BYTES} are the most"),
        ("x" * MAX_BYTES, f"bytes, {MAX_BYTES} are the most"),
    ],
)
def test_other_paths_are_refused(written: Any, told: str) -> None:
    with pytest.raises(InvalidArguments, match="pick") as caught:
        read_picks(raw(written))
    assert told in caught.value.message


def test_what_paths_select_together_is_bounded() -> None:
    rows = [[0] * 3 for _ in range(MAX_NODES // 2)]
    text, made = picked(result(json.dumps(rows)), "$[*][0]", "$[*][1]", "$[*][2]")
    assert json.loads(text) == [[0, 0]] * len(rows)
    assert "select over 10000 values" in made.told
