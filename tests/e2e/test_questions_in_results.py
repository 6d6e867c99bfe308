"""Clients that cannot be asked get the questions of servers as results, and go on with the same call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.daemons import Daemon, restarted, running, stand_in, text

pytestmark = pytest.mark.e2e

ALWAYS = "asks"
"""A server that may ask everyone; the other one may ask only clients that declare it."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    servers = {
        ALWAYS: {**stand_in("talkative"), "ask": "everyone"},
        "reserved": stand_in("talkative"),
    }
    with running(tmp_path_factory.mktemp("questions"), servers) as daemon:
        trio.run(daemon.ready)
        yield daemon


async def execute(daemon: Daemon, path: str, arguments: Any, **beside: Any) -> Any:
    given = {"tool_path": path, "arguments": arguments, **beside}
    answer = await daemon.call("execute_mcp_tool", **given)
    return answer["result"]


async def asked(daemon: Daemon, message: str = "Your name?") -> Any:
    result = await execute(daemon, f"{ALWAYS}:ask", {"message": message})
    assert result["structuredContent"]["status"] == "input_required", result
    assert not result.get("isError")
    return result


def test_a_question_comes_as_a_result_and_its_answer_goes_on_with_the_call(daemon: Daemon) -> None:
    async def play() -> None:
        first = await asked(daemon)
        told = first["structuredContent"]
        assert told["server"] == ALWAYS
        assert told["questions"]["question-1"]["message"] == "Your name?"
        assert told["questions"]["question-1"]["requestedSchema"]["properties"].keys() == {"name"}
        assert told["continuation"] in first["content"][0]["text"]
        assert "Ask the user; do not answer in their stead" in first["content"][0]["text"]
        again = {"continuation": told["continuation"], "answers": {"question-1": {"name": "Ada"}}}
        result = await execute(daemon, f"{ALWAYS}:ask", {"message": "Your name?"}, **again)
        assert json.loads(result["content"][0]["text"]) == {"action": "accept", "content": {"name": "Ada"}}
        used = await execute(daemon, f"{ALWAYS}:ask", {"message": "Your name?"}, **again)
        assert used["isError"]
        assert "continuation: used already" in used["content"][0]["text"]

    trio.run(play)


def test_a_no_is_a_no_and_no_answer_is_asked_again(daemon: Daemon) -> None:
    async def play() -> None:
        token = (await asked(daemon))["structuredContent"]["continuation"]
        repeated = await execute(daemon, f"{ALWAYS}:ask", {"message": "Your name?"}, continuation=token)
        told = repeated["structuredContent"]
        assert (told["status"], list(told["questions"])) == ("input_required", ["question-1"])
        assert told["continuation"] != token
        answers = {"question-1": {"action": "decline"}}
        result = await execute(
            daemon, f"{ALWAYS}:ask", {"message": "Your name?"}, continuation=told["continuation"], answers=answers
        )
        assert json.loads(result["content"][0]["text"]) == {"action": "decline"}

    trio.run(play)


def test_a_continuation_is_bound_to_tool_and_arguments_and_costs_nothing_if_it_is_wrong(daemon: Daemon) -> None:
    async def play() -> None:
        token = (await asked(daemon))["structuredContent"]["continuation"]
        answers = {"question-1": {"name": "Ada"}}
        for path, arguments, given in [
            (f"{ALWAYS}:ask", {"message": "Another?"}, token),
            (f"{ALWAYS}:work", {}, token),
            (f"{ALWAYS}:ask", {"message": "Your name?"}, token[:-4] + "AAAA"),
        ]:
            refused = await execute(daemon, path, arguments, continuation=given, answers=answers)
            assert refused["isError"], refused
            assert "continuation:" in refused["content"][0]["text"]
        wrong = await execute(daemon, f"{ALWAYS}:ask", {"message": "Your name?"}, continuation=token, answers=7)
        assert wrong["isError"]
        result = await execute(daemon, f"{ALWAYS}:ask", {"message": "Your name?"}, continuation=token, answers=answers)
        assert json.loads(result["content"][0]["text"])["action"] == "accept"

    trio.run(play)


def test_a_server_that_may_not_ask_everyone_is_told_that_nobody_can_be_asked(daemon: Daemon) -> None:
    async def play() -> None:
        result = await execute(daemon, "reserved:ask", {"message": "Your name?"})
        assert json.loads(result["content"][0]["text"])["code"] == -32601

    trio.run(play)


def test_a_tool_by_its_own_path_waits_until_somebody_answers_on_the_page(daemon: Daemon) -> None:
    answers: list[Any] = []

    async def call() -> None:
        answers.append(await daemon.call(f"{ALWAYS}:ask", message="Alone?"))

    async def play() -> None:
        async with daemon.events() as events, trio.open_nursery() as nursery:
            nursery.start_soon(call)
            asked = await events.until("mcp.elicitation.asked", tool_name="ask")
            given = {"action": "accept", "content": {"name": "Ada"}}
            answered = await daemon.at(f"/api/questions/{asked['question_id']}").post(given)
            assert answered.status_code == 200
        assert json.loads(text(answers[0])) == {"action": "accept", "content": {"name": "Ada"}}

    trio.run(play)


def test_after_a_restart_the_call_is_lost_and_says_so(tmp_path: Path) -> None:
    async def begin(daemon: Daemon) -> str:
        await daemon.ready()
        return str((await asked(daemon))["structuredContent"]["continuation"])

    async def end(daemon: Daemon, token: str) -> None:
        await daemon.ready()
        given = {"continuation": token, "answers": {"question-1": {}}}
        result = await execute(daemon, f"{ALWAYS}:ask", {"message": "Your name?"}, **given)
        assert result["isError"]
        assert "the daemon was started again since" in result["content"][0]["text"]
        assert result["structuredContent"]["error"]["outcome"] == "unknown"

    with running(tmp_path, {ALWAYS: {**stand_in("talkative"), "ask": "everyone"}}) as daemon:
        token = trio.run(begin, daemon)
        trio.run(daemon.kill)
        with restarted(daemon) as again:
            trio.run(end, again, token)
