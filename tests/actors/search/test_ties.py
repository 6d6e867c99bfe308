"""Documents of equal score change places by a preference, and nothing else does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actors.search.document import Document
from actors.search.index import Index
from actors.search.page import DEPTH, order_ties
from actors.search.search import find
from actors.search.segment import analyse
from tests.actors.search.test_properties import anything, build, servers

SCORED = st.lists(
    st.tuples(
        st.sampled_from([0.0, -1.0, -2.5]),
        st.sampled_from([3.0, 2.0, 1.0, float(np.nextafter(np.float32(1), np.float32(0)))]),
    ),
    max_size=40,
)
MERITS = st.lists(st.integers(-3, 300), min_size=40, max_size=40)


def document(number: int) -> Document:
    return Document(key=f"desk:{number:05}", kind="tool", server="desk", name=f"{number:05}")


def placed(scored: list[tuple[float, float]], merits: list[int]) -> list[int]:
    """The numbers of documents that have these ranks and values, ordered by them and by these merits."""
    scored = sorted(scored, key=lambda each: (each[0], -each[1]))
    ranks, values = (np.array([each[at] for each in scored], np.float32) for at in (0, 1))
    every, ordered = [document(number) for number in range(len(scored))], np.arange(len(scored), dtype=np.int32)
    out: list[int] = order_ties(every, ordered, values, ranks, lambda each: merits[int(each.name)]).tolist()
    assert out == order_ties(every, ordered, values, ranks, lambda each: merits[int(each.name)]).tolist()
    assert [scored[number] for number in out] == scored, "what is not equal keeps its place"
    return out


@given(SCORED, MERITS)
def test_equals_alone_change_places_and_the_preferred_are_first(
    scored: list[tuple[float, float]], merits: list[int]
) -> None:
    out = placed(scored, merits)
    assert sorted(out) == [*range(len(scored))]
    in_order = sorted(scored, key=lambda each: (each[0], -each[1]))
    key = [(rank, -np.float32(value), -merits[number], number) for number, (rank, value) in enumerate(in_order)]
    assert [key[number] for number in out] == sorted(key)


def test_of_a_crowd_of_equals_only_the_first_are_looked_at() -> None:
    looked_at: list[str] = []

    def prefer(each: Document) -> int:
        looked_at.append(each.name)
        return int(each.name)

    many = DEPTH + 9
    every, zeros = [document(number) for number in range(many)], np.zeros(many, np.float32)
    out = order_ties(every, np.arange(many, dtype=np.int32), zeros, zeros, prefer).tolist()
    assert len(looked_at) == DEPTH
    assert out == [*range(DEPTH - 1, -1, -1), *range(DEPTH, many)]


@given(st.lists(servers(), max_size=3), anything, st.integers(-1, 30))
def test_a_search_finds_the_same_whoever_prefers_what(catalogue: list[list[Document]], query: str, limit: int) -> None:
    index = build({documents[0].server: documents for documents in catalogue})
    assert find(index, query, limit=limit, prefer=lambda each: 1) == find(index, query, limit=limit)
    plain, longest = (find(index, query, limit=99, prefer=prefer) for prefer in (None, lambda each: len(each.name)))
    assert longest.total == plain.total
    assert {hit.document.key: hit.score for hit in longest.hits} == {hit.document.key: hit.score for hit in plain.hits}


def test_of_two_servers_that_offer_the_same_the_preferred_one_is_first() -> None:
    def offered(server: str) -> list[Document]:
        text = "Opens a ticket."
        return [Document(key=f"{server}:add", kind="tool", server=server, name="add", described=text)]

    index = Index.empty().rebuild(analyse(server, offered(server)) for server in ("east", "north", "west"))
    for first in ("east", "north", "west"):
        for query in ("open a ticket", "add"):
            found = find(index, query, prefer=lambda each, first=first: each.server == first)  # type: ignore[misc]
            others = [server for server in ("east", "north", "west") if server != first]
            assert [hit.document.server for hit in found.hits] == [first, *others]
