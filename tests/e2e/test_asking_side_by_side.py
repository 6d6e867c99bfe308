"""Several calls of one request that ask something, at servers of the official SDK in both eras: none waits in vain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.e2e.daemons import Daemon, client
from tests.e2e.test_fifty_questions import ABLE, asking
from tests.scenario.client import message

pytestmark = pytest.mark.e2e

AT_ONCE_S = 10.0
"""Far less than a call may take, and than a question is held whose call is not known."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with asking(tmp_path_factory.mktemp("asking"), ask="everyone") as daemon:
        yield daemon


def call(server: str, label: str, **going_on: Any) -> Any:
    return {"tool_path": f"{server}:ask_twice", "arguments": {"label": label}, **going_on}


def answered(server: str, label: str, told: Any) -> Any:
    """Return the call that goes on with one, whose questions have to be its own."""
    for question in told["questions"].values():
        assert question["message"].startswith(f"{label}/"), "a question of another call"
    answers = {key: {"text": question["message"]} for key, question in told["questions"].items()}
    return call(server, label, continuation=told["continuation"], answers=answers)


@pytest.mark.parametrize("server", ["one-stdio", "one-http", "two-stdio", "two-http"])
def test_each_call_asks_its_own_and_none_waits_for_an_answer_that_cannot_come(daemon: Daemon, server: str) -> None:
    labels = ["a", "b"]

    async def play() -> None:
        calls = {label: call(server, label) for label in labels}
        results: dict[str, Any] = {}
        statuses = []
        while calls:
            with trio.fail_after(AT_ONCE_S):
                made = {"calls": list(calls.values())}
                result = (await daemon.call("execute_mcp_tool", **made))["result"]
            entries = result["structuredContent"]["results"] if len(calls) > 1 else [result]
            told = dict(zip(calls, entries, strict=True))
            statuses.append([_status(each) for each in told.values()])
            for label, entry in told.items():
                if _status(entry) == "input_required":
                    calls[label] = answered(server, label, entry["structuredContent"])
                elif _status(entry) == "done":
                    results[label] = entry["structuredContent"]["result"]
                    del calls[label]
        assert {label: json.loads(text) for label, text in results.items()} == {
            label: [f"{label}/1", f"{label}/2"] for label in labels
        }
        second = "answer_first" if server == "one-stdio" else "input_required"
        assert statuses[0] == ["input_required", second]

    trio.run(play)


def _status(entry: Any) -> str:
    structured = entry.get("structuredContent", {})
    return structured.get("status") or structured.get("error", {}).get("type") or "done"


@pytest.mark.parametrize("server", ["one-stdio", "one-http"])
def test_a_client_with_a_session_is_asked_about_each_during_the_request(daemon: Daemon, server: str) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": ABLE, "clientInfo": {"name": "c", "version": "1"}}
    made = {"calls": [call(server, "c"), call(server, "d")]}
    body = message("tools/call", {"name": "execute_mcp_tool", "arguments": made}, 7)
    asked: list[str] = []
    ended: list[Any] = []

    async def play() -> None:
        opened = await daemon.post(message("initialize", hello))
        headers = {
            "mcp-session-id": opened.headers["mcp-session-id"],
            "accept": "application/json, text/event-stream",
        }
        with trio.fail_after(AT_ONCE_S):
            async with client() as http, http.stream("POST", f"{daemon.url}/mcp", json=body, headers=headers) as stream:
                async for line in stream.aiter_lines():
                    said = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
                    if said.get("method") == "elicitation/create":
                        asked.append(said["params"]["message"][-3:])
                        result = {"action": "accept", "content": {"text": asked[-1]}}
                        await daemon.showing(**headers).post({"jsonrpc": "2.0", "id": said["id"], "result": result})
                    elif said.get("id") == 7:
                        ended.extend(said["result"]["structuredContent"]["results"])

    trio.run(play)
    assert sorted(asked) == ["c/1", "c/2", "d/1", "d/2"]
    assert [json.loads(each["structuredContent"]["result"]) for each in ended] == [["c/1", "c/2"], ["d/1", "d/2"]]
