"""The phrase book: what its files are like, which tool has which sentences, and that a daemon finds tools by them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.catalogue.documents import Said
from actors.catalogue.offer import Tool
from actors.protocol.wire.json import quoted
from actors.search.text import words
from benchmarks.search import Query
from supervisor.host.datadir import DataDir
from supervisor.phrases.phrase_book import (
    FOLDER,
    MAX_FILE_BYTES,
    MAX_FILES,
    KnownTool,
    Page,
    PhraseBook,
    faults_of,
    read_book,
    read_own,
    read_page,
    write_page,
)
from tests.fakes.mcp_server import FakeServer
from tests.scenario.daemon import A, world

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
QUERIES = [
    query
    for name in ("said_queries", "more_said_queries")
    for query in msgspec.json.Decoder(Query).decode_lines((BENCHMARKS / f"{name}.jsonl").read_bytes())
]
NOT_IN_IT = frozenset(
    (
        "asana",
        "calc",
        "cloudflare",
        "contentful",
        "datadog",
        "discord",
        "email",
        "gmail",
        "google-calendar",
        "home-assistant",
        "jenkins",
        "launchdarkly",
        "linear",
        "mlflow",
        "pandoc",
        "prometheus",
        "salesforce",
        "sonarqube",
        "strava",
        "stripe",
        "terraform",
        "todoist",
        "trello",
        "vercel",
        "weather",
        "whatsapp",
        "wikipedia",
        "xero",
        "youtube",
        "zotero",
    )
)
"""Servers with which the search is measured as it is for servers that nobody knows."""
UNWANTED = re.compile(r"[^\x20-\x7e\u00a0-\u024f\u2010-\u20ac]")
"""Letters of other alphabets: the book is in English."""

FILES = sorted(FOLDER.iterdir())


def pages() -> list[Page]:
    return [msgspec.json.decode(path.read_bytes(), type=Page) for path in FILES]


def test_every_file_of_the_book_is_within_its_bounds_and_of_one_server() -> None:
    assert 100 <= len(FILES) <= MAX_FILES
    for path, page in zip(FILES, pages(), strict=True):
        assert path.name == f"{page.server}.json"
        assert path.stat().st_size <= MAX_FILE_BYTES
        assert page.package
        assert [*faults_of(page)] == [], page.server


def test_every_sentence_of_the_book_is_in_english() -> None:
    for page in pages():
        for tool in page.tools:
            for sentence in tool.said:
                assert not UNWANTED.search(sentence), (page.server, tool.name, sentence)


def test_the_book_has_nothing_of_servers_that_stand_for_unknown_ones_and_no_query_of_the_suite() -> None:
    assert not NOT_IN_IT & {page.server for page in pages()}
    assert len(QUERIES) == len({query.query for query in QUERIES}) == 660
    said = {" ".join(words(sentence)) for page in pages() for tool in page.tools for sentence in tool.said}
    assert [query.query for query in QUERIES if " ".join(words(query.query)) in said] == []


def test_every_need_of_the_suite_is_of_a_tool_in_the_book() -> None:
    known = {(page.server, tool.name) for page in pages() for tool in page.tools}
    for query in QUERIES:
        assert all(set(group) <= known for group in query.groups), query.id
        assert bool(query.groups) == (query.kind != "no_match")


def defined(name: str, description: str, *parameters: str) -> Tool:
    schema = {"type": "object", "properties": {parameter: {} for parameter in parameters}}
    return Tool(name=name, described=quoted(description), input_schema=msgspec.Raw(msgspec.json.encode(schema)))


def page_of(server: str, tool: Tool, *said: str, package: str = "") -> Page:
    return Page(server=server, package=package, made="by hand", tools=(KnownTool.of(tool, said),))


READ = defined("read_rows", "Read rows.", "table", "limit", "offset", "order", "where")
BOOK = PhraseBook([page_of("warehouse", READ, "show me the stock", package="@acme/stock-server@1.2.0")])


@pytest.mark.parametrize(
    ("server", "tool", "is_known"),
    [
        ("anything", READ, True),
        ("warehouse", defined("read_rows", "Read some rows.", "table", "limit", "offset", "order", "where"), True),
        ("my-warehouse-2", defined("read_rows", "Read.", "table", "limit", "offset", "order"), True),
        ("acme", defined("read_rows", "Read.", "table", "limit", "offset", "order"), True),
        ("anything", defined("read_rows", "Read.", "table", "limit", "offset", "order", "where"), False),
        ("mcp-server-1.2.0", defined("read_rows", "Read.", "table", "limit", "offset", "order", "where"), False),
        ("warehouse", defined("read_rows", "Read.", "table", "limit", "offset"), False),
        ("warehouse", defined("read_all_rows", "Read rows.", "table", "limit", "offset", "order", "where"), False),
    ],
)
def test_a_tool_has_the_sentences_of_its_definition_or_of_the_same_tool_before(
    server: str, tool: Tool, is_known: bool
) -> None:
    assert BOOK.said(server, tool) == (Said(("show me the stock",), "book") if is_known else Said())


def test_of_two_servers_that_define_a_tool_alike_the_one_that_is_called_alike_counts() -> None:
    for order in (1, -1):
        book = PhraseBook([page_of("lake", READ, "lake rows"), page_of("barn", READ, "barn rows")][::order])
        said = [book.said(server, READ).sentences for server in ("lake", "my-barn")]
        assert said == [("lake rows",), ("barn rows",)]


def test_a_file_that_cannot_be_read_costs_its_own_sentences_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "warehouse.json").write_bytes(msgspec.json.encode(page_of("warehouse", READ, "show me the stock")))
    (tmp_path / "cut.json").write_text('{"server": "cut", "tools": [')
    (tmp_path / "large.json").write_text(" " * MAX_FILE_BYTES + "{}")
    (tmp_path / "folder.json").mkdir()
    assert read_book(tmp_path).said("warehouse", READ).sentences == ("show me the stock",)
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == [
        "cut.json",
        "folder.json",
        "large.json",
    ]


def test_a_page_is_written_as_the_book_has_it_and_read_again(tmp_path: Path) -> None:
    page = page_of("warehouse", READ, "show me the stock", "was ist auf Lager, für März")
    path = tmp_path / "warehouse.json"
    path.write_text(write_page(page), encoding="utf-8")
    assert read_page(path) == page
    written = (FOLDER / "time.json").read_text(encoding="utf-8")
    assert write_page(read_page(FOLDER / "time.json")) == written


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_file_of_ones_own_gives_sentences_but_for_those_that_nobodys_may_be(
    tmp_path: Path, is_folder: bool, caplog: pytest.LogCaptureFixture
) -> None:
    page = page_of("warehouse", READ, "show me the stock", "<b>rows</b>", "read\u202eme", "show me the stock")
    (tmp_path / "mine.json").write_bytes(msgspec.json.encode(page))
    book = read_own(tmp_path if is_folder else tmp_path / "mine.json")
    assert book.said("warehouse", READ) == Said(("show me the stock",), "file")
    assert [record.getMessage() for record in caplog.records] == [
        "mine.json: read_rows: a sentence is there twice",
        "mine.json: read_rows: sentence 2 has markup in it",
        "mine.json: read_rows: sentence 3 has blanks or characters in it that cannot be seen",
    ]


def test_a_file_of_ones_own_that_is_not_there_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read_own(tmp_path / "none").said("warehouse", READ) == Said()
    assert "there is no such file" in caplog.text


def test_digests_of_which_nothing_is_known_may_be_the_same() -> None:
    tools = tuple(KnownTool(name, 32 * "0", (), ("do it for me",)) for name in ("one", "two"))
    assert [*faults_of(Page(server="s", package="", made="by hand", tools=tools))] == []


def test_faults_of_a_page_are_named_each_with_its_place() -> None:
    twice = KnownTool("x\x1b", "0" * 31, (), ())
    assert [*faults_of(Page(server="", package="", made="", tools=(twice, twice)))] == [
        'it says nothing of its "server", or how its sentences were "made"',
        *(
            "x\\u001b: it is there twice",
            "x\\u001b: its digest is not 32 digits in hexadecimal",
            "x\\u001b: it has 0 sentences, not 1 to 8",
        )
        * 2,
    ]


@pytest.mark.parametrize("source", ["book", "both", ""])
async def test_a_daemon_finds_a_tool_by_what_people_say_if_it_is_told_to(
    tmp_path: Path, data: DataDir, source: str
) -> None:
    told = {"type": "object", "properties": {"timezone": {"type": "string"}}}
    tools = [{"name": "get_current_time", "description": "Tells the clock.", "inputSchema": told}]
    own = KnownTool("get_current_time", "0" * 32, ("timezone",), ("has grandma gone to bed",))
    page = Page(server="time", package="", made="by hand", tools=(own,))
    (tmp_path / "own.json").write_bytes(msgspec.json.encode(page))
    settings: dict[str, Any] = {"phrases": source in ("book", "both")}
    settings |= {"phrases_file": "own.json"} if source == "both" else {}
    async with world(tmp_path, data, {"time": A}, {"time": FakeServer(tools=tools)}, **settings) as at:
        rows = [await at.search(query) for query in ("are they awake in New York", "grandma gone to bed")]
    assert "grandma" not in json.dumps(rows)
    assert "awake" not in json.dumps(rows)
    found = [[row["tool_path"] for row in each] for each in rows]
    only = ["time:get_current_time"]
    assert found == {"book": [only, []], "both": [[], only], "": [[], []]}[source]
