"""What is remembered of each server: the newest, so many, and nothing that another one does away with."""

from __future__ import annotations

from actors.life.breakers import OpenBreaker
from actors.life.states import State
from actors.messages import ServerChanged, ServerStatus
from actors.registry.happening import MAX_CHANGES, MAX_LAUNCHES, MAX_REASON_CHARS, StateChanges, breaker_changes


def changed(server: str, state: State, previous: State = State.READY, reason: str = "") -> ServerChanged:
    status = ServerStatus(
        server=server, state=state, wanted="up", since=0.0, reason="it broke", last_error="it broke; for operators"
    )
    return ServerChanged(status=status, previous=previous, reason=reason)


def test_each_server_has_a_memory_of_its_own() -> None:
    kept = StateChanges()
    kept.add(changed("quiet", State.READY, State.DISCOVERING), "online", 0.0)
    for time in range(MAX_CHANGES + 5):
        kept.add(changed("busy", State.DORMANT), "online", float(time))
    assert [each.time for each in kept.of("quiet")] == [0.0]
    assert [each.time for each in kept.of("busy")] == [float(time) for time in range(5, MAX_CHANGES + 5)]
    kept.forget("busy")
    assert (kept.of("busy"), kept.of("nobody")) == ((), ())


def test_so_many_servers_are_remembered() -> None:
    kept = StateChanges()
    for number in range(MAX_LAUNCHES + 1):
        kept.add(changed(str(number), State.READY), "online", 1.0)
    assert not kept.of("0")
    assert all(kept.of(str(number)) for number in range(1, MAX_LAUNCHES + 1))


def test_a_reason_is_as_events_have_it_and_not_too_long() -> None:
    kept = StateChanges()
    kept.add(changed("s", State.RESPAWNING, reason="x" * 1000), "online", 1.0)
    kept.add(changed("s", State.FAILED), "online", 2.0)
    kept.add(changed("s", State.READY), "online", 3.0)
    assert [each.reason for each in kept.of("s")] == ["x" * MAX_REASON_CHARS, "it broke", ""]
    assert [each.is_crash for each in kept.of("s")] == [True, True, False]


def breaker(tool: str, until: float) -> OpenBreaker:
    return OpenBreaker(breaker="tool", tool=tool, until=until, seconds=30.0, failures=3, reason="it is silent")


def with_breakers(*breakers: OpenBreaker) -> ServerStatus:
    return ServerStatus(server="a", state=State.READY, wanted="up", since=0.0, breakers=breakers)


def test_breakers_that_opened_or_have_closed_are_told_of_once() -> None:
    same, again = breaker("same", 1.0), breaker("again", 2.0)
    before = with_breakers(same, again, breaker("gone", 3.0))
    after = with_breakers(same, breaker("again", 99.0), breaker("new", 4.0))
    told = {"breaker": "tool", "reason": "it is silent", "seconds": 30.0}
    assert [*breaker_changes(before, after)] == [
        ("breaker_opened", {**told, "tool": "again"}),
        ("breaker_opened", {**told, "tool": "new"}),
        ("breaker_closed", {"breaker": "tool", "tool": "gone"}),
    ]
    assert [*breaker_changes(None, with_breakers(same))] == [("breaker_opened", {**told, "tool": "same"})]
    assert [*breaker_changes(after, after)] == []
