"""Logging: it never waits, whoever reads it or does not, and a record cannot pretend to be two."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.config.values import LogFormat
from supervisor.host.logs import MAX_RECORD_CHARS, MAX_TRACE_LINES, Writer, count_lost_records, logging_to_stderr

log = logging.getLogger("test.logs")


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        for fd in (reading, writing):
            try:
                os.close(fd)
            except OSError:
                continue


def logged(*records: tuple[object, ...], form: LogFormat = "text") -> list[str]:
    """What is written for some records."""
    with pipe() as (reading, writing):
        with logging_to_stderr("info", writing, form):
            for message, *values in records:
                log.warning(message, *values)
        os.close(writing)
        with os.fdopen(os.dup(reading), encoding="utf-8") as file:
            return file.read().splitlines()


def test_a_record_is_a_line_with_time_level_and_name() -> None:
    (line,) = logged(("hello %s", "world"))
    assert line.endswith("WARNING test.logs: hello world")
    assert line[:4].isdigit()


def test_a_node_says_which_one_it_is() -> None:
    for form, expected in (("text", "WARNING a%s-1 test.logs: hello"), ("json", '"node":"a%s-1"}')):
        with pipe() as (reading, writing):
            with logging_to_stderr("info", writing, "json" if form == "json" else "text", "a%s-1"):
                log.warning("hello")
            assert os.read(reading, 65536).decode().endswith(f"{expected}\n")


@pytest.mark.case("D21")
@pytest.mark.parametrize(
    "evil", ["a\nb", "a\r\nb", "a\x1b[31mb", "a\x00b", "a\x85b", "a\u2028b", "a\u202eb", "a\udce4b"]
)
def test_what_would_end_a_line_or_speak_to_a_terminal_is_escaped(evil: str) -> None:
    (line,) = logged(("%s 2026-01-01 ERROR fake: x", evil))
    assert line.isprintable()
    assert "\\" in line


def test_only_a_traceback_has_more_lines_and_they_are_indented() -> None:
    with pipe() as (reading, writing):
        with logging_to_stderr("info", writing):
            try:
                raise ValueError("two\nlines\x1b[1m")
            except ValueError:
                log.exception("it crashed")
        first, *rest = os.read(reading, 65536).decode().splitlines()
    assert first.endswith("it crashed")
    assert rest[-1].startswith("    ")
    assert all(line.startswith("    ") and line.isprintable() for line in rest)


@pytest.mark.case("D21")
@given(message=st.text(max_size=300))
def test_as_json_every_record_is_an_object_on_a_line_of_its_own(message: str) -> None:
    (line,) = logged(("%s", message), form="json")
    record = json.loads(line)
    assert list(record) == ["time", "level", "logger", "message"]
    assert (record["level"], record["logger"]) == ("warning", "test.logs")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["time"])
    assert record["message"].isprintable()
    if message.isprintable():
        assert record["message"] == message


def test_as_json_a_traceback_is_in_the_line_bounded_and_escaped() -> None:
    def deep(left: int) -> None:
        if not left:
            raise ValueError("two\nlines\x1b[1m" + "x" * 100_000)
        deep(left - 1)

    with pipe() as (reading, writing):
        with logging_to_stderr("info", writing, "json"):
            try:
                deep(500)
            except ValueError:
                log.exception("it crashed %s", "y" * 100_000)
        (line,) = os.read(reading, 1_000_000).decode().splitlines()
    record = json.loads(line)
    assert (record["level"], len(record["message"])) == ("error", MAX_RECORD_CHARS)
    assert 0 < len(record["trace"]) <= MAX_TRACE_LINES
    assert sum(map(len, record["trace"])) <= MAX_RECORD_CHARS
    assert all(each.isprintable() for each in record["trace"])


def test_as_json_what_was_lost_is_told_as_json() -> None:
    with pipe() as (reading, writing):
        writer = Writer(os.dup(writing), form="json")
        writer.lost = 7
        writer.handle(logging.LogRecord("test", logging.WARNING, "", 0, "next", (), None))
        writer.finish()
        records = [json.loads(line) for line in os.read(reading, 65536).splitlines()]
    assert [record["message"] for record in records] == ["next", "7 log records were lost so far"]
    assert (records[1]["level"], records[1]["logger"]) == ("warning", "supervisor.host.logs")


def test_as_json_nothing_is_cut_in_two_without_a_thread() -> None:
    with pipe() as (reading, writing), no_thread():
        writer = Writer(os.dup(writing), form="json")
        for size in (10, 5000, 20):
            writer.handle(logging.LogRecord("test", logging.WARNING, "", 0, "x" * size, (), None))
        writer.finish()
        records = [json.loads(line) for line in os.read(reading, 65536).splitlines()]
    assert [len(record["message"]) for record in records] == [10, 20]


def test_a_record_is_cut() -> None:
    (line,) = logged(("x" * 100_000,))
    assert len(line) <= MAX_RECORD_CHARS


def test_a_record_that_cannot_be_formatted_is_counted() -> None:
    with pipe() as (_, writing), logging_to_stderr("info", writing) as writer:
        writer.handle(logging.LogRecord("test", logging.WARNING, "", 0, "%d", ("no number",), None))
        assert writer.lost == 1
        assert count_lost_records() == 1
    assert count_lost_records() == 0


def test_less_severe_records_are_not_written() -> None:
    with pipe() as (reading, writing):
        with logging_to_stderr("warning", writing):
            log.info("nobody needs this")
            logging.getLogger("hypercorn").info("nor this")
            log.warning("this")
        assert os.read(reading, 65536).endswith(b": this\n")


@pytest.mark.case("D20")
def test_a_pipe_that_nobody_reads_stops_nobody() -> None:
    with pipe() as (reading, writing):
        started = time.monotonic()
        writer = Writer(os.dup(writing), max_records=1000)
        record = logging.LogRecord("test", logging.WARNING, "", 0, "x" * 200, (), None)
        for _ in range(5000):
            writer.handle(record)
        assert time.monotonic() - started < 5.0
        assert writer.lost >= 5000 - 1000 - 65536 // 200 - 2
        writer.finish(0.05)
        thread = writer._thread
        assert thread is not None
        assert thread.is_alive()
        os.set_blocking(reading, False)
        while thread.is_alive():
            with suppress(BlockingIOError):
                os.read(reading, 65536)
            thread.join(0.01)


@pytest.mark.case("D20")
def test_the_reader_learns_how_many_records_were_lost() -> None:
    with pipe() as (reading, writing):
        writer = Writer(os.dup(writing))
        writer.lost = 7
        writer.handle(logging.LogRecord("test", logging.WARNING, "", 0, "next", (), None))
        writer.finish()
        assert os.read(reading, 65536).endswith(b"next\n(7 log records were lost so far)\n")


def test_a_reader_that_went_away_stops_nobody() -> None:
    with pipe() as (reading, writing):
        writer = Writer(os.dup(writing))
        os.close(reading)
        for number in range(10):
            writer.handle(logging.LogRecord("test", logging.WARNING, "", 0, "%d", (number,), None))
        writer.finish()
        assert writer._thread is not None
        assert not writer._thread.is_alive()
        assert writer.lost == 10


def test_it_writes_to_what_stderr_was_even_if_that_number_is_used_for_another_file() -> None:
    with pipe() as (reading, writing), pipe() as (_, other):
        with logging_to_stderr("info", writing):
            os.dup2(other, writing)
            log.warning("here")
        assert os.read(reading, 65536).endswith(b"here\n")


@contextmanager
def no_thread() -> Iterator[None]:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        yield


def test_without_a_thread_records_wait_until_there_is_one() -> None:
    with pipe() as (reading, writing):
        with no_thread():
            writer = Writer(os.dup(writing))
            writer.handle(logging.LogRecord("test", logging.WARNING, "", 0, "first", (), None))
        writer.handle(logging.LogRecord("test", logging.WARNING, "", 0, "second", (), None))
        writer.finish()
        lines = os.read(reading, 65536).decode().splitlines()
        assert [line.rpartition(" ")[2] for line in lines] == ["first", "second"]


def test_without_a_thread_to_the_end_what_the_pipe_takes_is_written_and_nobody_waits() -> None:
    with pipe() as (reading, writing), no_thread():
        writer = Writer(os.dup(writing))
        for _ in range(1000):
            writer.handle(logging.LogRecord("test", logging.WARNING, "", 0, "x" * 5000, (), None))
        writer.finish()
        assert len(os.read(reading, 1_000_000)) > 30_000


def test_nothing_is_left_behind() -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level, threading.active_count())
    with pipe() as (_, writing), logging_to_stderr("debug", writing):
        log.warning("x")
    assert (list(root.handlers), root.level, threading.active_count()) == before
