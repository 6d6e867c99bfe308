"""What comes out of a process: floods, odd bytes and long lines, and how it ended."""

from __future__ import annotations

import signal

import pytest
import trio
import trio.testing

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


@pytest.mark.case("P09")
@pytest.mark.parametrize(
    ("habit", "number", "code", "sent"),
    [
        ("exit_with", 0, 0, None),
        ("exit_with", 3, 3, None),
        ("exit_with", 128 + signal.SIGSEGV, 128 + signal.SIGSEGV, None),
        ("die_of", signal.SIGSEGV, None, signal.SIGSEGV),
        ("die_of", signal.SIGKILL, None, signal.SIGKILL),
        ("die_of", signal.SIGTERM, None, signal.SIGTERM),
    ],
)
async def test_a_signal_is_told_from_a_code(habit: str, number: int, code: int | None, sent: int | None) -> None:
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(launch(habit, str(int(number)))).connect() as connection:
            exit_ = await connection.wait()
    assert (exit_.code, exit_.signal, exit_.asked) == (code, sent, False)


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
