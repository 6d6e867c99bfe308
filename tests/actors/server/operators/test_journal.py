"""The journal of a server: bounded whatever is written, in order, readable, and without secrets."""

from __future__ import annotations

import itertools

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from actors.facts import FactLog
from actors.kit.reporter import Reporter
from actors.launch import launch_name
from actors.server.operators.journal import MAX_LINES, MAX_LINES_AT_ONCE, MAX_MASKS, MAX_NOTES, Journal, Level
from actors.server.operators.record import Record
from actors.transport.redaction import Mask

SECRET = "s3cr3t-canary-value"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def texts(journal: Journal, count: int = 10_000) -> list[str]:
    return [line.text for line in journal.render(journal.last(count))]


def test_what_was_left_out_is_a_line_of_ours() -> None:
    journal = Journal(Clock())
    journal.overhear("stderr", b"one\ntw")
    journal.overhear("stderr", b"\n")
    journal.overhear("supervisor", b"so much was left out\n")
    lines = [(line.source, line.text) for line in journal.render(journal.last(10))]
    assert lines == [("stderr", "one"), ("stderr", "tw"), ("supervisor", "so much was left out")]


@pytest.mark.parametrize(("launch", "told"), [("s", "not found on PATH /opt/x"), (launch_name("s", "d1"), "not found")])
async def test_where_the_daemon_looks_for_a_program_is_in_no_log_that_members_read(launch: str, told: str) -> None:
    journal = Journal(Clock())
    record = Record(launch, Reporter(None), journal, str, None, None, FactLog(lambda: 0.0))
    record.refuse("not found", "not found on PATH /opt/x", permanent=False)
    assert texts(journal) == [f"could not be started: {told}"]
    assert record.last_error == "not found on PATH /opt/x"


def test_lines_are_numbered_in_the_order_they_came_with_time_and_source() -> None:
    clock = Clock()
    journal = Journal(clock)
    journal.overhear("stderr", b"one\ntw")
    clock.now += 0.5
    journal.overhear("stderr", b"o\r\n\n")
    journal.note("it died", "warning")
    journal.overhear("stdout", b"Welcome!\n")
    lines = [(line.number, line.time, line.source, line.text) for line in journal.render(journal.last(10))]
    assert lines[:4] == [
        (1, 1000.0, "stderr", "one"),
        (2, 1000.5, "stderr", "two"),
        (3, 1000.5, "supervisor", "it died"),
        (4, 1000.5, "stdout", "Welcome!"),
    ]
    assert [line.number for line in journal.last(2)] == [4, 5]


@given(st.lists(st.integers(0, 60), max_size=30))
def test_lines_are_the_same_wherever_the_output_is_cut(cuts: list[int]) -> None:
    data = b"alpha\nbeta gamma\n\ndelta\nepsilon zeta eta\ntheta\n"
    journal = Journal(Clock())
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in itertools.pairwise(places):
        journal.overhear("stderr", data[start:end])
    assert texts(journal) == ["alpha", "beta gamma", "delta", "epsilon zeta eta", "theta"]


def test_no_line_of_a_private_key_is_shown() -> None:
    journal = Journal(Clock())
    key = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "Qx9d", "-----END PRIVATE KEY-----"]
    for line in key:
        journal.overhear("stderr", f"{line}\n".encode())
        journal.overhear("stdout", b"beside\n")
    found = texts(journal)
    assert [text for text in found if "beside" not in text] == ["***", "***", "***", "-----END PRIVATE KEY-----"]


def test_a_flood_is_bounded_and_counted_and_does_not_drown_our_own_lines() -> None:
    journal = Journal(Clock())
    journal.note("exit code 3")
    for _ in range(20):
        journal.overhear("stderr", b"noise\n" * 10_000)
    assert len(journal.last(10_000)) <= MAX_LINES + 1
    assert texts(journal)[0] == "exit code 3"
    newest, missed, lines = journal.after(0, 10_000)
    assert newest == 200_001
    assert missed == newest - len(lines)
    for number in range(2 * MAX_NOTES):
        journal.note(f"note {number}")
    assert len(journal.last(10_000)) <= MAX_LINES + MAX_NOTES


