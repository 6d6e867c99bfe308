"""Lines of stdin are read as they come, and a read that nobody waits for holds nothing up."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.commands.lines import MAX_LINE_BYTES, StdinLines


@contextmanager
def pipe() -> Iterator[tuple[StdinLines, int]]:
    """Give the lines that come out of a pipe, and where they are written."""
    out, into = os.pipe()
    with os.fdopen(into, "wb", buffering=0), os.fdopen(out, "r") as stdin:
        yield StdinLines(stdin), into


async def test_lines_come_one_by_one() -> None:
    with pipe() as (lines, into):
        os.write(into, b"one\ntw")
        assert await lines.next() == "one"
        os.write(into, b"o\n\n")
        assert [await lines.next() for _ in range(2)] == ["two", ""]


async def test_the_end_of_the_input_is_no_line() -> None:
    lines = StdinLines(SimpleNamespace(buffer=io.BytesIO(b"one\n\xfftwo")))
    assert [await lines.next() for _ in range(3)] == ["one", "\ufffdtwo", None]
    closed = io.BytesIO()
    closed.close()
    for stdin in (SimpleNamespace(buffer=closed), SimpleNamespace()):
        assert await StdinLines(stdin).next() is None


async def test_a_line_without_end_is_cut() -> None:
    lines = StdinLines(SimpleNamespace(buffer=io.BytesIO(b"x" * MAX_LINE_BYTES + b"y\n")))
    first = await lines.next()
    assert first is not None
    assert len(first) == MAX_LINE_BYTES


async def test_a_read_is_left_behind() -> None:
    with pipe() as (lines, into):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lines.next)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        os.write(into, b"\n")  # its thread ends
