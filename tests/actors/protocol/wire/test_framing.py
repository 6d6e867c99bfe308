"""The line splitter: any split of the bytes gives the same lines, and every bad end has its error."""

from __future__ import annotations

import itertools
import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ProtocolViolation, TruncatedMessage
from actors.protocol.wire.framing import (
    ENDLESS_LINES,
    HEAD_BYTES,
    LONG_BYTES,
    TAIL_BYTES,
    Line,
    LineSplitter,
    Oversized,
    Pieces,
    may_be_message,
)

BOM = b"\xef\xbb\xbf"
LIMIT = 12

streams = st.lists(
    st.sampled_from(
        [
            b"\n",
            b"\r",
            b"\r\n",
            b" ",
            b"\t",
            b"{",
            b"abc",
            b"0123456789ab",
            BOM,
            b"\xff",
            b"\0",
            b'"\xc3\xa9"',
            b"x" * 60,
            b"y" * 200,
        ]
    ),
    max_size=30,
).map(b"".join)


def run(
    chunks: list[bytes], limit: int = LIMIT, long_bytes: int = LONG_BYTES
) -> tuple[list[Line], type[Exception] | None]:
    """Feed all chunks; return the lines and the class of the error that ended it."""
    splitter = LineSplitter(limit, long_bytes)
    lines: list[Line] = []
    try:
        for chunk in [*chunks, b""]:
            whole = (line.line() if isinstance(line, Pieces) else line for line in splitter.feed(chunk))
            lines += [line for line in whole if line is not None]
        lines += splitter.close()
    except ProtocolViolation as error:
        return lines, type(error)
    return lines, None


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