def test_of_one_piece_of_very_many_lines_the_newest_are_kept() -> None:
    journal = Journal(Clock())
    journal.overhear("stderr", b"".join(b"%d\n" % number for number in range(20_000)))
    found = texts(journal)
    assert found[-1] == "19999"
    assert len(found) == MAX_LINES_AT_ONCE
    assert journal.newest.value == 20_000


def test_bytes_are_bounded_too() -> None:
    journal = Journal(Clock(), max_bytes=10_000)
    for _ in range(100):
        journal.overhear("stderr", b"x" * 999 + b"\n")
    assert len(journal.last(1000)) == 10


@pytest.mark.parametrize("before", [0, 900, 4090, 4096, 4100, 9000])
def test_no_part_of_a_secret_is_shown_wherever_a_long_line_is_cut(before: int) -> None:
    journal = Journal(Clock(), mask=Mask({"KEY": SECRET}))
    line = b"x" * before + SECRET.encode() + b"y" * 9000 + b"\n"
    for start in range(0, len(line), 1000):
        journal.overhear("stderr", line[start : start + 1000])
    journal.overhear("stderr", b"next\n")
    shown = " ".join(texts(journal))
    assert not any(SECRET[:size] in shown for size in range(4, len(SECRET)))
    assert shown.endswith("next")


def test_the_first_line_after_an_exit_in_the_middle_of_a_very_long_one_is_kept() -> None:
    journal = Journal(Clock())
    journal.overhear("stderr", b"x" * 100_000)
    journal.end_line()
    journal.overhear("stderr", b"a new life\n")
    assert texts(journal)[-1] == "a new life"


def test_a_secret_in_a_name_that_a_server_gave_is_in_no_log() -> None:
    told: list[tuple[Level, str]] = []
    journal = Journal(Clock(), mask=Mask({"KEY": SECRET}), tell=lambda level, text: told.append((level, text)))
    journal.note(f"its tools changed: +1 ({SECRET})")
    assert told == [("info", "its tools changed: +1 (***)")]
    assert texts(journal) == ["its tools changed: +1 (***)"]


def test_masked_secrets_that_shrink_a_line_do_not_bring_the_beginning_of_one_into_view() -> None:
    journal = Journal(Clock(), mask=Mask({"KEY": SECRET}))
    journal.overhear("stderr", (SECRET * 1000).encode() + b"\n")
    assert "s3cr" not in "".join(texts(journal))


@pytest.mark.case("S16")
def test_colours_are_taken_out_and_what_speaks_to_a_terminal_is_escaped() -> None:
    journal = Journal(Clock(), mask=Mask({"KEY": SECRET}))
    journal.overhear(
        "stderr", b"\x1b[31mred\x1b[0m \x1b]0;title\x07\n" + f"\x1b[1m{SECRET[:5]}\x1b[0m{SECRET[5:]}\n".encode()
    )
    assert texts(journal) == ["red \\x1b]0;title\\x07", "***"]


def test_noise_on_stdout_is_told_once_in_a_while_in_short() -> None:
    clock = Clock()
    told: list[tuple[Level, str]] = []
    journal = Journal(clock, mask=Mask({"KEY": SECRET}), tell=lambda level, text: told.append((level, text)))
    for _ in range(3):
        journal.overhear("stdout", f"Welcome {SECRET} ".encode() + b"!" * 500 + b"\n")
    ((level, text),) = told
    assert level == "warning"
    assert "no MCP message" in text
    assert "Welcome *** !!" in text
    assert len(text) < 300
    assert max(len(line.text) for line in journal.render(journal.last(10)) if line.source == "stdout") <= 201
    clock.now += 3600
    journal.overhear("stdout", b"again\n")
    assert len(told) == 2


