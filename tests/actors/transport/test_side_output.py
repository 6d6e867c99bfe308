"""What a server writes beside its messages: bounded, newest last, safe to show."""

from __future__ import annotations

import base64
import re

from actors.transport.redaction import Mask
from actors.transport.side_output import FIRST_BYTES, FLOOD, GAP, KEPT_BYTES, MAX_LINES, Asides, Tail


def test_the_newest_lines_are_kept_and_the_memory_is_bounded() -> None:
    tail = Tail(max_bytes=1000, first_bytes=0)
    for number in range(10_000):
        tail.feed(b"line %d\n" % number)
    assert tail.text(2) == "line 9998\nline 9999"
    assert len(tail.text(10_000)) <= 1000
    assert len(tail._kept) == 1000


def test_a_chunk_larger_than_the_ring_is_cut_to_it() -> None:
    tail = Tail(max_bytes=4, first_bytes=0)
    tail.feed(b"abcdefgh")
    assert tail.text(1) == "…efgh"


def test_no_lines_are_asked_and_none_were_written() -> None:
    assert Tail(max_bytes=10).text(5) == ""
    tail = Tail(max_bytes=10)
    tail.feed(b"x\n")
    assert tail.text(0) == ""


def test_control_characters_and_bidirectional_overrides_are_made_visible() -> None:
    tail = Tail(max_bytes=1000)
    tail.feed(b"\x1b[31mred\x07\ttab\r\n" + "a\u202eb\u00a0 é".encode() + b" \xff\n")
    assert tail.text(2) == "\\x1b[31mred\\x07\ttab\na\\u202eb\\xa0 é \ufffd"


def test_a_very_long_line_is_cut() -> None:
    tail = Tail()
    tail.feed(b"x" * 5000)
    assert tail.text(1) == "x" * 1000 + "…"


def test_secrets_are_safe_text_before_lines_are_cut_and_across_chunks() -> None:
    tail = Tail(Mask({"KEY": "s3cr3t-canary"}))
    tail.feed(b"x" * 990 + b"s3cr3t-")
    tail.feed(b"canary" + b"y" * 100)
    assert tail.text(1) == "x" * 990 + "***" + "y" * 7 + "\u2026"


def test_the_rest_of_a_secret_at_the_edge_of_the_ring_is_not_shown() -> None:
    tail = Tail(Mask({"KEY": "s3cr3t-canary"}), 30, 0)
    tail.feed(b"s3cr3t-canary" + b"." * 20)
    assert set(tail.text(1)) == {"…", "."}
    big = Tail(Mask({"KEY": "s3cr3t-canary"}))
    big.feed(b"-" * 100_000 + b"s3cr3t-canary" + b"." * (KEPT_BYTES - 5))
    assert "canary" not in big.text(1)


def test_a_secret_behind_the_one_that_is_cut_is_safe_text_whole() -> None:
    longest = len(base64.b64encode(b"an0ther-secret-token").rstrip(b"="))
    for before in range(longest + 1):  # wherever the edge of the ring lies in what was written
        tail = Tail(Mask({"KEY": "s3cr3t-canary", "TOKEN": "an0ther-secret-token"}), 60, 0)
        tail.feed(b"s3cr3t-canary" * 4 + b"an0ther-secret-token" * 2 + b"." * before)
        shown = tail.text(5)
        assert not re.search("[a-z0-9]", shown), shown


def test_where_the_beginning_of_a_line_is_missing_the_rest_of_it_is_not_shown() -> None:
    tail = Tail(max_bytes=40, first_bytes=0)
    tail.feed(b"password=" + b"x" * 30 + b"\nthe next line\n")
    assert tail.text(5) == "the next line"
    tail.feed(b"password=" + b"x" * 30 + b" was refused\n")
    assert tail.text(5) == "…was refused", "and what is shown does not begin as if it were a whole line"


def test_what_was_written_first_is_kept_beside_the_newest_and_no_line_begins_in_its_middle() -> None:
    tail = Tail()
    tail.feed(b"Error: no key\n" + b"--option  what it means\n" * 5000 + b"the end\n")
    lines = tail.text().split("\n")
    assert (lines[0], lines[-1]) == ("Error: no key", "the end")
    assert {*lines[1:-1]} == {"--option  what it means", GAP}
    assert tail.text(1) == "the end"
    assert len(lines) <= MAX_LINES + 1


def test_the_beginning_of_a_secret_that_is_cut_is_not_shown() -> None:
    mask = Mask({"KEY": "s3cr3t-canary"})
    tail = Tail(mask, 60 + mask.longest, 30)
    tail.feed(b"the first line\nkey: " + b"s3cr3t-canary" * 20 + b"." * 50 + b"\nthe last line\n")
    assert tail.text() == f"the first line\n{GAP}\nthe last line"


def test_so_much_is_told_and_kept_of_a_line_that_is_no_message() -> None:
    told: list[bytes] = []
    asides = Asides(Mask({"KEY": "s3cr3t-canary"}))
    asides.hear = lambda source, data: told.append(data)
    line = b"." * FIRST_BYTES + b"s3cr3t-canary" + b"." * (KEPT_BYTES - 6)
    asides.noise([line])
    assert told == [line + b"\n"]
    assert set(asides.last_stdout(1)) == {".", "\u2026"}, "the rest of a secret is not shown"


def test_of_a_flood_of_stderr_is_told_that_it_was_left_out_and_the_newest_is_kept() -> None:
    heard: list[tuple[str, bytes]] = []
    asides = Asides()
    asides.hear = lambda source, data: heard.append((source, data))
    asides.stderr(b"one\ntw")
    asides.stderr(b"o\nthree\n", told=False)
    asides.stderr(b"four\n", told=False)
    assert asides.last_stderr(1) == "four"
    asides.stderr(b"five\n")
    assert heard == [
        ("stderr", b"one\ntw"),
        ("stderr", b"\n"),
        ("supervisor", FLOOD),
        ("supervisor", b"so many lines of stderr were left out: 3\n"),
        ("stderr", b"five\n"),
    ]
