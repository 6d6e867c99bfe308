"""What a person sees of a changed configuration: `reload`, `diff`, `status`, and a word of every other command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2

from supervisor import operations
from supervisor.commands import status
from supervisor.host.datadir import DataDir
from supervisor.servers.reloading.refusal import HEADER
from tests.scenario.daemon import A, B, world
from tests.supervisor.commands.test_cli import ask, client_of

NOW = 10_000.0


async def test_a_difference_is_shown_line_by_line_and_applied_in_a_sentence(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"a": A, "b": B, "c": A}) as shown:
        nothing = await ask(shown.url, "diff")
        shown.write({"a": B, "c": {**A, "description": "New."}, "d": A}, show_debug=False, max_sessions=5)
        planned = await ask(shown.url, "diff")
        other = tmp_path / "other.json"
        other.write_text(json.dumps({"mcpServers": {"a": A}}))
        of_other = await ask(shown.url, "diff", str(other), "--json")
        done = await ask(shown.url, "reload")
        again = await ask(shown.url, "reload", "--json")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "nothing would change\n", "")
    assert planned.stdout.splitlines() == [
        "+ d: added",
        "- b: removed: its calls may end, then it is stopped",
        "~ a: replaced: its calls may end, new ones wait for the new one",
        "~ c: changed, without a new process",
        "~ setting show_debug",
        "~ setting max_sessions: takes effect when the daemon is started again",
    ]
    assert json.loads(of_other.stdout)["changes"]["removed"] == ["b", "c"]
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        "1 server added (d); 1 server removed (b); 1 server replaced (a); 1 server changed (c); settings changed: "
        "show_debug. These take effect when the daemon is started again: max_sessions\n"
    )
    assert json.loads(again.stdout)["outcome"] == "unchanged"


async def test_a_refused_file_is_said_by_every_command_until_it_is_mended(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"a": A}) as shown:
        shown.path.write_text('{\n "mcpServers": {"n": {"comand": "x"}}\n}')
        refused = await ask(shown.url, "reload")
        words = ("tools", "tokens", "wake a", "logs a", "search x")
        others = [await ask(shown.url, *each.split()) for each in words]
        unknown = await ask(shown.url, "call", "n:echo", "{}")
        as_json = await ask(shown.url, "status", "--json")
        overview = await ask(shown.url, "status")
        health = await shown.http.get("/healthz")
        shown.write({"a": A}, max_sessions=5)
        await ask(shown.url, "reload")
        mended = [await ask(shown.url, *words.split()) for words in ("status", "tools")]
    fault = f"{shown.path}:2: mcpServers.n.comand: unknown key"
    assert refused.exit_code != 0
    assert fault in refused.stderr
    assert refused.stderr.count("unknown key") == 1
    for result in (*others, as_json):
        assert result.exit_code == 0
        assert result.stderr.startswith(f"note: the daemon's configuration is refused, all runs as before: {fault}")
        assert result.stderr.count("\n") == 1
    assert (unknown.exit_code, unknown.stderr.splitlines()[0]) == (1, others[0].stderr.rstrip())
    assert json.loads(as_json.stdout)["configuration"]["refused"]
    assert re.search(r"configuration refused \d+s ago, all runs as before: " + re.escape(fault), overview.stdout)
    assert overview.stderr == ""
    assert HEADER not in health.headers
    assert [result.stderr for result in mended] == ["", ""]
    assert "these settings take effect when the daemon is started again: max_sessions" in mended[0].stdout
    assert "refused" not in mended[0].stdout


def lines(**source: Any) -> list[str]:
    return [line.plain for line in status.list_configuration(source, NOW)]


def test_the_status_says_each_fault_once_and_nothing_of_a_file_that_is_in_force() -> None:
    assert lines() == lines(path="mcp.json", refused=[], restart=[], refused_at=None) == []
    assert lines(refused=["a\x1b[31mb", "c"], refused_at=NOW - 60) == [
        "configuration refused 1m ago, all runs as before: ab",
        "configuration refused 1m ago, all runs as before: c",
    ]


async def test_an_answer_without_the_header_says_that_all_is_well() -> None:
    client = client_of(httpx2.Response(200, json={"servers": []}, headers={HEADER: "mcp.json:1: %C3%A4%1B[31m"}))
    await client.perform(operations.STATUS)
    assert client.refused == "mcp.json:1: ä\x1b[31m"
    client = client_of(httpx2.Response(200, json={"servers": []}))
    await client.perform(operations.STATUS)
    assert client.refused == ""
