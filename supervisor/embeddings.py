"""Static word vectors for the search, read from the files of an installed package: no model, no network, no download.

- The package is wordllama (MIT): one vector for each of 32,000 pieces of words; a text's vector is the mean of its
  pieces'. Only its two data files are read. Its code is never imported, nor is what it depends on: the weights are an
  array behind a JSON header, and the vocabulary is plain JSON.
- Nothing is read when this module is imported. `load` blocks: call it in a thread.
- Without the package, or with one that looks different, the search goes by words alone.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from actors.kit import is_want
from actors.search import MAX_DIMENSIONS, Embedder
from supervisor.config.units import Rerank

log = logging.getLogger(__name__)

PACKAGE: Final = "wordllama"
WEIGHTS: Final = Path("weights/l2_supercat_256.safetensors")
VOCABULARY: Final = Path("tokenizers/l2_supercat_tokenizer_config.json")

_SPACE = "\u2581"  # how SentencePiece writes the space before a word
_MAX_HEADER_BYTES = 65_536
_MAX_PIECES = 256  # per text
_MAX_WORD_CHARS = 32  # longer runs are cut: finding the pieces of a word takes the square of its length
_REMEMBERED_WORDS = 8192
_WORD = re.compile(rf"\S{{1,{_MAX_WORD_CHARS}}}")

Vectors = npt.NDArray[np.float16]
"""One row for each piece of the vocabulary."""


class Header(msgspec.Struct, frozen=True):
    """What a safetensors file says of one array (https://github.com/huggingface/safetensors#format)."""

    dtype: str
    shape: tuple[int, int]
    data_offsets: tuple[int, int]


class Headers(msgspec.Struct, frozen=True):
    """What a safetensors file says at its beginning."""

    array: Header = msgspec.field(name="embedding.weight")


class Model(msgspec.Struct, frozen=True):
    """The pieces of words and their numbers."""

    vocab: dict[str, int]


class Tokenizer(msgspec.Struct, frozen=True):
    """The part of a tokenizer's description that is used."""

    model: Model


class Pieces:
    """Cuts texts into SentencePiece BPE pieces.

    No piece of this vocabulary holds a space except as its first character, so words can be cut one by one. A pair is
    joined before another if its number is lower: that is the order in which the pairs were learned.
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._bytes = [vocabulary.get(f"<0x{byte:02X}>") for byte in range(256)]
        self._remembered = lru_cache(_REMEMBERED_WORDS)(self._word)  # safe in threads

    def cut(self, text: str) -> list[int]:
        """Return the numbers of the first 256 pieces of a text."""
        out: list[int] = []
        for found in _WORD.finditer(text):
            out += self._remembered(found.group())
            if len(out) >= _MAX_PIECES:
                return out[:_MAX_PIECES]
        return out

    def _word(self, word: str) -> tuple[int, ...]:
        parts = list(_SPACE + word)
        while (place := self._next_pair(parts)) is not None:
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        out: list[int] = []
        for part in parts:
            number = self._vocabulary.get(part)
            numbers = [number] if number is not None else [self._bytes[b] for b in part.encode("utf-8", "replace")]
            out += [number for number in numbers if number is not None]
        return tuple(out)

    def _next_pair(self, parts: Sequence[str]) -> int | None:
        best, place = len(self._vocabulary), None
        for number in range(len(parts) - 1):
            joined = self._vocabulary.get(parts[number] + parts[number + 1])
            if joined is not None and joined < best:
                best, place = joined, number
        return place


class StaticVectors:
    """An embedder: the mean of the vectors of a text's pieces. Takes about 50 us for a sentence."""

    def __init__(self, name: str, vectors: Vectors, pieces: Pieces) -> None:
        self.name = name
        self.dimensions = int(vectors.shape[1])
        self._vectors = vectors
        self._pieces = pieces

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, not normalised; zeros for a text without pieces."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            numbers = self._pieces.cut(text)
            if numbers:
                out[row] = self._vectors[numbers].mean(axis=0, dtype=np.float32)
        return out


def load(rerank: Rerank = "auto") -> Embedder | None:
    """Return the embedder of the installed package, or None: always with `off`; else with one line in the log.

    A missing package is worth a warning only if it was asked for. Blocks. Raises only what `is_want` tells: the answer
    would be for good, and want is not.
    """
    if rerank == "off":
        return None
    try:
        spec = importlib.util.find_spec(PACKAGE)  # finds it without importing it
        folders = spec.submodule_search_locations if spec is not None else None
        if folders:
            return read(Path(folders[0]))
        level, why = logging.WARNING if rerank == "static" else logging.INFO, "it is not installed"
    except (ImportError, OSError, ValueError, msgspec.MsgspecError) as error:
        if is_want(error):
            raise
        level, why = logging.WARNING, f"{type(error).__name__}: {error}"
    log.log(level, "search goes by words alone, without the package %s: %s", PACKAGE, why)
    return None


def read(folder: Path) -> StaticVectors:
    """Read the two files of a package. Raises `OSError`, `ValueError` or `msgspec.MsgspecError`. Blocks."""
    vectors = _vectors(folder / WEIGHTS)
    tokenizer = msgspec.json.decode((folder / VOCABULARY).read_bytes(), type=Tokenizer)
    if not all(0 <= number < len(vectors) for number in tokenizer.model.vocab.values()):
        raise ValueError("the vocabulary has pieces without a vector")
    return StaticVectors(WEIGHTS.stem, vectors, Pieces(tokenizer.model.vocab))


def _vectors(path: Path) -> Vectors:
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > _MAX_HEADER_BYTES:
            raise ValueError("the header of the weights is too large")
        header = msgspec.json.decode(file.read(size), type=Headers).array
        rows, columns = header.shape
        start, end = header.data_offsets
        if not (rows > 0 and 0 < columns <= MAX_DIMENSIONS):
            raise ValueError("the weights have no usable shape")
        if header.dtype != "F16" or start != 0 or end != rows * columns * 2:
            raise ValueError("the weights are not a plain array of half floats")
    if path.stat().st_size < 8 + size + end:
        raise ValueError("the weights are cut off")
    # mapped, as the code of a library is: the system may take the memory back, and several daemons share it
    return np.asarray(np.memmap(path, "<f2", "r", offset=8 + size, shape=(rows, columns)))
