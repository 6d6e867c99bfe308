"""The pipes of a client: real ones, and what else may be in their place."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ProtocolViolation
from actors.protocol.wire.framing import Line, Oversized
from supervisor.bridge.pipes import SETTLE_S, Output, Unread, lines

pytestmark = pytest.mark.process


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    with ExitStack() as stack:
        reading, writing = os.pipe()
        for fd in (reading, writing):
            stack.callback(close, fd)
        yield reading, writing


def close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        assert fd > 2


async def all_lines(fd: int, limit: int = 100) -> list[Line]:
    with trio.fail_after(30):
        return [line async for line in lines(fd, limit)]


async def test_lines_come_as_they_are_written(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    heard: list[Line] = []

    async def hear() -> None:
        heard.extend([line async for line in lines(reading, 100)])

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hear)
            for part in (b'{"a"', b":1}\r\n\n  \n", b"\xef\xbb\xbfx\n", b"y" * 101 + b"\nlast"):
                os.write(writing, part)
                await wait_all_tasks_blocked(0.01)
            os.close(writing)
    assert heard == [b'{"a":1}', b"x", Oversized(101, 100, b"y" * 101, b"y" * 101)]


async def test_a_line_that_does_not_end_is_a_violation(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.write(writing, b"x" * 1700)
    with pytest.raises(ProtocolViolation):
        await all_lines(reading)


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "said").write_bytes(b"one\ntwo\n")
    with (tmp_path / "said").open("rb") as file:
        assert await all_lines(file.fileno()) == [b"one", b"two"]
    nothing = os.open(os.devnull, os.O_RDONLY)
    assert await all_lines(nothing) == []
    os.close(nothing)


async def test_a_pipe_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(reading, False)
    os.write(writing, b"one\n")
    os.close(writing)
    assert await all_lines(reading) == [b"one"]


async def test_a_terminal_that_is_gone_is_the_end() -> None:
    ours, theirs = os.openpty()
    os.close(theirs)
    assert await all_lines(ours) == []
    os.close(ours)


async def test_messages_are_written_each_as_a_line_one_after_the_other(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = Output(writing)
    large = b'{"x":\n"' + b"x" * 300_000 + b'"}'
    got = bytearray()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(output.write, large)
            nursery.start_soon(output.write, b"{}")
            while len(got) < len(large) + 4:
                await trio.lowlevel.wait_readable(reading)
                got += os.read(reading, 65536)
    assert sorted(bytes(got).split(b"\n")) == sorted([b"", large.replace(b"\n", b" "), b"{}"])
    assert os.get_blocking(writing)


@pytest.mark.parametrize("blocking", [True, False])
async def test_whoever_does_not_read_has_a_deadline(
    autojump_clock: MockClock, pipe: tuple[int, int], blocking: bool
) -> None:
    os.set_blocking(pipe[1], blocking)
    output = Output(pipe[1], 30.0)
    with pytest.raises(Unread, match="has read nothing for 30 s"):
        await output.write(b"x" * 1_000_000)


async def test_a_socket_does_as_well() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        await Output(ours.fileno()).write(b"{}")
        assert theirs.recv(10) == b"{}\n"


async def test_a_client_that_is_gone_is_told_from_a_slow_one(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(reading)
    with pytest.raises(Unread, match="closed its end"):
        await Output(writing).write(b"{}")


async def test_a_file_takes_everything(tmp_path: Path) -> None:
    with (tmp_path / "heard").open("wb") as file:
        await Output(file.fileno()).write(b"{}")
    assert (tmp_path / "heard").read_bytes() == b"{}\n"


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_what_was_written_settles_once_the_client_has_taken_it(pipe: tuple[int, int], kind: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reading, writing = pipe if kind == "pipe" else (theirs.fileno(), ours.fileno())
        output = Output(writing)
        order: list[str] = []

        async def settle() -> None:
            await output.settle()
            order.append("settled")

        with trio.fail_after(30):
            await output.settle()
            await output.write(b"{}")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(settle)
                for _ in range(10):
                    await trio.lowlevel.checkpoint()
                order.append("taken")
                os.read(reading, 100)
        assert order == ["taken", "settled"]


async def test_who_does_not_read_settles_all_the_same(autojump_clock: MockClock, pipe: tuple[int, int]) -> None:
    output = Output(pipe[1])
    await output.write(b"{}")
    await output.settle()
    assert trio.current_time() == pytest.approx(SETTLE_S)


async def test_where_nobody_can_say_what_is_read_nothing_is_waited_for(tmp_path: Path, pipe: tuple[int, int]) -> None:
    with (tmp_path / "heard").open("wb") as file:
        output = Output(file.fileno())
        await output.write(b"{}")
        await output.settle()
    output = Output(pipe[1])
    os.close(pipe[1])
    await output.settle()
