"""A daemon asks a model of its operator's for sentences, over HTTP or by a program, and bears whatever that does."""

from __future__ import annotations

import json
import logging
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.transport.stdio.containment import default_containment
from supervisor.config.sections import DescribeSettings
from supervisor.host.datadir import DataDir
from supervisor.phrases.asking import MAX_ANSWER_BYTES, NoAnswer
from supervisor.phrases.endpoint import Endpoint
from supervisor.phrases.models import Program, model_of
from tests.fakes.chat_model import Reply, chatting
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import Request
from tests.scenario.client import Client, eventually
from tests.scenario.daemon import A, world

KEY = "sk-canary-key-of-the-operator-0000"
QUESTION = "has grandma gone to bed"
SAID = ("has grandma gone to bed yet", "are they up over there now")
MESSAGES = [{"role": "user", "content": "x begin\n{}\nx end"}]


def clock(description: str = "Tells the clock.") -> dict[str, FakeServer]:
    schema = {"type": "object", "properties": {"timezone": {"type": "string"}}}
    return {"clock": FakeServer(tools=[tool("get_current_time", description, inputSchema=schema)])}


async def found(at: Client, query: str = QUESTION) -> list[str]:
    rows = await at.search(query)
    assert "grandma" not in json.dumps(rows)
    return [row["tool_path"] for row in rows]


async def until_found(at: Client) -> None:
    await eventually(partial(found, at))


def settings_of(url: str, **more: Any) -> dict[str, Any]:
    return {"describe": {"url": url, "model": "small", "key": KEY, **more}}