@pytest.mark.case("S07")
@given(streams, st.lists(st.integers(0, 400), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_lines_and_the_same_end(data: bytes, cuts: list[int]) -> None:
    assert run(pieces(data, cuts)) == run([data])
    assert run(pieces(data, cuts), long_bytes=2) == run([data])


@given(streams)
def test_one_byte_at_a_time_gives_the_lines_of_the_definition(data: bytes) -> None:
    ends = data.split(b"\n")
    lines, end = run([data[place : place + 1] for place in range(len(data))])
    if any(len(line) > LIMIT * ENDLESS_LINES for line in ends):
        assert end is ProtocolViolation
        assert isinstance(lines[-1], Oversized)
        assert (lines[-1].size, lines[-1].tail) == (LIMIT * ENDLESS_LINES, b"")
        return
    whole = [line.removesuffix(b"\r").removeprefix(BOM) for line in ends]
    half = is_half(whole[-1])
    expected: list[Line] = [
        line.lstrip(b"\0") if len(line) <= LIMIT else Oversized(len(line), LIMIT, line[:HEAD_BYTES], line[-TAIL_BYTES:])
        for line in (whole[:-1] if half else whole)
        if len(line) > LIMIT or line.lstrip(b"\0").strip()
    ]
    assert lines == expected
    assert end is (TruncatedMessage if half else None)


def is_half(line: bytes) -> bool:
    """Whether a line that nothing ended may be the beginning of a message."""
    if len(line) > LIMIT:
        return line.lstrip().startswith((b"{", b"["))
    if not line.lstrip(b"\0").lstrip().startswith(b"{"):
        return False
    try:
        json.loads(line.lstrip(b"\0"))
    except ValueError:
        return True
    return False


@given(st.lists(st.dictionaries(st.text(), st.text()), max_size=5), st.sampled_from([b"\n", b"\r\n"]))
def test_encoded_messages_come_out_as_they_went_in(messages: list[dict[str, str]], end: bytes) -> None:
    texts = [json.dumps(message).encode() for message in messages]
    assert run([BOM + b"".join(text + end for text in texts)], limit=1 << 20) == (texts, None)


def test_a_byte_order_mark_is_dropped_at_the_start_of_any_line_and_nowhere_else() -> None:
    assert run([BOM[:1], BOM[1:] + b"{}\n" + BOM + b"{}\n[" + BOM + b"]\n"]) == (
        [b"{}", b"{}", b"[" + BOM + b"]"],
        None,
    )


def test_the_message_after_a_line_of_utf_16_is_whole() -> None:
    assert run(["Hello".encode("utf-16-le") + b"\n\0{}\n"])[0][1] == b"{}"


def test_blank_lines_and_a_lone_mark_are_no_lines() -> None:
    assert run([BOM + b"\n\r\n \t \n\r\n"]) == ([], None)
    assert run([BOM]) == ([], None)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", BOM])
def test_a_line_of_exactly_the_limit_passes_however_it_ends(end: bytes, mark: bytes) -> None:
    line = b"x" * LIMIT
    assert run([mark + line + end]) == ([line], None)
    assert run([bytes([byte]) for byte in mark + line + end]) == ([line], None)


def test_a_line_over_the_limit_keeps_its_ends_and_those_around_it_pass() -> None:
    long = b"{" + b"x" * HEAD_BYTES + b"y" * TAIL_BYTES + b"}"
    whole, end = run([BOM + long + b"\r\n{}\n"], limit=4096)
    assert whole == [Oversized(len(long), 4096, long[:HEAD_BYTES], long[-TAIL_BYTES:]), b"{}"]
    assert end is None


@pytest.mark.case("S05")
def test_a_line_over_the_limit_is_not_kept_in_memory() -> None:
    part = b"x" * 65536
    splitter = LineSplitter(1 << 20)
    tracemalloc.start()
    for _ in range(15 * 16):
        assert splitter.feed(part) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 << 20
    assert splitter.feed(b"\n") == [Oversized(15 << 20, 1 << 20, part[:HEAD_BYTES], part[:TAIL_BYTES])]


@pytest.mark.parametrize("more", [1, 2, 4, 5])
def test_a_line_just_over_the_limit_is_cut_like_a_longer_one(more: int) -> None:
    line = b"x" * (10 + more)
    assert LineSplitter(10).feed(line + b"\n{}\n") == [Oversized(len(line), 10, line, line), b"{}"]


def test_a_line_that_does_not_end_is_told_once_and_then_a_violation() -> None:
    splitter = LineSplitter(1000)
    lines = [line for _ in range(16 * 10 + 1) for line in splitter.feed(b"x" * 100)]
    assert lines == [Oversized(16_000, 1000, b"x" * 15_997, b"")]
    with pytest.raises(ProtocolViolation, match="does not end: it is over 16000 bytes"):
        splitter.feed(b"\n")


def test_half_a_line_at_the_end_is_truncated_and_says_how_much_there_was() -> None:
    splitter = LineSplitter(100)
    assert splitter.feed(b'{"a": 1}\n{"b"') == [b'{"a": 1}']
    with pytest.raises(TruncatedMessage, match="after 4 bytes"):
        splitter.close()
    splitter.close()


@pytest.mark.parametrize(
    "last",
    [b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32602, "message": "Invalid path"}}', b"[12:00] Set KEY"],
)
def test_a_last_line_that_nothing_ends_is_a_line_if_it_is_whole(last: bytes) -> None:
    assert run([b'{"a": 1}\n' + last], 100) == ([b'{"a": 1}', last], None)
    assert run([last[:-1]], 100) == (([last[:-1]], None) if last.startswith(b"[") else ([], TruncatedMessage))


def test_a_blank_half_line_at_the_end_is_nothing() -> None:
    assert run([b"{}\n \r"]) == ([b"{}"], None)


def test_a_long_line_in_small_parts_costs_linear_time() -> None:
    size = 16 * 1024 * 1024
    splitter = LineSplitter(size)
    part = b"x" * 4096
    start = time.process_time()
    for _ in range(size // len(part)):
        assert splitter.feed(part) == []
    [found] = splitter.feed(b"\n")
    assert isinstance(found, Pieces)
    assert found.line() == b"x" * size
    # 4096 joins of a growing buffer would move 32 GiB: seconds. This is generous for what takes some 20 ms.
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'  {"id":1, "jsonrpc":"2.0"}',
        '{"jsonrpc":"2.0","x":"é"}'.encode(),
        b'{"jsonrpc":"2.0","x":"\xff"}',
        b'{"id":1,"result":{}}',
        b' [{"jsonrpc":"2.0"}]',
        Oversized(20, 10, b' {"result":{', b""),
    ],
)
def test_what_can_be_meant_as_json_rpc_may_be_a_message(line: Line) -> None:
    assert may_be_message(line)


@pytest.mark.parametrize(
    "line",
    [
        b"Server running on stdio",
        b'{"level":"info","message":"started"}',
        b'"jsonrpc"',
        b"42",
        b'\x1b[32m{"jsonrpc":"2.0"}\x1b[0m',
        '{"jsonrpc":"2.0"}'.encode("utf-16"),
        b"",
        Oversized(20, 10, b"Welcome! {", b"}"),
    ],
)
def test_anything_else_is_noise(line: Line) -> None:
    assert not may_be_message(line)


@pytest.mark.parametrize("whole", [True, False])
def test_a_long_last_line_without_its_end_is_read_if_it_is_whole(whole: bool) -> None:
    splitter = LineSplitter(4 * LONG_BYTES)
    line = b'{"a":"' + b"x" * LONG_BYTES + b'"}'
    said = line if whole else line[:-2]
    for start in range(0, len(said), 400_000):
        assert splitter.feed(said[start : start + 400_000]) == []
    if whole:
        assert splitter.close() == [line]
    else:
        with pytest.raises(TruncatedMessage):
            splitter.close()
