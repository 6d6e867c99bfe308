"""Our ends of the pipes of a process: what comes faster than its pace waits there."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from actors.kit.fairness.share import LinePace
from actors.transport.stdio.process import ServerOutput

LINES = b"x\n" * 1000


@asynccontextmanager
async def outputs(pace: LinePace, hurried: trio.Event) -> AsyncIterator[tuple[int, ServerOutput]]:
    """A pipe: where it is written, and what reads it."""
    reading, writing = os.pipe()
    output = ServerOutput(trio.lowlevel.FdStream(reading), pace, hurried)
    try:
        yield writing, output
    finally:
        output.close()
        os.close(writing)


async def test_lines_that_come_too_fast_are_read_later(autojump_clock: MockClock) -> None:
    async with outputs(LinePace(100, 100), trio.Event()) as (writing, output):
        moments: list[float] = []
        for _ in range(3):
            os.write(writing, LINES)
            assert await output.read() == LINES
            moments.append(trio.current_time() - (moments[0] if moments else 0.0))
    assert moments[1:] == [pytest.approx(1.0, abs=0.4), pytest.approx(2.0, abs=0.5)]


async def test_long_lines_and_few_are_read_at_once(autojump_clock: MockClock) -> None:
    async with outputs(LinePace(100, 100), trio.Event()) as (writing, output):
        for _ in range(50):
            os.write(writing, b"y" * 50_000 + b"\n")
            assert len(await output.read()) == 50_001
        assert trio.current_time() == pytest.approx(0.0, abs=0.5)


async def test_who_is_about_to_end_is_read_without_a_rest(autojump_clock: MockClock) -> None:
    hurried = trio.Event()
    async with outputs(LinePace(1, 10), hurried) as (writing, output), trio.open_nursery() as nursery:
        os.write(writing, LINES)
        await output.read()
        os.write(writing, LINES)
        begun = trio.current_time()

        async def hurry() -> None:
            await trio.sleep(2)
            hurried.set()

        nursery.start_soon(hurry)
        assert await output.read() == LINES
        assert trio.current_time() - begun == pytest.approx(2.0, abs=0.5)


async def test_who_floods_does_so_until_it_has_been_quiet_for_a_moment(autojump_clock: MockClock) -> None:
    async with outputs(LinePace(1000, 100), trio.Event()) as (writing, output):
        looks = [output.floods]
        os.write(writing, LINES)
        await output.read()
        for pause_s in (0.0, 0.5, 1.0):  # after half a second the pace would allow more
            await trio.sleep(pause_s)
            looks.append(output.floods)
    assert looks == [False, True, True, False]
