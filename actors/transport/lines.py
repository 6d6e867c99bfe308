"""Messages as lines of a pipe (MCP 2025-11-25 and 2026-07-28, "stdio"): written each as one line, read line by line."""

from __future__ import annotations

import select
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate

import trio

from actors.kit.decoding import decode_in_thread
from actors.protocol.wire.framing import Line, LineSplitter, Pieces, may_be_message, one_line
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Counters
from actors.transport.side_output import Asides

ATOMIC_BYTES = select.PIPE_BUF
"""So many bytes a pipe takes as a whole, or not at all (POSIX, `write`): 4,096 on Linux, 512 on macOS."""

MANY_LINES = 2000
"""One read may bring sixteen times as many, which take 70 ms: then `FEW_BYTES` are looked at in one turn."""
FEW_BYTES = 4096

Write = Callable[[memoryview], Awaitable[int]]
"""Writes what a pipe takes of some bytes, at least one, and returns how many; a cancelled call wrote nothing."""


def line_of(message: Outgoing) -> bytes:
    """Return a message as one line, with its newline."""
    text = b"".join([*message.parts, b"\n"])
    end = len(text) - 1
    if text.find(b"\n") == end and b"\r" not in text:
        return text  # copied once
    return one_line(text[:end]) + b"\n"


def write_lines_at_once(
    messages: Sequence[Outgoing], write: Callable[[bytes], bool], left: Callable[[int], None]
) -> bool:
    """Write messages, see `Connection.send_at_once`; `write` writes all that it is given, or nothing."""
    text = line_of(messages[0]) if len(messages) == 1 else b"".join(map(line_of, messages))
    if len(text) > ATOMIC_BYTES or not write(text):
        return False
    left(len(messages))
    return True


async def write_lines(
    messages: Sequence[Outgoing], write: Write, left: Callable[[int], None], timeout_s: float
) -> bool:
    """Write messages; see `Connection.send`. False if nothing was taken for `timeout_s`. Raises what `write` does."""
    lines = list(map(line_of, messages))
    rest = memoryview(lines[0] if len(lines) == 1 else b"".join(lines))
    ends = list(accumulate(map(len, lines))) if len(lines) > 1 else [len(rest)]
    written = begun = 0
    while rest:
        with trio.move_on_after(timeout_s) as scope:
            taken = await write(rest)
        if scope.cancelled_caught:
            return False
        rest, written = rest[taken:], written + taken
        if begun < len(lines):
            before, begun = begun, bisect_left(ends, written) + 1  # whoever ends there or later is the last one touched
            left(begun - before)
    return True


async def read_messages(data: bytes, splitter: LineSplitter, counters: Counters, asides: Asides) -> list[Line]:
    """Return the messages that one read completes, see `messages_of`. Others have their turn between many short lines.

    Raises as `LineSplitter.feed`.
    """
    step = FEW_BYTES if data.count(b"\n") > MANY_LINES else len(data)
    messages: list[Line] = []
    for start in range(0, len(data), step):
        if start and splitter.endless:  # what is known of it comes before the violation
            break
        if start:
            await trio.lowlevel.checkpoint()
        messages += await messages_of(splitter.feed(data[start : start + step]), counters, asides)
    return messages


async def messages_of(said: Sequence[Line | Pieces], counters: Counters, asides: Asides) -> list[Line]:
    """Return the lines that may be messages; count, and tell of the others. A checkpoint if one comes in pieces."""
    messages: list[Line] = []
    noise: list[Line] = []
    counters.messages_received += len(said)  # they have arrived, however long it takes to put them together
    for each in said:
        line = await decode_in_thread(each.line) if isinstance(each, Pieces) else each
        if line is not None:
            (messages if may_be_message(line) else noise).append(line)
    counters.messages_received -= len(said) - len(messages)
    if noise:
        counters.stdout_noise += len(noise)
        asides.noise(noise)
    return messages
