"""What an operator sees in a terminal: status as cards, tools, orders, logs; and addresses as people have them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from rich.console import Console, RenderableType

from supervisor.commands import logs, status, tools
from supervisor.commands.common import PIPE_WIDTH, size_text
from supervisor.daemon_client.client import DaemonClient, DaemonUnreachable, RequestRefused, base_url
from supervisor.demo.setting import configuration, running_daemon
from supervisor.operations import ORDER_SERVER, STATUS
from supervisor.tokens.counting import savings
from tests.e2e.fork_server import forking
from tests.supervisor.commands.test_cli import ROOT, ask, client_of

NOW = 10_000.0


def shown(what: RenderableType, width: int) -> list[str]:
    """The lines of what a terminal of that width shows."""
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, highlight=False)
    out.print(what)
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def row(server: str, state: str = "ready", **more: Any) -> dict[str, Any]:
    words = {"failed": "permanently_failed", "respawning": "error", "ready": "online", "dormant": "online"}
    numbers = {"tools": 14, "tokens": 2345, "calls": 12, "restarts": 0, "pid": 17}
    known = {"server": server, "state": state, "status": words.get(state, "connecting")}
    return {**known, "wanted": "up", "since": NOW - 200, "last_error": None, **numbers, **more}


LONG = (
    "exit code 3; last words: Error: the environment variable GITHUB_PERSONAL_ACCESS_TOKEN is not set, see the manual"
)


def cards(rows: list[dict[str, Any]], width: int = 80) -> list[str]:
    return shown(status.servers_cards(rows, NOW, width), width)


def test_a_narrow_status_is_a_line_for_each_server_and_whole_words_below_it() -> None:
    found = cards([row("github", "failed", last_error=LONG, last_error_at=NOW - 60), row("notes")])
    assert found[0].split() == ["SERVER", "STATUS", "PROCESS", "SINCE", "TOOLS", "TOKENS", "CALLS"]
    assert found[1].split() == ["notes", "online", "ready", "3m", "14", "2345", "12"]
    assert found[2].split()[:3] == ["github", "permanently_failed", "failed"]
    assert " ".join(line.strip() for line in found[3:]) == f"error (1m ago): {LONG}"
    assert all(len(line) <= 80 for line in found)
    assert all(line.startswith("    ") for line in found[3:])


def wide(rows: list[status.Row], width: int = 120) -> list[str]:
    """What a wide terminal shows."""
    return shown(status.render_servers(rows, NOW, Console(width=width, force_terminal=True)), width)


def test_what_is_wrong_with_a_server_has_the_whole_width_of_a_wide_terminal_too() -> None:
    error = "the program that it is started by was not found, as its directory is not where it is looked for"
    assert f"    error (0s ago): {error}" in wide([row("a", "failed", last_error=error, last_error_at=NOW)])


@pytest.mark.parametrize("width", [40, 60, 80, 100, 119])
def test_columns_of_cards_stand_below_each_other_whatever_the_width_and_the_names(width: int) -> None:
    names = ["a", "filesystem", "a-long-name-of-a-server-in-a-team"]
    found = cards([row(name) for name in names], width)
    text = "\n".join(found)
    assert all(name in text for name in names)
    assert len({len(line) for line in found if line and line not in names}) == 1
    assert ("RESTARTS" in text) == (width >= 80)


def test_what_needs_attention_comes_last_in_both_forms() -> None:
    rows = [
        row("f", "failed"),
        row("e", "respawning"),
        row("d", "spawning"),
        row("c"),
        row("b", "dormant"),
        row("a", "stopped", status=None),
    ]
    for lines in (cards(rows), wide(rows)):
        assert [line.split()[0] for line in lines[1:]] == ["a", "b", "c", "d", "e", "f"]
        assert lines[1].split()[1] == "disabled"


def test_each_problem_is_said_once_and_many_are_counted() -> None:
    many = tuple(f"tool {number} left out" for number in range(9))
    for lines in (
        cards([row("a", last_error=many[0], problems=list(many))]),
        wide([row("a", last_error=many[0], problems=list(many))]),
    ):
        text = "\n".join(lines)
        assert text.count("tool 0 left out") == 1
        assert text.count("problem: ") == 3
        assert "5 more problems" in text


def test_tools_that_the_configuration_hides_are_counted() -> None:
    assert "    2 more tools, which the configuration hides" in cards([row("a", hidden_tools=2)])
    assert "    1 more tool, which the configuration hides" in cards([row("a", hidden_tools=1)])
    assert "hides" not in " ".join(cards([row("a", hidden_tools=0), row("b")]))


def test_a_server_that_waits_says_when_it_is_tried_again() -> None:
    assert "    it is tried again in 30s" in cards([row("a", "respawning", next_start=NOW + 30)])


def test_a_status_says_that_calls_wait_until_somebody_answers_a_question() -> None:
    assert "somebody has been asked a question for 42s" in " ".join(cards([row("a", asked_since=NOW - 42)]))


def test_a_status_says_of_a_server_that_was_long_silent_when_it_was_heard_last() -> None:
    assert "    last heard 5m ago" in cards([row("a", last_sign_at=NOW - 300)])
    assert "heard" not in " ".join(cards([row("a", last_sign_at=NOW - 60), row("b", last_sign_at=None)]))


def test_those_that_need_attention_are_named_with_what_helps() -> None:
    rows = [row("a", "failed"), row("b", "respawning"), row("c", "failed", wanted="stopped"), row("d")]
    first, second = (line.plain for line in status.attention(status.sort_by_need(rows)))
    assert first == "cannot run as configured: c; correct that in the configuration"
    assert second == "failing: b, a; see `mcpvisor logs SERVER`, then `mcpvisor restart SERVER`"
    assert list(status.attention([row("d")])) == []


def test_a_server_that_is_just_being_started_again_after_a_failure_is_named_as_failing() -> None:
    starting = row(
        "again", "handshaking", status="connecting", last_error="exit code 1", last_error_at=NOW - 3, restarts=4
    )
    (line,) = status.attention([starting, row("new", "handshaking"), row("well", last_error="exit code 1")])
    assert line.plain.startswith("failing: again; ")


def test_lines_of_the_status_in_a_pipe_are_as_long_as_what_they_say() -> None:
    out = Console(file=io.StringIO(), width=PIPE_WIDTH, highlight=False)
    rows = [row("a", "failed", last_error="z" * 280, last_error_at=NOW), row("b")]
    out.print(status.render_servers(rows, NOW, out))
    assert isinstance(out.file, io.StringIO)
    lines = out.file.getvalue().splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert sorted(map(len, lines))[-2] < 90
    assert any(line.strip() == f"error (0s ago): {'z' * 280}" for line in lines)


def test_no_savings_are_said_in_words() -> None:
    tokens = {**savings(200, exact=True), "counted": True}
    said = status.savings_line({"tools": 2, "servers": 1}, tokens)
    assert said.endswith("with so few tools they save nothing")
    assert str(tokens["saved_tokens"]).startswith("-")
    assert f"{tokens['saved_tokens']}" not in said


def test_descriptions_of_tools_can_be_read_in_80_columns() -> None:
    description = "Search the issues of a repository by words, labels, state and author; " * 3
    tool = {
        "path": "github:search_issues",
        "description": description,
        "tokens": 120,
        "calls": 4,
        "success_rate": 0.75,
        "avg_ms": 12.0,
        "avg_wait_ms": 900.0,
        "metadata": {"safety": "safe", "category": "version-control", "findings": [{"severity": "warning"}]},
    }
    lines = shown(tools.cards_of([tool]), 80)
    assert lines[0] == "github:search_issues  safe, version-control, 120 tokens, 4 calls, 75% good, 1"
    assert " ".join(line.strip() for line in lines if line.startswith("    ")) == description.strip()


@pytest.mark.parametrize(
    ("treatment", "card", "cell"),
    [
        ({}, "x:y  safe, api", "run it"),
        ({"exposed": True, "requires_confirmation": True}, "x:y  safe, api, asks first", "asks first"),
        ({"exposed": False, "requires_confirmation": True}, "x:y  safe, api, not shown", "not shown"),
    ],
)
def test_what_becomes_of_a_call_of_a_client_is_said(treatment: dict[str, Any], card: str, cell: str) -> None:
    numbers = dict.fromkeys(("tokens", "calls", "success_rate", "avg_ms", "avg_wait_ms"))
    known = {"safety": "safe", "category": "api", "findings": []}
    tool = {"path": "x:y", "description": "", **numbers, "metadata": known, **treatment}
    assert shown(tools.cards_of([tool]), 80)[0].rstrip() == card
    assert cell in " ".join(shown(tools.rows_of([tool]), 200))


# Addresses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://127.0.0.1:3911", "http://127.0.0.1:3911"),
        ("http://127.0.0.1:3911/", "http://127.0.0.1:3911"),
        ("http://127.0.0.1:3911/mcp", "http://127.0.0.1:3911"),
        ("http://127.0.0.1:3911/mcp/", "http://127.0.0.1:3911"),
        ("ws://127.0.0.1:3911/mcp", "http://127.0.0.1:3911"),
        ("WSS://mcp.example/ws", "https://mcp.example"),
        ("localhost:3001", "http://localhost:3001"),
        ("http://[::1]:3001/mcp?x=1#y", "http://[::1]:3001"),
        ("https://example.com/tools/mcp", "https://example.com/tools"),
        ("http://127.0.0.1:3001/api/status", "http://127.0.0.1:3001"),
    ],
)
def test_any_address_that_people_have_of_a_daemon_will_do(given: str, base: str) -> None:
    assert base_url(given) == base


@pytest.mark.parametrize(
    "body", [b"{}", b'{"detail":"Not Found"}', b'{"status":"ok"}', b"<html>", b"[]", b"", b'{"error":"x"}']
)
async def test_something_else_at_that_address_is_said_to_be_that(body: bytes) -> None:
    with pytest.raises(DaemonUnreachable, match="something else listens there"):
        await client_of(httpx2.Response(200, content=body)).perform(STATUS)


async def test_a_daemon_that_refuses_is_not_called_unreachable() -> None:
    error = {"code": -32600, "message": 'this daemon does not answer to the host "x"', "data": None}
    with pytest.raises(RequestRefused, match="does not answer to the host"):
        await client_of(httpx2.Response(421, json={"jsonrpc": "2.0", "id": None, "error": error})).perform(STATUS)


async def test_a_name_with_a_slash_or_spaces_does_not_leave_its_place_in_the_address() -> None:
    asked: list[bytes] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.raw_path)
        return httpx2.Response(200, json={"message": "done"})

    client = DaemonClient(httpx2.AsyncClient(transport=httpx2.MockTransport(respond)), "http://daemon")
    await client.perform(ORDER_SERVER, {"deadline_s": 5}, server="../a b/c", order="wake")
    assert asked == [b"/api/servers/..%2Fa%20b%2Fc/wake?deadline_s=5"]


def test_a_line_of_a_log_cannot_speak_to_the_terminal() -> None:
    line = logs.line({"time": 0.0, "source": "stderr", "text": "[red]a\x1b[31m b"})
    assert line.plain.endswith("stderr   [red]a b")
    line = logs.line({"time": 0.0, "source": "stderr", "text": "x", "server": "[b]\x1b[1ma"}, 6)
    assert line.plain.endswith(" [b]a   stderr   x")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0B"),
        (999, "999B"),
        (1000, "1.0K"),
        (10 * 1024, "10K"),
        (999 * 1024, "999K"),
        (1000 * 1024, "1.0M"),
        (83 * 1024**2 + 7, "83M"),
        (1.2 * 1024**3, "1.2G"),
        (5 * 1024**4, "5120G"),
    ],
)
def test_sizes_are_short(count: float | None, text: str) -> None:
    assert size_text(count) == text


def test_a_wide_status_has_memory_and_processor_where_somebody_knows() -> None:
    rows = [row("here", memory_bytes=83 * 1024**2, cpu_percent=12.4), row("remote", memory_bytes=None)]
    found = shown(status.render_servers(rows, NOW, Console(width=160, force_terminal=True)), 160)
    assert found[0].split()[:7] == ["SERVER", "STATUS", "PROCESS", "SINCE", "PID", "MEMORY", "CPU"]
    assert found[1].split()[:7] == ["here", "online", "ready", "3m", "17", "83M", "12"]
    assert found[2].split()[:7] == ["remote", "online", "ready", "3m", "17", "-", "-"]


# With a real daemon ---------------------------------------------------------------------------------------------------


async def follow(url: str, *arguments: str) -> list[str]:
    """Follow logs until there are lines, while a server is restarted; return them."""
    process = await trio.lowlevel.open_process(
        [*forking(), "-m", "supervisor", "logs", *arguments, "--url", url],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    seen = b""
    while not seen.endswith(b"\n"):
        await ask(url, "restart", "notes")
        with trio.move_on_after(2):
            seen += await process.stdout.receive_some()
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 130
    await process.stdout.aclose()
    return seen.decode().splitlines()


@pytest.mark.process
async def test_what_a_real_server_writes_is_shown_and_followed(tmp_path: Path) -> None:
    document = configuration()
    document["mcpServers"] = {"notes": document["mcpServers"]["notes"]}
    failing = "echo Welcome; echo 'Error: no key' >&2; exit 3"
    document["mcpServers"]["failing"] = {"command": "sh", "args": ["-c", failing], "max_restarts": 0}
    with trio.fail_after(60):
        async with running_daemon(tmp_path, document, forking()) as daemon:
            url = f"{daemon.url}/mcp"
            await ask(url, "restart", "notes", "failing")
            told = await ask(url, "logs", "failing")
            told_all = await ask(url, "logs", "--since", "1h", "--grep", "ERROR: NO")
            followed = [await follow(url, *of, "-f", "-n", "0", "--grep", "READY after") for of in (("notes",), ())]
    assert "stderr   Error: no key" in told.stdout
    assert "stdout   Welcome" in told.stdout
    assert "died while handshaking: exit code 3; last words: Error: no key" in told.stdout
    assert {line.split()[2] for line in told_all.stdout.splitlines()} == {"failing"}
    assert "stderr   Error: no key" in told_all.stdout
    of_one, of_all = followed
    assert all("mcpvisor ready after" in line and "notes" not in line for line in of_one)
    assert all("notes mcpvisor ready after" in line for line in of_all)


def test_tokens_that_nobody_counted_yet_are_not_told_as_none() -> None:
    tokens = {**savings(0, exact=False), "counted": False}
    said = status.savings_line({"tools": 2, "servers": 1}, tokens)
    assert said.startswith("the tokens of 2 tools of 1 server are being counted")
    assert "about 0 tokens" not in said
