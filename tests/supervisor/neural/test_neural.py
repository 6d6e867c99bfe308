"""The sentence model: how its package is read, that its arithmetic is the published one, what happens without it."""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import os
import shutil
import sys
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from msgspec.structs import replace

from supervisor import neural
from supervisor.config.values import Rerank
from supervisor.neural import MINILM, SentenceModel, Source
from supervisor.neural.model import MAX_PIECES, MAX_QUERY_PIECES
from supervisor.neural.package import read
from supervisor.neural.wordpiece import WordPieces

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "find",
    "ing",
    "##ing",
    "##s",
    "cat",
    "a",
    "##at",
    "c",
    "!",
    "中",
    "e",
    ".",
]
VOCABULARY = {piece: number for number, piece in enumerate(PIECES)}
WIDTH, WIDE = 24, 48


def cut(text: str, most: int = 99) -> list[str]:
    return [PIECES[number] for number in WordPieces(VOCABULARY).cut(text, most)]


def test_words_are_cut_into_the_longest_pieces_from_the_left() -> None:
    assert cut("Finding cats") == ["[CLS]", "find", "##ing", "cat", "##s", "[SEP]"]
    assert cut("cat") == ["[CLS]", "cat", "[SEP]"]
    assert cut("finder cat") == ["[CLS]", "[UNK]", "cat", "[SEP]"], "a word that has no pieces is unknown as a whole"


def test_case_accents_and_control_characters_do_not_count_and_punctuation_stands_alone() -> None:
    assert cut("CÁT\u0000\u200b cat!") == ["[CLS]", "cat", "cat", "!", "[SEP]"]
    assert cut("cat!cat") == ["[CLS]", "cat", "!", "cat", "[SEP]"]
    assert cut("cat中中\u00a0é。") == ["[CLS]", "cat", "中", "中", "e", "[UNK]", "[SEP]"]
    assert cut("\x00c\x07at\tcat") == ["[CLS]", "cat", "cat", "[SEP]"]
    assert cut("\ud800cat") == ["[CLS]", "cat", "[SEP]"]


def test_a_text_of_no_words_has_no_pieces_and_a_long_one_is_cut() -> None:
    assert cut("") == cut(" \n\t") == cut("\u200b") == []
    assert cut("cat " * 100, 5) == ["[CLS]", "cat", "cat", "cat", "[SEP]"]
    assert cut("a" * 101) == ["[CLS]", "[UNK]", "[SEP]"]


def test_cutting_any_text_is_bounded() -> None:
    pieces = WordPieces(VOCABULARY)
    begun = process_time()
    for hostile in ("a" * 2000, "é" * 2000, "!" * 2000, "中" * 2000, "\U000e0001" * 2000, "findin " * 300):
        assert len(pieces.cut(hostile, MAX_PIECES)) <= MAX_PIECES
    assert process_time() - begun < 2.0


def test_a_vocabulary_without_the_special_pieces_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lacks \[CLS\], \[UNK\]"):
        WordPieces({"[SEP]": 0})


