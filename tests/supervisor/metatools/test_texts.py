"""Text of strangers as it is shown: nothing hidden, nothing that a terminal obeys, no longer than wanted."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.metatools.texts import clean, clean_json, clean_value, estimate_tokens, shorten
from supervisor.tokens.counting import Tiktoken, load_encoding


@pytest.mark.case("L15")
@pytest.mark.parametrize(
    "hostile",
    [
        "re\x1b[31mad\x1b[0m",
        "re\x1b]0;owned\x07ad",
        "re\x1b]8;;https://evil\x1b\\ad",
        "re\x9b31mad",
        "re\x1bcad",
        "re\u200b\u200d\ufeffad",
        "re\u202e\u2066\u2069ad",
        "re\x00\x07\x08\x7f\x85ad",
        "re\U000e0041\U000e0042ad",
        "re\ufe00\U000e0100\u3164\u2800ad",
        "re\u2028\u2029ad",
        "re\ud800ad",
        "re\ue000\U0010ffffad",
    ],
)
def test_what_cannot_be_seen_is_removed(hostile: str) -> None:
    assert clean(hostile) == "read"


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand a tab", "Grüße 数据 मानक 👍", "❤\ufe0f", "e\u0301"])
def test_what_can_be_seen_stays(text: str) -> None:
    assert clean(text) == text


@given(st.text())
def test_cleaning_twice_changes_nothing_more_and_leaves_no_escape(text: str) -> None:
    once = clean(text)
    assert "\x1b" not in once
    assert clean(once) == once


def test_text_is_cut_at_a_sentence_or_a_word() -> None:
    assert shorten("One two. Three four five six.", 15) == "One two."
    assert shorten("One two three four five", 12) == "One two ..."
    assert shorten("short", 5) == "short"
    assert shorten("\u200b" * 5000 + "hidden", 10) == ""
    assert len(shorten("x" * 100_000, 100)) <= 104


def test_json_without_hiding_places_keeps_its_bytes() -> None:
    raw = msgspec.Raw(b'{ "a" : 1.0, "b":"\\"quoted\\" \\n" }')
    assert clean_json(raw) is raw


def test_json_is_cleaned_in_keys_and_values() -> None:
    raw = msgspec.Raw(json.dumps({"a\u200b": ["\x1b[1mx", {"k": "v\u202e"}], "n": 1.5}).encode())
    assert clean_json(raw) == {"a": ["x", {"k": "v"}], "n": 1.5}
    assert clean_value(None) is None


def test_json_that_cannot_be_decoded_is_shown_as_nothing() -> None:
    assert clean_json(msgspec.Raw(b'"\\ud800"')) == {}


TEXTS = {
    "english": "Create an issue in a repository of the organisation; labels and assignees are optional. " * 5,
    "json": json.dumps({"type": "object", "properties": {"repo_name": {"type": "string", "enum": ["a", "b"]}}}) * 5,
    "chinese": "数据库查询工具可以读取所有的表格" * 20,
    "russian": "Создать задачу в проекте и назначить исполнителя " * 8,
    "thai": "สร้างงานใหม่ในโครงการ" * 10,
    "emoji": "😀🎉🔥🚀" * 50,
    "digits": "8273619450" * 50,
    "punctuation": "!@#$%^&*()_+-=[]{}|;:,.<>?/~`" * 20,
    "one letter": "x " * 300,
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_estimate_is_not_below_the_count(name: str) -> None:
    tokenizer = Tiktoken(load_encoding())
    assert estimate_tokens(TEXTS[name]) >= tokenizer.count(TEXTS[name])


@pytest.mark.parametrize("name", ["english", "json", "digits", "one letter"])
def test_the_estimate_of_what_rows_are_made_of_is_near_the_count(name: str) -> None:
    assert estimate_tokens(TEXTS[name]) <= 1.1 * Tiktoken(load_encoding()).count(TEXTS[name])


def test_names_with_underscores_are_estimated_as_what_they_cost() -> None:
    text = '{"tool_path":"forge:create_merge_request_note","signature":"(project_id, request_id, ...)"}' * 20
    assert 1 <= estimate_tokens(text) / Tiktoken(load_encoding()).count(text) <= 1.2


@given(st.text(max_size=200))
def test_the_estimate_is_near_the_count_for_any_text(text: str) -> None:
    assert estimate_tokens(text) >= 0.5 * Tiktoken(load_encoding()).count(text) - 3
