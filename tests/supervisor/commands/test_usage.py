"""`usage` and `top`: what was called, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.commands.usage import BARS, bars, in_bytes, in_time
from supervisor.host.datadir import DataDir
from tests.supervisor.commands.test_cli import ask
from tests.supervisor.commands.test_token import url
from tests.supervisor.test_usage_of_daemon import daemon, data, execute

__all__ = ["data"]


async def test_it_shows_what_was_called(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        nothing = await ask(url(at), "usage")
        assert nothing.stderr == "Nothing was called in the last hour.\n"
        for _ in range(3):
            await execute(at, "operator", "desk:echo", text="a")
        await execute(at, "operator", "shop:refuse")
        shown = await ask(url(at), "usage")
        head, *rows = (line.split() for line in shown.stdout.splitlines())
        assert head == ["SERVER", "TOOL", "CALLS", "FAILED", "UNSENT", "P50", "P95", "WAITED", "OUT", "LAST"]
        assert [row[:5] for row in rows] == [["desk", "echo", "3", "0", "0"], ["shop", "refuse", "1", "1", "0"]]
        assert shown.stderr.startswith("4 calls in the last hour, 1 failed (25.0%), half of them within ")
        by_server = await ask(url(at), "usage", "--by", "server", "--window", "24h", "--limit", "1")
        assert by_server.stdout.splitlines()[1].split()[:3] == ["desk", "3", "0"]
        assert by_server.stderr.endswith("There are 1 more rows: see --limit.\n")
        told = json.loads((await ask(url(at), "usage", "--json", "--server", "shop")).stdout)
        assert (told["total"]["calls"], sum(each["calls"] for each in told["timeline"])) == (1, 1)
        await execute(at, "operator", "nowhere:to_be_found")
        after = await ask(url(at), "usage")
        assert after.stdout.splitlines()[2].split()[:5] == ["_unknown", "_unknown", "1", "0", "1"]
        assert after.stderr.startswith("5 calls in the last hour, 1 failed (20.0%), 1 never sent, half of them within ")
        lines = (await ask(url(at), "top")).stdout.splitlines()
        assert lines[0].startswith("5 calls in the last hour")
        assert lines[1].startswith("2 of 2 servers are online; tokens: ")
        assert lines[4].split()[:3] == ["desk", "echo", "3"]


@given(st.lists(st.integers(0, 10_000), max_size=200), st.integers(1, 80))
def test_there_is_a_bar_where_something_was_called(counts: list[int], width: int) -> None:
    drawn = bars(counts, width)
    assert len(drawn) <= width
    assert bool(drawn) == any(counts)
    assert set(drawn) <= set(BARS) | {" "}
    assert not any(counts) or BARS[-1] in drawn


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.34, "0.3 ms"), (12.4, "12 ms"), (999.0, "999 ms"), (1250.0, "1.2 s")]
)
def test_a_time_is_short(value: float | None, text: str) -> None:
    assert in_time(value) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (25e6, "25 MB"), (9e12, "9000 GB")]
)
def test_a_size_is_short(size: float, text: str) -> None:
    assert in_bytes(size) == text