def weights(pieces: int = len(PIECES), places: int = MAX_PIECES, layers: int = 2) -> dict[str, np.ndarray]:
    """Return a model of random weights, with the names that published ones have."""
    chance = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (pieces, WIDTH),
        "embeddings.position_embeddings.weight": (places, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for number in range(layers):
        part = f"encoder.layer.{number}"
        for name, out, into in (
            *((f"attention.self.{which}", WIDTH, WIDTH) for which in ("query", "key", "value")),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", WIDE, WIDTH),
            ("output.dense", WIDTH, WIDE),
        ):
            shapes |= {f"{part}.{name}.weight": (out, into), f"{part}.{name}.bias": (out,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{part}.{name}.weight": (WIDTH,), f"{part}.{name}.bias": (WIDTH,)}
    return {name: chance.standard_normal(shape).astype("<f4") for name, shape in shapes.items()}


def safetensors(arrays: Mapping[str, np.ndarray]) -> bytes:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, array in {**arrays, "embeddings.position_ids": np.arange(4)}.items():
        dtype = "F32" if array.dtype == np.float32 else "I64"
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + body


def package(
    root: Path, content: bytes | None = None, vocabulary: Mapping[str, int] = VOCABULARY, name: str = "tiny_model"
) -> Source:
    """Write a package with a model into `root`. Importing it would fail."""
    content = safetensors(weights()) if content is None else content
    tokenizer = json.dumps({"model": {"type": "WordPiece", "vocab": vocabulary}}).encode()
    home = root / name
    home.mkdir()
    (home / "__init__.py").write_text("raise RuntimeError('its code must not run')")
    with zipfile.ZipFile(home / "model.zip", "w") as packed:
        packed.writestr("model.safetensors", content)
        packed.writestr("tokenizer.json", tokenizer)
    digests = (hashlib.sha256(part).hexdigest() for part in (content, tokenizer))
    return Source("tiny", name, "tiny-model", "model.zip", *digests)


def reference(arrays: Mapping[str, np.ndarray], numbers: list[int], heads: int = 12) -> np.ndarray:
    """Return what BERT's paper says of these pieces, step by step, in double precision."""

    def at(name: str) -> np.ndarray:
        out: np.ndarray = arrays[name].astype(np.float64)
        return out

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(1, keepdims=True)
        spread: np.ndarray = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-12) * at(f"{name}.weight")
        spread += at(f"{name}.bias")
        return spread

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        out: np.ndarray = x @ at(f"{name}.weight").T + at(f"{name}.bias")
        return out

    def gelu(x: np.ndarray) -> np.ndarray:
        out: np.ndarray = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        return out

    x = at("embeddings.word_embeddings.weight")[numbers] + at("embeddings.position_embeddings.weight")[: len(numbers)]
    x = norm(x + at("embeddings.token_type_embeddings.weight")[0], "embeddings.LayerNorm")
    size = WIDTH // heads
    for number in range(2):
        part = f"encoder.layer.{number}"
        query, key, value = (dense(x, f"{part}.attention.self.{which}") for which in ("query", "key", "value"))
        attended = np.zeros_like(x)
        for head in range(heads):
            own = slice(head * size, (head + 1) * size)
            shares = np.exp(query[:, own] @ key[:, own].T / np.sqrt(size))
            attended[:, own] = shares / shares.sum(1, keepdims=True) @ value[:, own]
        x = norm(dense(attended, f"{part}.attention.output.dense") + x, f"{part}.attention.output.LayerNorm")
        wide = gelu(dense(x, f"{part}.intermediate.dense"))
        x = norm(dense(wide, f"{part}.output.dense") + x, f"{part}.output.LayerNorm")
    mean: np.ndarray = x.mean(0)
    return mean


@pytest.fixture
def tiny(tmp_path: Path) -> SentenceModel:
    source = package(tmp_path)
    return read(tmp_path / source.module / source.archive, tmp_path / "unpacked", source)


def test_a_vector_is_what_the_papers_say(tiny: SentenceModel) -> None:
    numbers = WordPieces(VOCABULARY).cut("find cats!", MAX_PIECES)
    assert tiny.embed(["find cats!"])[0] == pytest.approx(reference(weights(), numbers), rel=1e-3, abs=1e-4)
    assert (tiny.name, tiny.dimensions) == ("tiny", WIDTH)


def test_a_text_has_the_same_vector_whatever_is_embedded_beside_it(tiny: SentenceModel) -> None:
    together = tiny.embed(["find", "", "cats a cat", "find"])
    assert together.dtype == np.float32
    assert not together[1].any()
    assert together[0].tolist() == together[3].tolist() == tiny.embed(["find"])[0].tolist()
    assert tiny.embed([]).shape == (0, WIDTH)
    with ThreadPoolExecutor(4) as threads:
        vectors = list(threads.map(lambda _: tiny.embed(["cats a cat"])[0].tolist(), range(16)))
    assert all(vector == together[2].tolist() for vector in vectors)


def test_a_query_is_read_to_a_bound_and_remembered(tiny: SentenceModel) -> None:
    long = tiny.embed_query("cat " * 500)
    assert long.tolist() == tiny.embed(["cat " * (MAX_QUERY_PIECES - 2)])[0].tolist()
    assert tiny.embed_query("cat " * 500) is long
    with pytest.raises(ValueError, match="read-only"):
        long[0] = 1
    assert not tiny.embed_query("").any()


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("a cat. find it", "a cat. find it"),
        ("Hello there! find a cat. Thanks a lot.", "find a cat."),
        (f"{'a ' * MAX_QUERY_PIECES}. find it", "find it"),
        (f"find. {'cat ' * MAX_QUERY_PIECES}", "cat " * (MAX_QUERY_PIECES - 2)),
        ("Thanks a lot.", "Thanks a lot."),
    ],
    ids=["all", "without courtesy", "what fits", "the last one alone", "nothing else"],
)
def test_of_a_long_query_the_last_sentences_are_read(tiny: SentenceModel, query: str, read: str) -> None:
    found = tiny.embed_query(query)
    assert found.any()
    assert found.tolist() == tiny.embed([read])[0].tolist()


def installed(source: Source, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root))
    importlib.invalidate_caches()
    assert source.module not in sys.modules


