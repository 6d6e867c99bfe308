"""The benchmark of needs as a whole: a daemon before real processes that publish a small catalogue, and one figure."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import needs

TOOLS: list[dict[str, Any]] = [
    {
        "server": "garden",
        "name": "water_plants",
        "description": "Water the plants in the garden beds.",
        "input_schema": {
            "type": "object",
            "properties": {"bed": {"type": "integer", "minimum": 3}, "litres": {"$ref": "#/$defs/Litres"}},
            "required": ["bed", "litres"],
            "$defs": {"Litres": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}},
        },
    },
    {
        "server": "library",
        "name": "lend_book",
        "description": "Lend a book to a reader.",
        "input_schema": {
            "type": "object",
            "properties": {"reader": {"type": "string"}, "until": {"type": "string", "format": "date"}},
            "required": ["reader", "until"],
            "additionalProperties": False,
        },
    },
    {"server": "library", "name": "count_shelves", "description": "Count the shelves.", "input_schema": {}},
]
WATER, LEND = ["garden", "water_plants"], ["library", "lend_book"]
QUERIES = [
    {"id": 1, "query": "water the plants", "kind": "utterance", "groups": [[WATER]]},
    {"id": 2, "query": "lend a book to a reader", "kind": "utterance", "groups": [[LEND]]},
    {"id": 3, "query": "water the plants, then lend a book", "kind": "composite", "groups": [[WATER], [LEND]]},
    {"id": 4, "query": "zzqx", "kind": "no_match", "groups": []},
]


@pytest.mark.process
def test_every_need_of_a_small_catalogue_is_met_by_calls_that_its_servers_accept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, queries, transcript = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl", tmp_path / "transcript.txt"
    catalog.write_text("\n".join(map(json.dumps, TOOLS)))
    queries.write_text("\n".join(map(json.dumps, QUERIES)))
    command = ["needs", str(catalog), str(queries), "--transcript", str(transcript), "--keep", str(tmp_path / "kept")]
    monkeypatch.setattr(sys, "argv", command)
    needs.main()
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "needs met after one discover and one call: 100.0 % (4 of 4)"
    assert "2 servers are ready" in printed
    assert "queries without a tool, nothing called: 100.0 % (1 of 1)" in printed
    assert "by the first row 100.0" in printed
    text = transcript.read_text()
    assert text.count("> discover_mcp_tools") == 4
    assert text.count("< ran garden:water_plants") == text.count("< ran library:lend_book") == 2
    assert list((tmp_path / "kept").glob("*/servers.json"))
