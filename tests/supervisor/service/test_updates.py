"""What one client is owed of the resources it is subscribed to."""

from __future__ import annotations

import pytest

from actors.errors import CannotAsk, TooManyCalls
from supervisor.service.client import MAX_SUBSCRIBED, MAX_VISITED, Updates


def test_a_resource_is_owed_once_however_often_it_changed() -> None:
    updates = Updates()
    for name in ("a", "b", "a"):
        updates.note(name)
    owed = [updates.owed, updates.take(), updates.owed, updates.take()]
    assert owed == [True, ("a", "b"), False, ()]


def test_what_has_not_arrived_for_certain_is_owed_again_to_the_next_stream_if_it_is_still_wanted() -> None:
    updates = Updates()
    for name in ("a", "b"):
        updates.hold(name, lambda: None)
        updates.note(name)
    updates.take()
    updates.release("b")
    updates.resume(lambda: None)
    assert updates.take() == ("a",)
    updates.mark_sent(10.0, 5.0)
    updates.mark_sent(12.0, 7.0)
    updates.resume(lambda: None)
    assert updates.take() == ("a",)
    updates.mark_sent(13.0, 8.0)
    updates.mark_sent(18.0, 13.0)
    updates.resume(lambda: None)
    assert not updates.owed


def test_a_subscription_that_ends_is_released_once_and_owes_nothing() -> None:
    updates, released = Updates(), []
    updates.hold("a", lambda: released.append("a"))
    updates.hold("b", lambda: released.append("b"))
    updates.note("a")
    assert "a" in updates
    updates.release("a")
    updates.release("a")
    assert ("a" in updates, updates.owed, released) == (False, False, ["a"])
    updates.end()
    assert released == ["a", "b"]
    with pytest.raises(CannotAsk):
        updates.hold("c", lambda: None)


def test_one_client_is_subscribed_to_so_many_at_most() -> None:
    updates = Updates()
    for number in range(MAX_SUBSCRIBED):
        updates.hold(str(number), lambda: None)
    with pytest.raises(TooManyCalls):
        updates.hold("more", lambda: None)
    updates.release("0")
    updates.hold("more", lambda: None)


def test_the_stream_is_rung_for_by_the_first_that_is_owed_and_not_by_those_after_it() -> None:
    updates, rung = Updates(), []
    updates.note("before there is a stream")
    updates.take()
    updates.resume(lambda: rung.append("an older one"))
    updates.resume(lambda: rung.append("the newest"))
    for name in ("a", "b", "a"):
        updates.note(name)
    assert rung == ["the newest"]
    updates.take()
    updates.note("a")
    assert rung == ["the newest"] * 2


def test_visits_that_are_over_are_owed_once_and_again_to_the_next_stream() -> None:
    updates, rung = Updates(), []
    updates.resume(lambda: rung.append("ring"))
    assert [updates.visited(id_) for id_ in ("a", "b", "a")] == [True] * 3
    assert (updates.owed, updates.take_visited(), updates.owed, rung) == (True, ("a", "b"), False, ["ring"])
    updates.resume(lambda: None)
    assert updates.take_visited() == ("a", "b")
    updates.mark_sent(1.0, 0.0)
    updates.mark_sent(2.0, 1.0)
    updates.resume(lambda: None)
    assert not updates.owed


def test_of_visits_that_were_told_only_the_last_may_be_owed_again() -> None:
    updates = Updates()
    for number in range(MAX_VISITED + 1):
        updates.visited(str(number))
        updates.take_visited()
    updates.resume(lambda: None)
    assert updates.take_visited() == tuple(map(str, range(1, MAX_VISITED + 1)))


def test_so_many_visits_wait_for_a_client_and_none_for_one_that_has_gone() -> None:
    updates = Updates()
    assert all(updates.visited(str(number)) for number in range(MAX_VISITED))
    assert not updates.visited("more")
    updates.take_visited()
    updates.end()
    assert not updates.visited("late")
