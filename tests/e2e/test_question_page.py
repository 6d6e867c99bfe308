"""The page of a question in a real browser: what a server wrote is shown and not run, and what is typed reaches it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running, stand_in

pytestmark = pytest.mark.e2e

PROPERTIES = {
    "name": {"type": "string", "title": "<img src=x onerror=alert(1)>", "maxLength": 5},
    "password": {"type": "string"},
    "age": {"type": "integer"},
    "agree": {"type": "boolean"},
    "colour": {"type": "string", "enum": ["r", "g"]},
    "sizes": {"type": "array", "items": {"enum": ["s", "m", "l"]}},
}
ASKED = {"message": "<b>Who</b><script>alert(1)</script>", "properties": PROPERTIES}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("page"), {"asks": {**stand_in("talkative"), "ask": "everyone"}}) as daemon:
        trio.run(daemon.ready)
        yield daemon


def browse(page: str, *steps: list[str]) -> Any:
    return environments.browse("question.cjs", page, json.dumps(steps))


async def execute(daemon: Daemon, **beside: Any) -> Any:
    given = {"tool_path": "asks:ask", "arguments": ASKED, **beside}
    answer = await daemon.ask("tools/call", {"name": "execute_mcp_tool", "arguments": given})
    return answer["result"]


def test_a_person_answers_in_a_browser(daemon: Daemon) -> None:
    told = trio.run(execute, daemon)["structuredContent"]
    (question,) = told["questions"].values()
    seen = browse(
        question["page"],
        ["type", "name", "Ada"],
        ["type", "age", "36"],
        ["choose", "agree", "true"],
        ["choose", "colour", "g"],
        ["check", "sizes", "s"],
        ["check", "sizes", "l"],
        ["type", "password", "hunter2"],
        ["send"],
    )
    assert seen["bold"] == ["asks"]
    assert seen["trouble"] == []
    assert seen["shown"][0]["status"] == 200
    assert "The server has your answer" in seen["shown"][0]["text"]

    async def go_on() -> Any:
        return await execute(daemon, continuation=told["continuation"])

    content = json.loads(trio.run(go_on)["content"][0]["text"])["content"]
    assert content == {
        "name": "Ada",
        "password": "hunter2",
        "age": 36,
        "agree": True,
        "colour": "g",
        "sizes": ["s", "l"],
    }
    assert "hunter2" not in daemon.log


def test_what_is_wrong_is_said_and_a_no_is_a_no(daemon: Daemon) -> None:
    told = trio.run(execute, daemon)["structuredContent"]
    (question,) = told["questions"].values()
    seen = browse(question["page"], ["type", "name", "Augusta"], ["send"], ["decline"])
    assert [each["status"] for each in seen["shown"]] == [400, 200]
    assert "must be at most 5 characters" in seen["shown"][0]["text"]
    assert "you said no" in seen["shown"][1]["text"]

    async def go_on() -> Any:
        return await execute(daemon, continuation=told["continuation"])

    assert json.loads(trio.run(go_on)["content"][0]["text"]) == {"action": "decline"}
