"""`python -m benchmarks.frames`: the frames and files of ours that one call goes through; `--list` shows them in order.

A daemon runs in this process with one echo server over stdio, which is up, and a client in a thread of its own calls it
over legacy HTTP. From the first byte of the request to the last of the answer the following is counted:

- *entries*: how often Python entered a function of `actors/` or `supervisor/`, in every thread, as `sys.setprofile`
  tells of it. A coroutine that goes on after it has waited is entered again, and so is each one that awaits it.
- *frames*: the same, but a coroutine counts once. A comprehension counts, as it is a function in Python 3.11. What is
  called in each pass of the loop does not, as the number of those is chance.
- *functions* and *files* that these frames are of, and the *rooms* of those: folders below `actors/` and `supervisor/`,
  what stands beside them being one more each; *arguments*: the frames in `supervisor/metatools/arguments/` and
  `lenient_json.py`, which read what a model wrote.
- *tasks* that ran, and their *turns* on the loop (`trio.abc.Instrument`). What is ready at once takes one turn.

The clock of the daemon stands still meanwhile, so that no timer of it fires. Of several calls the one with the fewest
frames is shown: some write the date of a new second. No time is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import msgspec
import trio
import trio.testing

from benchmarks.client import Client, Tool
from benchmarks.execute import THROUGH_US
from benchmarks.machine import ROOT
from benchmarks.running import ECHO, Place, entry, until_ready
from supervisor.config import load
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets
from supervisor.host.datadir import open_data_dir
from supervisor.host.loading import preload

OURS: Final = tuple(str(ROOT / package) + os.sep for package in ("actors", "supervisor"))
READING: Final = ("supervisor/metatools/arguments/", "supervisor/metatools/lenient_json.py")
DISCOVER: Final[Tool] = ("discover_mcp_tools", {"query": "answer with a text", "limit": 5})
CALLS: Final[dict[str, Tool]] = {"execute": THROUGH_US, "discover": DISCOVER}
OF_PASSES: Final = ("before_io_wait", "after_io_wait")
ONCE: Final = 20
"""Calls before any is counted, so that caches are filled and nothing is imported or compiled any more."""


class Way(msgspec.Struct, frozen=True):
    """What one call went through; see the top of the file. A frame is `path/of/file.py:Class.function`, in order."""

    frames: tuple[str, ...]
    entries: int
    tasks: int
    turns: int

    @property
    def files(self) -> frozenset[str]:
        """The files of ours."""
        return frozenset(frame.partition(":")[0] for frame in self.frames)

    @property
    def rooms(self) -> frozenset[str]:
        """The folders below the two packages; of a file beside them, its package."""
        return frozenset("/".join(Path(file).parts[:-1][:2]) for file in self.files)

    @property
    def reading(self) -> int:
        """How many frames read arguments."""
        return sum(frame.startswith(READING) for frame in self.frames)


class Recorder(trio.abc.Instrument):
    """Notes frames and turns while it is `on`. `hook` is for `sys.setprofile` and `threading.setprofile`."""

    def __init__(self) -> None:
        self._on = False
        self._entries = 0
        self._seen: dict[int, FrameType] = {}
        self._tasks: list[int] = []

    def hook(self, frame: FrameType, event: str, _: object) -> None:
        """Note the call of a function of ours; a frame is kept, so that no other one gets its id."""
        code = frame.f_code
        if self._on and event == "call" and code.co_filename.startswith(OURS) and code.co_name not in OF_PASSES:
            self._entries += 1
            self._seen.setdefault(id(frame), frame)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note a turn of a task."""
        if self._on:
            self._tasks.append(id(task))

    def record(self, call: Callable[[], object], settle: Callable[[], object] = lambda: None) -> Way:
        """Return what happens during `call`, which is not made on the loop, and afterwards until `settle` returns.

        The turns are those during the call: waiting for the rest takes some of its own.
        """
        self._seen, self._tasks, self._entries = {}, [], 0
        self._on = True
        try:
            call()
            turns = list(self._tasks)
            settle()
        finally:
            self._on = False
        frames = tuple(_name(frame.f_code) for frame in self._seen.values())
        return Way(frames, self._entries, len(set(turns)), len(turns))


def _name(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(ROOT).as_posix()}:{code.co_qualname}"


@contextmanager
def profiled(recorder: Recorder) -> Iterator[None]:
    """Call the hook of a recorder in this thread, and in all that begin meanwhile."""
    threading.setprofile(recorder.hook)
    sys.setprofile(recorder.hook)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def ways(directory: Path, tool: Tool, count: int) -> list[Way]:
    """Run a daemon in this thread and return the ways of some calls of a tool, one after another."""
    recorder = Recorder()
    config = Place(directory).write({"echo": entry(ECHO, idle_timeout_s=0)}, 0, log_level="warning")
    with profiled(recorder), open_data_dir(directory / "data", {}) as data:
        preload(remote=False)
        configuration = load(config, dict(os.environ))

        async def main() -> list[Way]:
            daemon = Daemon(configuration, data, open_sockets("127.0.0.1:0", 5.0))
            async with trio.open_nursery() as nursery:
                (url,) = await nursery.start(daemon.run)
                port = int(url.rpartition(":")[2])
                await trio.to_thread.run_sync(until_ready, port)
                clock.rate = 0  # no timer fires between the calls
                ways = await trio.to_thread.run_sync(_called, recorder, port, tool, count)
                clock.rate = 1
                daemon.closing.set()
            return ways

        clock = trio.testing.MockClock(rate=1)
        return trio.run(main, clock=clock, instruments=[recorder])


def _called(recorder: Recorder, port: int, tool: Tool, count: int) -> list[Way]:
    with Client(port) as client:
        for _ in range(ONCE):
            client.call(tool)
        ways = []
        for _ in range(count):
            settle()  # an answer is read before its request is over
            ways.append(recorder.record(lambda: client.call(tool), settle))
        return ways


def settle() -> None:
    """Wait until the daemon has nothing to do."""
    trio.from_thread.run(trio.testing.wait_all_tasks_blocked)


def least(ways: list[Way]) -> Way:
    """Return the way with the fewest frames."""
    return min(ways, key=lambda way: (len(way.frames), way.entries, way.turns))


def summary(name: str, way: Way) -> dict[str, Any]:
    """Return the column of the table for the way of one call."""
    functions = len(set(way.frames))
    return {
        "call": f"`{name}`",
        "entries": way.entries,
        "frames": len(way.frames),
        "functions": functions,
        "files": len(way.files),
        "rooms": len(way.rooms),
        "arguments": way.reading,
        "tasks": way.tasks,
        "turns": way.turns,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return a table of Markdown with a column for each call, which fits a narrow screen."""
    lines = [[name, *(str(row[name]) for row in rows)] for name in rows[0]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (lines[0], ["---"] * len(lines[0]), *lines[1:]))


def main() -> None:
    """Print the table, or what one call goes through."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=__doc__)
    parser.add_argument("--list", choices=CALLS, help="show the frames of this call instead of the table")
    parser.add_argument("--calls", type=int, default=11, help="how many are counted")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, tool in CALLS.items():
        if arguments.list in (None, name):
            with tempfile.TemporaryDirectory(prefix="frames-") as directory:
                way = least(ways(Path(directory), tool, arguments.calls))
            if arguments.list:
                print("\n".join(way.frames))
                return
            rows.append(summary(name, way))
    print(table(rows))


if __name__ == "__main__":
    main()