async def test_a_reader_that_waits_is_woken_and_told_how_much_it_missed() -> None:
    journal = Journal(Clock())
    seen, _, _ = journal.after(-1, 10)
    assert seen == 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.newest.wait_newer, seen)
        journal.overhear("stderr", b"".join(b"%d\n" % number for number in range(30)))
    newest, missed, lines = journal.after(seen, 10)
    assert (newest, missed, [line.data for line in lines]) == (30, 20, [b"%d" % number for number in range(20, 30)])
    assert journal.after(newest, 10) == (30, 0, [])
    assert journal.after(-1, 10) == (30, 0, [])
    assert journal.after(99_999, 10) == (30, 20, lines)


@pytest.mark.case("S27")
def test_a_token_that_nobody_configured_is_not_in_the_log_of_a_server() -> None:
    journal = Journal(lambda: 0.0)
    journal.overhear("stderr", b"request failed: {'Authorization': 'Bearer sk-proj-abcdefghijklmnopqrst'}\n")
    (line,) = journal.render(journal.last(10))
    assert line.text == "request failed: {'Authorization': 'Bearer ***'}"


@pytest.mark.case("N09")
@pytest.mark.parametrize("set_by_s", [-7200.0, 0.0, 7200.0])
def test_a_line_without_an_end_is_shown_after_a_second_wherever_the_clock_was_set_to(set_by_s: float) -> None:
    clock, steady = Clock(), Clock()
    journal = Journal(clock, now=steady)
    journal.overhear("stderr", b"Enter your key: ")
    clock.now += set_by_s
    assert texts(journal) == []
    steady.now += 1.0
    assert texts(journal) == ["Enter your key:"]


OTHER = "0ther-canary-value"


def test_secrets_of_earlier_configurations_stay_hidden_in_what_was_written_and_in_what_comes() -> None:
    journal = Journal(Clock(), mask=Mask({"KEY": SECRET}))
    journal.overhear("stderr", f"old {SECRET}\nearly {OTHER}\n".encode())
    journal.hide(Mask({"KEY": OTHER}))
    journal.overhear("stderr", f"late {SECRET}\nnew {OTHER}\n".encode())
    journal.note(f"{SECRET} and {OTHER}")
    assert texts(journal) == ["old ***", "early ***", "late ***", "new ***", "*** and ***"]
    assert texts(journal.fresh()) == []


def test_after_many_configurations_old_output_is_dropped_with_the_oldest_secrets_and_the_masks_stay_few() -> None:
    journal = Journal(Clock(), mask=Mask({"KEY": "first-canary-value"}))
    for number in range(100):
        journal.hide(Mask({"KEY": f"canary-number-{number:03}"}))
        journal.overhear("stderr", f"it has canary-number-{number:03}, had canary-number-{number - 1:03}\n".encode())
        assert not any("canary-number" in text.replace("canary-number--01", "") for text in texts(journal))
        assert len(journal._mask._known) <= 10 * MAX_MASKS
    assert 0 < len(texts(journal)) <= MAX_MASKS


def test_one_configuration_that_comes_back_again_and_again_costs_nothing() -> None:
    journal = Journal(Clock(), mask=Mask({"KEY": SECRET}))
    journal.overhear("stderr", b"kept\n")
    for number in range(100):
        journal.hide(Mask({"KEY": (SECRET, OTHER)[number % 2]}))
    assert texts(journal) == ["kept"]


def test_what_is_hidden_last_stays_hidden_when_the_oldest_are_dropped() -> None:
    journal = Journal(Clock(), mask=Mask({"KEY": SECRET}))
    for number in range(MAX_MASKS - 1):
        journal.hide(Mask({"KEY": f"canary-number-{number:03}"}))
    journal.hide(Mask({"KEY": SECRET}))  # back again: the process that runs now has it
    journal.hide(Mask({"KEY": OTHER}))
    journal.overhear("stderr", f"{SECRET} {OTHER}\n".encode())
    assert texts(journal)[-1] == "*** ***"
