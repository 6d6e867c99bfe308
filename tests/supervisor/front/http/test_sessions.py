"""The live legacy sessions by themselves: idleness, bounds, and what is remembered of the dead."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio

from actors.principal import LOCAL, Principal
from supervisor.config import Settings
from supervisor.front.http import sessions as sessions_module
from supervisor.front.http.sessions import HttpSession, Sealer, SessionMemory, Sessions
from supervisor.service.port import Revisions
from supervisor.store import ALL_UNTIL


class Times:
    """Both clocks of the sessions, set by the test."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self.moment = 0.0


def sessions_of(times: Times, *, max_sessions: int = 10, **memory: Any) -> Sessions:
    settings = Settings(session_idle_s=100.0, session_max_age_s=1000.0, max_sessions=max_sessions)
    known = SessionMemory(**memory)
    return Sessions(Sealer(b"k" * 32), settings, known, now=lambda: times.wall, clock=lambda: times.moment)


def open_one(sessions: Sessions, principal: Principal = LOCAL) -> HttpSession:
    return sessions.open(
        principal=principal,
        version="2025-11-25",
        client_name="c",
        client_version="1",
        capabilities=msgspec.Raw(b"{}"),
        told=Revisions(),
    )


async def test_where_there_is_no_room_one_that_was_subscribed_to_resources_ends_and_others_may_come_back() -> None:
    times, ended = Times(), list[str]()
    sessions = sessions_of(times, max_sessions=2, ended=lambda digest, expires_at: ended.append(digest))
    subscribed, other = open_one(sessions), open_one(sessions)
    subscribed.updates.used = True
    for _ in range(2):
        assert sessions.touch(subscribed)
        assert sessions.touch(other)
    assert ended == [subscribed.digest]
    for _ in range(2):
        open_one(sessions)
    assert sessions.find(subscribed.token, LOCAL) is None
    assert sessions.find(other.token, LOCAL) is not None
    await trio.lowlevel.checkpoint()


async def test_what_is_in_use_is_not_idle_however_long_it_takes() -> None:
    times = Times()
    sessions = sessions_of(times)
    streaming, calling, idle = (open_one(sessions) for _ in range(3))
    streaming.stream = trio.CancelScope()
    calling.in_flight[1] = trio.CancelScope()
    times.moment = 101.0
    open_one(sessions)
    assert sessions.find(idle.token, LOCAL) is None
    assert sessions.find(streaming.token, LOCAL) is streaming
    assert sessions.find(calling.token, LOCAL) is calling
    await trio.lowlevel.checkpoint()
    assert not streaming.stream.cancel_called


@pytest.mark.case("D14")
@pytest.mark.parametrize("step_s", [86_400.0, -86_400.0])
def test_a_clock_of_the_wall_that_is_set_ends_no_live_session_and_makes_none_last_longer(step_s: float) -> None:
    times = Times()
    sessions = sessions_of(times)
    session = open_one(sessions)
    times.wall += step_s
    for _ in range(10):
        assert sessions.find(session.token, LOCAL) is session
        assert sessions.touch(session)
        times.moment, times.wall = times.moment + 99, times.wall + 99
    times.moment = 1000.0
    assert not sessions.touch(session)
    if step_s > 0:
        assert sessions.find(session.token, LOCAL) is None


async def test_the_stream_of_the_longest_unused_session_ends_when_there_are_too_many() -> None:
    sessions = sessions_of(Times(), max_sessions=1)
    session = open_one(sessions)
    session.stream = trio.CancelScope()
    open_one(sessions)
    await trio.lowlevel.checkpoint()
    assert session.stream.cancel_called
    assert len(sessions) == 1


@pytest.mark.case("I23")
async def test_whoever_has_most_sessions_makes_room_and_nobody_else() -> None:
    ana, ben = Principal("user:ana"), Principal("user:ben")
    sessions = sessions_of(Times(), max_sessions=4)
    one = open_one(sessions, ben)
    one.stream = trio.CancelScope()
    many = [open_one(sessions, ana) for _ in range(20)]
    await trio.lowlevel.checkpoint()
    assert not one.stream.cancel_called
    assert sessions.find(many[0].token, ana) is not None, "it comes back by its token"
    for _ in range(3):
        open_one(sessions, ben)
    assert len(sessions) == 4
    for session in many:
        sessions.end(session)
    assert sessions.find(one.token, ben) is not None


def test_the_memory_of_ended_sessions_is_bounded_and_no_session_comes_back_to_life_by_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions_module, "_MAX_REMEMBERED", 4)
    times, moments = Times(), list[float]()
    sessions = sessions_of(times, max_sessions=100, ended_until=moments.append)
    others = open_one(sessions)
    ended = []
    for _ in range(50):
        times.wall += 1
        ended.append(open_one(sessions))
        sessions.end(ended[-1])
        assert len(sessions._ended) <= 4
        assert [session for session in ended if sessions.find(session.token, LOCAL)] == []
    assert sessions.find(others.token, LOCAL) is others
    assert moments == sorted(moments)
    assert open_one(sessions).token not in {session.token for session in ended}


def test_what_was_remembered_as_one_moment_stays_ended_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "_MAX_REMEMBERED", 2)
    times, kept = Times(), dict[str, float]()

    def until(moment: float) -> None:
        for digest in [digest for digest, expires in kept.items() if expires <= moment]:
            del kept[digest]
        kept[ALL_UNTIL] = moment

    sessions = sessions_of(times, max_sessions=100, ended=kept.__setitem__, ended_until=until)
    ended = []
    for _ in range(10):
        times.wall += 1
        ended.append(open_one(sessions))
        sessions.end(ended[-1])
    times.wall += 1
    alive = open_one(sessions)
    assert len(kept) <= 3
    following = sessions_of(times, already_ended=kept)
    assert [session for session in ended if following.find(session.token, LOCAL)] == []
    assert following.find(alive.token, LOCAL) is not None


def test_sessions_that_were_ended_by_an_earlier_life_end_when_that_is_learnt_late() -> None:
    times = Times()
    before = sessions_of(times)
    ended, other = open_one(before), open_one(before)
    sessions = sessions_of(times)
    assert sessions.find(ended.token, LOCAL) is not None
    sessions.take_ended({ended.digest: ended.expires_at})
    assert sessions.find(ended.token, LOCAL) is None
    assert sessions.find(other.token, LOCAL) is not None


def test_one_of_somebody_else_is_looked_at_as_one_that_never_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the time of the answer does not tell which is there."""
    sessions, looked_at = sessions_of(Times()), list[str]()
    token = open_one(sessions, Principal("user:ana")).token
    unseal = Sealer.unseal

    def noted(self: Sealer, text: str, now: float, door: str = "") -> Any:
        looked_at.append(text)
        return unseal(self, text, now, door)

    monkeypatch.setattr(Sealer, "unseal", noted)
    for shown in (token, token[:-12] + b"AAAAAA" + token[-6:]):
        assert sessions.find(shown, Principal("user:ben")) is None
        assert looked_at.pop() == shown.decode()
    assert sessions.find(token, Principal("user:ana")) is not None
    assert looked_at == []
