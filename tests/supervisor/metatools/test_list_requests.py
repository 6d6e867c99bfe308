"""Requests for a list in words: about the tools of one server, and about nothing else."""

from __future__ import annotations

import pytest

from supervisor.metatools.discovery import of_server

SERVERS = ("memory", "redis", "github", "git-lab", "everything", "fetch", "list", "time", "tools")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("list all tools of the memory server", "memory"),
        ("what tools does redis have", "redis"),
        ("What tools does Redis have?", "redis"),
        ("show me everything github can do", "github"),
        ("what can I do with github", "github"),
        ("github's tools", "github"),
        ("gitlab tools", "git-lab"),
        ("Which functions does git-lab offer?", "git-lab"),
        ("what does the fetch server provide", "fetch"),
        ("list the tools of everything", "everything"),
        ("redis capabilities", "redis"),
        ("list all tools from the tools server", "tools"),
    ],
)
def test_who_asks_for_the_tools_of_a_server_in_words_gets_their_list(query: str, expected: str) -> None:
    assert of_server(query, SERVERS) == expected


@pytest.mark.parametrize(
    "query",
    [
        "",
        "list all tools",
        "show me everything",
        "fetch everything",
        "list everything in memory",
        "github",
        "redis memory tools",
        "list the keys of redis",
        "tools to search code on github",
        "what can redis do for caching",
        "create an issue on github with the tools",
        "show all tools of nosuch",
        "githubs toolbox",
        f"what tools does redis have{' please' * 40}",
    ],
)
def test_a_word_of_content_makes_it_a_search(query: str) -> None:
    assert of_server(query, SERVERS) == ""
