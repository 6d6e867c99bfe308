"""By what a daemon compares, as a search tells people and programs: words, and meanings as far as they are known."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx2
import numpy as np
import numpy.typing as npt
import pytest
import trio
from click.testing import CliRunner

from supervisor import neural
from supervisor.cli import cli
from supervisor.host.datadir import DataDir
from tests.fakes.embedder import FakeEmbedder
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running
from tests.supervisor.test_doors_of_daemon import Fleet, ask, initialize

SERVERS = {"one": {"command": "x"}, "two": {"command": "x"}}
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


async def searched(client: httpx2.AsyncClient, query: str, *options: str) -> str:
    """What `mcpvisor search` prints below its rows, without how long it took; with `--json`, all of it."""
    command = partial(CliRunner().invoke, cli, ["search", query, *options, "--url", str(client.base_url)])
    result = await trio.to_thread.run_sync(command)
    assert result.exit_code == 0, result.output
    if options:
        return result.stdout
    lines = [line for line in result.stdout.splitlines(keepends=True) if not line.startswith(("PATH", "one:", "two:"))]
    return "".join(lines).partition(" ms")[2] if " found in " in lines[0] else "".join(lines)


@pytest.mark.parametrize(("rerank", "said"), [("auto", ""), ("neural", MISSING)])
async def test_without_a_model_a_search_says_that_it_went_by_words_and_that_a_wanted_one_is_missing(
    rerank: str, said: str, tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neural, "load", lambda wanted, folder: None)
    async with running(configuration(tmp_path, SERVERS, rerank=rerank), data, connect=Fleet().connect) as client:
        await Client(client).ready()
        shown = await searched(client, "tool1")
        assert shown.startswith(said)
        assert shown.endswith(" by words; a score of 0 is best\n")
        compared = json.loads(await searched(client, "tool1", "--json"))["compared"]
        assert compared == {"model": None, "rerank": rerank}


async def test_a_search_says_how_many_vectors_there_are_until_all_are(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configuration(tmp_path, SERVERS, rerank="auto", profiles={"small": {"tools": ["one:tool1"]}})
    with embedding(SlowEmbedder()) as embedder:
        monkeypatch.setattr(neural, "load", lambda wanted, folder: embedder)
        async with running(config, data, connect=Fleet().connect) as client:
            await Client(client).ready()

            async def until(ending: str) -> None:
                while not (await searched(client, "tool1")).endswith(ending):  # noqa: ASYNC110 - a thread loads it
                    await trio.sleep(0.02)

            await until(" by words, 0 of 10 also by meanings so far; a score of 0 is best\n")
            of_profile = json.loads(await searched(client, "tool1", "--profile", "small", "--json"))
            assert of_profile["compared"] == {"model": "fake", "vectors": 0, "of": 1, "rerank": "auto"}
            embedder.go.set()
            await until(" by words and meanings; a score of 0 is best\n")
            assert "compared" not in json.loads(await searched(client, "*", "--json")), "a list compares nothing"

            session = (await initialize(client, "/mcp")).headers["mcp-session-id"]
            given = {"name": "discover_mcp_tools", "arguments": {"query": "tool1"}}
            answer = await ask(client, "/mcp", "tools/call", session, **given)
            assert "compared" not in answer.text, "a model pays for each token"
