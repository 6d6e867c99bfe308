"""Servers that write for the ranking, and queries that are written to hurt."""

from __future__ import annotations

from time import process_time

import pytest

from actors.search.document import Document
from actors.search.index import Index
from actors.search.search import find
from actors.search.segment import Segment, analyse

HONEST = {
    "tracker": ["create_ticket", "list_tickets", "close_ticket"],
    "mailer": ["send_mail", "search_mail"],
    "drive": ["upload_file", "download_file", "share_file"],
    "billing": ["create_invoice", "refund_payment"],
}


def tool(server: str, name: str, description: str, **more: str) -> Document:
    return Document(key=f"{server}:{name}", kind="tool", server=server, name=name, described=description, **more)  # type: ignore[arg-type]  # fields of Document


def honest() -> list[Segment]:
    return [
        analyse(server, [tool(server, name, f"{name.replace('_', ' ').capitalize()} for the team.") for name in names])
        for server, names in HONEST.items()
    ]


STUFFING = " ".join(f"{server} {name} {name.replace('_', ' ')}" for server, names in HONEST.items() for name in names)

STUFFED = {
    "one of everything": [tool("best", f"best_tool_{n}", STUFFING) for n in range(50)],
    "repeated": [tool("best", f"best_tool_{n}", STUFFING * 20) for n in range(50)],
    "in every field": [
        Document(
            key=f"best:t{n}",
            kind="tool",
            server="best",
            name=f"t{n}",
            title=STUFFING,
            described=STUFFING,
            parameters=tuple((word, STUFFING) for word in STUFFING.split()),
            instructions=STUFFING,
        )
        for n in range(50)
    ],
    "one tool per honest one": [
        tool("best", f"tool_{n}", f"{name.replace('_', ' ')} {server} " * 30)
        for n, (server, name) in enumerate((server, name) for server, names in HONEST.items() for name in names)
    ],
}


@pytest.mark.parametrize("kind", STUFFED)
def test_a_stuffed_description_leaves_the_honest_tool_first(kind: str) -> None:
    index = Index.empty().rebuild([*honest(), analyse("best", STUFFED[kind])])
    for name in (name for names in HONEST.values() for name in names):
        for query in (name, name.replace("_", " ")):
            assert find(index, query).hits[0].document.name == name
        words = name.split("_")
        for query in (" ".join(reversed(words)), f"please {words[0]} the {words[1]}"):
            assert name in [hit.document.name for hit in find(index, query).hits[:3]], query


def test_many_spellings_of_one_name_take_one_place_among_the_exact_hits() -> None:
    spellings = ["createTicket", "create-ticket", "create__ticket", "CREATE_TICKET", "Create.Ticket", "create_ticket_"]
    index = Index.empty().rebuild([*honest(), analyse("best", [tool("best", name, STUFFING) for name in spellings])])
    for query in ("create_ticket", "create ticket", "createTicket"):
        hits = find(index, query).hits
        assert "tracker:create_ticket" in [hit.document.key for hit in hits[:2]]
        assert sum(hit.exact for hit in hits) == 2


@pytest.mark.case("X03")
def test_a_server_cannot_take_over_the_path_of_another() -> None:
    index = Index.empty().rebuild([*honest(), analyse("track", [tool("track", "er_create_ticket", STUFFING)])])
    for query in ("tracker:create_ticket", "mcp__tracker__create_ticket"):
        assert find(index, query).hits[0].document.key == "tracker:create_ticket"


def crowded() -> Index:
    crowd = [tool("crowd", f"convert_image_{n}", "Convert an image to another format.") for n in range(30)]
    others = [
        analyse(f"other{n}", [tool(f"other{n}", "convert_picture", "Convert an image quickly to another format.")])
        for n in range(8)
    ]
    return Index.empty().rebuild([analyse("crowd", crowd), *others])


@pytest.mark.parametrize(("limit", "most"), [(10, 5), (5, 3), (4, 2), (2, 1), (1, 1)])
def test_one_server_fills_at_most_half_a_page_when_others_fit(limit: int, most: int) -> None:
    hits = find(crowded(), "convert image", limit=limit).hits
    assert len(hits) == limit
    assert sum(hit.document.server == "crowd" for hit in hits) <= most


def test_a_server_that_is_named_may_fill_the_page() -> None:
    hits = find(crowded(), "crowd convert image", limit=10).hits
    assert {hit.document.server for hit in hits} == {"crowd"}


def test_a_server_may_fill_the_page_when_nothing_else_fits() -> None:
    hits = find(crowded(), "convert image", limit=10, servers=frozenset({"crowd"})).hits
    assert len(hits) == 10


def test_instructions_do_not_make_the_words_of_others_common() -> None:
    alone = Index.empty().rebuild(honest())
    wordy = [tool("wordy", f"op{n}", "Something else.", instructions="ticket invoice mail file") for n in range(200)]
    crowd = alone.replace(analyse("wordy", wordy))
    assert [hit.document.key for hit in find(crowd, "create ticket").hits][:1] == ["tracker:create_ticket"]
    assert find(crowd, "ticket").hits[0].document.server == "tracker"


def test_one_server_does_not_change_the_impacts_of_another() -> None:
    long = [tool("long", f"op{n}", "lorem ipsum dolor " * 200) for n in range(50)]
    before = find(Index.empty().rebuild(honest()), "refund payment")
    after = find(Index.empty().rebuild([*honest(), analyse("long", long)]), "refund payment")
    assert [hit.document for hit in after.hits] == [hit.document for hit in before.hits]


HOSTILE_TEXTS = [
    "a" * 100_000,
    "é" * 100_000,
    "!?" * 50_000,
    "a@" * 50_000,
    "a.b" * 33_000,
    "é-" * 50_000,
    '"' * 100_000,
    "/" * 100_000,
    "aB" * 50_000,
    "图" * 100_000,
    "ﷺ" * 10_000,
    "\ud800" * 1000,
    "turn " * 20_000,
    "create issue. " * 7000,
    " ".join(f"qqzv{n}hjk" for n in range(10_000)),
]


@pytest.mark.case("Q01")
@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=lambda text: ascii(text[:6]))
def test_a_hostile_text_is_analysed_and_searched_in_bounded_time(text: str) -> None:
    index = Index.empty().rebuild(honest())
    begun = process_time()
    find(index, text)
    hostile = tool("hostile", text[:200], text, title=text, instructions=text)
    changed = index.replace(analyse("hostile", [hostile]))
    find(changed, text)
    assert process_time() - begun < 2.0  # quadratic patterns take minutes, ours milliseconds
    assert find(changed, "create ticket").hits[0].document.key == "tracker:create_ticket"
