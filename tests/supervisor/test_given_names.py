"""Names that are given to clients, and open something: each is random, and none tells of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from actors.catalogue.diff import Revisions
from actors.principal import LOCAL
from supervisor.config import Settings
from supervisor.front.http.sessions import Sealer, SessionMemory, Sessions
from supervisor.identity.people import Person
from supervisor.identity.requester import Requester, Tickets
from supervisor.identity.tokens import new_token
from supervisor.service.asking.rounds import SealedNames

MADE = 10_000
FEWEST_BYTES = 16


def session_names() -> Callable[[], bytes]:
    sessions = Sessions(Sealer(bytes(32)), Settings(), SessionMemory(), now=lambda: 1e9, clock=lambda: 0.0)
    told = Revisions()

    def make() -> bytes:
        session = sessions.open(
            principal=LOCAL,
            version="2025-11-25",
            client_name="c",
            client_version="1",
            capabilities=msgspec.Raw(b"{}"),
            told=told,
        )
        return session.token

    return make


KINDS: dict[str, Callable[[], Callable[[], str | bytes]]] = {
    "sessions": session_names,
    "tokens": lambda: new_token,
    "tickets": lambda: partial(Tickets().make, Requester(person=Person(user="ana"), credential="c"), 0.0),
    "states of waiting calls": lambda: SealedNames(bytes(32), b"calls").make,
}


@pytest.mark.case("I09")
@pytest.mark.parametrize("kind", KINDS)
def test_names_are_random_in_so_many_places_that_nobody_guesses_one(kind: str) -> None:
    make = KINDS[kind]()
    made = [name.decode() if isinstance(name := make(), bytes) else name for _ in range(MADE)]
    assert len(set(made)) == MADE
    columns = [Counter(column) for column in zip(*made, strict=False)]
    # A place that is random has each character about as often as any other: that is some bits for each place.
    places = sum(len(column) >= 16 and max(column.values()) < MADE / 8 for column in columns)
    assert places * 4 >= FEWEST_BYTES * 8
