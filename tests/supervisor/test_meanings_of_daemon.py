"""By what a daemon compares, as a search tells people and programs: words, and meanings as far as they are known."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import trio

from supervisor import neural
from supervisor.host.datadir import DataDir
from tests.fakes.embedder import FakeEmbedder
from tests.scenario.daemon import A, B, World, world
from tests.supervisor.commands.test_cli import ask as command

MISSING = "no sentence model is loaded, which `rerank` asks for: the log of the daemon says why\n"


class SlowEmbedder(FakeEmbedder):
    """It makes no vector of a tool before `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.go.wait(120)
        return super().embed(texts)


@contextmanager
def embedding(embedder: SlowEmbedder) -> Iterator[SlowEmbedder]:
    try:
        yield embedder
    finally:
        embedder.go.set()  # its thread cannot be cancelled


async def searched(at: World, query: str, *options: str) -> str:
    """What `mcpvisor search` prints below its rows, without how long it took; with `--json`, all of it."""
    result = await command(at.url, "search", query, *options)
    assert result.exit_code == 0, result.output
    if options:
        return result.stdout
    lines = [line for line in result.stdout.splitlines(keepends=True) if not line.startswith(("PATH", "one:", "two:"))]
    return "".join(lines).partition(" ms")[2] if " found in " in lines[0] else "".join(lines)


def compared(printed: str) -> Any:
    return json.loads(printed)["compared"]


@pytest.mark.parametrize(("rerank", "said"), [("auto", ""), ("neural", MISSING)])
async def test_without_a_model_a_search_says_that_it_went_by_words_and_that_a_wanted_one_is_missing(
    rerank: str, said: str, tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neural, "load", lambda wanted, folder: None)
    async with world(tmp_path, data, {"one": A}, rerank=rerank) as at:
        shown = await searched(at, "echo")
        assert shown.startswith(said)
        assert shown.endswith(" by words; a score of 0 is best\n")
        assert compared(await searched(at, "echo", "--json")) == {"model": None, "rerank": rerank}


async def test_a_search_says_how_many_vectors_there_are_until_all_are(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = {"small": {"tools": ["one:echo"]}}
    with embedding(SlowEmbedder()) as embedder:
        monkeypatch.setattr(neural, "load", lambda wanted, folder: embedder)
        async with world(tmp_path, data, {"one": A, "two": B}, rerank="auto", profiles=profiles) as at:

            async def until(ending: str) -> None:
                while not (await searched(at, "echo")).endswith(ending):  # noqa: ASYNC110 - a thread loads it
                    await trio.sleep(0.02)

            await until(" by words, 0 of 4 also by meanings so far; a score of 0 is best\n")
            of_profile = compared(await searched(at, "echo", "--profile", "small", "--json"))
            assert of_profile == {"model": "fake", "vectors": 0, "of": 1, "rerank": "auto"}
            embedder.go.set()
            await until(" by words and meanings; a score of 0 is best\n")
            assert "compared" not in json.loads(await searched(at, "*", "--json")), "a list compares nothing"
            answer = await at.call("discover_mcp_tools", query="echo")
            assert "compared" not in json.dumps(answer), "a model pays for each token"
