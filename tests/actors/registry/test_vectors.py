"""Vectors in the background: what is made, what is not made again, and what happens to a bug or to want."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from actors.registry.indexing import BATCH, Embedding
from actors.search.document import Document
from actors.search.index import Index
from actors.search.meanings import digest_of, levels, text_of
from actors.search.segment import analyse
from tests.fakes.embedder import FakeEmbedder, document_levels
from tests.fakes.vectors import KeptVectors

WORLD = ("bake bread", "fly a kite", "mow the lawn")


class SlowEmbedder(FakeEmbedder):
    """Each batch takes three seconds of the tests' clock."""

    def __init__(self, moments: list[float]) -> None:
        super().__init__()
        self.moments = moments
        self.batches: list[int] = []
        self.failures: list[Exception] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.batches.append(len(texts))
        self.moments[0] += 3
        if self.failures:
            raise self.failures.pop()
        return super().embed(texts)


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock, by which the rests take no time."""
    now = [0.0]
    monkeypatch.setattr("actors.registry.indexing.trio.current_time", lambda: now[0])
    monkeypatch.setattr("actors.registry.indexing.REST", 0.0)
    monkeypatch.setattr("actors.registry.indexing.WORLD", WORLD)
    return now


def documents(server: str, count: int) -> list[Document]:
    return [Document(key=f"{server}:t{n}", kind="tool", server=server, name=f"t{n}") for n in range(count)]


def index_of(**counts: int) -> Index:
    return Index.empty().rebuild(analyse(server, documents(server, count)) for server, count in counts.items())


async def opened(embedder: FakeEmbedder | None, kept: KeptVectors) -> Embedding:
    made = Embedding(lambda: embedder, kept)
    there = await made.open()
    assert (None if there is None else (there.embedder, there.servers)) == (embedder and (embedder, {}))
    return made


async def test_vectors_are_made_in_small_batches_kept_and_handed_over_server_by_server(moments: list[float]) -> None:
    embedder, kept = SlowEmbedder(moments), KeptVectors()
    embedding = await opened(embedder, kept)
    index = index_of(a=BATCH + 1, b=2, none=0)
    made = await embedding.step(index)
    assert made is not None
    assert set(made.servers) == {"a"}, "more would take too long"
    assert embedder.batches == [BATCH, 1]
    found, rows = made.servers["a"]
    assert found is index.segments[0].documents
    assert rows.tolist() == document_levels(FakeEmbedder(), found).tolist()
    index = index.with_meanings(embedder, {"a": rows})
    made = await embedding.step(index)
    assert made is not None
    assert set(made.servers) == {"b"}
    index = index.with_meanings(embedder, {"b": made.servers["b"][1]})
    made = await embedding.step(index)
    assert made is not None
    assert {name: rows.shape for name, (_, rows) in made.servers.items()} == {"none": (0, 64)}
    index = index.with_meanings(embedder, {"none": made.servers["none"][1]})
    assert len(kept.vectors) == BATCH + 3
    made = await embedding.step(index)
    assert made is not None
    assert made.servers == {}
    assert made.world is not None
    assert made.world.tolist() == levels(FakeEmbedder().embed(WORLD)).tolist(), "what else is done comes last"
    assert await embedding.step(index) is None


async def test_what_is_kept_is_not_made_again_unless_it_is_of_another_form(moments: list[float]) -> None:
    kept = KeptVectors()
    first = SlowEmbedder(moments)
    await (await opened(first, kept)).step(index_of(a=2))
    assert first.batches == [2]
    again, other = SlowEmbedder(moments), FakeEmbedder(name="other")
    made = await (await opened(again, kept)).step(index_of(a=2, b=0))
    assert again.batches == []
    assert made is not None
    assert made.servers["a"][1].tolist() == document_levels(FakeEmbedder(), documents("a", 2)).tolist()
    await (await opened(other, kept)).step(index_of(a=2))
    assert len(other.texts) == 2
    kept.vectors[digest_of(again, text_of(documents("a", 1)[0]))] = b"short"
    await (await opened(again, kept)).step(index_of(a=2))
    assert again.batches == [1]


async def test_many_documents_are_looked_up_in_groups(moments: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.registry.indexing.LOOKED_UP", 3)
    kept, embedder = KeptVectors(), FakeEmbedder()
    made = await (await opened(embedder, kept)).step(index_of(a=2, b=2, c=2))
    assert made is not None
    assert set(made.servers) == {"a", "b", "c"}
    assert kept.loads == 2
    assert moments == [0.0]


async def test_a_bug_with_one_server_leaves_it_to_its_words_until_it_changes(
    moments: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    embedder = SlowEmbedder(moments)
    embedding = await opened(embedder, KeptVectors())
    embedder.failures = [ZeroDivisionError("a bug")]
    index = index_of(a=1, b=1)
    made = await embedding.step(index)
    assert made is not None
    assert set(made.servers) == {"b"}
    assert "a bug while embedding the tools of a" in caplog.text
    index = index.with_meanings(embedder, {"b": made.servers["b"][1]})
    embedder.failures = [ZeroDivisionError("another")]
    assert await embedding.step(index) is None
    assert "a bug while embedding what else is done" in caplog.text
    made = await embedding.step(index.replace(analyse("a", documents("a", 2))))
    assert made is not None
    assert set(made.servers) == {"a"}


async def test_want_leaves_the_step_and_costs_only_the_batch_it_hit(moments: list[float]) -> None:
    embedder, kept = SlowEmbedder(moments), KeptVectors()
    embedding = await opened(embedder, kept)
    embedder.failures = [OSError(errno.ENOMEM, "no memory")]
    with pytest.raises(OSError, match="no memory"):
        await embedding.step(index_of(a=1))
    made = await embedding.step(index_of(a=1))
    assert made is not None
    assert set(made.servers) == {"a"}
