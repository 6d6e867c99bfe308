"""Makes docs/demo.svg, the picture of `mcpvisor demo`, from a run of it: `python docs/picture.py [FILE]`.

What differs from run to run (times, ports, how near a hit is) is left out: the same program gives the same picture.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from supervisor.demo.tour import run_tour

PICTURE = Path(__file__).with_name("demo.svg")
RECORDED_COLUMNS = 119
"""As wide as the servers are still shown as on a narrow terminal."""
COLUMNS = 112
LEFT_OUT: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r", score [\d.]+ \(0 is best\), in [\d.]+ ms", ""),
    (r"(listens on http://127\.0\.0\.1):\d+ after [\d.]+ s", r"\1:3001"),
    (r"arrived over WebSocket \d+ ms after", "arrived over WebSocket after"),
    (r" after \d+ ms, process \d+", ""),
    (r"(All steps worked), in [\d.]+ s", r"\1"),
    # How long each server is ready: the column SINCE.
    (r"(\S +)(\d+[smh])( +\d)", lambda found: f"{found[1]}{'-'.rjust(len(found[2]))}{found[3]}"),
    # Whoever is idle may sleep before the others are up, where that takes longer.
    (r"^(calculator +(?:\S+ +)?(?:\x1b\[[\d;]*m)?)dormant((?:\x1b\[0m)?)", r"\1ready\2  "),
    (r"^(calculator +(?:\S+ +)?(?:\x1b\[[\d;]*m)?)draining((?:\x1b\[0m)?)", r"\1ready\2   "),
)
"""Patterns of what is measured, and what is shown instead."""
MEASURED = re.compile(r"\b[\d.]+ ?m?s\b")
ROW = re.compile(r"[\w-]+ +(?:\S+ +)?(?:\x1b\[[\d;]*m)?ready\b")
SETTINGS = ("after 1.5 s without a call",)
FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
FAMILY = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def recorded() -> list[str]:
    """Run the demo; return its lines with their styles as terminal sequences. Raises `RuntimeError` if it fails."""
    out = Console(file=io.StringIO(), record=True, width=RECORDED_COLUMNS, highlight=False, emoji=False)
    if run_tour(out) != 0:
        raise RuntimeError("the demo failed")
    return out.export_text(styles=True).splitlines()


def settled(lines: list[str]) -> list[str]:
    """Return the lines without what is measured. Raises `ValueError` if something of it is left."""
    found = []
    for given in lines:
        line = given.rstrip()
        for pattern, instead in LEFT_OUT:
            line = re.sub(pattern, instead, line)
        left = line
        for setting in SETTINGS:
            left = left.replace(setting, "")
        if MEASURED.search(left):
            raise ValueError(f"this differs from run to run: {line}")
        found.append(line)
    # Whoever sleeps is shown behind the others: the rows of servers stand by name.
    rows = [number for number, line in enumerate(found) if ROW.match(line)]
    for number, line in zip(rows, sorted(found[number] for number in rows), strict=True):
        found[number] = line
    return found


def drawn(lines: list[str]) -> str:
    """Return the lines as SVG of a terminal, in a font that the reader has: nothing is loaded from elsewhere."""
    out = Console(file=io.StringIO(), record=True, width=COLUMNS, highlight=False, emoji=False)
    for line in ["$ mcpvisor demo", *lines]:
        out.print(Text.from_ansi(line), soft_wrap=False)
    svg = FONTS.sub("", out.export_svg(title="mcpvisor demo", unique_id="demo"))
    svg = re.sub(r"font-family: [^;]*;", f"font-family: {FAMILY};", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def main(file: str = "") -> None:
    """Write the picture."""
    Path(file or PICTURE).write_text(drawn(settled(recorded())), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
