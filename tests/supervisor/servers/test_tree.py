"""Supervision: a crash is counted, want of resources is waited out."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock

from actors.kit import Conditions
from actors.life.policy import RestartLog, RestartPolicy
from supervisor.servers.tree import supervise


def log_of(max_restarts: int) -> RestartLog:
    return RestartLog(RestartPolicy(max_restarts=max_restarts), lambda: 0.5)


async def test_want_is_no_crash_however_often_it_comes(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    runs, conditions, restarts = 0, Conditions(), log_of(1)

    async def run() -> None:
        nonlocal runs
        await trio.lowlevel.checkpoint()
        runs += 1
        if runs < 100:
            raise ExceptionGroup("", [MemoryError()])

    assert await supervise("a child", run, restarts, conditions)
    assert restarts.total == 0
    assert conditions.now() == []
    assert len(caplog.records) <= 2 * (1 + trio.current_time() // 30)


async def test_a_crash_is_counted_until_it_is_too_much(autojump_clock: MockClock) -> None:
    runs = 0

    async def run() -> None:
        nonlocal runs
        await trio.lowlevel.checkpoint()
        runs += 1
        raise ZeroDivisionError("a bug")

    assert not await supervise("a child", run, log_of(2))
    assert runs == 3
