"""What is said of a server that cannot be used now."""

from __future__ import annotations

from typing import Any

import pytest

from actors.life.breakers import BreakerScope, OpenBreaker
from actors.life.states import State
from actors.messages import ServerStatus
from supervisor.metatools.servers import availability_of, is_coming, late, status_words


def status(state: State, **more: Any) -> ServerStatus:
    return ServerStatus(server="s", state=state, wanted="up", since=0.0, incarnation=1, **more)


@pytest.mark.parametrize(
    ("how", "words", "seconds"),
    [
        (None, "is not ready yet; `mcpvisor logs s`", 5.0),
        (status(State.HANDSHAKING), "is not ready yet; `mcpvisor logs s`", 5.0),
        (status(State.HANDSHAKING, activity="installing"), "it is being installed, which can take minutes;", 30.0),
        (status(State.SPAWNING, activity="waiting for its turn"), "other servers are started or installed", 10.0),
        (status(State.SPAWNING, activity="waiting for room"), "too little memory, or too few descriptors", 5.0),
        (
            status(State.RESPAWNING, next_start=107.0, retry_at=107.0, reason="exit code 1"),
            "did not start: exit code 1; it is tried again in 7 s; `mcpvisor logs s`",
            7.0,
        ),
    ],
)
def test_a_server_that_is_late_says_why_and_when_to_ask_again(
    how: ServerStatus | None, words: str, seconds: float
) -> None:
    error = late("s", how, 100.0)
    assert words in error.message
    assert (error.retry_after_s, error.retryable) == (seconds, True)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (None, True),
        (status(State.SPAWNING), True),
        (status(State.READY), True),
        (status(State.SPAWNING, restarts=1), False),
        (status(State.RESPAWNING, restarts=1), False),
        (status(State.FAILED, down="permanently_failed"), False),
        (status(State.STOPPED, disabled=True), False),
        (status(State.DORMANT), False),
    ],
)
def test_only_a_server_that_has_not_failed_is_on_its_way(how: ServerStatus | None, expected: bool) -> None:
    assert is_coming(how) == expected


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (None, "s is being discovered"),
        (status(State.STOPPED, disabled=True, reason="switched off"), "s is not available (switched off)"),
        (status(State.FAILED, requires_reauth=True, reason="HTTP 401"), "s wants a login (HTTP 401)"),
        (status(State.DORMANT), "s is dormant and was never discovered"),
        (
            status(State.FAILED, down="permanently_failed", reason="exit code 1", restarts=1),
            "s could not be started (exit code 1)",
        ),
    ],
)
def test_how_a_server_without_known_tools_is_doing_is_said_in_a_few_words(
    how: ServerStatus | None, expected: str
) -> None:
    assert status_words("s", how) == expected


def left_alone(until: float, tool: str = "") -> OpenBreaker:
    scope: BreakerScope = "tool" if tool else "server"
    return OpenBreaker(breaker=scope, tool=tool, until=until, seconds=30, failures=3, reason="it is silent")


@pytest.mark.parametrize(
    ("how", "tool", "expected"),
    [
        (status(State.READY), "t", {}),
        (
            status(State.READY, breakers=(left_alone(107.0, "t"),)),
            "t",
            {"available": False, "retry_after_ms": 7000, "reason": "it keeps failing: it is silent"},
        ),
        (status(State.READY, breakers=(left_alone(107.0, "t"),)), "other", {}),
        (status(State.READY, breakers=(left_alone(100.0, "t"),)), "t", {}),
        (
            status(State.DORMANT, breakers=(left_alone(107.0, "t"), left_alone(109.0))),
            "t",
            {"available": False, "retry_after_ms": 9000, "reason": "calls of its server keep failing: it is silent"},
        ),
        (
            status(State.RESPAWNING, down="error", retry_at=120.0, breakers=(left_alone(109.0),)),
            "t",
            {"available": False, "retry_after_ms": 20000, "reason": "calls of its server keep failing: it is silent"},
        ),
        (status(State.FAILED, down="permanently_failed"), "t", {"available": False}),
    ],
)
def test_a_row_says_that_a_tool_cannot_be_called_until_when_and_why(
    how: ServerStatus, tool: str, expected: dict[str, Any]
) -> None:
    assert availability_of(how, tool, 100.0) == expected
