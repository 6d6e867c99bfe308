"""Want of resources: told from bugs, waited out, and said once when it begins and once when it ends."""

from __future__ import annotations

import errno
import logging
import os
from typing import cast

import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors.kit import Conditions, Pauses, is_want, persist, reason_of
from actors.principal import LOCAL
from supervisor.service.client import Client
from supervisor.service.port import Service, answer
from tests.fakes.exchanges import exchange


def failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


WANTS = [
    *(
        failure(number)
        for number in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EFBIG)
    ),
    MemoryError(),
    RuntimeError("can't start new thread"),
    ImportError("_multiarray_tests.so: cannot open shared object file: Too many open files"),
    ExceptionGroup("several", [MemoryError(), ExceptionGroup("more", [failure(errno.EMFILE)])]),
]
BUGS = [
    failure(errno.ENOENT),
    OSError("without a number"),
    RuntimeError("dictionary changed size during iteration"),
    ImportError("No module named 'nothing'"),
    RecursionError(),
    ExceptionGroup("mixed", [MemoryError(), KeyError("a bug")]),
    KeyboardInterrupt(),
]


@pytest.mark.parametrize("error", WANTS, ids=repr)
def test_what_the_system_lacks_is_want(error: BaseException) -> None:
    assert is_want(error)
    assert "\n" not in reason_of(error)
    assert reason_of(error)


@pytest.mark.parametrize("error", BUGS, ids=repr)
def test_everything_else_is_not(error: BaseException) -> None:
    assert not is_want(error)


def test_the_reason_is_in_words_and_without_a_path() -> None:
    assert reason_of(OSError(errno.EMFILE, "Too many open files", "/home/me/secret")) == "Too many open files"
    assert reason_of(ExceptionGroup("", [MemoryError()])) == "Cannot allocate memory"
    assert reason_of(WANTS[8]) == "Too many open files"


def test_pauses_grow_to_a_bound_and_begin_again() -> None:
    pauses = Pauses(0.1, 2.0)
    lengths = [pauses.next() for _ in range(50)]
    assert all(0.05 <= pause <= 2.0 for pause in lengths)
    assert min(lengths[10:]) >= 1.0
    pauses.reset()
    assert pauses.next() <= 0.1


async def test_a_step_is_taken_again_until_there_is_enough(autojump_clock: MockClock) -> None:
    conditions = Conditions(lambda: 5.0)
    seen: list[list[str]] = []

    async def step(number: int) -> int:
        await trio.lowlevel.checkpoint()
        seen.append([condition.what for condition in conditions.now()])
        if len(seen) < 20:
            raise failure(errno.EMFILE)
        return number

    assert await persist(conditions, "the index", step, 7) == 7
    assert seen == [[], *[["the index"]] * 19]
    assert conditions.now() == []
    assert trio.current_time() < 40.0


async def test_a_bug_is_not_waited_out() -> None:
    async def step() -> None:
        await trio.lowlevel.checkpoint()
        raise KeyError("a bug")

    conditions = Conditions()
    with pytest.raises(KeyError):
        await persist(conditions, "the index", step)
    assert conditions.now() == []


def test_a_condition_is_shown_from_its_first_moment_with_its_newest_reason() -> None:
    now = 100.0
    conditions = Conditions(lambda: now, lambda: now)
    conditions.begin("index", "Too many open files")
    now = 160.0
    conditions.begin("store", "disk full")
    conditions.begin("index", "Cannot allocate memory")
    assert [(c.what, c.since, c.why) for c in conditions.now()] == [
        ("index", 100.0, "Cannot allocate memory"),
        ("store", 160.0, "disk full"),
    ]
    conditions.end("index")
    conditions.end("never begun")
    assert [condition.what for condition in conditions.now()] == ["store"]


def test_the_log_has_one_line_at_the_beginning_and_one_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    conditions = Conditions()
    for _ in range(1000):
        conditions.begin("accepting", "Too many open files")
    conditions.end("accepting")
    conditions.end("accepting")
    beginning, end = (record.getMessage() for record in caplog.records)
    assert beginning.startswith("accepting: degraded")
    assert end.startswith("accepting: works again after")


def test_a_condition_that_comes_and_goes_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    moment = 0.0
    conditions = Conditions(elapsed=lambda: moment)
    for number in range(601):
        moment = number / 10
        conditions.begin("accepting", "Too many open files")
        conditions.end("accepting")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 6
    assert lines[2].endswith("(and 299 times since it was last said)")


class Starving:
    """A service that lacks something whatever it is asked for."""

    async def perform(self, *_: object) -> bytes:
        await trio.lowlevel.checkpoint()
        raise MemoryError


async def test_a_request_that_lacks_memory_is_told_so_and_may_be_repeated(caplog: pytest.LogCaptureFixture) -> None:
    client = Client(principal=LOCAL, version="2025-11-25")
    found = await answer(cast("Service", Starving()), exchange(client, "tools/call", b"{}"))
    error = msgspec.json.decode(found.body)["error"]
    assert "Cannot allocate memory" in error["message"]
    assert error["data"]["retryable"]
    assert error["data"]["outcome"] == "not_sent"
    assert caplog.text == ""


def test_how_long_something_is_degraded_is_right_wherever_the_clock_was_set_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    unix, elapsed = 1_000_000.0, 5.0
    conditions = Conditions(lambda: unix, lambda: elapsed)
    conditions.begin("store", "disk full")
    unix, elapsed = unix - 7200.0, elapsed + 60.0
    assert [unix - condition.since for condition in conditions.now()] == [60.0]
    conditions.end("store")
    assert caplog.records[-1].getMessage() == "store: works again after 60.0 s"
