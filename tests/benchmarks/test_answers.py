"""The benchmark of answers: what it counts, which schemas it calls invalid, and that it runs on files of its form."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import answers
from supervisor.tokens.counting import Tiktoken, load_encoding


@pytest.mark.parametrize(
    ("schema", "right"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}, True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, True),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}}, False),
        ({"type": "any"}, False),
        ({"exclusiveMinimum": True}, False),
    ],
)
def test_a_schema_is_held_against_its_metaschema_and_its_references_looked_up(schema: Any, right: bool) -> None:
    assert (answers.problem(schema) == "") is right


def test_an_answer_is_counted_as_the_model_reads_it() -> None:
    complete = {"tool_path": "s:a", "inputSchema": {"type": "any"}}
    answer = {"tools": [complete, {"tool_path": "s:b", "signature": "b()"}], "query": "q"}
    found = answers.measured("q", answer, Tiktoken(load_encoding()))
    assert (found.rows, found.complete, found.first_complete) == (2, 1, True)
    read = {"tools": [complete, {"tool_path": "s:b", "signature": "()"}]}
    assert found.tokens == Tiktoken(load_encoding()).count(json.dumps(read, separators=(",", ":")))
    assert found.invalid[0].startswith("s:a: ")


def test_the_benchmark_reads_its_files_and_prints_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(200)}}
    tools = [
        {"server": "s", "name": "read_file", "description": "Read a file.", "input_schema": large},
        {"server": "s", "name": "send_mail", "description": "Send a mail.", "input_schema": {"type": "object"}},
        {"server": "s", "name": "", "description": "No name.", "input_schema": {}},
    ]
    catalog, queries, more = tmp_path / "tools.jsonl", tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    catalog.write_text("\n".join(map(json.dumps, tools)))
    queries.write_text(json.dumps({"id": 1, "query": "s:read_file"}))
    more.write_text(json.dumps({"id": 2, "query": "send a mail"}))
    monkeypatch.setattr(sys, "argv", ["answers", str(catalog), str(queries), str(more), "--budget", "500"])
    answers.main()
    printed = capsys.readouterr().out
    assert "left out: its name is empty" in printed
    assert "2 answers: tokens p50" in printed
    assert "over the budget of 500 tokens: 1" in printed
    assert "'s:read_file'" in printed
    assert "answers that say that nothing fits: 0.0 %" in printed
    assert "rows 2, with a complete schema 100.0 %" in printed
    assert "invalid schemas: 0" in printed
