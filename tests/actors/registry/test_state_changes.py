"""What is remembered of each server: the newest, so many, and nothing that another one does away with."""

from __future__ import annotations

from actors.facts import MAX_CHANGES, MAX_LAUNCHES, MAX_REASON_CHARS, BreakerReset, BreakerTripped, FactLog
from actors.life.breakers import OpenBreaker
from actors.life.states import State
from actors.messages import ServerChanged, ServerStatus
from actors.registry.actor import breaker_changes, state_change


class Told:
    """What is kept of changes of states."""

    def __init__(self) -> None:
        self._time = 0.0
        self._facts = FactLog(lambda: self._time)
        self.kept = self._facts.states

    def note(self, change: ServerChanged, time: float) -> None:
        self._time = time
        self._facts.note(state_change(change, "online", "online"))


def changed(server: str, state: State, previous: State = State.READY, reason: str = "") -> ServerChanged:
    status = ServerStatus(
        server=server, state=state, wanted="up", since=0.0, reason="it broke", last_error="it broke; for operators"
    )
    return ServerChanged(status=status, previous=previous, reason=reason)


def test_each_server_has_a_memory_of_its_own() -> None:
    told = Told()
    told.note(changed("quiet", State.READY, State.DISCOVERING), 0.0)
    for time in range(MAX_CHANGES + 5):
        told.note(changed("busy", State.DORMANT), float(time))
    kept = told.kept
    assert [time for time, _ in kept.of("quiet")] == [0.0]
    assert [time for time, _ in kept.of("busy")] == [float(time) for time in range(5, MAX_CHANGES + 5)]
    kept.forget("busy")
    assert (kept.of("busy"), kept.of("nobody")) == ((), ())


def test_so_many_servers_are_remembered() -> None:
    told = Told()
    for number in range(MAX_LAUNCHES + 1):
        told.note(changed(str(number), State.READY), 1.0)
    assert not told.kept.of("0")
    assert all(told.kept.of(str(number)) for number in range(1, MAX_LAUNCHES + 1))


def test_a_reason_is_as_events_have_it_and_not_too_long() -> None:
    told = Told()
    told.note(changed("s", State.RESPAWNING, reason="x" * 1000), 1.0)
    told.note(changed("s", State.FAILED), 2.0)
    told.note(changed("s", State.READY), 3.0)
    assert [each.reason for _, each in told.kept.of("s")] == ["x" * MAX_REASON_CHARS, "it broke", ""]
    assert [each.is_crash for _, each in told.kept.of("s")] == [True, True, False]


def breaker(tool: str, until: float) -> OpenBreaker:
    return OpenBreaker(breaker="tool", tool=tool, until=until, seconds=30.0, failures=3, reason="it is silent")


def with_breakers(*breakers: OpenBreaker) -> ServerStatus:
    return ServerStatus(server="a", state=State.READY, wanted="up", since=0.0, breakers=breakers)


def test_breakers_that_opened_or_have_closed_are_told_of_once() -> None:
    same, gone, again, new = breaker("same", 1.0), breaker("gone", 3.0), breaker("again", 99.0), breaker("new", 4.0)
    before, after = with_breakers(same, breaker("again", 2.0), gone), with_breakers(same, again, new)
    assert [*breaker_changes(before, after)] == [
        BreakerTripped(launch="a", breaker=again, reason="it is silent"),
        BreakerTripped(launch="a", breaker=new, reason="it is silent"),
        BreakerReset(launch="a", breaker=gone),
    ]
    assert [*breaker_changes(None, with_breakers(same))] == [
        BreakerTripped(launch="a", breaker=same, reason="it is silent")
    ]
    assert [*breaker_changes(after, after)] == []
