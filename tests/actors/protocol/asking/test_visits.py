"""Addresses that people are asked to open: who was given which id, and who hears that a visit is over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.codes import URL_ELICITATION_REQUIRED
from actors.protocol.asking.questions import (
    LASTS_S,
    MAX_ERROR_BYTES,
    MAX_ID_BYTES,
    MAX_VISITS,
    Visitor,
    Visits,
    id_of,
    ids_in,
)
from actors.protocol.wire.jsonrpc import ErrorObject

LONG = "x" * (MAX_ID_BYTES + 1)


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def visitor() -> Visitor:
    return lambda id_: bool(id_)


@pytest.mark.parametrize("params", [b"", b"7", b"{}", b'{"elicitationId":""}', b'{"elicitationId":7}', b"\xff"])
def test_what_names_no_visit_is_about_none(params: bytes) -> None:
    assert id_of(msgspec.Raw(params)) == ""


def test_a_visit_is_known_by_an_id_of_bounded_length() -> None:
    assert id_of(raw({"elicitationId": "a", "more": 1})) == "a"
    assert (id_of(raw({"elicitationId": LONG[1:]})), id_of(raw({"elicitationId": LONG}))) == (LONG[1:], "")


@pytest.mark.parametrize(
    ("code", "data", "ids"),
    [
        (
            URL_ELICITATION_REQUIRED,
            {"elicitations": [{"elicitationId": "a"}, {}, {"elicitationId": "a"}, {"elicitationId": LONG}]},
            ("a",),
        ),
        (URL_ELICITATION_REQUIRED, {"elicitations": [7]}, ()),
        (URL_ELICITATION_REQUIRED, 7, ()),
        (URL_ELICITATION_REQUIRED, {"elicitations": [{"elicitationId": "a"}], "x": "x" * MAX_ERROR_BYTES}, ()),
        (-32000, {"elicitations": [{"elicitationId": "a"}]}, ()),
    ],
)
def test_an_error_asks_for_the_visits_that_it_names(code: int, data: Any, ids: tuple[str, ...]) -> None:
    assert ids_in(ErrorObject(code, "go", raw(data))) == ids


def test_the_oldest_is_forgotten_for_the_newest() -> None:
    visits, one = Visits(), visitor()
    for number in range(MAX_VISITS + 1):
        visits.give(str(number), one, number, 0.0)
    assert visits.over("0", 0.0) == {}
    assert visits.over("1", 0.0) == {one: 1}


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.floats(0, LASTS_S / 2), st.booleans()), max_size=60
)


@given(STEPS)
def test_only_who_was_given_an_id_within_its_time_and_was_not_told_yet_hears_of_it(
    steps: list[tuple[str, int, float, bool]],
) -> None:
    visits, clients, now = Visits(), [visitor() for _ in range(4)], 0.0
    given_at: dict[tuple[str, Visitor], float] = {}
    for id_, number, pause_s, ends in steps:
        now += pause_s
        if not ends:
            visits.give(id_, clients[number], number, now)
            given_at[id_, clients[number]] = now
            continue
        told = {
            client: token
            for token, client in enumerate(clients)
            if given_at.pop((id_, client), now - LASTS_S) > now - LASTS_S
        }
        assert visits.over(id_, now) == told
