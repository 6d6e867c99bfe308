"""A whole daemon whose plugins ask people: each kind of question, by each way that a client may go."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from supervisor.host.datadir import DataDir
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.plugins import install, install_example
from tests.scenario.client import message
from tests.scenario.daemon import A, World, world

SOURCE = """
from supervisor.plugins.contract import *
from supervisor.plugins.questions import *

FIRST = UserQuestion("first", "May it be called?", ConfirmationInput())
LAST = UserQuestion("last", "May it be shown?", ConfirmationInput())

class Careful(Plugin[PluginOptions]):
    guards = True
    calls = []

    def before_call(self, call):
        type(self).calls.append(call.tool)
        answer = call.answer(FIRST)
        if answer is None:
            return FIRST
        return None if answer.value else Rejection(f"first: {answer.action}")

    async def after_call(self, call, result):
        answer = call.answer(LAST)
        if answer is None:
            return LAST
        assert call.answer(FIRST).value
        return None if answer.value else {"content": [{"type": "text", "text": f"held back: {answer.action}"}]}

class Late(Plugin[PluginOptions]):
    async def after_call(self, call, result):
        return LAST if call.answer(LAST) is None else None

class Endless(Plugin[PluginOptions]):
    guards = True

    async def before_call(self, call):
        return UserQuestion(f"q{len(call.answers)}", "Again?", ConfirmationInput())
