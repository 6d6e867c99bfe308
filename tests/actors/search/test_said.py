"""What is found by the sentences with which people ask for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from actors.search.document import Document, Found
from actors.search.documents.index import Index
from actors.search.documents.segment import MAX_SENTENCE_CHARS, MAX_SENTENCES, analyse
from actors.search.ranking.search import find

FORECAST = "will i need an umbrella tomorrow"
TOOLS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "weather": {
        "get_forecast": ("Forecast for a place, up to seven days.", (FORECAST, "how warm does it get in Lisbon")),
        "get_alerts": ("Severe alerts for a region.", ("is a storm coming our way",)),
    },
    "wardrobe": {"list_umbrellas": ("Show every umbrella in a wardrobe.", ())},
}


def indexed(*, said: bool = True) -> Index:
    return Index.empty().rebuild(
        analyse(server, [tool(server, name, text, told if said else ()) for name, (text, told) in tools.items()])
        for server, tools in TOOLS.items()
    )


def tool(server: str, name: str, description: str, said: Sequence[str]) -> Document:
    return Document(
        key=f"{server}:{name}", kind="tool", server=server, name=name, description=description, said=tuple(said)
    )


def keys(found: Found) -> list[str]:
    return [hit.document.key for hit in found.hits]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("do i need an umbrella tomorrow", "weather:get_forecast"),
        ("is there a storm on its way", "weather:get_alerts"),
        ("umbrella in my wardrobe", "wardrobe:list_umbrellas"),
    ],
)
def test_a_tool_is_found_by_what_people_say(query: str, wanted: str) -> None:
    assert keys(find(indexed(), query))[0] == wanted


def test_words_that_only_people_use_find_a_tool_and_nothing_without_them() -> None:
    assert keys(find(indexed(), "how warm is Lisbon")) == ["weather:get_forecast"]
    assert not find(indexed(said=False), "how warm is Lisbon").hits


def test_a_tool_counts_by_its_best_sentence() -> None:
    talker = tool("a", "one", "Does one thing.", ["zebra house", "zebra food", "bells at noon", "lunch at noon"])
    sure = tool("b", "two", "Does one thing.", ["zebra at noon"])
    index = Index.empty().rebuild([analyse("a", [talker]), analyse("b", [sure])])
    assert keys(find(index, "zebra at noon")) == ["b:two", "a:one"]


def test_a_sentence_makes_sure_of_its_tool() -> None:
    assert find(indexed(), FORECAST).hits[0].distance < find(indexed(said=False), FORECAST).hits[0].distance


def test_filters_hold_for_what_people_say() -> None:
    found = find(indexed(), FORECAST, servers=frozenset({"wardrobe"}))
    assert keys(found) == ["wardrobe:list_umbrellas"]
    assert found == find(indexed(said=False), FORECAST, servers=frozenset({"wardrobe"}))


def test_sentences_are_read_within_bounds_and_not_kept() -> None:
    told = [f"sentence number{number} " + "w" * 1_000_000 for number in range(20)]
    segment = analyse("s", [tool("s", "t", "Does it.", told)])
    assert segment.said is not None
    assert len(segment.said) == MAX_SENTENCES
    assert max(map(len, segment.said.known)) < MAX_SENTENCE_CHARS
    assert segment.documents == (tool("s", "t", "Does it.", ()),)
    assert not any(document.description for document in segment.said.documents)
