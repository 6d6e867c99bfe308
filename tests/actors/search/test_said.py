"""What is found by the sentences with which people ask for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from actors.search.document import MAX_SENTENCE_CHARS, MAX_SENTENCES, Document, Found
from actors.search.index import Index
from actors.search.search import find
from actors.search.segment import analyse

FORECAST = "will i need an umbrella tomorrow"
TOOLS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "weather": {
        "get_forecast": ("Forecast for a place, up to seven days.", (FORECAST, "how warm does it get in Lisbon")),
        "get_alerts": ("Severe alerts for a region.", ("is a storm coming our way",)),
    },
    "wardrobe": {"list_things": ("Show every umbrella in a wardrobe.", ())},
    "tickets": {f"tool_{number}": (f"Moves ticket {number} on.", ()) for number in range(30)},
}


def indexed(*, said: bool = True) -> Index:
    return Index.empty().rebuild(
        analyse(server, [tool(server, name, text, told if said else ()) for name, (text, told) in tools.items()])
        for server, tools in TOOLS.items()
    )


def tool(server: str, name: str, description: str, said: Sequence[str]) -> Document:
    return Document(
        key=f"{server}:{name}", kind="tool", server=server, name=name, described=description, said=tuple(said)
    )


def keys(found: Found) -> list[str]:
    return [hit.document.key for hit in found.hits]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("do i need an umbrella tomorrow", "weather:get_forecast"),
        ("is a storm on its way", "weather:get_alerts"),
        ("umbrella in my wardrobe", "wardrobe:list_things"),
    ],
)
def test_a_tool_is_found_by_what_people_say(query: str, wanted: str) -> None:
    assert keys(find(indexed(), query))[0] == wanted


def test_words_that_only_people_use_find_a_tool_and_nothing_without_them() -> None:
    assert keys(find(indexed(), "how warm is Lisbon")) == ["weather:get_forecast"]
    assert not find(indexed(said=False), "how warm is Lisbon").hits


def test_of_each_word_the_best_sentence_counts_and_more_of_them_say_no_more() -> None:
    scores = {
        find(Index.empty().rebuild([analyse("a", [one])]), "bells at noon").hits[0].score
        for one in (tool("a", "one", "Does one thing.", count * ["bells at noon"]) for count in (1, 5))
    }
    assert len(scores) == 1


def test_a_sentence_and_the_definition_together_say_more_than_the_sentence() -> None:
    said = ["how warm does it get in Lisbon"]
    both = Index.empty().rebuild([analyse("a", [tool("a", "one", "Up to seven days.", said)])])
    sentence = Index.empty().rebuild([analyse("a", [tool("a", "one", "Up to a week.", said)])])
    query = "how warm is it for seven days"
    assert find(both, query).hits[0].distance < find(sentence, query).hits[0].distance


def ordered(query: str, *documents: Document) -> list[str]:
    """Return the servers found for a query among these tools, each of a server of its own, and thirty others."""
    others = [tool("others", f"other_{number}", "Does something else.", ()) for number in range(30)]
    segments = [analyse(document.server, [document]) for document in documents]
    return [
        key.partition(":")[0]
        for key in keys(find(Index.empty().rebuild([*segments, analyse("others", others)]), query))
    ]


def test_a_word_of_definitions_says_as_much_of_a_tool_with_sentences_as_of_one_without() -> None:
    known = tool("known", "one", "Shows a forecast.", ["will i need an umbrella", "how warm is it"])
    unknown = tool("unknown", "one", "Shows a forecast.", [])
    scores = [
        hit.score
        for hit in find(
            Index.empty().rebuild([analyse("known", [known]), analyse("unknown", [unknown])]), "forecast"
        ).hits
    ]
    assert scores[0] == scores[1]


def test_a_word_that_people_say_of_many_tools_says_more_of_a_definition_that_has_it() -> None:
    many = [tool(f"known{number}", "one", "Does a thing.", [f"check number {number}"]) for number in range(8)]
    defined = tool("unknown", "one", "Does the check.", [])
    assert ordered("check", *many, defined)[0] == "unknown"


def test_sentences_are_read_within_bounds() -> None:
    told = [f"sentence n{number} " + "w" * 1_000_000 for number in range(20)]
    segment = analyse("s", [tool("s", "t", "Does it.", told)])
    assert [f"n{number}" in segment.known for number in range(20)] == [number < MAX_SENTENCES for number in range(20)]
    assert max(map(len, segment.known)) < MAX_SENTENCE_CHARS
