"""The stderr ring: bounded, newest last, safe to show."""

from __future__ import annotations

import base64
import re

from actors.transport.mask import Mask
from actors.transport.tail import Tail


def test_the_newest_lines_are_kept_and_the_memory_is_bounded() -> None:
    tail = Tail(1000)
    for number in range(10_000):
        tail.feed(b"line %d\n" % number)
    assert tail.text(2) == "line 9998\nline 9999"
    assert len(tail.text(10_000)) <= 1000
    assert tail._size < 1020


def test_a_chunk_larger_than_the_ring_is_cut_to_it() -> None:
    tail = Tail(4)
    tail.feed(b"abcdefgh")
    assert tail.text(1) == "efgh"


def test_no_lines_are_asked_and_none_were_written() -> None:
    assert Tail(10).text(5) == ""
    tail = Tail(10)
    tail.feed(b"x\n")
    assert tail.text(0) == ""


def test_control_characters_and_bidirectional_overrides_are_made_visible() -> None:
    tail = Tail(1000)
    tail.feed(b"\x1b[31mred\x07\ttab\r\n" + "a\u202eb\u00a0 é".encode() + b" \xff\n")
    assert tail.text(2) == "\\x1b[31mred\\x07\ttab\na\\u202eb\\xa0 é \ufffd"


def test_a_very_long_line_is_cut() -> None:
    tail = Tail(10_000)
    tail.feed(b"x" * 5000)
    assert tail.text(1) == "x" * 1000 + "…"


def test_secrets_are_masked_before_lines_are_cut_and_across_chunks() -> None:
    tail = Tail(10_000, Mask({"KEY": "s3cr3t-canary"}))
    tail.feed(b"x" * 990 + b"s3cr3t-")
    tail.feed(b"canary" + b"y" * 100)
    assert tail.text(1) == "x" * 990 + "***" + "y" * 7 + "\u2026"


def test_the_rest_of_a_secret_at_the_edge_of_the_ring_is_not_shown() -> None:
    tail = Tail(30, Mask({"KEY": "s3cr3t-canary"}))
    tail.feed(b"s3cr3t-canary" + b"." * 20)
    assert set(tail.text(1)) == {"."}
    big = Tail(256 * 1024, Mask({"KEY": "s3cr3t-canary"}))
    big.feed(b"-" * 100_000 + b"s3cr3t-canary" + b"." * (64 * 1024 - 5))
    assert "canary" not in big.text(1)


def test_a_secret_behind_the_one_that_is_cut_is_masked_whole() -> None:
    longest = len(base64.b64encode(b"an0ther-secret-token").rstrip(b"="))
    for before in range(longest + 1):  # wherever the edge of the ring lies in what was written
        tail = Tail(60, Mask({"KEY": "s3cr3t-canary", "TOKEN": "an0ther-secret-token"}))
        tail.feed(b"s3cr3t-canary" * 4 + b"an0ther-secret-token" * 2 + b"." * before)
        shown = tail.text(5)
        assert not re.search("[a-z0-9]", shown), shown


def test_where_the_beginning_of_a_line_is_missing_the_rest_of_it_is_not_shown() -> None:
    tail = Tail(40)
    tail.feed(b"password=" + b"x" * 30 + b"\nthe next line\n")
    assert tail.text(5) == "the next line"
    tail.feed(b"password=" + b"x" * 30 + b" was refused\n")
    assert tail.text(5) == "was refused"


def test_looking_at_a_full_ring_is_cheap() -> None:
    tail = Tail(256 * 1024)
    for number in range(40_000):
        tail.feed(b"line %d\n" % number)
    assert tail.text(2) == "line 39998\nline 39999"
    assert len(tail._newest()) <= 64 * 1024
