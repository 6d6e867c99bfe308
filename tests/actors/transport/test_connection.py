"""The contract of what shares one pipe: the same servers over memory and over a real process.

A server of this file is written twice, as an async function and as a script; each test runs with both. What holds for
every transport is in `test_contract.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio
import trio.testing

from actors.errors import ProtocolViolation, ServerExited, TruncatedMessage
from actors.protocol.wire.framing import TAIL_BYTES, Line, Oversized
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Connection, Incoming, Transport
from actors.transport.lines import ATOMIC_BYTES
from actors.transport.side_output import Source
from actors.transport.stdio.command import Launch, ProcessLimits
from actors.transport.stdio.process import ProcessTransport
from tests.actors.transport.stdio.children import send, whole
from tests.fakes.memory import MemoryPeer, MemoryTransport

PATIENCE_S = 60.0
MAX_LINE_BYTES = 1000
WRITE_TIMEOUT_S = 1.0
ONE, TWO = b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":2}'
NOISE = b'Welcome!\r\n\r\n{"level":"info"}\nid "jsonrpc"\n'
MALFORMED = b'{"jsonrpc":"\xff"}'
LONG = b'{"id":3,"result":"' + b"x" * MAX_LINE_BYTES + b'"}'
BULKY = ONE + b"\n" + LONG + b"\n\xef\xbb\xbf" + TWO + b"\r\n" + MALFORMED + b"\n"


async def echo(peer: MemoryPeer) -> int:
    while data := await peer.read():
        await peer.write(data)
    return 0


async def noisy(peer: MemoryPeer) -> int:
    await peer.write(b"\xef\xbb\xbf" + ONE + b"\r\n" + NOISE + TWO + b"\n")
    return await echo(peer)


async def bulky(peer: MemoryPeer) -> int:
    await peer.write(BULKY)
    return await echo(peer)


async def halved(peer: MemoryPeer) -> int:
    await peer.write(ONE + b"\n" + TWO[:10])
    return 0


async def endless(peer: MemoryPeer) -> int:
    while True:
        await peer.write(b"x" * 4096)


async def failing(peer: MemoryPeer) -> int:
    peer.log("starting\nfatal: \x1b[1mno key\n")
    await trio.lowlevel.checkpoint()
    return 3


async def stubborn(peer: MemoryPeer) -> int:
    await peer.write(ONE + b"\n")
    await trio.sleep_forever()
    raise AssertionError


async def deaf(peer: MemoryPeer) -> int:
    peer.close_input()
    return await stubborn(peer)


async def mute(peer: MemoryPeer) -> int:
    peer.close_output()
    while await peer.read():
        pass
    return 5


HEAD = "import os, signal\n"
ECHO = "while data := os.read(0, 65536): os.write(1, data)\n"
WAIT = f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.write(1, {ONE!r} + b'\\n')\nwhile True: signal.pause()\n"
SCRIPTS: dict[Callable[[MemoryPeer], Awaitable[int]], str] = {
    echo: ECHO,
    noisy: f"os.write(1, b'\\xef\\xbb\\xbf' + {ONE!r} + b'\\r\\n' + {NOISE!r} + {TWO!r} + b'\\n')\n" + ECHO,
    bulky: f"os.write(1, {BULKY!r})\n" + ECHO,
    halved: f"os.write(1, {ONE!r} + b'\\n' + {TWO[:10]!r})\n",
    endless: "while True: os.write(1, b'x' * 4096)\n",
    failing: "os.write(2, b'starting\\nfatal: \\x1b[1mno key\\n')\nos._exit(3)\n",
    stubborn: WAIT,
    deaf: "os.close(0)\n" + WAIT,
    mute: "os.close(1)\nwhile os.read(0, 65536): pass\nos._exit(5)\n",
}

Serve = Callable[[MemoryPeer], Awaitable[int]]
Make = Callable[[Serve], Transport]


def in_memory(serve: Serve) -> Transport:
    return MemoryTransport(serve, max_line_bytes=MAX_LINE_BYTES, stop_s=0.2, write_timeout_s=WRITE_TIMEOUT_S)


def as_process(serve: Serve) -> Transport:
    launch = Launch(command=sys.executable, args=("-I", "-S", "-c", HEAD + SCRIPTS[serve]))
    limits = ProcessLimits(
        max_line_bytes=MAX_LINE_BYTES, write_timeout_s=WRITE_TIMEOUT_S, stop_eof_s=5.0, stop_term_s=0.1
    )
    if serve in (stubborn, deaf):
        limits = ProcessLimits(write_timeout_s=WRITE_TIMEOUT_S, stop_eof_s=0.1, stop_term_s=0.1)
    return ProcessTransport(launch, limits)


every_pipe = pytest.mark.parametrize(
    "make", [pytest.param(in_memory, id="memory"), pytest.param(as_process, id="process", marks=pytest.mark.process)]
)


async def received(connection: Connection, count: int) -> list[bytes]:
    messages: list[bytes] = []
    with trio.fail_after(PATIENCE_S):
        while len(messages) < count:
            lines = (await connection.receive()).lines
            assert lines, "the output ended"
            messages += whole(lines)
    return messages


@every_pipe
async def test_what_is_written_beside_messages_is_told_as_it_comes(make: Make) -> None:
    heard: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def hear(source: Source, data: bytes) -> None:
        heard[source] += data

    for serve in (noisy, failing):
        async with make(serve).connect() as connection:
            connection.asides.hear = hear
            if serve is noisy:
                await received(connection, 2)
            else:
                with trio.fail_after(PATIENCE_S):
                    await connection.wait()
    assert heard["stderr"] == b"starting\nfatal: \x1b[1mno key\n"
    assert [line for line in heard["stdout"].split(b"\n") if line] == [
        b"Welcome!",
        b'{"level":"info"}',
        b'id "jsonrpc"',
    ]


@every_pipe
async def test_noise_is_dropped_and_counted(make: Make) -> None:
    async with make(noisy).connect() as connection:
        assert await received(connection, 2) == [ONE, TWO]
        assert connection.counters.stdout_noise == 3


@every_pipe
async def test_half_a_message_at_the_end_is_an_error_once(make: Make) -> None:
    async with make(halved).connect() as connection:
        assert await received(connection, 1) == [ONE]
        with trio.fail_after(PATIENCE_S):
            with pytest.raises(TruncatedMessage):
                await connection.receive()
            assert await connection.receive() == Incoming()


@every_pipe
async def test_a_message_over_the_limit_is_told_and_those_around_it_pass(make: Make) -> None:
    async with make(bulky).connect() as connection:
        found: list[Line] = []
        with trio.fail_after(PATIENCE_S):
            while len(found) < 4:
                found += (await connection.receive()).lines
            await send(connection, ONE)
            found += (await connection.receive()).lines
        over = Oversized(len(LONG), MAX_LINE_BYTES, LONG, LONG[-TAIL_BYTES:])
        assert found == [ONE, over, TWO, MALFORMED, ONE]
        assert connection.counters.stdout_noise == 0


@pytest.mark.case("S05")
@every_pipe
async def test_a_message_that_does_not_end_is_a_violation(make: Make) -> None:
    async with make(endless).connect() as connection:
        with pytest.raises(ProtocolViolation, match="does not end"), trio.fail_after(PATIENCE_S):
            await received(connection, 10_000_000)


@every_pipe
async def test_an_exit_is_told_to_everyone_who_waits_with_the_last_words(make: Make) -> None:
    async with make(failing).connect() as connection:
        with trio.fail_after(PATIENCE_S):
            first = await connection.wait()
            assert first == await connection.wait()
            assert await connection.receive() == Incoming()
            with pytest.raises(ServerExited):
                await send(connection, ONE)
        assert (first.code, first.signal, first.asked) == (3, None, False)
        assert first.last_stderr == "starting\nfatal: \\x1b[1mno key"
        assert connection.asides.last_stderr(1) == "fatal: \\x1b[1mno key"


@pytest.mark.case("S33")
@every_pipe
async def test_a_server_that_reads_no_more_fails_the_sender(make: Make) -> None:
    async with make(deaf).connect() as connection:
        await received(connection, 1)
        with pytest.raises(ServerExited):
            await send(connection, ONE)


@every_pipe
async def test_a_closed_input_is_noticed_without_writing_to_it(make: Make) -> None:
    async with make(deaf).connect() as connection:
        await received(connection, 1)
        with trio.fail_after(PATIENCE_S):
            await connection.wait_input_closed()


@every_pipe
async def test_an_input_that_we_closed_counts_as_closed_when_the_server_is_gone(make: Make) -> None:
    async with make(mute).connect() as connection, trio.open_nursery() as nursery:
        order: list[str] = []

        async def watch() -> None:
            await connection.wait_input_closed()
            assert (await connection.wait()).asked
            order.append("closed")

        nursery.start_soon(watch)
        await trio.testing.wait_all_tasks_blocked()
        assert order == []
        with trio.fail_after(PATIENCE_S):
            await connection.stop()


@every_pipe
async def test_a_sender_knows_what_may_have_left_while_the_server_reads_nothing(make: Make) -> None:
    async with make(stubborn).connect() as connection:
        await received(connection, 1)
        left: list[int] = []
        messages = [Outgoing(parts=(TWO.ljust(100_000),)) for _ in range(20)]
        with trio.fail_after(PATIENCE_S):
            with trio.move_on_after(0.3) as scope:
                await connection.send(messages, left.append)
            assert scope.cancelled_caught
            assert 0 < sum(left) < len(messages)
            connection.kill()


@every_pipe
async def test_a_pipe_takes_small_messages_at_once_or_not_at_all(make: Make) -> None:
    left: list[int] = []
    async with make(echo).connect() as connection:
        messages = [Outgoing(parts=(ONE,)), Outgoing(parts=(TWO,))]
        with trio.fail_after(PATIENCE_S):
            assert connection.send_at_once(messages, left.append)
            assert await received(connection, 2) == [ONE, TWO]
        assert left == [2]
        assert not connection.send_at_once([Outgoing(parts=(TWO.ljust(ATOMIC_BYTES),))], left.append)
    async with make(stubborn).connect() as connection:
        await received(connection, 1)
        with trio.fail_after(PATIENCE_S):
            with trio.move_on_after(0.3):
                await connection.send([Outgoing(parts=(TWO.ljust(1_000_000),))], lambda count: None)
            assert not connection.send_at_once([Outgoing(parts=(ONE,))], left.append)
        connection.kill()
    assert left == [2]


@pytest.mark.case("S34")
@every_pipe
async def test_a_server_that_takes_nothing_for_too_long_is_lost(make: Make) -> None:
    transport = make(stubborn)
    async with transport.connect() as connection:
        await received(connection, 1)
        with trio.fail_after(PATIENCE_S):
            assert not await connection.send([Outgoing(parts=(TWO.ljust(1_000_000),))], lambda count: None)
        connection.kill()


@every_pipe
async def test_what_takes_a_request_back_is_a_message_where_all_share_one_stream(make: Make) -> None:
    cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled"}'
    async with make(echo).connect() as connection:
        messages = [Outgoing(parts=(ONE,), id=b"1"), Outgoing(parts=(cancelled,), cancels=b"1")]
        assert await connection.send(messages, lambda count: None)
        assert await received(connection, 2) == [ONE, cancelled]


@every_pipe
async def test_a_closed_output_is_not_an_exit(make: Make) -> None:
    async with make(mute).connect() as connection:
        with trio.fail_after(PATIENCE_S):
            assert await connection.receive() == Incoming()
            await send(connection, ONE)
            await connection.stop()
            assert (await connection.wait()).code == 5


@every_pipe
async def test_a_sender_waits_for_a_server_that_does_not_read_until_it_is_killed(make: Make) -> None:
    blocked = trio.Event()

    async def send_for_ever(connection: Connection) -> None:
        with suppress(ServerExited):
            while True:
                await send(connection, b" " * 65536)
        blocked.set()

    async with make(stubborn).connect() as connection:
        await received(connection, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_for_ever, connection)
            await trio.testing.wait_all_tasks_blocked()
            assert not blocked.is_set()
            connection.kill()
            with trio.fail_after(PATIENCE_S):
                await blocked.wait()
