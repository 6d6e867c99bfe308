"""The sentence model for the benchmarks: loaded, and its vectors kept in a directory so that they are made once."""

from __future__ import annotations

import resource
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from actors.search.index import Index
from actors.search.meanings import Embedder, Levels, digest_of, levels, text_of
from actors.search.words.tables import WORLD
from benchmarks import peers
from supervisor import neural

_KEPT = "vectors.msgpack"


def add_options(parser: ArgumentParser) -> None:
    """Add the options that say whether meanings are compared."""
    parser.add_argument("--rerank", choices=("off", "neural"), default="off", help="compare meanings (default off)")
    default = peers.cache_python().parents[2] / "neural"
    parser.add_argument("--vectors", type=Path, default=default, help="where the model and its vectors are kept")


def with_meanings(index: Index, options: Namespace) -> Index:
    """Return the index with the vectors of its documents and of `WORLD`, if the options say so; print what they cost.

    Exits if the model is not installed.
    """
    if options.rerank == "off":
        return index
    folder: Path = options.vectors
    folder.mkdir(parents=True, exist_ok=True)
    embedder = load_embedder(folder)
    kept = folder / _KEPT
    vectors: dict[bytes, bytes] = msgspec.msgpack.decode(kept.read_bytes()) if kept.exists() else {}
    begun, before = time.perf_counter(), len(vectors)
    made = {
        segment.server: _rows(embedder, list(map(text_of, segment.documents)), vectors) for segment in index.segments
    }
    world = _rows(embedder, WORLD, vectors)
    took, new = time.perf_counter() - begun, len(vectors) - before
    if new:
        kept.write_bytes(msgspec.msgpack.encode(vectors))
    print(f"{new} of {len(index) + len(WORLD)} texts embedded in {took:.1f} s, {memory_mb():.0f} MB resident")
    return index.with_meanings(embedder, made, world)


def load_embedder(folder: Path) -> Embedder:
    """Return the sentence model, and print how long loading it took. Exits if it is not installed."""
    begun, before = time.perf_counter(), memory_mb()
    embedder = neural.load("neural", folder)
    if embedder is None:
        raise SystemExit(f"--rerank neural needs the package {neural.MINILM.distribution}")
    took_ms = (time.perf_counter() - begun) * 1000
    print(f"model loaded in {took_ms:.0f} ms, {memory_mb() - before:.0f} MB of it resident")
    return embedder


def memory_mb() -> float:
    """Return the greatest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _rows(embedder: Embedder, texts: Sequence[str], vectors: dict[bytes, bytes]) -> Levels:
    """Return the vectors of some texts; those that are new are added to `vectors`."""
    digests = [digest_of(embedder, text) for text in texts]
    for digest, text in zip(digests, texts, strict=True):
        if digest not in vectors:
            vectors[digest] = levels(embedder.embed([text])).tobytes()
    joined = b"".join(vectors[digest] for digest in digests)
    return np.frombuffer(joined, np.int8).reshape(len(texts), embedder.dimensions)
