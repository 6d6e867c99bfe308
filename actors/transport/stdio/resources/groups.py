"""Control groups of servers, below one that systemd has delegated to the daemon (cgroup v2).

- Only a group that says so (`user.delegate`, systemd's CGROUP_DELEGATION) is ours to divide: whoever else may write to
  one, root above all, would disturb what belongs to others.
- A group that hands controllers on may have no process of its own ("no internal processes", cgroup-v2). So at the first
  server with such a limit we move into the group `daemon` below, with whatever else is there.
- Several daemons may have one place, as nodes of one machine do: a group has the process id of its daemon in its name.
- A server has its group before it runs a single instruction of its own: see `kill_shim`, which stays outside.
- Where it does not work, servers have no groups, and the log says so once.

How much memory there is for us (`look_at_memory`): on the machine, or in the control groups that we are in. The least
of these counts: whoever gives a container 512 MiB means its servers, too. What a group holds of files that can be
dropped (`inactive_file`) is to be had, as `MemAvailable` reckons for the machine. Formats: proc(5), cgroup-v2. A look
takes some 0.1 ms, and nothing is known where the system does not tell.
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from actors.transport.stdio.resources.allotment import Allotment, Controllers, MemoryLook

PROC: Final = Path("/proc")
GROUPS: Final = Path("/sys/fs/cgroup")
_KIB: Final = 1024
_MAX_DIGITS: Final = 20
"""Of a number of 64 bits."""
_SOME: Final = re.compile(r"some avg10=([0-9.]+)")
log = logging.getLogger(__name__)
WANTED: Final = frozenset({"memory", "pids", "cpu"})
MOVES: Final = 10
"""So often what is in the group is moved: it may fork meanwhile."""
_PERIOD_US: Final = 100_000
_OPTIONAL: Final = frozenset({"memory.swap.max"})
"""What a kernel without swap does not have."""


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


_DAEMON, _SERVER = "daemon", "server-"


def is_delegated(place: Path) -> bool:
    """Say whether systemd gave a control group away. Blocks."""
    try:
        return os.getxattr(place, "user.delegate") == b"1"
    except OSError:
        return False


class Groups:
    """The groups of one daemon. All methods block for some 0.1 ms and more."""

    def __init__(
        self, proc: Path = PROC, mount: Path = GROUPS, is_delegated: Callable[[Path], bool] = is_delegated
    ) -> None:
        own = own_group(proc, mount)
        places = () if own is None or own == mount else (own, own.parent)  # above: `DelegateSubgroup=`
        self._place = next((place for place in places if is_delegated(place)), None)
        self.controllers: Controllers = frozenset()
        """What limits can be kept by; none without a group of ours."""
        if self._place is not None:
            self.controllers = WANTED & _words(self._place / "cgroup.controllers")
        self._opened = False
        self._numbers = count(1)
        self._left: set[Path] = set()

    def make(self, allotment: Allotment) -> Path | None:
        """Return a new group with these limits, None where there can be none."""
        if self._place is None or not self.controllers:
            return None
        try:
            self._open(self._place)
            self._sweep()
            group = self._place / f"{_SERVER}{os.getpid()}-{next(self._numbers)}"
            group.mkdir(exist_ok=True)
            for name, text in settings_of(allotment, self.controllers).items():
                _write(group / name, text)
        except OSError as error:
            log.warning("servers get no control groups, their limits are watched instead: %s", error.strerror)
            self.controllers = frozenset()
            return None
        return group

    def remove(self, group: Path) -> None:
        """Kill what is left in a group, and remove it, now or when the next one is made."""
        with suppress(OSError):
            _write(group / "cgroup.kill", "1")
        self._left.add(group)
        self._sweep()

    def _sweep(self) -> None:
        for group in tuple(self._left):
            with suppress(OSError):  # somebody in it is not reaped yet
                group.rmdir()
                self._left.discard(group)

    def _open(self, place: Path) -> None:
        """Make a group that can hand controllers on. Raises `OSError`."""
        if self._opened:
            return
        (place / _DAEMON).mkdir(exist_ok=True)
        for _ in range(MOVES):
            inside = _words(place / "cgroup.procs")
            for pid in inside:
                with suppress(ProcessLookupError):
                    _write(place / _DAEMON / "cgroup.procs", pid)
            if not inside:
                break
        _write(place / "cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(self.controllers)))
        self._left = {group for group in place.iterdir() if _is_left(group.name)}
        self._opened = True


def _is_left(name: str) -> bool:
    """Say whether a group is one of a daemon that has ended; nobody has one of ours yet."""
    owner = name.removeprefix(_SERVER).partition("-")[0]
    if not name.startswith(_SERVER) or not owner.isdecimal():
        return name.startswith(_SERVER)
    try:
        os.kill(int(owner), 0)
    except (OSError, OverflowError):
        return True
    return int(owner) == os.getpid()


def settings_of(allotment: Allotment, controllers: Controllers) -> dict[str, str]:
    """Return the files of a group that limit what is in it, with their contents."""
    files: dict[str, str] = {}
    if allotment.memory_bytes is not None and "memory" in controllers:
        # All of it ends together: a server without one of its processes is worse than none. Swap would be slow death.
        files |= {"memory.max": f"{allotment.memory_bytes}", "memory.swap.max": "0", "memory.oom.group": "1"}
    if allotment.processes is not None and "pids" in controllers:
        files["pids.max"] = f"{allotment.processes}"
    if allotment.processors is not None and "cpu" in controllers:
        files["cpu.max"] = f"{round(allotment.processors * _PERIOD_US)} {_PERIOD_US}"
    return files


def was_out_of_memory(group: Path) -> bool:
    """Say whether the kernel killed somebody in a group for want of memory. Blocks."""
    with suppress(OSError, ValueError):
        rows = (line.split() for line in (group / "memory.events").read_text(encoding="ascii").splitlines())
        return any(row[:1] == ["oom_kill"] and row[1:] != ["0"] for row in rows)
    return False


def _words(place: Path) -> frozenset[str]:
    try:
        return frozenset(place.read_text(encoding="ascii").split())
    except OSError:
        return frozenset()


def _write(place: Path, text: str) -> None:
    """Write to a file of a group, which takes it in one piece. Raises `OSError`."""
    try:
        place.write_text(text, encoding="ascii")
    except OSError:
        if place.name not in _OPTIONAL:
            raise
