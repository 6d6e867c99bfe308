"""What the benchmark of results counts: all that a model reads, and every server that is asked."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.machine import ROOT
from benchmarks.results import SERVERS, configuration, questions, tokens
from supervisor.config import parse


def test_the_larger_of_texts_and_structured_content_counts() -> None:
    texts = [{"type": "text", "text": "abc"}, {"type": "image", "data": "x" * 99}, {"type": "text", "text": "de"}]
    assert tokens({"content": texts}, len) == len("abc\n\nde")
    assert tokens({"content": texts, "structuredContent": {"a": "b" * 20}}, len) == len('{"a":""}') + 20
    assert tokens({"content": texts, "structuredContent": {}}, len) == len("abc\n\nde")
    assert tokens({}, len) == 0


def test_every_server_is_configured_and_asked(tmp_path: Path) -> None:
    text = json.dumps(configuration(tmp_path, tmp_path, 3001, 5000))
    read = parse(text, tmp_path / "mcp.json", {})
    assert read.problems == ()
    assert {server.name for server in read.servers} == SERVERS == {each.server for each in questions(tmp_path)}
    assert read.settings.result_token_budget == 5000


def test_what_is_asked_for_is_in_the_checkout() -> None:
    asked = [question.arguments for question in questions(ROOT) if question.server == "filesystem"]
    paths = [path for each in asked for path in each.get("paths", [each.get("path")])]
    assert len(paths) > 8
    assert [path for path in paths if not Path(path).exists()] == []
