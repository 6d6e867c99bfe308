"""What a model reads of an answer: all that it needs to choose and to call, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.metatools.lean import lean
from supervisor.metatools.servers import FITS
from tests.supervisor.metatools.test_discovery import ask, catalogue

QUERIES = ["create an issue", "fetch a page", "*", "github:*", "github:create_issue", "nothing like this at all", "x"]


@pytest.mark.parametrize("query", QUERIES)
def test_every_row_stays_in_its_place_and_can_be_called(query: str) -> None:
    whole = ask(query)
    made = lean(whole)
    assert [row["tool_path"] for row in made["tools"]] == [row["tool_path"] for row in whole["tools"]]
    for row, before in zip(made["tools"], whole["tools"], strict=True):
        assert row["description"] == before["description"]
        assert row.get("inputSchema") == before.get("inputSchema")
        assert ("signature" in row) == ("signature" in before)
        assert {name: row[name] for name in row if name != "signature"}.items() <= before.items()


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_to_be_noticed_and_how_to_go_on_stay_and_no_more_of_the_page(query: str) -> None:
    made, whole = lean(ask(query, budget=200)), ask(query, budget=200)
    assert {name: whole[name] for name in ("notice", "next_cursor") if name in whole} == {
        name: value for name, value in made.items() if name != "tools"
    }


@pytest.mark.parametrize("query", QUERIES)
def test_a_doubt_is_told_and_the_first_distance(query: str) -> None:
    for place, (row, before) in enumerate(zip(lean(ask(query))["tools"], ask(query)["tools"], strict=True)):
        score = before["relevance_score"]
        assert row.get("relevance_score", 0) == (score if not place or score >= FITS else 0)


def hinted(**hints: bool) -> dict[str, Any]:
    return {"name": "drop", "description": "To drop a table.", "annotations": hints}


@pytest.mark.parametrize(
    ("hints", "shown"),
    [
        ({"destructiveHint": True, "openWorldHint": True}, {"destructiveHint": True}),
        ({"destructiveHint": True, "readOnlyHint": True}, None),
        ({"destructiveHint": False, "idempotentHint": True}, None),
        ({"readOnlyHint": True}, None),
    ],
)
def test_of_the_hints_only_that_a_tool_destroys(hints: dict[str, bool], shown: Any) -> None:
    seen = catalogue(db=[hinted(**hints)])
    whole = ask("drop a table", seen)
    assert whole["tools"][0]["annotations"] == hints
    assert lean(whole)["tools"][0].get("annotations") == shown


@pytest.mark.parametrize(
    ("signature", "shown"),
    [("t(a, b?: integer)", "(a, b?: integer)"), ("t()", "()"), ("(a, ...)", "(a, ...)"), ("other(a)", "other(a)")],
)
def test_a_signature_leaves_out_the_name_that_the_path_has(signature: str, shown: str) -> None:
    row = {"tool_path": "s:t", "relevance_score": 0.1, "signature": signature}
    assert lean({"tools": [row]})["tools"][0]["signature"] == shown


def test_what_has_no_path_keeps_its_server() -> None:
    row = {"kind": "prompt", "server_name": "s", "name": "p", "prompt": "s-p", "relevance_score": 0.1}
    resource = {**row, "kind": "resource", "uri": "s|file:///p"}
    made = lean({"tools": [row, resource]})["tools"]
    assert made[0]["server_name"] == "s"
    assert "server_name" not in made[1]
