"""One message to a server is one line, however the client wrote what is in it; and it is known which were begun."""

from __future__ import annotations

import json
from itertools import count

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import trio_test

from actors.errors import ProtocolViolation
from actors.messages import CallServer
from actors.protocol.agreement.era import Identity, Negotiation
from actors.protocol.conversation import Conversation
from actors.protocol.listing import ListLimits
from actors.protocol.wire.framing import LineSplitter, Oversized
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Counters
from actors.transport.lines import FEW_BYTES, line_of, read_messages, write_lines
from actors.transport.side_output import Asides
from tests.fakes.clock import Clock


def sent(members: bytes, meta: bytes = b"") -> bytes:
    negotiation = Negotiation(Identity(version="1"), "legacy")
    talk = Conversation(count(1), negotiation, ListLimits(), lambda _: (), lambda _: False, Clock())
    talk.call(1, CallServer(server="s", method="tools/call", members=members, meta=meta))
    (message,) = talk.output
    return line_of(message)


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_arguments_over_many_lines_are_sent_as_one(newline: str) -> None:
    arguments = newline.join(["{", ' "text": "a\\nb",', "", ' "list": [', "1", "]", "}"])
    line = sent(b'"name":"echo","arguments":' + arguments.encode())
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    assert json.loads(line)["params"]["arguments"] == {"text": "a\nb", "list": [1]}


def test_a_message_between_line_breaks_is_not_smuggled_to_the_server() -> None:
    smuggled = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}'
    line = sent(b'"arguments":{"a":\n' + smuggled + b"\n}", b'"b":\n' + smuggled + b"\n")
    assert len(line.splitlines()) == 1


@pytest.mark.case("S28")
@pytest.mark.parametrize("line", [b"x\n", b" \n", b"{}\n"])
async def test_others_have_their_turn_between_the_lines_of_a_read_that_has_very_many(line: bytes) -> None:
    data = (line * 65536)[:65536]
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    message = b'{"jsonrpc":"2.0","id":1}'
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        splitter = LineSplitter(1000)
        found = await read_messages(message + b"\n" + data, splitter, Counters(), Asides())
        found += await read_messages(b"\n" + message + b"\n", splitter, Counters(), Asides())
        nursery.cancel_scope.cancel()
    assert found == [message, message]
    assert turns >= len(data) // FEW_BYTES - 2  # its first and its last one may be before and after


async def test_a_line_without_an_end_is_told_once_also_in_parts() -> None:
    splitter = LineSplitter(1000)
    data = b"x\n" * 3000 + b'{"id":"' + b"y" * 100_000
    (over,) = await read_messages(data, splitter, Counters(), Asides())
    assert isinstance(over, Oversized)
    with pytest.raises(ProtocolViolation):
        await read_messages(b"x\n", splitter, Counters(), Asides())


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(1, 9), st.integers(0, 30))
def test_whatever_a_pipe_takes_at_once_it_is_known_which_messages_it_may_know_of(
    sizes: list[int], chunk: int, stop_after: int
) -> None:
    messages = [Outgoing(parts=(bytes([97 + number]) * size,)) for number, size in enumerate(sizes)]
    taken = bytearray()
    told: list[int] = []

    class Full(Exception):
        pass

    async def write(data: memoryview) -> int:
        await trio.lowlevel.checkpoint()
        if len(taken) >= stop_after:
            raise Full
        taken.extend(data[:chunk])
        return min(chunk, len(data))

    @trio_test
    async def run() -> None:
        try:
            assert await write_lines(messages, write, told.append, 10.0)
            assert bytes(taken) == b"".join(map(line_of, messages))
        except Full:
            pass

    run()
    starts = [sum(size + 1 for size in sizes[:number]) for number in range(len(sizes))]
    assert sum(told) == sum(start < len(taken) for start in starts)
