"""What comes in on a connection without a process: what is unread of one stream is taken together, in its order."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from actors.protocol.wire.peer import Failure
from actors.transport.base import Exit, Incoming
from actors.transport.session import MAX_ARRIVED, TOGETHER_BYTES, Session

FAILED = Failure(id=b'"1"', cause="crashed", reason="it broke off")


def said(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"m","params":{"n":%d}}' % number


async def taken(session: Session) -> list[tuple[bytes, list[bytes]]]:
    """All that is unread: streams, and the lines that were taken at once."""
    session.end(Exit(asked=True))
    found: list[tuple[bytes, list[bytes]]] = []
    while (incoming := await session.receive()) != Incoming():
        found.append((incoming.stream, [bytes(line) for line in incoming.lines]))  # type: ignore[arg-type]  # short
    return found


async def test_what_is_unread_of_one_stream_is_taken_at_once() -> None:
    session = Session()
    for text, stream in ((said(1), b"a"), (said(2), b"a"), (said(3), b"b"), (said(4), b"a"), (said(5), b"a")):
        await session.hand_on(text, stream)
    assert await taken(session) == [(b"a", [said(1), said(2)]), (b"b", [said(3)]), (b"a", [said(4), said(5)])]
    assert session.counters.messages_received == 5


async def test_nothing_is_added_to_what_was_taken() -> None:
    session = Session()
    await session.hand_on(said(1), b"a")
    first = await session.receive()
    await session.hand_on(said(2), b"a")
    assert list(first.lines) == [said(1)]
    assert await taken(session) == [(b"a", [said(2)])]


async def test_what_is_taken_at_once_is_bounded() -> None:
    session = Session()
    line = said(1) + b" " * (TOGETHER_BYTES // 2)
    for _ in range(3):
        await session.hand_on(line, b"a")
    assert [len(lines) for _, lines in await taken(session)] == [1, 1, 1]


async def test_what_comes_after_a_failure_is_not_taken_before_it() -> None:
    session = Session()
    await session.hand_on(said(1), b"a")
    await session.fail(FAILED)
    await session.hand_on(said(2), b"a")
    incoming = [await session.receive() for _ in range(3)]
    assert [(list(one.lines), one.failure) for one in incoming] == [([said(1)], None), ([], FAILED), ([said(2)], None)]


async def test_who_brings_more_than_is_read_waits() -> None:
    session = Session()
    line = said(1) + b" " * TOGETHER_BYTES
    brought = 0

    async def bring() -> None:
        nonlocal brought
        while True:
            await session.hand_on(line, b"a")
            brought += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bring)
        await wait_all_tasks_blocked()
        assert brought == MAX_ARRIVED
        await session.receive()
        await wait_all_tasks_blocked()
        assert brought == MAX_ARRIVED + 1
        nursery.cancel_scope.cancel()