"""
SETTINGS: dict[str, Any] = {"plugin_call_timeout_s": 30}
YES = {"action": "accept", "content": {"answer": True}}
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "confirmation": ({}, True),
    "text": ({}, "because"),
    "secret": ({}, "s3cr3t-word"),
    "select": ({"choices": ["a", "b"]}, "b"),
    "multiselect": ({"choices": ["a", "b", "c"]}, ["a", "c"]),
    "file": ({}, base64.b64encode(b"\x00\xff").decode()),
    "form": ({"fields": ["x", "y"]}, {"x": "1", "y": "2"}),
}
"""What the plugin asks of the tool of that name, and what is filled in: the tool gets it as an argument."""


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = {"careful": "Careful", "late": "Late", "endless": "Endless"}
    install(tmp_path / "site", "plug_asking", SOURCE, points)
    install_example("people", tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield
    for name in ("plug_asking", "mcpvisor_example_people"):
        sys.modules.pop(name, None)


class Plugged:
    """A daemon with one server; `fake` has what reached it."""

    def __init__(self, at: World) -> None:
        self.at, self.fake = at, at.fakes["a"]

    async def execute(self, name: str = "echo", **more: Any) -> Any:
        """Call a tool as a model whose client cannot be asked."""
        return await self.at.result("execute_mcp_tool", tool_path=f"a:{name}", arguments={"n": 1}, **more)

    async def modern(self, name: str = "echo", **more: Any) -> Any:
        """Call the tool as a modern client that can be asked."""
        wanted = {"name": name, "arguments": {"n": 1}, **more}
        answer = (await self.at.at("/mcp/servers/a").send_modern("tools/call", {"elicitation": {}}, **wanted)).json()
        return answer.get("result") or answer["error"]

    async def question(self) -> Any:
        """Return the one question that waits."""
        (asked,) = (await self.at.page("/api/questions"))["questions"]
        return asked

    async def answer(self, **answer: Any) -> httpx2.Response:
        return await self.at.ask("POST", f"/api/questions/{(await self.question())['id']}", json=answer)

    @property
    def calls(self) -> int:
        return int(self.fake.count("tools/call"))


@asynccontextmanager
async def plugged(
    directory: Path, data: DataDir, entry: dict[str, Any] | None = None, **plugins: Any
) -> AsyncIterator[Plugged]:
    """Run it. Its events are in `events.jsonl` afterwards."""
    fakes = {"a": FakeServer(tools=[*map(tool, ("echo", "ask", *KINDS))])}
    sinks = [{"name": "lines", "type": "file", "path": "events.jsonl"}]
    more = {"plugins": plugins, "event_sinks": sinks, **SETTINGS}
    async with world(directory, data, {"a": {**A, **(entry or {})}}, fakes, **more) as at:
        yield Plugged(at)


def asking(kind: str, message: str = "What is it?", tools: str = "a:*") -> dict[str, Any]:
    return {"tools": [tools], "argument": "said", "message": message, "kind": kind, **KINDS[kind][0]}


EACH_KIND = {"ask": [asking(kind, tools=f"a:{kind}") for kind in KINDS]}


def content_of(kind: str, answer: Any) -> dict[str, Any]:
    return dict(answer) if kind == "form" else {"answer": answer}


async def test_each_kind_is_answered_on_the_page_where_the_client_cannot_be_asked(
    tmp_path: Path, data: DataDir
) -> None:
    async with plugged(tmp_path, data, people=EACH_KIND) as now:
        for number, (kind, (_, answer)) in enumerate(KINDS.items()):
            told = (await now.execute(kind))["structuredContent"]
            assert (told["status"], told["plugin"], told["server"]) == ("input_required", "people", "a")
            question = await now.question()
            assert (question["plugin"], question["kind"], question["about"]) == ("people", kind, kind)
            page = await now.at.ask("GET", f"/questions/{question['id']}")
            assert "and the plugin people asks you</h1>" in page.text
            again = await now.execute(kind, continuation=told["continuation"])
            assert again["structuredContent"]["status"] == "input_required", "nobody has answered"
            assert now.calls == number
            wrong = await now.answer(action="accept", content={"nothing": 1})
            assert wrong.status_code == 400
            given = await now.answer(action="accept", content=content_of(kind, answer))
            assert given.status_code == 200, given.text
            done = await now.execute(kind, continuation=again["structuredContent"]["continuation"])
            assert done["structuredContent"] == {"n": 1, "said": answer}
            assert now.calls == number + 1
        records = (await now.at.page("/api/audit?action=question.answer"))["records"]
        assert sorted((record["target"], record["detail"]) for record in records) == sorted(
            (f"a:{kind}", f"accept, {kind}, asked by plugin people") for kind in KINDS
        )
        status = (await now.at.ask("GET", "/api/status")).text
        assert "s3cr3t-word" not in status + json.dumps(records)


async def test_each_kind_is_answered_by_a_modern_client(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, people=EACH_KIND) as now:
        for number, (kind, (_, answer)) in enumerate(KINDS.items(), 1):
            first = await now.modern(name=kind)
            ((key, request),) = first["inputRequests"].items()
            assert request["params"]["message"] == "[plugin people] What is it?"
            given = {"action": "accept", "content": content_of(kind, answer)}
            retry = {"inputResponses": {key: given}, "requestState": first["requestState"]}
            done = await now.modern(name=kind, **retry)
            assert done["structuredContent"] == {"n": 1, "said": answer}
            assert "inputRequests" in await now.modern(name=kind, **retry), "an answer is good once"
            assert now.calls == number


ANSWERS: list[tuple[dict[str, Any], bool]] = [
    (YES, True),
    ({"action": "accept", "content": {"answer": False}}, False),
    ({"action": "accept", "content": {"answer": "yes"}}, False),
    ({"action": "accept"}, False),
    ({"action": "decline"}, False),
    ({"action": "cancel"}, False),
    ({}, False),
]


async def test_a_legacy_client_is_asked_by_requests_and_nothing_but_a_yes_is_one(tmp_path: Path, data: DataDir) -> None:
    async with (
        plugged(tmp_path, data, people={"ask": [asking("confirmation")]}) as now,
        now.at.socket("/mcp/servers/a") as socket,
    ):
        await socket.greet(elicitation={})
        params = {"name": "echo", "arguments": {"n": 1}}
        for id_, (answer, runs) in enumerate(ANSWERS, 1):
            before = now.calls
            await socket.send(message("tools/call", params, id_))
            asked = await socket.next()
            assert asked["params"]["message"] == "[plugin people] What is it?"
            await socket.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
            result = (await socket.next())["result"]
            assert bool(result.get("isError")) is not runs, answer
            assert now.calls - before == runs, answer


async def test_a_question_before_a_confirmation_and_one_after_the_call_run_the_tool_once(
    tmp_path: Path, data: DataDir
) -> None:
    async with plugged(tmp_path, data, {"confirm": ["*"]}, careful={}) as now:
        first = await now.modern()
        second = await now.modern(inputResponses={"first": YES}, requestState=first["requestState"])
        assert [*second["inputRequests"]] == ["confirm"]
        run = {"confirm": {"action": "accept", "content": {"run": True}}}
        third = await now.modern(inputResponses=run, requestState=second["requestState"])
        assert [*third["inputRequests"]] == ["last"]
        assert now.calls == 1
        done = await now.modern(inputResponses={"last": YES}, requestState=third["requestState"])
        assert done["structuredContent"] == {"n": 1}
        assert now.calls == 1
        calls = sys.modules["plug_asking"].Careful.calls
        assert calls == ["echo"] * 3, "not asked again about a call that was made"


async def test_a_result_is_kept_until_somebody_says_whether_it_may_be_shown(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, {"ask": "everyone"}, careful={}) as now:
        told = (await now.execute())["structuredContent"]
        told = (await now.execute(continuation=told["continuation"], answers={"first": YES}))["structuredContent"]
        assert [*told["questions"]] == ["last"]
        held = await now.execute(continuation=told["continuation"], answers={"last": {"action": "decline"}})
        assert held["content"][0]["text"] == "held back: decline"
        assert now.calls == 1


async def test_a_request_that_cannot_go_on_costs_neither_the_answers_nor_a_second_call(
    tmp_path: Path, data: DataDir
) -> None:
    async with plugged(tmp_path, data, {"ask": "everyone"}, careful={}) as now:
        told = (await now.execute())["structuredContent"]
        told = (await now.execute(continuation=told["continuation"], answers={"first": YES}))["structuredContent"]
        assert now.calls == 1
        elsewhere = await now.modern(inputResponses={"last": YES}, requestState=told["continuation"])
        assert "go on with it there" in elsewhere["message"]
        done = await now.execute(continuation=told["continuation"], answers={"last": YES})
        assert done["structuredContent"] == {"n": 1}
        assert now.calls == 1


async def test_answers_of_another_call_or_nobody_s_mean_nothing(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, careful={}) as now:
        first = await now.modern()
        other = await now.modern(arguments={"n": 2}, inputResponses={"first": YES}, requestState=first["requestState"])
        assert [*other["inputRequests"]] == ["first"], "another call: it is asked anew"
        forged = await now.modern(inputResponses={"first": YES}, requestState="mcpvisor-made-up")
        assert [*forged["inputRequests"]] == ["first"]
        assert now.calls == 0


async def test_where_nobody_can_be_asked_the_plugin_is_told_so(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, careful={}) as now:
        result = await now.at.at("/mcp/servers/a").result("echo")
        assert "first: none" in result["content"][0]["text"]
        assert now.calls == 0


async def test_a_plugin_that_asks_without_end_is_one_that_fails(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, {"max_questions_per_call": 2}, endless={}) as now:
        answer = await now.modern()
        for key in ("q0", "q1"):
            assert [*answer["inputRequests"]] == [key]
            answer = await now.modern(inputResponses={key: YES}, requestState=answer["requestState"])
        assert "it failed; nothing was called" in answer["content"][0]["text"]
        (row,) = (await now.at.page("/api/status"))["plugins"]
        assert "more questions than 2 (max_questions_per_call)" in row["failures"]["before_call"]


@pytest.mark.parametrize("entry", [{}, {"confirm": ["*"]}])
async def test_a_call_whose_plugin_is_gone_begins_anew_with_all_that_it_needs(
    tmp_path: Path, data: DataDir, entry: dict[str, Any]
) -> None:
    async with plugged(tmp_path, data, entry, careful={}) as now:
        first = await now.modern()
        await now.at.edit({"a": {**A, **entry}}, **SETTINGS)
        second = await now.modern(inputResponses={"first": YES}, requestState=first["requestState"])
        if entry:
            assert [*second["inputRequests"]] == ["confirm"]
        assert now.calls == (not entry)


async def test_a_call_that_was_made_is_not_made_again_where_its_plugin_is_gone(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, careful={}) as now:
        first = await now.modern()
        second = await now.modern(inputResponses={"first": YES}, requestState=first["requestState"])
        assert ([*second["inputRequests"]], now.calls) == (["last"], 1)
        await now.at.edit({"a": A}, **SETTINGS)
        done = await now.modern(inputResponses={"last": YES}, requestState=second["requestState"])
        assert "content" in done
        assert now.calls == 1


async def test_a_server_that_asks_afterwards_has_its_answer_and_nobody_is_asked_twice(
    tmp_path: Path, data: DataDir
) -> None:
    async with plugged(tmp_path, data, careful={}) as now:
        wanted: dict[str, Any] = {"name": "ask", "arguments": {"message": "Your name?"}}
        first = await now.modern(**wanted)
        second = await now.modern(**wanted, inputResponses={"first": YES}, requestState=first["requestState"])
        assert [each["params"]["message"] for each in second["inputRequests"].values()] == ["Your name?"]
        name = {"question-1": {"action": "accept", "content": {"name": "Ada"}}}
        third = await now.modern(**wanted, inputResponses=name, requestState=second["requestState"])
        assert [*third["inputRequests"]] == ["last"]
        done = await now.modern(**wanted, inputResponses={"last": YES}, requestState=third["requestState"])
        assert "Ada" in json.dumps(done)
        assert now.calls == 1


async def test_events_say_that_a_plugin_asks_and_nothing_of_what(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, people={"ask": [asking("secret", "The word?")]}) as now:
        told = (await now.execute())["structuredContent"]
        await now.answer(action="accept", content={"answer": "s3cr3t-word"})
        await now.execute(continuation=told["continuation"])
    text = (tmp_path / "events.jsonl").read_text()
    events = [each for each in map(json.loads, text.splitlines()) if each["type"].startswith("mcp.elicitation.")]
    about = {"server_slug": "a", "tool_name": "echo", "kind": "secret", "asked": "page", "plugin": "people"}
    about["question_id"] = events[0]["data"]["question_id"]
    assert [(each["type"], each["data"]) for each in events] == [
        ("mcp.elicitation.asked", about),
        ("mcp.elicitation.ended", {**about, "action": "accept"}),
    ]
    assert "s3cr3t-word" not in text
    assert "The word?" not in text
