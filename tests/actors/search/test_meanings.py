"""Meanings beside words: what they add, what they must not change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from actors.search import tuning
from actors.search.certainty import Nearness, with_meanings
from actors.search.document import KINDS, Document, Found
from actors.search.index import Index
from actors.search.meanings import Embedder, Meanings, digest_of, levels, query_levels, text_of
from actors.search.scoring import score
from actors.search.search import _weight, find, fuse
from actors.search.segment import Segment
from actors.search.segment import analyse as words_of
from tests.fakes.embedder import FakeEmbedder, document_levels

TOOLS = {
    "zoo": {"feed_lions": "Give food to the animals", "count_visitors": "How many people came"},
    "office": {"print_page": "Put a page on paper", "feed_printer": "Fill in paper"},
    "music": {"play_song": "Start a song", "stop_song": "End the song"},
}
SAME = {"nourish": "food", "beasts": "animals", "melody": "song"}


def document(server: str, name: str, description: str = "", **more: Any) -> Document:
    return Document(key=f"{server}:{name}", kind="tool", server=server, name=name, described=description, **more)


def analyse(server: str, documents: Sequence[Document], embedder: Embedder | None = None) -> Segment:
    segment = words_of(server, documents)
    if embedder is None:
        return segment
    return replace(segment, meanings=document_levels(embedder, segment.documents), embedder=embedder.name)


def build(segments: Iterable[Segment], embedder: Embedder | None) -> Index:
    index = Index.empty().rebuild(segments)
    return index if embedder is None else index.with_meanings(embedder, {})


def built(embedder: Embedder | None) -> Index:
    segments = [
        analyse(server, [document(server, name, text) for name, text in tools.items()], embedder)
        for server, tools in TOOLS.items()
    ]
    return build(segments, embedder)


def keys(found: Found) -> list[str]:
    return [hit.document.key for hit in found.hits]


def test_a_document_is_found_by_its_meaning_beside_one_found_by_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SEMANTIC_NEAREST", 3)
    query = "melody on paper"
    assert set(keys(find(built(None), query))) == {"office:print_page", "office:feed_printer"}
    found = find(built(FakeEmbedder(SAME)), query)
    assert {"music:play_song", "office:print_page"} <= set(keys(found))
    assert found.hits[0].document.server == "office"


def test_of_two_documents_that_match_the_words_alike_the_nearer_in_meaning_comes_first() -> None:
    tools = [document("farm", "feed_a", "Feed the tractors"), document("farm", "feed_b", "Feed the animals")]
    for embedder, first in ((None, "farm:feed_a"), (FakeEmbedder(SAME), "farm:feed_b")):
        index = build([analyse("farm", tools, embedder=embedder)], embedder)
        assert keys(find(index, "feed the beasts"))[0] == first


def test_a_query_none_of_whose_words_is_known_finds_nothing_whatever_it_means() -> None:
    embedder = FakeEmbedder(SAME)
    assert find(built(embedder), "beasts") == Found()
    assert find(built(embedder), "zzqx 17 wvvk") == Found()
    noise = " ".join(f"{a}q{b}zv{c}xj" for a in "bdf" for b in "ghk" for c in "lmnpr")
    assert find(built(embedder), f"song {noise}") == Found(), "a word of so many is not enough"
    assert embedder.queries == [], "no query was embedded"


def test_the_document_that_is_asked_for_by_its_path_is_first_though_others_are_nearer() -> None:
    embedder = FakeEmbedder({"feed": "x", "lions": "x", "song": "x", "play": "x", "zoo": "x"})
    for query in ("zoo:feed_lions", "feed_lions", "mcp__zoo__feed-lions"):
        first = find(built(embedder), query).hits[0]
        assert first.exact
        assert first.document.key == "zoo:feed_lions"
        assert first.distance == 0


def test_a_misspelt_word_and_a_key_are_embedded_as_what_they_are() -> None:
    embedder = FakeEmbedder(SAME)
    find(built(embedder), "put animels of ACME-19 on paper")
    assert embedder.queries == ["put animals of jira issue on paper"]
    find(built(embedder), " ".join(["put animels on paper", *["zoo"] * 30]))
    assert "animels" in embedder.queries[1], "little is embedded of a long query"


def test_a_query_that_is_a_name_or_a_path_is_not_embedded() -> None:
    embedder = FakeEmbedder(SAME)
    for query in ("zoo:feed_lions", "feed lions", "*", "x"):
        find(built(embedder), query)
    assert embedder.queries == []


def test_the_less_the_words_say_and_the_more_of_them_are_known_the_more_a_meaning_counts() -> None:
    index = built(FakeEmbedder(SAME))
    full = tuning.SEMANTIC
    assert _weight(index, "feed animals", 0.0) == full
    lost = tuning.SEMANTIC_SURE
    weights = [_weight(index, "feed animals", share) for share in (0.5, 1.0, 7.0)]
    assert weights == pytest.approx([full * (1 - lost / 2), full * (1 - lost), full * (1 - lost)])
    assert _weight(index, "feed anmials, ok", 0.0) == full / 4, "short words say nothing"
    assert _weight(index, "zzqx zzqy", 0.0) == 0
    assert _weight(index, " ".join(["feed"] * 48), 0.0) == full / 2
    assert _weight(index, "", 0.0) == full


def test_a_meaning_counts_less_the_more_of_the_words_a_rule_of_paraphrase_explains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = "find articles about animals"  # the first three are the cue of a rule
    index = built(FakeEmbedder(SAME))
    weights = []
    for part in (0.0, 0.5, 1.0):
        monkeypatch.setattr(tuning, "SEMANTIC_EXPLAINED", part)
        weights.append(_weight(index, query, 0.0))
    without, half, whole = weights
    assert 0 < whole < half < without
    assert half == pytest.approx(without * (1 - 0.5 * 3 / 4))
    assert whole == pytest.approx(without / 4)


def test_vectors_that_come_later_give_what_those_made_at_once_give() -> None:
    embedder = FakeEmbedder(SAME)
    index = built(None)
    queries = ("melody on paper", "feed the beasts", "song", "count people", "*")
    rows = {s.server: document_levels(embedder, s.documents) for s in index.segments}
    some = index.with_meanings(embedder, {"zoo": rows["zoo"], "gone": rows["zoo"]})
    assert some.embedder is embedder
    whole = some.with_meanings(embedder, {"office": rows["office"], "music": rows["music"]})
    for query in queries:
        assert find(whole, query) == find(built(embedder), query)
        assert find(index, query) == find(built(None), query), "older values do not change"
    for wrong in ({"zoo": rows["office"][:1]}, {}):
        for query in queries:
            assert find(index.with_meanings(embedder, wrong), query) == find(index, query)


def test_a_document_whose_vector_is_still_to_come_is_neither_first_nor_last_for_that() -> None:
    tools = {
        name: document(name, "feed", f"Feed the {what}")
        for name, what in zip("abc", ("beasts", "tractors", "animals"), strict=True)
    }
    embedder = FakeEmbedder(SAME)
    index = Index.empty().rebuild([analyse(name, [tool]) for name, tool in tools.items()])
    rows = {name: document_levels(embedder, [tool]) for name, tool in tools.items()}
    found = find(index.with_meanings(embedder, {"b": rows["b"], "c": rows["c"]}), "feed my beast animals")
    assert {hit.document.server for hit in found.hits} == {"a", "b", "c"}
    assert keys(found).index("c:feed") < keys(found).index("b:feed")
    known = find(index.with_meanings(embedder, rows), "feed my beast animals")
    assert keys(known).index("c:feed") < keys(known).index("b:feed")


def test_both_together_say_which_document_fits_and_how_sure_that_is() -> None:
    index = built(FakeEmbedder(SAME))
    words = score(index, "melody on paper", None)
    found = fuse(index, "melody on paper", words, None)
    assert words is not None
    assert found is not None
    by_words = with_meanings(found.values, words.evidence, None)
    assert found.chances.tolist() == by_words.tolist(), "as long as nothing else is known"
    assert by_words.max() == pytest.approx(words.chances.max())
    near = [Nearness(*at) for at in ((0.0, 0.9, 0.0), (0.9, 0.9, 0.0), (0.9, 0.9, 0.1), (0.9, 0.3, 0.1))]
    sure = [with_meanings(found.values, words.evidence, at).max() for at in near]
    assert sure == sorted(set(sure)), (
        "a near document speaks for a hit, what is near in the world against it, and less if all of it is near"
    )
    assert found.chances.argmax() == found.values.argmax()
    assert (found.chances[found.values == 0] == 0).all()


def test_what_is_nearer_to_other_things_that_are_done_in_the_world_is_doubted_until_a_tool_does_it() -> None:
    embedder = FakeEmbedder(SAME)
    lines = [
        "paint a page",
        "paint on paper",
        "paint paper red",
        *(f"thing{number} done{number}" for number in range(40)),
    ]
    index, world = built(embedder), levels(embedder.embed(lines))
    beside = index.with_meanings(embedder, {}, world)
    asked, done = "paint on paper", "print a page"
    assert find(beside, asked).hits[0].distance > find(index, asked).hits[0].distance
    assert keys(find(beside, asked)) == keys(find(index, asked)), "what comes first stays"
    assert find(beside, done).hits[0].distance < 0.5 < find(beside, asked).hits[0].distance
    painter = analyse("studio", [document("studio", "paint", "Paint on paper")], embedder=embedder)
    assert find(beside.replace(painter), asked).hits[0].distance < 0.5


def test_vectors_of_the_world_stay_with_the_embedder_that_made_them() -> None:
    embedder, other = FakeEmbedder(SAME), FakeEmbedder(SAME, name="other")
    world = levels(embedder.embed(["fly a kite", "bake bread", "mow the lawn"]))
    index = built(embedder).with_meanings(embedder, {}, world)
    for kept in (index.with_meanings(embedder, {}), index.rebuild(index.segments), index.remove("zoo")):
        assert kept.world.lines.rows.tolist() == world.tolist()
    assert index.with_meanings(other, {}).world.nearness(query_levels(other, "fly a kite")) is None


def test_what_some_server_does_is_not_done_elsewhere_as_long_as_it_is_there() -> None:
    embedder = FakeEmbedder(SAME)
    lines = ["fly a kite", "bake bread", "mow the lawn", "paint a wall"]
    world = levels(embedder.embed(lines))
    index = built(embedder).with_meanings(embedder, {}, world)
    asked = query_levels(embedder, "fly a kite")
    cosines = sorted(index.world.lines.cosines(asked).tolist())
    assert index.world.nearness(asked) == pytest.approx((sum(cosines[-3:]) / 3, sum(cosines) / 4))
    park = analyse("park", [document("park", "kite", "fly a kite")])
    later = index.replace(park).with_meanings(embedder, {"park": document_levels(embedder, park.documents)})
    sooner = index.replace(analyse("park", park.documents, embedder=embedder))
    at_once = index.replace(park).with_meanings(
        embedder, {s.server: document_levels(embedder, s.documents) for s in (*index.segments, park)}, world
    )
    for there in (later, sooner, at_once, later.rebuild(later.segments)):
        assert there.world.elsewhere.tolist() == [False, True, True, True]
        assert there.world.nearness(asked) == pytest.approx((sum(cosines[:3]) / 3, sum(cosines[:3]) / 3))
        assert there.remove("park").world.elsewhere.all()
    few = index.with_meanings(embedder, {}, world[:2]).world
    assert few.nearness(asked) == (0, 0), "of two lines none is near enough to be three"
    assert index.replace(park).world.elsewhere.all(), "as long as its vectors are not there"


def test_vectors_of_another_embedder_are_not_compared() -> None:
    embedder = FakeEmbedder(SAME)
    for other in (None, FakeEmbedder(SAME, name="other"), FakeEmbedder(SAME, name="other", dimensions=8)):
        tools = [document("music", "play_song", "Start a song")]
        index = build([analyse("music", tools, embedder=other)], embedder)
        assert index.embedder is embedder
        index = index.replace(analyse("office", [document("office", "print", "On paper")], embedder=embedder))
        assert keys(find(index, "melody on paper")) == ["office:print"]
        assert keys(find(index, "song")) == ["music:play_song"]


def test_the_nearest_in_meaning_are_bounded_in_number_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = FakeEmbedder({f"{letter}{number}": "near" for number in range(9) for letter in "nt"})
    tools = [document("many", f"t{number}", f"n{number}") for number in range(9)] + [document("many", "word", "odd")]
    for nearest in (1, 2, 5):
        monkeypatch.setattr(tuning, "SEMANTIC_NEAREST", nearest)
        index = build([analyse("many", tools, embedder)], embedder)
        found = find(index, "odd near", limit=100)
        assert len(found.hits) == found.total <= nearest + 1
        assert "many:word" in keys(found)
        assert keys(found)[1:] == sorted(keys(found)[1:]), "ties fall in path order"


def test_who_is_filtered_out_is_not_found_by_meaning_and_makes_no_room_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SEMANTIC_NEAREST", 1)
    everything = built(FakeEmbedder(SAME))
    query = "melody, melody, melody on paper"
    assert any(key.startswith("music:") for key in keys(find(everything, query)))
    assert not [key for key in keys(find(everything, query, servers=frozenset({"office"}))) if "music" in key]
    assert keys(find(everything, query, servers=frozenset({"office"})))


def test_a_server_near_to_everything_leaves_half_of_the_page_to_those_who_have_the_words() -> None:
    embedder = FakeEmbedder({"spam": "ticket"})
    spam = [document("spam", f"tool_{number}", "ticket spam spam spam") for number in range(40)]
    honest = [document(f"desk{number}", "ticket", "Make a ticket") for number in range(6)]
    segments = [analyse(tool.server, [tool], embedder=embedder) for tool in honest]
    index = build([*segments, analyse("spam", spam, embedder=embedder)], embedder)
    found = find(index, "make a ticket", limit=10)
    assert sum(hit.document.server == "spam" for hit in found.hits) <= 5


WORDS = ["create", "list", "delete", "issue", "file", "pod", "event", "weather", "query", "table", "mail", "logs"]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
servers = st.dictionaries(st.sampled_from(WORDS), sentences, min_size=1, max_size=5)
catalogues = st.lists(st.tuples(st.sampled_from("abc"), servers), min_size=1, max_size=6)
queries = st.one_of(sentences, st.text(max_size=40))


def analysed(server: str, tools: dict[str, str], embedder: Embedder) -> Any:
    return analyse(server, [document(server, name, text) for name, text in tools.items()], embedder=embedder)


@given(catalogues, st.lists(queries, min_size=1, max_size=3))
def test_an_index_with_meanings_changed_step_by_step_answers_like_one_built_at_once(
    history: Sequence[tuple[str, dict[str, str]]], asked: list[str]
) -> None:
    embedder = FakeEmbedder({"mail": "issue", "pod": "table"})
    index = build((), embedder)
    for server, tools in history:
        index = index.replace(analysed(server, tools, embedder))
    index = index.remove("c")
    latest = {server: tools for server, tools in history if server != "c"}
    rebuilt = build([analysed(name, tools, embedder) for name, tools in latest.items()], embedder)
    for query in asked:
        assert find(index, query, limit=100) == find(rebuilt, query, limit=100)


@given(catalogues, queries, st.integers(0, 12))
def test_pages_with_meanings_are_ordered_and_add_nothing_to_an_empty_answer(
    history: Sequence[tuple[str, dict[str, str]]], query: str, limit: int
) -> None:
    embedder = FakeEmbedder({"mail": "issue", "pod": "table"})
    latest = dict(history)
    segments = [analysed(name, tools, embedder) for name, tools in latest.items()]
    found = find(build(segments, embedder), query, limit=limit, kinds=frozenset(KINDS))
    words = find(Index.empty().rebuild(segments), query, limit=limit, kinds=frozenset(KINDS))
    assert bool(found.total) == bool(words.total)
    assert len(found.hits) <= limit
    assert found.total >= max(words.total, len(found.hits))
    distances = [hit.distance for hit in found.hits]
    assert distances == sorted(distances)
    assert all(0 <= distance <= 1 for distance in distances)
    assert [hit.document for hit in found.hits if hit.exact] == [hit.document for hit in words.hits if hit.exact]


def test_a_document_that_is_first_by_words_and_by_meaning_keeps_its_score() -> None:
    query = "start a song"
    words, both = (find(built(embedder), query).hits[0] for embedder in (None, FakeEmbedder()))
    assert both.document == words.document
    assert both.score == pytest.approx(words.score)


def test_vectors_are_kept_as_whole_numbers_whose_products_are_exact() -> None:
    rows = np.array([[0.5, -1.0, 0.25], [0, 0, 0], [np.nan, np.inf, 2.0]], np.float32)
    assert levels(rows).tolist() == [[64, -127, 32], [0, 0, 0], [0, 0, 127]]
    held = Meanings.empty(3).splice(0, 0, [levels(rows)])
    found = held.cosines(levels(np.array([[0.5, -1.0, 0.25]], np.float32))[0].astype(np.float32))
    assert found.tolist() == pytest.approx([1.0, 0.0, 32 / np.sqrt(64**2 + 127**2 + 32**2)])


def test_what_stands_for_a_document_and_a_query_is_clipped() -> None:
    embedder = FakeEmbedder()
    tool = document("my-server", "getUser_name", "d" * 5000, parameters=(("userId", "who"), ("max_age", "")) * 9)
    assert text_of(tool) == "my server get User name:  " + "d" * 300
    lines = document("s", "t", "One\n\n  two.\tThree", title="A title")
    assert text_of(lines) == "s t: A title One two. Three"
    asked = structs.replace(tool, said=("who am i", "is Ana here?", *(20 * ("x" * 1000,))))
    assert text_of(asked) == f"my server get User name:  {'d' * 100} who am i. is Ana here?{6 * ('. ' + 160 * 'x')}"
    query_levels(embedder, "q" * 5000)
    assert embedder.queries == ["q" * 2000]


def test_a_vector_is_kept_under_its_text_and_what_made_it() -> None:
    one, other = FakeEmbedder(), FakeEmbedder(name="other")
    digests = {digest_of(embedder, text) for embedder in (one, other) for text in ("a", "b", "\ud800")}
    assert len(digests) == 6
    assert {len(digest) for digest in digests} == {16}
    assert digest_of(one, "a") == digest_of(FakeEmbedder(), "a")
