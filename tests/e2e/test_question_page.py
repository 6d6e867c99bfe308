"""The page of a question in a real browser: what a server wrote is shown and not run, and what is typed reaches it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running, stand_in
from tests.e2e.test_dashboard import walk

pytestmark = pytest.mark.e2e

PROPERTIES = {
    "name": {"type": "string", "title": "<img src=x onerror=alert(1)>", "maxLength": 5},
    "password": {"type": "string"},
    "age": {"type": "integer"},
    "agree": {"type": "boolean"},
    "colour": {"type": "string", "enum": ["r", "g"]},
    "sizes": {"type": "array", "items": {"enum": ["s", "m", "l"]}},
}
CLIENT = "A client"
"""That says nothing of itself."""
ASKED = {"message": "<b>Who</b><script>alert(1)</script>", "properties": PROPERTIES}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    servers = {
        "asks": {**stand_in("talkative"), "ask": "everyone"},
        "growing": {**stand_in("growing"), "confirm": ["echo"]},
    }
    with running(tmp_path_factory.mktemp("page"), servers) as daemon:
        trio.run(daemon.ready)
        yield daemon


def browse(page: str, *steps: list[str]) -> Any:
    return environments.browse("question.cjs", page, steps)


async def execute(daemon: Daemon, **beside: Any) -> Any:
    given = {"tool_path": "asks:ask", "arguments": ASKED, **beside}
    answer = await daemon.call("execute_mcp_tool", **given)
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
    assert seen["bold"] == [f"{CLIENT} called ask, and the server asks asks you"]
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


def test_a_page_that_is_left_does_not_look_for_a_question_that_was_answered_meanwhile(daemon: Daemon) -> None:
    told = trio.run(execute, daemon)["structuredContent"]
    (question,) = told["questions"].values()
    path = f"/api/questions/{question['page'].rpartition('/')[2]}"
    seen = browse(question["page"], ["leave", path, '{"action": "decline"}'])
    assert seen["trouble"] == []
    assert trio.run(daemon.ask, "GET", path).status_code == 404, "it was answered"


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


async def echo(daemon: Daemon, **beside: Any) -> Any:
    given = {"tool_path": "growing:echo", "arguments": {"text": "up"}, **beside}
    return (await daemon.call("execute_mcp_tool", **given))["result"]


def test_who_tries_a_tool_is_asked_there_and_a_yes_runs_it(daemon: Daemon) -> None:
    seen = walk(
        daemon.url,
        ["goto", "/ui/tool?path=growing:echo"],
        ["submit", "#try button"],
        ["text", "#asked blockquote"],
        ["axe"],
        ["lines", "#asked button:not([hidden])"],
        ["submit", "#asked button[value=accept]"],
        ["text", "#try h3"],
    )
    assert seen[2:5] == ["[growing] Run growing:echo with {}?", [], ["Yes", "No"]]
    assert seen[6].startswith("Answer, ")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_yes_is_a_button_which_enter_does_not_press(daemon: Daemon, width: int, scheme: str) -> None:
    told = trio.run(echo, daemon)["structuredContent"]
    (question,) = told["questions"].values()
    seen = walk(
        daemon.url,
        ["goto", "/questions"],
        ["wide"],
        ["axe"],
        ["text", "#main li a"],
        ["submit", "#main li a"],
        ["wide"],
        ["axe"],
        ["text", "h1"],
        ["see", "live"],
        ["focus", "select"],
        ["press", "Enter"],
        ["press", "Escape"],
        ["lines", "main button:not([hidden])"],
        ["path"],
        ["submit", "button[value=accept]"],
        ["wide"],
        ["axe"],
        ["see", "Tell the model to go on: it repeats the call, and the tool runs then."],
        ["follow", "main a[href^='/ui/calls']"],
        width=width,
        scheme=scheme,
    )
    assert (seen[1], seen[2], seen[5], seen[6]) == (False, [], False, [])
    assert seen[3] == 'Run growing:echo with {"text":"up"}?'
    assert seen[7] == f"{CLIENT} wants to run growing:echo"
    assert seen[12] == ["Yes, run it", "No"]
    assert question["page"].endswith(seen[13]), "Enter has sent nothing"
    assert (seen[15], seen[16], seen[18]) == (False, [], 200)
    record = trio.run(daemon.page, "/api/audit?action=tool.confirm&limit=1")["records"][0]
    assert (record["target"], record["outcome"], record["door"]) == ("growing:echo", "done", seen[13])
    answer = trio.run(lambda: echo(daemon, continuation=told["continuation"]))
    assert not answer.get("isError")
