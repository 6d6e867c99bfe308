"""Reading what is kept: addresses as models write them, pages within a budget, and what is not there."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import InvalidArguments
from supervisor.service.results.cutting import SCHEME, long_text
from supervisor.service.results.keeper import PartQuery, answer, read_address

ROWS = [{"id": number, "name": f"row {number}", "text": "word " * 10} for number in range(100)]
JSON = long_text(json.dumps({"rows": ROWS, "note": "one\ntwo\nthree"}).encode())
TEXT = long_text("\n".join(f"line {number}" for number in range(1, 101)).encode())
ALL = 1_000_000_000


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("", PartQuery("id")),
        ("/", PartQuery("id")),
        ("?lines=3", PartQuery("id", (3, 3))),
        ("?lines=3-9", PartQuery("id", (3, 9))),
        ("?lines= 3- ", PartQuery("id", (3, ALL))),
        ("?lines=-20", PartQuery("id", (-20, ALL))),
        ("?search=a%20b&lines=2-", PartQuery("id", (2, ALL), "a b")),
        ("?search=a & b", PartQuery("id", search="a & b")),
        ("?search=1+1=2?", PartQuery("id", search="1+1=2?")),
        ("?path=$.a[0]&search=x", PartQuery("id", search="x", path="$.a[0]")),
    ],
)
def test_an_address_is_read(rest: str, expected: PartQuery) -> None:
    assert read_address(f"{SCHEME}id{rest}") == expected


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("?lines=0", "a number or a range"),
        ("?lines=a-b", "a number or a range"),
        ("?lines=9-3", "ends before it begins"),
        ("?line=3", "read by ?lines="),
        ("&lines", "read by ?lines="),
        ("?search=" + "x" * 501, "500 characters at the most"),
        ("?search=a%0Ab", "words of one line"),
    ],
)
def test_an_address_that_is_none_says_how_they_are(rest: str, told: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read_address(f"{SCHEME}id{rest}")
    assert told in caught.value.message


@given(st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1, max_size=40))
def test_any_words_travel_if_they_are_quoted(words: str) -> None:
    assert read_address(f"{SCHEME}id?search={quote(words)}").search == words


@pytest.mark.parametrize(
    ("asked", "text", "note"),
    [
        (PartQuery("", (3, 4)), "line 3\nline 4\n", "lines 3-4 of 100"),
        (PartQuery("", (-2, ALL)), "line 99\nline 100", "lines 99-100 of 100"),
        (PartQuery("", (-200, 1)), "line 1\n", "lines 1-1 of 100; go on"),
        (PartQuery("", search="LINE 9"), "9: line 9\n90: line 90\n91: line 91", "11 lines, the end"),
        (PartQuery("", (90, 91), "line 9"), "90: line 90\n91: line 91", "2 lines, the end"),
        (PartQuery("", search="nothing"), "", "no line from 1 to 100 has 'nothing'"),
    ],
)
def test_lines_and_words_are_what_was_asked_for(asked: PartQuery, text: str, note: str) -> None:
    read = answer(TEXT, asked, 5000)
    assert read.text.startswith(text)
    assert note.split("; go on")[0] in read.note or read.note.startswith("lines 1-")
    assert not read.is_json


def test_what_does_not_fit_says_how_to_go_on() -> None:
    read = answer(TEXT, PartQuery(""), 60)
    assert "; go on with lines=" in read.note
    following = read_address(f"{SCHEME}x?{read.note.partition('go on with ')[2]}")
    assert answer(TEXT, following, 60).text.startswith(f"line {following.lines[0]}\n")
    found = answer(TEXT, PartQuery("", search="line"), 60)
    following = read_address(f"{SCHEME}x?{found.note.partition('go on with ')[2]}")
    assert following.search == "line"
    assert answer(TEXT, following, 60).text.startswith(f"{following.lines[0]}: line {following.lines[0]}\n")


@pytest.mark.parametrize(
    ("path", "expected"), [("$.rows[5].id", "5"), ("$.note", "one\ntwo\nthree"), ("/rows/3/name", "row 3")]
)
def test_a_path_gives_the_value_and_a_text_by_its_lines(path: str, expected: str) -> None:
    assert answer(JSON, PartQuery("", path=path), 5000).text == expected


def test_a_part_of_json_is_json_if_it_is_there_whole() -> None:
    read = answer(JSON, PartQuery("", path="$.rows[0:2]"), 5000)
    assert read.is_json
    assert json.loads(read.text) == ROWS[:2]
    assert answer(JSON, PartQuery("", path="$.rows", search="row 77"), 5000).text.count("\n") == 0
    assert not answer(JSON, PartQuery(""), 100).is_json


@pytest.mark.parametrize(
    ("kept", "asked", "told"),
    [
        (TEXT, PartQuery("", (101, 200)), "there are 100 lines only"),
        (TEXT, PartQuery("", path="$.a"), "not read as JSON"),
        (JSON, PartQuery("", path="$.rows[100]"), "an array of 100"),
        (JSON, PartQuery("", path="$["), "not understood"),
    ],
)
def test_what_is_not_there_is_told(kept: Any, asked: PartQuery, told: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        answer(kept, asked, 5000)
    assert told in caught.value.message
