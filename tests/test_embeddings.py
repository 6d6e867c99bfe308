"""The word vectors of an installed package: how they are read, and what happens when they cannot be."""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from supervisor.config.units import Rerank
from supervisor.embeddings import PACKAGE, VOCABULARY, WEIGHTS, Pieces, load, read

# The numbers are the order in which pairs are joined, as in SentencePiece: "th" before "he".
PIECES = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "th", "▁t", "he", "the", "▁the", "ca", "cat", "▁cat"]
PIECES += [*"▁thecasn", "▁s"]


def package(folder: Path, *, header: object = None, cut: int = 0, pieces: dict[str, int] | None = None) -> Path:
    """Write a package with vectors of two numbers: a piece's number and 1. Importing it would fail."""
    home = folder / PACKAGE
    numbers = pieces if pieces is not None else {piece: number for number, piece in enumerate(PIECES)}
    vectors = np.array([[number, 1] for number in range(len(PIECES))], "<f2").tobytes()
    header = header or {
        "embedding.weight": {"dtype": "F16", "shape": [len(PIECES), 2], "data_offsets": [0, len(vectors)]}
    }
    head = json.dumps(header).encode()
    for path, content in (
        (home / "__init__.py", b"raise RuntimeError('its code must not run')"),
        (home / WEIGHTS, len(head).to_bytes(8, "little") + head + vectors[: len(vectors) - cut]),
        (home / VOCABULARY, json.dumps({"model": {"type": "BPE", "vocab": numbers, "merges": []}}).encode()),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return home


def cut(text: str) -> list[str]:
    return [PIECES[number] for number in Pieces({piece: number for number, piece in enumerate(PIECES)}).cut(text)]


def test_words_are_cut_into_the_pieces_that_were_learned_first() -> None:
    assert cut("the cat") == ["▁the", "▁cat"]
    assert cut("  the\n\tcat ") == ["▁the", "▁cat"]
    assert cut("scat then") == ["▁s", "cat", "▁the", "n"]
    assert cut("") == cut("  \n") == []


def test_characters_without_a_piece_become_their_bytes() -> None:
    assert cut("né") == ["▁", "n", "<0xC3>", "<0xA9>"]
    assert cut("\ud800") == ["▁", "<0x3F>"]
    assert Pieces({"▁": 0, "n": 1}).cut("né") == [0, 1], "a vocabulary without bytes leaves them out"


def test_cutting_any_text_is_bounded() -> None:
    begun = process_time()
    for hostile in ("t" * 2000, "the" * 700, "t " * 1000, "é" * 2000):
        assert 0 < len(cut(hostile)) <= 256
    assert process_time() - begun < 2.0


def test_a_text_is_the_mean_of_the_vectors_of_its_pieces(tmp_path: Path) -> None:
    vectors = read(package(tmp_path))
    the, cat = PIECES.index("▁the"), PIECES.index("▁cat")
    found = vectors.embed(["the cat", "cat", "", "the"])
    assert found.dtype == np.float32
    assert found.tolist() == [[(the + cat) / 2, 1], [cat, 1], [0, 0], [the, 1]]
    assert vectors.dimensions == 2
    assert vectors.name == "l2_supercat_256"
    assert vectors.embed([]).shape == (0, 2)


def test_the_installed_package_is_read_but_its_code_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = load("static")
    assert found is not None
    assert found.dimensions == 2
    assert PACKAGE not in sys.modules


@pytest.mark.parametrize(("rerank", "levels"), [("off", []), ("auto", [logging.INFO]), ("static", [logging.WARNING])])
def test_without_the_package_there_is_no_embedder_and_one_line_in_the_log(
    rerank: Rerank, levels: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with caplog.at_level(logging.INFO):
        assert load(rerank) is None
    assert [record.levelno for record in caplog.records] == levels


def test_an_import_system_that_fails_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(name: str) -> None:
        raise ImportError(f"no {name} today")

    monkeypatch.setattr(importlib.util, "find_spec", fails)
    assert load() is None
    assert "no wordllama today" in caplog.text


GOOD = {"dtype": "F16", "shape": [len(PIECES), 2], "data_offsets": [0, len(PIECES) * 4]}


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        ({"header": {"embedding.weight": GOOD | {"dtype": "F32"}}}, "half floats"),
        ({"header": {"embedding.weight": GOOD | {"data_offsets": [4, 8]}}}, "half floats"),
        ({"header": {"embedding.weight": GOOD | {"shape": [-1, -2]}}}, "no usable shape"),
        ({"header": {"embedding.weight": GOOD | {"shape": [2, 4096]}}}, "no usable shape"),
        ({"header": {"embedding.weight": GOOD | {"shape": [2]}}}, "ValidationError"),
        ({"header": {"other": GOOD}}, "embedding.weight"),
        ({"header": {"embedding.weight": GOOD, "x": "x" * 70_000}}, "too large"),
        ({"cut": 1}, "cut off"),
        ({"pieces": {"a": len(PIECES)}}, "without a vector"),
        ({"pieces": {"a": -1}}, "without a vector"),
    ],
)
def test_a_package_that_looks_different_is_not_used(
    spoilt: dict[str, object],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    package(tmp_path, **spoilt)  # type: ignore[arg-type]  # keywords of package
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load() is None
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert why in caplog.text


@pytest.mark.parametrize("lost", [WEIGHTS, VOCABULARY])
def test_a_package_without_one_of_its_files_is_not_used(
    lost: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (package(tmp_path) / lost).unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load() is None
    assert "FileNotFoundError" in caplog.text


def test_the_vectors_of_the_real_package_are_used_exactly_if_it_is_installed() -> None:
    found = load()
    assert (found is None) == (importlib.util.find_spec(PACKAGE) is None)
    if found is not None:
        vectors = found.embed(["send a message", "write an email", "delete a database"])
        message, email, database = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        assert message @ email > message @ database
