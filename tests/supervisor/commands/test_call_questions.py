"""`call` of a tool that needs an answer first: the person at a real terminal is asked, and nobody else is."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.e2e.fork_server import forking
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer
from tests.fakes.whole_server import WholeServer
from tests.scenario.daemon import World, world

PROGRAM = ["-m", "supervisor", "call"]
ARGUMENTS = '{"path": "/etc", "n": 1}'
QUESTION = 'Run one:tool1 with {"path":"/etc","n":1}?'
FORM = {
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "title": "City"},
            "days": {"type": "integer", "minimum": 1},
            "class": {"type": "string", "enum": ["first", "second"]},
            "note": {"type": "string"},
        },
        "required": ["city", "days", "class"],
    },
}

FORM_OF_ONE = {
    "message": "Where to?",
    "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


class ForgettingServer(WholeServer):
    """A modern server that asks with a form and keeps no state; its result is what it was told the second time."""

    def _result(self, method: str, params: Any) -> Any:
        if method != "tools/call":
            return super()._result(method, params)
        if "inputResponses" not in params:
            asked = {"where": {"method": "elicitation/create", "params": FORM_OF_ONE}}
            return {"resultType": "input_required", "inputRequests": asked}
        told = {name: params[name] for name in ("inputResponses", "requestState") if name in params}
        return {"resultType": "complete", "content": [{"type": "text", "text": json.dumps(told)}]}


class AskingServer(WholeServer):
    """Asks with a form during each call, and its result is what it was answered."""

    async def serve(self, peer: MemoryPeer) -> int:
        call: Any = None
        lines = Lines(peer)
        while (arrived := await lines.read()) is not None:
            for message in map(json.loads, arrived):
                if message.get("method") == "tools/call":
                    call = message["id"]
                    asked = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": FORM}
                    await peer.write(json.dumps(asked).encode() + b"\n")
                elif message.get("id") == "q":
                    text = json.dumps(message["result"])
                    result = {"content": [{"type": "text", "text": text}]}
                    await peer.write(json.dumps({"jsonrpc": "2.0", "id": call, "result": result}).encode() + b"\n")
                elif "id" in message:
                    body = self._answer(message["method"], message.get("params", {}))
                    await peer.write(b'{"jsonrpc":"2.0","id":%b,%b}\n' % (json.dumps(message["id"]).encode(), body))
        return 0


def typed(words: Sequence[str], answers: Sequence[tuple[str, str]]) -> tuple[int, str, str]:
    """Run a command with a terminal for stdin and stderr; type each answer once its prompt is there.

    Returned are its exit code, its stdout, and what stood on the terminal before the first prompt.
    """
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(words, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True) as process:
            os.close(theirs)  # so that the end of the program is the end of what is read
            unread, before = "", []
            for prompt, answer in answers:
                while prompt not in unread:
                    unread += os.read(ours, 4096).decode()
                said, _, unread = unread.partition(prompt)
                before.append(said)
                os.write(ours, answer.encode())
            stdout, _ = process.communicate(timeout=60)
        return process.returncode, stdout, before[0]
    finally:
        os.close(ours)


def piped(words: Sequence[str]) -> tuple[int, str, str]:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def asking(directory: Path, data: DataDir, server: WholeServer, **entry: Any) -> AbstractAsyncContextManager[World]:
    return world(directory, data, {"one": {"command": "x", **entry}}, {"one": server}, patience_s=90)


async def called(at: World, answers: Sequence[tuple[str, str]] | None, *more: str) -> tuple[int, str, str]:
    """Call `one:tool1`; `answers` None: there is no terminal."""
    words = [*forking(), *PROGRAM, "one:tool1", ARGUMENTS, *more, "--url", at.url]
    run = partial(piped, words) if answers is None else partial(typed, words, answers)
    return await trio.to_thread.run_sync(run)


@pytest.mark.process
async def test_a_tool_that_needs_a_yes_runs_when_the_person_at_the_terminal_says_it_and_else_the_command_fails(
    tmp_path: Path, data: DataDir
) -> None:
    server = WholeServer()
    async with asking(tmp_path, data, server, confirm=["*"]) as at:
        for answer in ("\n", "n\n", "\x04"):
            code, stdout, _ = await called(at, [("Run it [y/N] ", answer)])
            assert (code, stdout) == (1, ""), answer
        assert "tools/call" not in server.methods()
        code, stdout, shown = await called(at, [("Run it [y/N] ", "y\n")], "--json")
    assert (code, json.loads(stdout)["content"]) == (0, [])
    assert QUESTION in shown.replace("\r\n", "\n")
    assert server.last() == ("tools/call", {"name": "tool1", "arguments": json.loads(ARGUMENTS)})


@pytest.mark.process
@pytest.mark.parametrize("ask", ["clients", "everyone"])
async def test_without_a_terminal_the_command_fails_and_says_how_to_answer(
    tmp_path: Path, data: DataDir, ask: str
) -> None:
    server = WholeServer()
    async with asking(tmp_path, data, server, confirm=["*"], ask=ask) as at:
        code, stdout, stderr = await called(at, None)
    assert (code, stdout) == (1, "")
    assert "one:tool1 needs an answer first, and there is no terminal here to ask on" in stderr
    assert QUESTION in stderr
    assert "Run this command in a terminal" in stderr
    assert "its server" not in stderr
    assert "tools/call" not in server.methods()


@pytest.mark.process
async def test_the_form_of_a_server_is_filled_in_at_the_terminal(tmp_path: Path, data: DataDir) -> None:
    answers = [
        ("City: ", "Oslo\n"),
        ("days: ", "0\n"),
        ("class: ", "2\n"),
        ("note: ", "\n"),
        ("days: must be at least 1", ""),
        ("days: ", "3\n"),
        ("Send this? [y/N] ", "y\n"),
    ]
    async with asking(tmp_path, data, AskingServer()) as at:
        code, stdout, shown = await called(at, answers)
    assert "[one] Where to?" in shown
    content = {"city": "Oslo", "days": 3, "class": "second"}
    assert (code, json.loads(stdout)) == (0, {"action": "accept", "content": content})


@pytest.mark.process
async def test_a_server_that_gave_no_state_gets_none_with_the_answers(tmp_path: Path, data: DataDir) -> None:
    answers = [("city: ", "Oslo\n"), ("Send this? [y/N] ", "y\n")]
    async with asking(tmp_path, data, ForgettingServer(era="modern")) as at:
        code, stdout, _ = await called(at, answers)
    told = {"inputResponses": {"where": {"action": "accept", "content": {"city": "Oslo"}}}}
    assert (code, json.loads(stdout)) == (0, told)
