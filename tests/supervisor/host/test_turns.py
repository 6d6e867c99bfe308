"""A turn of the loop that takes long is counted, and one that takes very long is logged with where the loop is."""

from __future__ import annotations

import logging
import threading
import time

import pytest
import trio

from supervisor.host.pauses import short_pauses
from supervisor.host.turns import (
    LOGGED_S,
    LOOK_S,
    MAX_FRAMES,
    QUIET_S,
    STALL_S,
    LoopTurns,
    loop_turns,
    watch_turns,
)
from tests.fakes.clock import Clock

ME = threading.get_ident()


def hold(seconds: float) -> None:
    """Do nothing but keep the thread."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


class Watched:
    """The turns of a loop, on clocks that a test moves. The thread looks when the test says so."""

    def __init__(self) -> None:
        self.real, self.worked = Clock(), Clock()
        self.turns = LoopTurns(self.real, self.worked)

    def turn(self, seconds: float, looks: int = 0) -> None:
        """A turn, with so many looks at equal distances."""
        self.turns.begin()
        for _ in range(looks):
            self.real.now += seconds / looks
            self.turns.look(ME)
        self.real.now += 0 if looks else seconds
        self.turns.end()

    def wait(self, seconds: float) -> None:
        self.real.now += seconds


def test_turns_over_a_tenth_of_a_second_are_counted_and_no_waits() -> None:
    watched = Watched()
    for took in (0.05, STALL_S, 0.3, 0.2):
        watched.wait(50)
        watched.turn(took)
    assert watched.turns.status() == {
        "stalls": 2,
        "longest_stall_s": 0.3,
        "standstills": 0,
        "stood_still_s": 0,
    }


@pytest.mark.case("D19")
def test_a_turn_that_takes_very_long_is_logged_while_it_does_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    watched, secret = Watched(), "hunter22"
    watched.turns.begin()
    watched.wait(0.4)
    assert watched.turns.look(ME) == pytest.approx(LOGGED_S - 0.4)
    assert caplog.records == []
    watched.wait(0.6)
    assert watched.turns.look(ME) == LOOK_S
    (held,) = caplog.messages
    assert held.startswith("the loop is held for 1.0 s so far, in supervisor.host.turns._places:")
    assert f"{__name__}.{test_a_turn_that_takes_very_long_is_logged_while_it_does_and_when_it_ends.__name__}:" in held
    assert secret not in held
    assert held.count(" < ") < MAX_FRAMES
    watched.wait(2)
    watched.turns.look(ME)
    watched.turns.end()
    assert caplog.messages[1:] == ["a turn of the loop took 3.0 s: everybody waited for it"]


def test_stalls_are_logged_once_a_minute_and_counted_always(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    for _ in range(int(QUIET_S)):
        watched.turn(2.0, looks=2)
        watched.wait(1.0)
    assert watched.turns.stalls == QUIET_S
    assert len(caplog.messages) == 2 * 3  # in three minutes, when it begins and when it ends
    assert all(record.levelno == logging.WARNING for record in caplog.records)


def test_a_loop_that_waits_is_looked_at_once_in_a_second_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    for _ in range(100):
        watched.wait(LOOK_S)
        assert watched.turns.look(ME) == LOOK_S
    assert caplog.messages == []


def test_a_standstill_is_told_and_no_stall(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    watched.wait(60.0)
    watched.turns.stand(60.0)
    watched.turns.begin()
    watched.turns.look(ME)
    watched.wait(4.0)  # in the middle of a turn
    watched.turns.look(ME)
    watched.turns.stand(4.0)
    watched.turns.end()
    assert watched.turns.status() == {
        "stalls": 0,
        "longest_stall_s": 0,
        "standstills": 2,
        "stood_still_s": 64,
    }
    assert caplog.messages == [
        "the daemon stood still for 60.0 s: it was stopped, or its machine was; deadlines are as much later",
        "the daemon stood still for 4.0 s: it was stopped, or its machine was; deadlines are as much later",
    ]


def test_a_standstill_of_which_the_clock_tells_after_the_turn_is_no_stall_either() -> None:
    watched = Watched()
    watched.turns.look(ME)
    watched.turn(4.0)
    watched.turns.begin()
    watched.turns.stand(4.0)
    watched.turns.end()
    assert watched.turns.status() == {"stalls": 0, "longest_stall_s": 0, "standstills": 1, "stood_still_s": 4}


@pytest.mark.parametrize("worked", [True, False])
def test_a_turn_in_which_the_process_ran_is_a_stall_and_no_standstill(worked: bool) -> None:
    """Either the thread had its looks, or a call into C kept it from them and worked."""
    watched = Watched()
    watched.turns.look(ME)
    watched.turns.begin()
    for _ in range(5):
        watched.wait(1.0)
        watched.worked.now += worked
        if not worked:
            watched.turns.look(ME)
    watched.turns.stand(5.0)
    watched.turns.end()
    assert watched.turns.status() == {"stalls": 1, "longest_stall_s": 5, "standstills": 0, "stood_still_s": 0}


@pytest.mark.case("D19")
async def test_a_loop_that_is_held_is_seen_by_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    watched, said = LoopTurns(), threading.Event()

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.set()

    handler = Said()
    logging.getLogger("supervisor.host.turns").addHandler(handler)
    try:
        with watch_turns(watched), short_pauses():
            assert loop_turns() is watched
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()  # the first turn began before anybody looked
            assert said.wait(30), "the test holds the loop, and nobody says so"
            await trio.lowlevel.checkpoint()
    finally:
        logging.getLogger("supervisor.host.turns").removeHandler(handler)
    assert f"{__name__}.test_a_loop_that_is_held_is_seen_by_the_thread:" in caplog.messages[0]
    assert watched.longest_s >= LOGGED_S
    assert watched.stalls == 1


async def test_without_a_thread_they_are_only_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watched = LoopTurns()

    def no_thread(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with watch_turns(watched), short_pauses():
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            hold(2 * STALL_S)
            await trio.lowlevel.checkpoint()
    assert watched.stalls == 1
    assert caplog.messages == ["there is no thread to look how long turns of the loop take"]
