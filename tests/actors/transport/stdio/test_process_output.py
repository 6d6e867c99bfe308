"""What comes out of a process: floods, halves, noise, and the words of its end."""

from __future__ import annotations

import signal
from typing import Any

import pytest
import trio
import trio.testing

from actors.errors import ProtocolViolation, ServerExited, TruncatedMessage
from actors.transport.base import Incoming
from actors.transport.side_output import KEPT_BYTES
from actors.transport.stdio.command import ProcessLimits
from actors.transport.stdio.process import ProcessTransport
from tests.actors.transport.stdio.children import (
    PATIENCE_S,
    decoded,
    launch,
    no_child_and_no_descriptor_is_left,
    send,
    whole,
)

__all__ = ["no_child_and_no_descriptor_is_left"]

pytestmark = pytest.mark.process


@pytest.mark.parametrize("code", [0, 3, 139])
async def test_an_exit_has_its_code_and_the_last_words(code: int) -> None:
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch("exit_with", str(code))).connect() as connection:
            exit_ = await connection.wait()
            assert (exit_.code, exit_.signal, exit_.asked) == (code, None, False)
            assert exit_.last_stderr == connection.asides.last_stderr(1) == "fatal: no configuration"
            assert await connection.receive() == Incoming()
            with pytest.raises(ServerExited):
                await send(connection, b"{}")


@pytest.mark.case("P09")
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
async def test_a_signal_is_told_from_a_code(number: signal.Signals) -> None:
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch("die_of", str(int(number)))).connect() as connection:
            exit_ = await connection.wait()
    assert (exit_.code, exit_.signal) == (None, number)


@pytest.mark.case("S31")
async def test_a_hundred_megabytes_of_stderr_block_nobody_and_cost_a_ring() -> None:
    limits = ProcessLimits(max_lines_per_s=10_000_000)  # beyond it they are read at a pace, which has tests of its own
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch("flood_stderr"), limits).connect() as connection:
            assert decoded((await connection.receive()).lines) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
            await connection.stop()
            assert connection.asides.last_stderr(1) == "\\x1b[31mthe end"
            assert len(connection.asides.last_stderr(1_000_000)) <= KEPT_BYTES


@pytest.mark.case("S31")
async def test_any_bytes_on_stderr_hold_up_no_answer_and_are_shown_as_text() -> None:
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch("binary_stderr")).connect() as connection:
            assert decoded((await connection.receive()).lines) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
            await connection.stop()
            shown = connection.asides.last_stderr(1_000_000)
            assert shown
            assert [sign for sign in shown if not sign.isprintable() and sign not in "\n\t"] == []


async def test_half_a_line_at_the_end_is_a_truncated_message() -> None:
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch("half_a_line")).connect() as connection:
            assert len((await connection.receive()).lines) == 1
            with pytest.raises(TruncatedMessage):
                await connection.receive()
            assert await connection.receive() == Incoming()


@pytest.mark.case("S06")
async def test_ten_mebibytes_in_one_line_go_both_ways() -> None:
    size = 10 * 1024 * 1024
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch("long_line", str(size))).connect() as connection:
            [message] = whole((await connection.receive()).lines)
            assert len(message) > size
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send, connection, message)
                assert (await connection.receive()).lines == [message]


@pytest.mark.case("S05")
async def test_a_line_that_never_ends_is_a_violation_at_many_times_the_limit() -> None:
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(
            launch("no_newline"), ProcessLimits(max_line_bytes=1_000_000)
        ).connect() as connection:
            with pytest.raises(ProtocolViolation, match="16000000 bytes"):
                await connection.receive()
            connection.kill()
            assert (await connection.wait()).signal == signal.SIGKILL


async def test_noise_is_dropped_and_counted_and_the_messages_around_it_arrive() -> None:
    received: list[Any] = []
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch("noise")).connect() as connection:
            while len(received) < 3:
                received += decoded((await connection.receive()).lines)
            assert [message["id"] for message in received] == [1, 2, 3]
            assert connection.counters.stdout_noise == 2
            assert connection.counters.messages_received == 3


@pytest.mark.case("S33")
async def test_a_closed_input_is_a_server_that_exited_for_the_sender() -> None:
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch("close_stdin")).connect() as connection:
            await connection.receive()
            with pytest.raises(ServerExited):
                await send(connection, b"{}")
            connection.kill()


async def test_a_blocked_sender_is_told_when_the_server_is_stopped() -> None:
    failed = trio.Event()

    async def send_much() -> None:
        with pytest.raises(ServerExited):
            await send(connection, b" " * 1_000_000)
        failed.set()

    with trio.fail_after(PATIENCE_S):
        transport = ProcessTransport(launch("full_pipe"), ProcessLimits(stop_eof_s=0.1))
        async with transport.connect() as connection, trio.open_nursery() as nursery:
            nursery.start_soon(send_much)
            await trio.testing.wait_all_tasks_blocked()
            await connection.stop()
            await failed.wait()
