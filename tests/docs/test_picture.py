"""The picture of the demo is what the demo says today, small, and loads nothing."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.picture import settled

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "demo.svg"
MAX_BYTES = 60_000


def shown(svg: str) -> list[str]:
    """Every piece of text in the picture."""
    return [html.unescape(text) for text in re.findall(r">([^<]+)</text>", svg)]


@pytest.mark.process
def test_the_script_makes_the_picture_that_is_there(tmp_path: Path) -> None:
    made = tmp_path / "demo.svg"
    subprocess.run([sys.executable, "docs/picture.py", str(made)], cwd=ROOT, check=True, timeout=600)
    assert shown(made.read_text()) == shown(PICTURE.read_text()), "run: python docs/picture.py"


def test_the_picture_is_small_and_loads_nothing() -> None:
    svg = PICTURE.read_text()
    assert len(svg.encode()) < MAX_BYTES
    assert "url(http" not in svg
    assert "@import" not in svg
    assert not re.search(r"\b(href|src)=", svg)


def test_the_picture_shows_no_time_that_was_measured() -> None:
    assert not re.search(r"\b\d[\d.]*\u00a0?m?s\b", "\n".join(shown(PICTURE.read_text())).replace("1.5\u00a0s", ""))


def test_a_server_that_sleeps_already_keeps_its_place() -> None:
    rows = ["notes         \x1b[32mready\x1b[0m  1s  3", "calculator    \x1b[36mdormant\x1b[0m  5s  2", "two servers"]
    found = [re.sub(r"\x1b\[\d*m", "", line).split()[0] for line in settled(rows)]
    assert found == ["calculator", "notes", "two"]


@pytest.mark.parametrize(
    "row",
    [
        "calculator    \x1b[32mready\x1b[0m          12s      2       93",
        "calculator    \x1b[32mready\x1b[0m           1m      2       93",
        "calculator    \x1b[36mdormant\x1b[0m         5s      2       93",
    ],
)
@pytest.mark.parametrize("status", ["", "\x1b[32monline\x1b[0m  "])
def test_the_picture_is_the_same_on_a_slow_machine(row: str, status: str) -> None:
    (found,) = settled([row.replace("calculator    ", f"calculator    {status}")])
    plain = re.sub(r"\x1b\[\d*m", "", found)
    assert plain == f"calculator    {'online  ' if status else ''}ready            -      2       93"
