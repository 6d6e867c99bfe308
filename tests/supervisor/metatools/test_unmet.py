"""Several needs in one query through the gateway: said in the answer, searched for beside the loop."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from supervisor.metatools.discovery import search
from supervisor.metatools.needs import needs
from supervisor.service.calls import meta_calls
from tests.fakes.published import Publisher, served


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("list the issues", 0),
        ("list the issues and send an email", 2),
        ("list the issues and send an email and call a taxi", 3),
        ("list the issues and send an email and call a taxi and print a page", 0),
        ("list the issues and send an email" + " to all" * 30, 0),
    ],
)
def test_two_or_three_short_needs_are_looked_at_one_by_one(query: str, count: int) -> None:
    assert len(needs(query)) == count


async def test_several_needs_are_searched_for_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def watched(*given: Any) -> Any:
        threads.append(threading.get_ident())
        return search(*given)

    monkeypatch.setattr(meta_calls, "search", watched)
    listed = [{"name": "list_issues", "description": "List the issues.", "inputSchema": {"type": "object"}}]
    async with served({"github": Publisher(listed)}) as found:
        for query, said in (
            ("list the issues and send an email", "No description matches 'send an email' well."),
            ("list issues", None),
        ):
            answer = await found.ask("tools/call", name="discover_mcp_tools", arguments={"query": query})
            assert answer["result"]["structuredContent"].get("notice") == said
    here = threading.get_ident()
    assert [thread == here for thread in threads] == [False, True]
