"""What the benchmark of results counts: all that a model reads, and every server that is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.client import Client, Tool
from benchmarks.machine import ROOT
from benchmarks.results import SERVERS, Question, configuration, questions, report, tokens
from supervisor.config import parse
from supervisor.service.results.cutting import META_KEY


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


class Answering(Client):
    """Answers a tool of the filesystem as a daemon does that has shortened its result, any other with a short text."""

    def __init__(self) -> None:
        super().__init__(0)
        self.read: list[str] = []

    def answer(self, tool: Tool, meta: Mapping[str, Any] | None = None) -> Any:
        name, arguments = tool
        if name == "read_mcp_resource":
            self.read.append(arguments["uri"])
        if name.startswith("filesystem") and meta is None:
            return {"result": {"content": [], "_meta": {META_KEY: {"uri": "mcpvisor://results/1"}}}}
        return {"result": {"content": [{"type": "text", "text": "word " * 2000}]}}


def test_a_result_over_the_budget_has_what_is_left_of_it_and_what_one_thing_more_costs() -> None:
    client = Answering()
    asked = [
        Question("filesystem", "read_text_file", {"path": "/somewhere/README.md"}, "search=catalogue"),
        Question("git", "git_status", {"repo_path": "/somewhere"}),
    ]
    lines = report(client, asked, 5000).splitlines()
    count = r"[\d,]+"
    assert re.fullmatch(rf"- `filesystem:read_text_file` \(README\.md\): {count} tokens, {count} bytes", lines[0])
    assert re.fullmatch(rf"  - within a budget of 5,000: 0 tokens; {count} for `\?search=catalogue`", lines[1])
    assert re.fullmatch(rf"- `git:git_status`: {count} tokens, {count} bytes", lines[2])
    assert client.read == ["mcpvisor://results/1?search=catalogue"]
