from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from supervisor.fleet.membership import Members, rank, weight_of
from supervisor.fleet.records import Node, NodeGone, NodeSeen

NAMES = st.lists(st.text("abcdefgh-0123456789", min_size=1, max_size=12), min_size=1, max_size=20, unique=True)
GIB = 2**30


def nodes(names: list[str], weight: int = 100) -> list[Node]:
    return [Node(name=name, incarnation=f"{name}/1", weight=weight) for name in names]


@given(NAMES, st.text(max_size=20), st.randoms())
def test_every_node_comes_to_the_same_answer(names: list[str], launch: str, chance: object) -> None:
    ours = nodes(names)
    other = sorted(ours, key=lambda node: hash((node.name, id(chance))))
    assert rank(launch, ours) == rank(launch, other)
    assert len(rank(launch, ours)) == min(3, len(names))


@given(NAMES, st.text(max_size=20))
def test_a_node_that_goes_moves_only_what_it_had(names: list[str], launch: str) -> None:
    ranked = rank(launch, nodes(names), len(names))
    for gone in ranked:
        assert rank(launch, [node for node in ranked if node is not gone]) == [n for n in ranked if n is not gone][:3]


@given(NAMES, st.text(max_size=20))
def test_a_node_without_weight_takes_nothing_new(names: list[str], launch: str) -> None:
    assert rank(launch, nodes(names, weight=0)) == []


def test_shares_are_as_the_weights_are() -> None:
    some = [Node(name=name, incarnation=name, weight=weight) for name, weight in (("a", 100), ("b", 200), ("c", 500))]
    shares = Counter(rank(f"launch {n}", some)[0].name for n in range(8000))
    assert abs(shares["a"] - 1000) < 150
    assert abs(shares["b"] - 2000) < 200
    assert abs(shares["c"] - 5000) < 250


def test_more_free_memory_weighs_more_and_more_calls_weigh_less() -> None:
    assert weight_of(8 * GIB, 0) > weight_of(GIB, 0) > weight_of(GIB, 40) > 0
    assert weight_of(0, 10_000) >= 1
    assert weight_of(8 * GIB, 3) == weight_of(8 * GIB + GIB // 10, 3)


def test_members_are_what_was_there_and_what_the_feed_has_said() -> None:
    members = Members()
    a, b, c = nodes(["a", "b", "c"])
    members.reset([a, b])
    members.take(NodeSeen(c))
    members.take(NodeGone("a/1"))
    members.take(NodeGone("a/1"))
    assert members.all() == [b, c]
    assert members.find("c/1") == c
    assert members.find("a/1") is None


def test_a_launch_is_placed_among_those_that_have_read_the_same_configuration() -> None:
    members = Members()
    members.reset(
        [
            Node(name="a", incarnation="a/1", configuration="old"),
            Node(name="b", incarnation="b/1", configuration="new"),
        ]
    )
    assert {members.place(f"l{n}", "new", 1)[0].name for n in range(50)} == {"b"}
    assert members.place("l", "newest") == []
