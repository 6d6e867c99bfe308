"""Work beside the loop: what is small is done at once, one large piece at a time, not too many wait."""

from __future__ import annotations

import threading

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.errors import TooManyCalls
from supervisor.host.workbench import SMALL_BYTES, Workbench, beside


async def test_small_work_is_done_at_once_and_large_work_in_a_thread() -> None:
    bench = Workbench()
    here = threading.get_ident()
    assert await bench.run(SMALL_BYTES, threading.get_ident) == here
    assert await bench.run(SMALL_BYTES + 1, threading.get_ident) != here


async def test_what_goes_wrong_in_a_thread_comes_out_as_it_is() -> None:
    def fail(text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError, match="x"):
        await Workbench().run(SMALL_BYTES + 1, fail, "x")


async def test_a_bench_may_take_several_large_pieces_at_once() -> None:
    bench = Workbench(max_waiting=1, at_once=2)
    together = threading.Barrier(2)
    done: list[int] = []

    async def large() -> None:
        done.append(await bench.run(SMALL_BYTES + 1, together.wait, 10))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(large)
    assert sorted(done) == [0, 1]


async def test_too_much_large_work_is_refused_and_small_work_and_answers_go_on() -> None:
    bench = Workbench(max_waiting=2)
    released = threading.Event()
    done: list[bool] = []

    async def large() -> None:
        done.append(await bench.run(SMALL_BYTES + 1, released.wait, 10))

    async def answered() -> None:
        done.append(await bench.finish(SMALL_BYTES + 1, released.wait, 10))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(large)
            await wait_all_tasks_blocked()
            with pytest.raises(TooManyCalls, match="busy"):
                await large()
            assert await bench.run(1, len, "abc") == 3
            nursery.start_soon(answered)
            await wait_all_tasks_blocked()
            released.set()
    assert done == [True] * 4


async def test_without_a_thread_large_work_is_refused_and_a_page_is_made_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_thread(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", no_thread)
    with pytest.raises(TooManyCalls, match="no room"):
        await Workbench().run(SMALL_BYTES + 1, len, "abc")
    assert await Workbench().finish(SMALL_BYTES + 1, len, "abc") == 3
    assert await beside(lambda: 3) == 3
