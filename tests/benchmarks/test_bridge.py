"""The benchmarks of the bridge as they are run, with few and short rounds: that what they count has happened."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import bridge, subscriptions
from benchmarks.execute import Plan

pytestmark = pytest.mark.process


def test_each_pair_of_eras_is_called_and_asked_and_others_call_beside_a_flood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "START_S", 0.2)  # for a round of 0.05 s
    rows = bridge.run(tmp_path, Plan(0.05, 1), (1,))
    assert [row.what.partition(",")[0] for row in rows] == [
        *["a call"] * 4,
        *["a call with one question"] * 4,
        *["a legacy client's calls"] * 2,
        *["a modern client's calls"] * 2,
    ]
    assert all(row.ratio and row.value and row.value > 0 for row in rows)
    floods = [re.findall(r"progress ([\d,]+) times", row.what)[0] for row in rows[-4:]]
    assert all(int(flood.replace(",", "")) > 0 for flood in floods)


def test_subscribers_of_every_kind_are_told_of_a_change(tmp_path: Path) -> None:
    rows = subscriptions.run(tmp_path, [3], 1)
    assert [row.what for row in rows] == [f"one change, 3 subscribers, {kind.name}" for kind in subscriptions.KINDS]
    assert all(re.match(r"p50 \d+ ms, p99 \d+ ms; -?\d+ KiB each; others wait \d+ ms", row.measured) for row in rows)
    assert [bool(row.compared) for row in rows] == [not kind.websocket for kind in subscriptions.KINDS]
