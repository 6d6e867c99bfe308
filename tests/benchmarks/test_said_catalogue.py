"""The catalogue behind the phrase book: which definitions are taken, and what the servers are started with."""

from __future__ import annotations

import urllib.request
from typing import Any
from urllib.error import HTTPError

import msgspec
import pytest

from actors.catalogue import lists
from actors.catalogue.documents import digest_of
from benchmarks.said_catalogue import answering, fits, read_pages, read_servers
from benchmarks.search import Tool, definition
from supervisor.phrases.phrase_book import KnownTool, Page
from tests.supervisor.phrases.test_phrase_book import QUERIES


def listed(name: str, description: str = "Tell the time.", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def digest(tool: dict[str, Any]) -> str:
    return digest_of(lists.tool(msgspec.Raw(msgspec.json.encode(tool)))).hex()


def page_of(*tools: dict[str, Any]) -> Page:
    known = tuple(KnownTool(tool["name"], digest(tool), (), ()) for tool in tools)
    return Page("clock", "clock==1.0", "by hand", known)


def test_only_tools_defined_as_the_page_has_them_are_taken_in_its_order() -> None:
    now, later, changed = listed("now", title="Now"), listed("later"), listed("once")
    page = page_of(later, changed, now)
    found = fits(page, [now, listed("not_in_it"), listed("once", "Tell it once."), {"name": 3}, later])
    schema = {"type": "object"}
    assert found == [
        {"server": "clock", "name": "later", "description": "Tell the time.", "input_schema": schema},
        {"server": "clock", "name": "now", "description": "Tell the time.", "input_schema": schema, "title": "Now"},
    ]


def test_a_line_is_read_back_as_the_definition_that_it_is_of() -> None:
    tools = [listed("now", title="Now"), {"name": "bare", "inputSchema": {"properties": {"zone": {}}}}]
    page = page_of(*tools)
    lines = [msgspec.convert(line, Tool) for line in fits(page, tools)]
    assert [digest(definition(line)) for line in lines] == [known.digest for known in page.tools]


def test_every_server_of_the_file_and_of_the_queries_has_a_page() -> None:
    servers = read_servers()
    pages = {page.server for page in read_pages()}
    asked = {server for query in QUERIES for group in query.groups for server, _ in group}
    assert servers.keys() <= pages
    assert asked <= pages
    assert list(servers) == sorted(servers)


def test_what_a_server_asks_over_http_is_answered_by_path() -> None:
    with answering({"/version": {"ApiVersion": "1.44"}}) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/version?full=1") as answer:
            assert msgspec.json.decode(answer.read()) == {"ApiVersion": "1.44"}
        with pytest.raises(HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other")
