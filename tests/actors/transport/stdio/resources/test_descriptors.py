"""Descriptors: how many are free, and that a start leaves enough of them."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from actors.errors import SpawnFailed
from actors.kit import Conditions
from actors.transport.stdio.containment import ShimContainment
from actors.transport.stdio.resources.room import SPAWN, WHAT, Room, free
from tests.actors.transport.stdio.children import descriptors

pytestmark = pytest.mark.process


@contextmanager
def leaving(number: int) -> Iterator[None]:
    """Only so many descriptors are free for the block: the limit is one of their numbers."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.dup(0) for _ in range(number)]
    for fd in held:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_is_free_is_counted_without_taking_any() -> None:
    with leaving(7):
        assert free() == 7
        held = [os.dup(0) for _ in range(7)]
        assert free() == 0
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(0)
        for fd in held:
            os.close(fd)


async def test_a_start_without_enough_of_them_is_refused_before_it_takes_any() -> None:
    conditions = Conditions()
    containment = ShimContainment(room=Room(conditions))
    before = descriptors()
    with leaving(SPAWN - 1), trio.move_on_after(0.2), pytest.raises(SpawnFailed) as caught:
        await containment.spawn(["/bin/cat"], env={"PATH": "/bin"}, cwd="/")
    assert caught.value.scarce
    assert not caught.value.permanent
    assert [condition.what for condition in conditions.now()] == [WHAT]
    assert descriptors() == before


async def test_a_start_waits_until_there_are_enough() -> None:
    conditions = Conditions()
    started = trio.Event()

    async def start() -> None:
        async with Room(conditions).start("a"):
            started.set()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            with leaving(SPAWN - 1):
                nursery.start_soon(start)
                await conditions.present(WHAT)
                assert not started.is_set()
            await started.wait()
    assert conditions.now() == []


async def test_starts_at_the_same_time_count_each_other() -> None:
    share = Room()
    with leaving(SPAWN + 2):
        async with share.start("a"):
            with trio.move_on_after(1.0), pytest.raises(OSError, match="Too many open files") as caught:
                async with share.start("a"):
                    pass
            assert caught.value.errno == errno.EMFILE
        async with share.start("a"):
            pass
