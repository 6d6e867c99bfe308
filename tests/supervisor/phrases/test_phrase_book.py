"""The phrase book: what its files are like, which tool has which sentences, and that a daemon finds tools by them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.catalogue.offer import Tool
from actors.catalogue.phrases import digest_of, parameter_names
from actors.search.documents.segment import MAX_SENTENCE_CHARS, MAX_SENTENCES
from actors.search.language.text import words
from benchmarks.search import Query
from supervisor.host.datadir import open_data_dir
from supervisor.phrases.phrase_book import FOLDER, MAX_FILE_BYTES, MAX_FILES, KnownTool, Page, PhraseBook, read_book
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport
from tests.supervisor.test_daemon import configuration, running, until_ready

QUERIES = Path(__file__).parents[3] / "benchmarks" / "said_queries.jsonl"
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
UNWANTED = re.compile(r"://|[<>{}`]|\b(?:ignore|disregard) (?:all|previous)|[^\x20-\x7e\u00a0-\u024f\u2010-\u20ac]")
"""Addresses, markup, orders to a model, and what cannot be seen."""

FILES = sorted(FOLDER.iterdir())


def pages() -> list[Page]:
    return [msgspec.json.decode(path.read_bytes(), type=Page) for path in FILES]


def test_every_file_of_the_book_is_within_its_bounds_and_of_one_server() -> None:
    assert 100 <= len(FILES) <= MAX_FILES
    for path, page in zip(FILES, pages(), strict=True):
        assert path.name == f"{page.server}.json"
        assert path.stat().st_size <= MAX_FILE_BYTES
        assert page.made
        assert page.package
        names = Counter(tool.name for tool in page.tools)
        digests = Counter(tool.digest for tool in page.tools)
        assert (names.most_common(1)[0][1], digests.most_common(1)[0][1]) == (1, 1), page.server
        assert all(re.fullmatch("[0-9a-f]{32}", digest) for digest in digests)


def test_every_sentence_of_the_book_is_short_plain_text_and_said_once() -> None:
    for page in pages():
        for tool in page.tools:
            assert 1 <= len(tool.said) <= MAX_SENTENCES
            assert len(set(tool.said)) == len(tool.said), (page.server, tool.name)
            for sentence in tool.said:
                assert 1 <= len(sentence) <= MAX_SENTENCE_CHARS
                assert sentence == sentence.strip()
                assert not UNWANTED.search(sentence), (page.server, tool.name, sentence)


def test_the_book_has_nothing_of_servers_that_stand_for_unknown_ones_and_no_query_of_the_suite() -> None:
    assert not NOT_IN_IT & {page.server for page in pages()}
    queries = msgspec.json.Decoder(Query).decode_lines(QUERIES.read_bytes())
    assert len(queries) == len({query.query for query in queries}) == 290
    said = {" ".join(words(sentence)) for page in pages() for tool in page.tools for sentence in tool.said}
    assert [query.query for query in queries if " ".join(words(query.query)) in said] == []


def test_every_need_of_the_suite_is_of_a_tool_in_the_book() -> None:
    known = {(page.server, tool.name) for page in pages() for tool in page.tools}
    for query in msgspec.json.Decoder(Query).decode_lines(QUERIES.read_bytes()):
        assert all(set(group) <= known for group in query.groups), query.id
        assert bool(query.groups) == (query.kind != "no_match")


def defined(name: str, description: str, *parameters: str) -> Tool:
    schema = {"type": "object", "properties": {parameter: {} for parameter in parameters}}
    return Tool(name=name, description=description, input_schema=msgspec.Raw(msgspec.json.encode(schema)))


def page_of(server: str, tool: Tool, *said: str, package: str = "") -> Page:
    parameters = tuple(sorted(parameter_names(tool)))
    return Page(server, package, "by hand", (KnownTool(tool.name, digest_of(tool).hex(), parameters, said),))


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
    assert BOOK.said(server, tool) == (("show me the stock",) if is_known else ())


def test_of_two_servers_that_define_a_tool_alike_the_one_that_is_called_alike_counts() -> None:
    for order in (1, -1):
        book = PhraseBook([page_of("lake", READ, "lake rows"), page_of("barn", READ, "barn rows")][::order])
        assert [book.said(server, READ) for server in ("lake", "my-barn")] == [("lake rows",), ("barn rows",)]


def test_a_file_that_cannot_be_read_costs_its_own_sentences_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "warehouse.json").write_bytes(msgspec.json.encode(page_of("warehouse", READ, "show me the stock")))
    (tmp_path / "cut.json").write_text('{"server": "cut", "tools": [')
    (tmp_path / "large.json").write_text(" " * MAX_FILE_BYTES + "{}")
    (tmp_path / "folder.json").mkdir()
    assert read_book(tmp_path).said("warehouse", READ) == ("show me the stock",)
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == [
        "cut.json",
        "folder.json",
        "large.json",
    ]


@pytest.mark.parametrize("phrases", [True, False])
async def test_a_daemon_finds_a_tool_by_what_people_say_if_it_is_told_to(tmp_path: Path, phrases: bool) -> None:
    told = {"type": "object", "properties": {"timezone": {"type": "string"}}}
    tools = [{"name": "get_current_time", "description": "Tells the clock.", "inputSchema": told}]
    config = configuration(tmp_path, {"time": {"command": "x"}}, phrases=phrases)
    with open_data_dir(tmp_path / "data", {}) as data:
        async with running(config, data, connect=lambda _: MemoryTransport(FakeServer(tools=tools).serve)) as client:
            await until_ready(client)
            params = {"name": "discover_mcp_tools", "arguments": {"query": "are they awake in New York"}}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer: dict[str, Any] = (await client.post("/mcp", json=asked)).json()["result"]
            found = [row["tool_path"] for row in answer["structuredContent"]["tools"]]
            assert found == (["time:get_current_time"] if phrases else [])
            assert "awake" not in json.dumps(answer["structuredContent"]["tools"])