async def test_a_tool_is_found_by_what_only_the_model_said_and_a_restart_asks_nothing_again(
    tmp_path: Path, data: DataDir, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with chatting(lambda told: SAID) as model:
        settings = settings_of(model.url)
        async with world(tmp_path, data, {"clock": A}, clock(), **settings) as at:
            await until_found(at)
            assert await found(at) == ["clock:get_current_time"]
            pages = [(await at.ask("GET", page)).text for page in ("/api/status", "/api/configuration", "/metrics")]
        (request,) = model.requests
        assert (request.verb, request.path) == ("POST", "/v1/chat/completions")
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert json.loads(request.body)["model"] == "small"
        assert model.asked == [["get_current_time"]]
        async with world(tmp_path, data, {"clock": A}, clock(), **settings) as at:
            assert await found(at) == ["clock:get_current_time"]
            assert len(model.requests) == 1
        async with world(tmp_path, data, {"clock": A}, clock("Tells what time it is."), waits=False, **settings) as at:
            await at.ordered("clock", "refresh")
            await until_found(at)
            assert len(model.requests) == 2
    assert KEY not in caplog.text
    assert all(KEY not in page for page in pages)
    assert all(KEY.encode() not in file.read_bytes() for file in data.root.rglob("*") if file.is_file())


async def hang(stream: trio.SocketStream, request: Request) -> bool:
    await stream.receive_some(1)
    return False


async def reset(stream: trio.SocketStream, request: Request) -> bool:
    return False


def sending(status: int, body: bytes, head: bytes = b"") -> Reply:
    async def reply(stream: trio.SocketStream, request: Request) -> bool:
        size = b"content-length: %d\r\n" % len(body)
        await stream.send_all(b"HTTP/1.1 %d X\r\n%s%s\r\n%s" % (status, head, size, body))
        return True

    return reply


FAILURES: dict[str, tuple[Reply, str]] = {
    "slow": (hang, "it gave no answer within 0.3 s"),
    "reset": (reset, "it cannot be reached, or gives no answer (RemoteProtocolError)"),
    "no HTTP": (sending(0, b"", b"\0\xff\r\n"), "it cannot be reached, or gives no answer (RemoteProtocolError)"),
    "refused": (sending(401, KEY.encode()), "it answers HTTP 401"),
    "moved": (sending(307, b"", b"location: http://127.0.0.1:1/\r\n"), "it answers HTTP 307"),
    "a page": (sending(200, b"<html>"), "what it answers is no chat completion"),
    "no choice": (sending(200, b'{"choices":[]}'), "what it answers is no chat completion"),
    "deep": (sending(200, b"[" * 200_000), "what it answers is no chat completion"),
}


@pytest.mark.parametrize("kind", FAILURES)
async def test_a_service_that_fails_is_a_reason_in_words_without_the_key(kind: str) -> None:
    async with chatting(lambda told: SAID) as model:
        model.reply, reason = FAILURES[kind]
        endpoint = Endpoint(DescribeSettings(url=model.url, model="small", key=KEY, timeout_s=0.3))
        with pytest.raises(NoAnswer) as caught:
            await endpoint.ask(MESSAGES)
        assert str(caught.value) == reason
        model.reply = model.answer
        assert json.loads(await endpoint.ask(MESSAGES)) == {}
        await endpoint.close()


async def test_of_a_huge_answer_no_more_is_read_than_may_be_of_use() -> None:
    async with chatting(lambda told: SAID) as model:
        model.reply = sending(200, b"x" * (MAX_ANSWER_BYTES * 4))
        endpoint = Endpoint(DescribeSettings(url=f"{model.url}/", model="small"))
        assert await endpoint.ask(MESSAGES) == b""
        model.reply = lambda stream, request: model.complete(stream, "")
        assert await endpoint.ask(MESSAGES) == b""
        assert [request.path for request in model.requests] == ["/v1/chat/completions"] * 2
        assert "authorization" not in model.requests[0].headers
        await endpoint.close()


async def test_a_daemon_works_as_before_whatever_its_model_does(
    tmp_path: Path, data: DataDir, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with chatting(lambda told: SAID) as model:
        model.reply = sending(500, KEY.encode())
        async with world(tmp_path, data, {"clock": A}, clock(), **settings_of(model.url)) as at:
            await at.until("/api/status", lambda page: page["degraded"])
            assert await found(at, "clock") == ["clock:get_current_time"]
            assert await found(at) == []
            status = json.dumps(await at.status())
            assert "model of `describe`" in status
            assert KEY not in status
    assert KEY not in caplog.text


PROGRAM = r"""
import json, os, subprocess, sys, time
kind, key = sys.argv[1], os.environ.get("OPERATORS_KEY")
if kind == "slow":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(sys.argv[2], "w").write(str(child.pid))
    time.sleep(600)
if kind == "huge":
    while True:
        sys.stdout.write("x" * 65536)
if kind == "fails":
    sys.exit(3)
sys.stderr.write("e" * 1_000_000)
if kind == "deaf":
    os.close(0)
    print("{}")
    sys.exit(0)
said = json.load(sys.stdin)["messages"][-1]["content"]
data = json.loads(said.partition("\n")[2].rpartition("\n")[0])
assert key == "in the environment"
print(json.dumps({number: SAID for number in data}))
""".replace("SAID", repr([*SAID]))


def program(kind: str, *more: str, timeout_s: float = 30.0) -> Any:
    settings = DescribeSettings(command=(sys.executable, "-I", "-c", PROGRAM, kind, *more), timeout_s=timeout_s)
    return model_of(settings, {"OPERATORS_KEY": "in the environment"}, default_containment())


@pytest.mark.process
async def test_a_program_is_asked_on_its_stdin_and_answers_on_its_stdout() -> None:
    messages = [{"role": "user", "content": 'x begin\n{"1": {}}\nx end' + " " * 200_000}]
    model = program("answers")
    assert isinstance(model, Program)
    assert json.loads(await model.ask(messages)) == {"1": [*SAID]}
    assert json.loads(await program("deaf").ask(messages)) == {}
    assert await program("huge").ask(messages) == b""
    await model.close()


@pytest.mark.process
async def test_a_program_that_fails_is_a_reason_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="exit code 3"):
        await program("fails").ask(MESSAGES)
    with pytest.raises(NoAnswer, match="no answer within 1 s, and was killed"):
        await program("slow", str(tmp_path / "pid"), timeout_s=1.0).ask(MESSAGES)
    pid = int((tmp_path / "pid").read_text())

    async def is_gone() -> bool:
        return not await trio.Path(f"/proc/{pid}").exists()

    with trio.fail_after(10):
        await eventually(is_gone)
    none = model_of(DescribeSettings(command=("no-such-program-anywhere",)), {}, default_containment())
    with pytest.raises(NoAnswer, match="not found"):
        await none.ask(MESSAGES)


@pytest.mark.process
async def test_a_daemon_asks_a_program(tmp_path: Path, data: DataDir) -> None:
    command = [sys.executable, "-I", "-c", PROGRAM.replace('assert key == "in the environment"', ""), "answers"]
    async with world(tmp_path, data, {"clock": A}, clock(), describe={"command": command}) as at:
        await until_found(at)
