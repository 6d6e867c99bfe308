"""How much memory there is for us: on the machine, or in the control groups that we are in (Linux, cgroup v2).

The least of these counts: whoever gives a container 512 MiB means its servers, too. What a group holds of files that
can be dropped (`inactive_file`) is to be had, as `MemAvailable` reckons for the machine. Formats: proc(5), cgroup-v2.
A look takes some 0.1 ms, and nothing is known where the system does not tell.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from actors.transport.stdio.resources.bounds import MemoryLook

PROC: Final = Path("/proc")
GROUPS: Final = Path("/sys/fs/cgroup")
_KIB: Final = 1024
_MAX_DIGITS: Final = 20
"""Of a number of 64 bits."""
_SOME: Final = re.compile(r"some avg10=([0-9.]+)")


def own_group(proc: Path = PROC, mount: Path = GROUPS) -> Path | None:
    """Return the directory of the control group that we are in, None where that is not of version 2 or not to be seen.

    Blocks.
    """
    for line in _text(proc / "self/cgroup").splitlines():
        if line.startswith("0::/") and _text(mount / "cgroup.controllers"):
            place = mount / line[len("0::/") :]
            return place if mount in (place, *place.parents) and ".." not in place.parts else None
    return None


def look_at_memory(proc: Path = PROC, mount: Path = GROUPS) -> MemoryLook:
    """Return how much memory there is now. Blocks for some 0.1 ms."""
    machine = _table(_text(proc / "meminfo").replace(":", ""))
    total, available = machine.get("MemTotal"), machine.get("MemAvailable")
    if total is None or available is None:
        return MemoryLook()
    total, available = total * _KIB, available * _KIB
    group = own_group(proc, mount)
    while group is not None and group != mount:
        limit = _number(group / "memory.max")
        if limit is not None:
            droppable = _table(_text(group / "memory.stat")).get("inactive_file", 0)
            taken = (_number(group / "memory.current") or 0) - droppable
            total, available = min(total, limit), min(available, max(0, limit - taken))
        group = group.parent
    some = _SOME.match(_text(proc / "pressure/memory"))
    return MemoryLook(total=total, available=available, pressure=None if some is None else _percent(some[1]))


def _text(place: Path) -> str:
    try:
        return place.read_text(encoding="utf-8", errors="surrogateescape")
    except (OSError, ValueError):  # not there, or no name of a file at all
        return ""


def _table(text: str) -> dict[str, int]:
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and _is_number(row[1])}


def _number(place: Path) -> int | None:
    """Return the number in a file, None for `max` and where there is no such file."""
    text = _text(place).strip()
    return int(text) if _is_number(text) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def _percent(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0
