"""What one application is told of its request, without a network."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.front.edge.tasks import _ApplicationQueue


def part(body: bytes, *, more_body: bool) -> Any:
    return {"type": "http.request", "body": body, "more_body": more_body}


DISCONNECT = {"type": "http.disconnect"}


async def test_the_end_of_a_body_joins_the_part_that_nobody_has_read() -> None:
    queue = _ApplicationQueue(10)
    await queue.put(part(b"all of it", more_body=True))
    await queue.put(part(b"", more_body=False))
    await queue.put(DISCONNECT)
    assert await queue.receive() == part(b"all of it", more_body=False)
    assert await queue.receive() == DISCONNECT


async def test_the_end_of_a_body_comes_alone_once_the_part_was_read() -> None:
    queue = _ApplicationQueue(10)
    await queue.put(part(b"some", more_body=True))
    assert await queue.receive() == part(b"some", more_body=True)
    await queue.put(part(b"", more_body=False))
    assert await queue.receive() == part(b"", more_body=False)


async def test_parts_that_carry_something_stay_apart() -> None:
    queue = _ApplicationQueue(10)
    await queue.put(part(b"one", more_body=True))
    await queue.put(part(b"two", more_body=True))
    assert [await queue.receive(), await queue.receive()] == [
        part(b"one", more_body=True),
        part(b"two", more_body=True),
    ]


async def test_a_full_queue_holds_up_who_puts_until_something_is_taken(autojump_clock: trio.testing.MockClock) -> None:
    queue = _ApplicationQueue(1)
    await queue.put(part(b"one", more_body=True))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.put, part(b"two", more_body=True))
        await wait_all_tasks_blocked()
        assert await queue.receive() == part(b"one", more_body=True)
    assert await queue.receive() == part(b"two", more_body=True)


async def test_nobody_waits_for_an_application_that_has_finished() -> None:
    queue = _ApplicationQueue(1)
    await queue.put(part(b"one", more_body=True))
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(queue.put, part(b"two", more_body=True))
            await wait_all_tasks_blocked()
            queue.finish()
        await queue.put(DISCONNECT)


async def test_who_waits_for_an_event_gets_the_next_one() -> None:
    queue = _ApplicationQueue(10)
    found: list[Any] = []

    async def take() -> None:
        found.append(await queue.receive())

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await wait_all_tasks_blocked()
            await queue.put(DISCONNECT)
    assert found == [DISCONNECT]
