"""Tickets are good once, for a while, for whom they were made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from supervisor.identity.people import Person
from supervisor.identity.requester import GOOD_FOR_S, MAX_OF_ONE, MAX_OPEN, Requester, Tickets
from supervisor.identity.tokens import SavedToken


def somebody(user: str, digest: bytes = b"d") -> Requester:
    token = SavedToken(digest=digest, user=user, role="member")
    return Requester(person=Person(user=user), credential=user, token=token)


def test_a_ticket_is_good_once_and_not_for_long() -> None:
    tickets = Tickets()
    ana, made = somebody("ana"), [tickets.make(somebody("ana"), 0.0) for _ in range(3)]
    assert tickets.take("none", 0.0) is None
    assert tickets.take(made[0], GOOD_FOR_S - 1) == ana
    assert tickets.take(made[0], GOOD_FOR_S - 1) is None
    assert tickets.take(made[1], GOOD_FOR_S) is None


def test_what_was_given_for_a_token_ends_with_it() -> None:
    tickets = Tickets()
    operator = Requester(person=Person(user=""), credential="operator")
    made = [tickets.make(each, 0.0) for each in (somebody("ana", b"1"), somebody("ana", b"2"), operator)]
    tickets.revoke(b"1")
    assert [tickets.take(ticket, 0.0) is not None for ticket in made] == [False, True, True]


@given(st.lists(st.sampled_from(["ana", "ben", "cem"]), max_size=80))
def test_each_has_so_many_and_takes_none_from_others(users: list[str]) -> None:
    tickets = Tickets()
    made = [(user, tickets.make(somebody(user), 0.0)) for user in users]
    for user in ("ana", "ben", "cem"):
        own = [ticket for each, ticket in made if each == user]
        good = [ticket for ticket in own if tickets.take(ticket, 0.0) is not None]
        assert good == own[-MAX_OF_ONE:]


def test_there_are_so_many_at_all() -> None:
    tickets = Tickets()
    made = [tickets.make(somebody(f"user{number}"), 0.0) for number in range(MAX_OPEN + 1)]
    assert tickets.take(made[0], 0.0) is None
    assert tickets.take(made[1], 0.0) is not None