def test_the_weights_are_unpacked_once_and_the_packages_code_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = package(tmp_path)
    installed(source, tmp_path, monkeypatch)
    folder = tmp_path / "data" / "model"
    folder.parent.mkdir()
    folder.mkdir()
    (folder / "older.safetensors").write_bytes(b"of an earlier version")
    first = neural.load("neural", folder, source)
    assert first is not None
    (unpacked,) = folder.iterdir()
    assert unpacked.stat().st_mode & 0o077 == 0
    before = unpacked.stat().st_mtime_ns, unpacked.stat().st_ino
    again = neural.load("auto", folder, source)
    assert again is not None
    assert again.embed(["cat"]).tolist() == first.embed(["cat"]).tolist()
    assert (unpacked.stat().st_mtime_ns, unpacked.stat().st_ino) == before
    unpacked.unlink()  # what is mapped must never be cut off under its reader
    unpacked.write_bytes(b"cut off")
    mended = neural.load("auto", folder, source)
    assert mended is not None
    assert mended.embed(["cat"]).tolist() == first.embed(["cat"]).tolist()
    assert source.module not in sys.modules


@pytest.mark.parametrize(("rerank", "levels"), [("off", []), ("auto", []), ("neural", [logging.WARNING])])
def test_without_the_package_the_search_goes_by_words_and_says_so_only_if_it_was_asked(
    rerank: Rerank, levels: list[int], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source("x", "no_such_package_anywhere", "no-such-package", "model.zip", "", "")
    assert neural.load(rerank, tmp_path, source) is None
    assert [record.levelno for record in caplog.records] == levels
    assert list(tmp_path.iterdir()) == []


def test_off_does_not_even_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = package(tmp_path)
    installed(source, tmp_path, monkeypatch)
    assert neural.load("off", tmp_path / "model", source) is None
    assert not (tmp_path / "model").exists()


ARRAYS = weights()
SPOILT = {
    "other weights": (None, VOCABULARY, {"weights_sha256": "0" * 64}, "weights are other ones"),
    "another tokenizer": (None, VOCABULARY, {"tokenizer_sha256": "0" * 64}, "tokenizer is another one"),
    "a vocabulary without special pieces": (None, {"a": 1}, {}, "lacks"),
    "pieces without a vector": (None, VOCABULARY | {"more": len(PIECES)}, {}, "without a vector"),
    "pieces before the first": (None, VOCABULARY | {"more": -1}, {}, "without a vector"),
    "a missing array": (safetensors({k: v for k, v in ARRAYS.items() if "key.bias" not in k}), VOCABULARY, {}, "key"),
    "a shape that does not fit": (
        safetensors(ARRAYS | {"embeddings.LayerNorm.bias": np.zeros(5, "<f4")}),
        VOCABULARY,
        {},
        "ValueError",
    ),
    "few places": (safetensors(weights(places=8)), VOCABULARY, {}, "no usable shape"),
    "a long header": ((1 << 40).to_bytes(8, "little") + b"{}", VOCABULARY, {}, "too large"),
    "no header": (b"\0" * 8, VOCABULARY, {}, "DecodeError"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_package_that_looks_different_is_not_used(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content, vocabulary, changes, why = SPOILT[what]
    source = package(tmp_path, content, vocabulary)
    installed(source, tmp_path, monkeypatch)
    assert neural.load("auto", tmp_path / "model", replace(source, **changes)) is None
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert why in caplog.text
    assert not list(tmp_path.glob("model/*.new"))


def test_a_package_whose_archive_is_none_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = package(tmp_path)
    installed(source, tmp_path, monkeypatch)
    archive = tmp_path / source.module / source.archive
    archive.write_bytes(b"no zip")
    assert neural.load("auto", tmp_path / "model", source) is None
    archive.unlink()
    assert neural.load("auto", tmp_path / "model", source) is None
    assert "BadZipFile" in caplog.text
    assert "FileNotFoundError" in caplog.text


def test_want_of_room_for_the_weights_leaves_nothing_behind_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = package(tmp_path)
    installed(source, tmp_path, monkeypatch)

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match=os.strerror(28)):
        neural.load("auto", tmp_path / "model", source)
    assert list((tmp_path / "model").iterdir()) == []


# The real one ---------------------------------------------------------------------------------------------------------

REAL = Path(sys.prefix) / "model"  # where `.ci/environment` installs it
SENTENCES = {
    "open a ticket for the broken login page": 1.0,
    "create an issue about users who cannot sign in": 0.44087,
    "drop a table of the database": 0.03914,
    "tell me tomorrow's weather in Lisbon": -0.03202,
}
"""With their cosines to the first, worked out in double precision and with the exact error function."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> SentenceModel:
    archive = REAL / MINILM.module / MINILM.archive
    if not archive.exists() and "CI" not in os.environ:
        pytest.skip(f"{MINILM.distribution} is not installed in {REAL}: run .ci/environment")
    return read(archive, tmp_path_factory.mktemp("model"), MINILM)


def test_the_real_model_gives_the_cosines_of_its_weights(real: SentenceModel) -> None:
    vectors = real.embed(list(SENTENCES))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (vectors @ vectors[0]).tolist() == pytest.approx(list(SENTENCES.values()), abs=1e-3)
    assert real.dimensions == 384
