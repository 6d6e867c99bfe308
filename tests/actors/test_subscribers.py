"""Who is told of changes of which resource."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.errors import TooManyCalls
from actors.principal import LOCAL
from actors.subscribers import MAX_BYTES, MAX_PARENTS, MAX_URIS, PORTION, Subscribers
from tests.fakes.turns import Turns, at_once

ONE, OTHER = (LOCAL, "one"), (LOCAL, "other")


class Told:
    """Counts what each subscriber was told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def teller(self, name: str) -> Callable[[], None]:
        return lambda: self.names.append(name)


@pytest.mark.parametrize("whole", ["file:///a", "file:///a/"])
def test_a_part_of_a_resource_is_told_of_as_the_whole(whole: str) -> None:
    told, subscribers = Told(), Subscribers(at_once)
    subscribers.add("s", whole, told.teller("whole"))
    for uri in ("file:///a/b/c", "file:///ab", "file:///", "x", "", "/".join("p" * (MAX_PARENTS + 2))):
        subscribers.tell_update("s", uri)
    assert told.names == ["whole"]


def test_what_may_have_been_missed_is_told_of() -> None:
    told, subscribers = Told(), Subscribers(at_once)
    for uri in ("a", "b"):
        subscribers.add("s", uri, told.teller(uri))
    subscribers.tell_missed("s", ("b", "c"))
    assert told.names == ["b"]


def test_one_server_is_asked_for_so_many_resources_at_most_and_room_comes_back() -> None:
    told, subscribers = Told(), Subscribers(at_once)
    tell = told.teller("x")
    for number in range(MAX_URIS // 2):
        subscribers.add("s", str(number), tell)
    with pytest.raises(TooManyCalls):
        subscribers.add("s", "more", tell)
    subscribers.add("s", "0", told.teller("one more of the same"))
    subscribers.add("t", "more", tell)
    assert subscribers.remove("s", "1", tell)
    subscribers.add("s", "more", tell)


def test_their_uris_have_so_many_bytes_at_most() -> None:
    subscribers = Subscribers(at_once)
    tell = Told().teller("x")
    large = "\udcff" + "a" * (MAX_BYTES // 4)
    subscribers.add("s", large, tell)
    with pytest.raises(TooManyCalls):
        subscribers.add("s", large + "a", tell)
    assert subscribers.remove("s", large, tell)
    subscribers.add("s", large + "a", tell)


def test_a_resource_counts_for_whoever_is_subscribed_to_it_for_the_longest() -> None:
    told, subscribers = Told(), Subscribers(at_once)
    size = MAX_BYTES // 2
    one, other = told.teller("one"), told.teller("other")
    subscribers.add("s", "a" * size, one, ONE)
    subscribers.add("s", "a" * size, other, OTHER)
    subscribers.add("s", "b", told.teller("b"), OTHER)
    assert not subscribers.remove("s", "a" * size, one)
    with pytest.raises(TooManyCalls):
        subscribers.add("s", "c" * 9, told.teller("c"), OTHER)
    subscribers.add("s", "c" * 9, told.teller("c"), ONE)
    assert subscribers.remove("s", "a" * size, other)
    subscribers.add("s", "d" * 9, told.teller("d"), OTHER)


def crowd(turns: Turns, uris: str = "a", size: int = 3 * PORTION) -> tuple[Told, Subscribers]:
    """So many subscribers to each of these resources, by names like `a1`."""
    told, subscribers = Told(), Subscribers(turns.later)
    for uri in uris:
        for number in range(size):
            subscribers.add("s", uri, told.teller(f"{uri}{number}"))
    return told, subscribers


def test_many_are_told_a_few_in_each_turn() -> None:
    turns = Turns()
    told, subscribers = crowd(turns)
    subscribers.tell_update("s", "a")
    assert told.names == [f"a{number}" for number in range(PORTION)]
    turns.turn()
    assert told.names == [f"a{number}" for number in range(2 * PORTION)]
    turns.all()
    assert told.names == [f"a{number}" for number in range(3 * PORTION)]


def test_a_change_while_many_are_told_is_told_once_to_everybody_after_that() -> None:
    turns = Turns()
    told, subscribers = crowd(turns)
    for _ in range(3):
        subscribers.tell_update("s", "a")
    assert len(turns.waiting) == 1
    turns.all()
    assert told.names == [f"a{number}" for number in range(3 * PORTION)] * 2


def test_a_resource_that_always_changes_does_not_keep_others_from_being_told() -> None:
    turns = Turns()
    told, subscribers = crowd(turns, "ab")
    subscribers.tell_update("s", "a")
    subscribers.tell_update("s", "b")
    while "b0" not in told.names:
        assert len(told.names) <= 3 * PORTION
        subscribers.tell_update("s", "a")
        turns.turn()


def test_who_leaves_while_many_are_told_is_not_told_and_who_comes_is_not_either() -> None:
    turns = Turns()
    told, subscribers = crowd(turns, size=PORTION)
    last = told.teller("last")
    subscribers.add("s", "a", last)
    subscribers.tell_update("s", "a")
    subscribers.remove("s", "a", last)
    subscribers.add("s", "a", told.teller("new"))
    turns.all()
    assert told.names == [f"a{number}" for number in range(PORTION)]


def test_a_resource_that_all_leave_before_its_turn_is_nothing_to_tell_of() -> None:
    turns = Turns()
    told, subscribers = crowd(turns)
    tell = told.teller("b")
    subscribers.add("s", "b", tell)
    subscribers.tell_update("s", "a")
    subscribers.tell_update("s", "b")
    subscribers.remove("s", "b", tell)
    turns.all()
    assert told.names == [f"a{number}" for number in range(3 * PORTION)]
