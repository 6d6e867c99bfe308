"""What is told of a server's life follows from its states, whatever they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.facts import Available, ListsRead, Logged, OfLaunch, StateChange, Unavailable
from actors.life.states import State
from supervisor.events import translation
from supervisor.events.kinds import (
    TYPES,
    DiscoveryCompleted,
    DiscoveryFailed,
    EventData,
    ServerAway,
    ServerBack,
    ServerCrashed,
    ServerPermanentlyFailed,
    ServerRespawned,
    ServerRestarted,
    ServerStarted,
    ServerStatusChanged,
)
from supervisor.events.translation import Lives, Translator
from tests.fakes.told_events import SmallWorld

UP = (State.SPAWNING, State.HANDSHAKING, State.DISCOVERING, State.READY)


class Telling:
    """A server whose states come one after the other, a second each."""

    def __init__(self) -> None:
        self._translator = Translator(SmallWorld())
        self.lives = self._translator.lives
        self.state = State.DORMANT
        self.time = 100.0
        self.told: list[EventData] = []

    def tell(self, fact: OfLaunch) -> list[EventData]:
        return [*self._translator.events(Logged(time=self.time, fact=fact))]

    def become(self, *states: State, **said: Any) -> list[EventData]:
        """Return what is told of these, but the changes of the state themselves."""
        fresh: list[EventData] = []
        for state in states:
            self.time += 1.0
            first, *more = self.tell(StateChange(launch="a", state=state, previous=self.state, status="online", **said))
            assert isinstance(first, ServerStatusChanged)
            assert (first.state, first.previous_state) == (state.value, self.state.value)
            fresh += more
            self.state = state
        self.told += fresh
        return fresh

    def list(self, tools: int = 3) -> DiscoveryCompleted:
        (told,) = self.tell(ListsRead(launch="a", tools=tools, seconds=0.25))
        assert isinstance(told, DiscoveryCompleted)
        return told


@pytest.mark.parametrize(("code", "signal"), [(3, None), (None, 9), (None, None)])
def test_a_crash_and_its_restart(code: int | None, signal: int | None) -> None:
    server = Telling()
    server.become(*UP, pid=7)
    (crashed,) = server.become(State.RESPAWNING, reason="it left", exit_code=code, signal=signal)
    assert isinstance(crashed, ServerCrashed)
    assert (crashed.exit_code, crashed.signal, crashed.uptime_seconds) == (code, signal, 1.0)
    assert (crashed.crash_count, crashed.will_restart, crashed.process_id) == (1, True, 7)
    (restarted,) = server.become(*UP, pid=8)
    assert isinstance(restarted, ServerRestarted)
    assert (restarted.old_process_id, restarted.new_process_id, restarted.attempt_number) == (7, 8, 1)
    assert restarted.restart_reason == "it left"


def test_a_server_that_is_given_up() -> None:
    server = Telling()
    server.become(*UP[:3], pid=7)
    failed, crashed = server.become(State.RESPAWNING, reason="no list")
    assert isinstance(failed, DiscoveryFailed)
    assert (failed.duration_ms, failed.failure_count, failed.reason) == (1000.0, 1, "no list")
    assert isinstance(crashed, ServerCrashed)
    (given_up,) = server.become(State.SPAWNING, State.FAILED, reason="too often")
    assert isinstance(given_up, ServerPermanentlyFailed)
    assert (given_up.total_crashes, given_up.last_error) == (1, "too often")


def test_away_and_back() -> None:
    server = Telling()
    (away,) = server.tell(Unavailable(launch="a", tools=2, reason="x" * 1000))
    server.time += 2.5
    (back,) = server.tell(Available(launch="a", tools=2))
    assert isinstance(away, ServerAway)
    assert len(away.reason or "") == 500
    assert isinstance(back, ServerBack)
    assert (back.tool_count, back.away_duration_seconds) == (2, 2.5)


@given(st.lists(st.sampled_from([*State]), max_size=30))
def test_whatever_states_come_counts_and_times_make_sense(states: list[State]) -> None:
    server = Telling()
    server.become(*states, reason="why")
    crashes = [each for each in server.told if isinstance(each, ServerCrashed)]
    assert [each.crash_count for each in crashes] == [*range(1, len(crashes) + 1)]
    ready = [each for each in server.told if isinstance(each, ServerStarted | ServerRestarted | ServerRespawned)]
    assert len(ready) <= states.count(State.READY)
    assert all(TYPES[type(each)] for each in server.told)


def test_so_many_lives_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "MAX_LIVES", 3)
    lives = Lives()
    for name in "abcd":
        lives.call(name, 1.0)
    assert lives.of("d").called_at == 1.0
    assert lives.of("a").called_at is None
    lives.call("d~1", 2.0)
    lives.forget("d")
    assert (lives.of("d").called_at, lives.of("d~1").called_at) == (None, None)
