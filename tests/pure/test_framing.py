"""The line splitter: any split of the bytes gives the same lines, and every bad end has its error."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ProtocolViolation, TruncatedMessage
from actors.protocol.framing import LineSplitter, is_message

BOM = b"\xef\xbb\xbf"
LIMIT = 12

streams = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b" ", b"\t", b"{", b"abc", b"0123456789ab", BOM, b"\xff", b'"\xc3\xa9"']),
    max_size=30,
).map(b"".join)


def run(chunks: list[bytes], limit: int = LIMIT) -> tuple[list[bytes], type[Exception] | None]:
    """Feed all chunks; return the lines and the class of the error that ended it."""
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    try:
        for chunk in chunks:
            lines += splitter.feed(chunk)
        splitter.close()
    except ProtocolViolation as error:
        return lines, type(error)
    return lines, None


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


@given(streams, st.lists(st.integers(0, 60), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_lines_and_the_same_end(data: bytes, cuts: list[int]) -> None:
    whole_lines, whole_end = run([data])
    lines, end = run(pieces(data, cuts))
    assert end is whole_end
    if end is None:
        assert lines == whole_lines


@given(streams)
def test_one_byte_at_a_time_gives_the_lines_of_the_definition(data: bytes) -> None:
    ends = data.removeprefix(BOM).split(b"\n")
    expected = [end.removesuffix(b"\r") for end in ends[:-1]]
    lines, end = run([data[place : place + 1] for place in range(len(data))])
    if any(len(line) > LIMIT for line in expected):
        assert end is ProtocolViolation
    elif len(ends[-1]) > LIMIT + 1:
        assert end in (ProtocolViolation, TruncatedMessage)
        assert end is ProtocolViolation or len(ends) == 1
    else:
        assert end is (TruncatedMessage if ends[-1].strip() else None)
        assert lines == [line for line in expected if line.strip()]


@given(st.lists(st.dictionaries(st.text(), st.text()), max_size=5), st.sampled_from([b"\n", b"\r\n"]))
def test_encoded_messages_come_out_as_they_went_in(messages: list[dict[str, str]], end: bytes) -> None:
    texts = [json.dumps(message).encode() for message in messages]
    assert run([BOM + b"".join(text + end for text in texts)], limit=1 << 20) == (texts, None)


def test_a_byte_order_mark_is_dropped_at_the_very_start_only() -> None:
    assert run([BOM[:1], BOM[1:] + b"{}\n" + BOM + b"{}\n"]) == ([b"{}", BOM + b"{}"], None)


def test_blank_lines_and_a_lone_mark_are_no_lines() -> None:
    assert run([BOM + b"\n\r\n \t \n\r\n"]) == ([], None)
    assert run([BOM]) == ([], None)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", BOM])
def test_a_line_of_exactly_the_limit_passes_however_it_ends(end: bytes, mark: bytes) -> None:
    line = b"x" * LIMIT
    assert run([mark + line + end]) == ([line], None)
    assert run([bytes([byte]) for byte in mark + line + end]) == ([line], None)


def test_a_line_one_byte_over_the_limit_is_a_violation() -> None:
    assert run([b"x" * (LIMIT + 1) + b"\n"])[1] is ProtocolViolation


def test_a_flood_without_an_end_of_line_stops_at_the_limit() -> None:
    splitter = LineSplitter(1000)
    for _ in range(10):
        assert splitter.feed(b"x" * 100) == []
    with pytest.raises(ProtocolViolation, match="over the limit of 1000 bytes"):
        splitter.feed(b"x" * 100)


def test_half_a_line_at_the_end_is_truncated_and_says_how_much_there_was() -> None:
    splitter = LineSplitter(100)
    assert splitter.feed(b'{"a": 1}\n{"b"') == [b'{"a": 1}']
    with pytest.raises(TruncatedMessage, match="after 4 bytes"):
        splitter.close()
    splitter.close()


def test_a_blank_half_line_at_the_end_is_nothing() -> None:
    assert run([b"{}\n \r"]) == ([b"{}"], None)


def test_a_long_line_in_small_parts_costs_linear_time() -> None:
    size = 16 * 1024 * 1024
    splitter = LineSplitter(size)
    part = b"x" * 4096
    start = time.process_time()
    for _ in range(size // len(part)):
        assert splitter.feed(part) == []
    assert len(splitter.feed(b"\n")[0]) == size
    # 4096 joins of a growing buffer would move 32 GiB: seconds. This is generous for what takes some 20 ms.
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize(
    "line",
    [b'{"jsonrpc":"2.0","id":1,"result":{}}', b'  {"id":1, "jsonrpc":"2.0"}', '{"jsonrpc":"2.0","x":"é"}'.encode()],
)
def test_a_json_rpc_object_is_a_message(line: bytes) -> None:
    assert is_message(line)


@pytest.mark.parametrize(
    "line",
    [
        b"Server running on stdio",
        b'{"level":"info","message":"started"}',
        b'[{"jsonrpc":"2.0"}]',
        b'"jsonrpc"',
        b"42",
        b'\x1b[32m{"jsonrpc":"2.0"}\x1b[0m',
        b'{"jsonrpc":"2.0","x":"\xff"}',
        '{"jsonrpc":"2.0"}'.encode("utf-16"),
        b"",
    ],
)
def test_anything_else_is_noise(line: bytes) -> None:
    assert not is_message(line)
