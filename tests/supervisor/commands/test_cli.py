"""The commands: what they print, with which exit code, and how they talk to a daemon.

What they say to whoever misspells something, or where no daemon runs, is recorded: `tests/recording`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
import trio_websocket
from click.testing import CliRunner, Result

from actors.errors import ConfigError
from supervisor import cli as cli_module
from supervisor import operations
from supervisor.cli import cli
from supervisor.commands import common, run, status
from supervisor.commands.call import for_people
from supervisor.commands.check import clashes
from supervisor.config import Settings
from supervisor.daemon_client.client import DaemonClient, DaemonUnreachable, RequestRefused, connect
from supervisor.daemon_client.sockets import open_socket
from supervisor.demo.setting import configuration, running_daemon
from supervisor.host.datadir import DataDir
from supervisor.host.places import find_config
from tests.e2e.fork_server import forking
from tests.scenario.daemon import world

ROOT = Path(__file__).parents[3]
NOWHERE = "http://127.0.0.1:1"
FAR = {"url": "https://mcp.example.com/mcp"}
GOOD = {"mcpServers": {"calculator": {"command": "/bin/cat"}, "far": FAR, "old": {"url": "wss://mcp.example.com/mcp"}}}


def invoke(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


def written(directory: Path, value: object) -> str:
    file = directory / "mcp.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return str(file)


# Without a daemon -----------------------------------------------------------------------------------------------------


def test_commands_that_ask_a_daemon_start_without_what_reads_a_configuration_or_ranks_tools() -> None:
    asking = [f"supervisor.commands.{name}" for name in ("call", "config", "logs", "orders", "search", "token")]
    code = f"import sys, {', '.join(asking)}; print({{'supervisor.config', 'numpy'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("cat https://mcp.example/mcp?api_key=canary", "cat"),
        ("nothing-there mcp-remote https://mcp.example/mcp?api_key=canary", "nothing-there"),
        ("https://mcp.example/mcp?api_key=canary", "-"),
        ("/nowhere/mcp?api_key=canary", "-"),
        ("API_KEY=canary npx -y some-package", "-"),
    ],
)
def test_check_shows_nothing_of_a_command_line_but_its_program(tmp_path: Path, command: str, shown: str) -> None:
    result = invoke("check", written(tmp_path, {"mcpServers": {"one": {"command": command}}}))
    assert "canary" not in result.output
    assert ["one", "stdio", shown] in [line.split() for line in result.stdout.splitlines()]


def test_check_shows_the_name_that_a_server_is_called_by(tmp_path: Path) -> None:
    result = invoke("check", written(tmp_path, {"mcpServers": {"filesystem-john-abc123": {"command": "/bin/cat"}}}))
    assert result.exit_code == 0
    assert ["filesystem", "stdio", "cat"] in [line.split() for line in result.stdout.splitlines()]
    assert 'filesystem-john-abc123: served as "filesystem"' in result.stdout


def test_check_names_every_entry_that_run_would_leave_out_and_exits_with_1(tmp_path: Path) -> None:
    bad = {"mcpServers": {"one": {"comand": "x"}, "two": {"command": "y", "idle_timeout_s": -1}}}
    result = invoke("check", file := written(tmp_path, bad))
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0] == f'Error: {file}:4: mcpServers.one.comand: unknown key (did you mean "command"?)'
    assert lines[1].startswith(f"{file}:8: mcpServers.two.idle_timeout_s: ")
    assert lines[2] == "2 problems; the daemon would start with the other servers"


def test_another_distribution_with_a_package_of_our_name_is_reported() -> None:
    assert clashes(["mcpvisor"]) == []
    (warning,) = clashes(["supervisor", "mcpvisor"])
    assert 'by the distribution "supervisor"' in warning
    assert "virtual environment of its own" in warning


@pytest.mark.parametrize("place", ["mcp.json", ".mcp.json", ".config/mcpvisor/mcp.json"])
def test_run_finds_the_configuration_in_its_usual_places(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("{}")
    assert find_config(None, {"HOME": str(tmp_path)}).absolute() == tmp_path / place


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"mcpvisor": {"type": "http", "url": "http://127.0.0.1:3001/mcp"}}}',
        '{"mcpServers": {"mcpvisor": {"command": "/bin/mcpvisor", "args": ["stdio"]}}}',
        '{"mcpServers": {}}',
    ],
)
def test_a_file_that_only_leads_a_client_to_the_daemon_hides_no_configuration(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = tmp_path / ".config/mcpvisor/mcp.json"
    ours.parent.mkdir(parents=True)
    ours.write_text("{}")
    (tmp_path / ".mcp.json").write_text(text)
    assert find_config(None, {"HOME": str(tmp_path)}) == ours
    for more in ('{"mcpServers": {"a": {"command": "c"}}}', '{"supervisor": {}, "mcpServers": {}}', "{"):
        (tmp_path / ".mcp.json").write_text(more)
        assert find_config(None, {"HOME": str(tmp_path)}) == Path(".mcp.json")


def test_run_refuses_an_address_that_is_none(tmp_path: Path) -> None:
    result = invoke("run", "--config", written(tmp_path, GOOD), "--listen", "3001")
    assert result.exit_code == 78
    assert "--listen: an address is host:port" in result.stderr


def test_run_refuses_a_data_directory_in_use(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    result = invoke("run", "--config", written(tmp_path, GOOD), "--data-dir", str(tmp_path / "data"))
    assert result.exit_code == 78
    assert "the data directory cannot be used" in result.stderr


def test_interrupts_and_closed_pipes_end_a_command_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forgotten: list[bool] = []
    monkeypatch.setattr(cli_module, "_forget_stdout", lambda: forgotten.append(True))
    for error in (KeyboardInterrupt(), BaseExceptionGroup("", [KeyboardInterrupt()]), BrokenPipeError()):

        def fail(*_: object, error: BaseException = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(cli, "main", fail)
        with pytest.raises(SystemExit) as ended:
            cli_module.main([])
        assert ended.value.code == 130
    assert forgotten == [True]
    assert capsys.readouterr() == ("", "")


def test_a_bug_in_a_group_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BaseExceptionGroup("", [KeyboardInterrupt(), ValueError("a bug")])

    monkeypatch.setattr(cli, "main", fail)
    with pytest.RaisesGroup(KeyboardInterrupt, ValueError):
        cli_module.main([])


def test_a_closed_pipe_really_is_quiet(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "supervisor", "check", written(tmp_path, GOOD)]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, cwd=ROOT, timeout=60, check=False)
    os.close(write)
    assert done.stderr == b""


@pytest.mark.case("S16", "X11")
def test_text_of_servers_is_neither_markup_nor_control() -> None:
    assert common.plain("[red]a\x1b[31mb\n\u202ec").plain == "[red]ab c"


@pytest.mark.parametrize(("seconds", "words"), [(-1, "0s"), (59.9, "59s"), (60, "1m"), (7200, "2h"), (200_000, "2d")])
def test_durations_are_short(seconds: float, words: str) -> None:
    assert common.duration(seconds) == words


def test_estimated_savings_are_called_so() -> None:
    tokens = {"exposed_tokens": 1000, "meta_tokens": 250, "summary": "750 tokens saved (75 %)"}
    said = status.savings_line({"tools": 9, "servers": 2}, {**tokens, "exact": False, "counted": True})
    assert said == (
        "9 tools of 2 servers would cost a model about 1,000 tokens; "
        "the four meta-tools cost 250: 750 tokens saved (75 %)"
    )


# With something else at the other end ---------------------------------------------------------------------------------


def client_of(answer: httpx2.Response | Exception) -> DaemonClient:
    def respond(request: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return DaemonClient(httpx2.AsyncClient(transport=httpx2.MockTransport(respond)), "http://daemon")


async def test_an_error_of_the_connection_is_no_daemon() -> None:
    with pytest.raises(DaemonUnreachable, match="reset"):
        await client_of(httpx2.ReadError("reset")).perform(operations.STATUS)


async def test_a_daemon_that_does_not_answer_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    class Silent(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await trio.sleep_forever()
            raise AssertionError

    client = DaemonClient(httpx2.AsyncClient(transport=Silent(), timeout=None), "http://daemon")
    with pytest.raises(DaemonUnreachable, match="no answer within 10 s"):
        await client.perform(operations.STATUS)
    assert trio.current_time() >= 10


async def test_parameters_that_are_not_given_are_not_asked_for() -> None:
    asked: list[str] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.query.decode())
        return httpx2.Response(200, json={"tools": []})

    client = DaemonClient(httpx2.AsyncClient(transport=httpx2.MockTransport(respond)), "http://daemon")
    given = {"name": None, "servers": ("a", "b"), "read_only": False, "limit": 5, "tags": ()}
    await client.perform(operations.TOOLS, given)
    assert asked == ["servers=a&servers=b&read_only=false&limit=5"]


async def test_a_json_rpc_error_keeps_code_message_and_data() -> None:
    error = {"code": -31502, "message": "it is down", "data": {"outcome": "unknown"}}
    answer = httpx2.Response(400, json={"jsonrpc": "2.0", "id": 1, "error": error})
    with pytest.raises(RequestRefused, match="it is down") as refused:
        await client_of(answer).call("a-b", {})
    assert (refused.value.code, refused.value.data) == (-31502, {"outcome": "unknown"})


async def test_a_door_says_which_tools_it_has() -> None:
    listed = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a"}, {"name": "b"}]}}
    assert await client_of(httpx2.Response(200, json=listed)).tools("/mcp") == {"a", "b"}
    wrong: tuple[Any, ...] = ({}, {"tools": [1]}, [])
    for result in wrong:
        with pytest.raises(DaemonUnreachable, match="something else listens there"):
            await client_of(httpx2.Response(200, json={"result": result})).tools("/mcp")


async def test_a_refused_websocket_is_no_daemon() -> None:
    async def refuse(request: trio_websocket.WebSocketRequest) -> None:
        await request.reject(403)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            server = await nursery.start(trio_websocket.serve_websocket, refuse, "127.0.0.1", 0, None)
            with pytest.raises(DaemonUnreachable, match="refused with status 403"):
                async with open_socket(f"http://127.0.0.1:{server.port}", "/mcp"):
                    raise AssertionError("it must not open")
            nursery.cancel_scope.cancel()


# With a real daemon ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def small_daemon(directory: Path) -> AsyncIterator[str]:
    """The address of a daemon with two servers, discovered."""
    document = configuration()
    document["mcpServers"] = {name: document["mcpServers"][name] for name in ("notes", "weather-desk")}
    with trio.fail_after(60):
        async with running_daemon(directory, document, forking()) as daemon, connect(daemon.url) as client:
            await counted(client)
            yield daemon.url


async def counted(client: DaemonClient) -> None:
    while True:
        status_page = await client.perform(operations.STATUS)
        if status_page["totals"]["tools"] == 6 and status_page["tokens"]["counted"]:
            return
        await trio.sleep(0.02)


async def ask(url: str, *arguments: str, stdin: str | None = None) -> Result:
    """Run a command against the daemon, in a thread as its own `trio.run`."""
    return await trio.to_thread.run_sync(lambda: invoke(*arguments, "--url", url, stdin=stdin))


@pytest.mark.process
async def test_status_search_and_call_answer_for_people_and_for_programs(tmp_path: Path) -> None:
    async with small_daemon(tmp_path) as url:
        shown = await ask(url, "status")
        as_json = await ask(url, "status", "--json")
        hits = await ask(url, "search", "write down a note", "--limit", "1")
        paged = await ask(url, "search", "*", "--limit", "1")
        found_json = await ask(url, "search", "*", "--kinds", "resource", "--json")
        nothing = await ask(url, "search", "zzzzqqqq")
        called = await ask(url, "call", "notes:add_note", '{"title": "t", "text": "x"}')
        listed = await ask(url, "call", "notes:list_notes", "--json", stdin="")
        failed = await ask(url, "call", "weather-desk:close_station", stdin='{"place": "Rome"}')
        required = await ask(url, "tools", "--require", "notes:add_note,weather-desk:close_station")
        required_in_vain = await ask(url, "tools", "--require", "notes:add_note,notes:sing")
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[0] == ["SERVER", "STATUS", "PROCESS", "SINCE", "TOOLS", "TOKENS", "CALLS", "RESTARTS"]
    assert [row[:2] for row in rows[1:3]] == [["notes", "online"], ["weather-desk", "online"]]
    assert "6 tools of 2 servers would cost a model" in shown.stdout
    assert [row["tools"] for row in json.loads(as_json.stdout)["servers"]] == [3, 3]
    assert hits.stdout.splitlines()[1].startswith("notes:add_note")
    assert [hit["name"] for hit in json.loads(found_json.stdout)["tools"]] == ["welcome"]
    assert paged.stdout.count("for the rest") == 1
    assert "No description matches" in nothing.stdout
    assert called.stdout == "Noted 't'; 2 notes now.\n"
    assert (failed.exit_code, failed.stderr) == (1, "close_station: there is no station in Rome\n")
    assert json.loads(listed.stdout)["structuredContent"] == {"titles": ["t", "welcome"]}
    assert all(result.exit_code == 0 for result in (shown, as_json, hits, found_json, nothing, called, listed))
    assert "\x1b" not in shown.stdout + hits.stdout
    assert (required.exit_code, required.stdout.split().count("ready")) == (0, 2)
    assert (required_in_vain.exit_code, required_in_vain.stdout.split().count("missing")) == (10, 1)


async def test_every_curl_line_of_the_documents_gets_an_answer(tmp_path: Path, data: DataDir) -> None:
    page = (ROOT / "docs" / "developers" / "curl.md").read_text(encoding="utf-8")
    lines = [shlex.split(line) for line in page.splitlines() if line.startswith("curl -X POST")]
    assert lines
    async with world(tmp_path, data, {}) as at:
        for words in lines:
            request = json.loads(words[-1])
            answer = await at.showing(accept="*/*").post(words[-1].encode())
            assert answer.status_code == 200
            assert answer.json()["id"] == request["id"]
            own = request["method"] == "tools/list" or request["params"]["name"] in (
                "discover_mcp_tools",
                "list_mcp_resources",
            )
            assert ("isError" not in answer.json()["result"]) is own


@pytest.mark.case("I19")
@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "mcp.example:0"])
def test_an_address_that_others_can_reach_must_be_allowed(tmp_path: Path, listen: str) -> None:
    file = written(tmp_path, GOOD)
    result = invoke("run", "--config", file, "--listen", listen, "--data-dir", str(tmp_path / "data"))
    assert result.exit_code == 78
    assert '"auth": "tokens"' in result.output
    with pytest.raises(ConfigError, match="not encrypted"):
        run.check_exposure(Settings(listen=listen, auth="tokens"))
    run.check_exposure(Settings(listen=listen, auth="tokens", insecure_http=True))
    run.check_exposure(Settings(listen=listen, auth="tokens", tls_certificate="/a/certificate.pem"))
    run.check_exposure(Settings(listen=listen, auth="tokens", trusted_proxies=("10.0.0.5",)))
    with pytest.raises(ConfigError, match="for the address that clients use") as caught:
        run.check_exposure(Settings(listen=listen, auth="both", insecure_http=True))
    assert caught.value.key == "public_url"


def test_the_key_that_allowed_it_without_tokens_says_what_is_there_instead(tmp_path: Path) -> None:
    result = invoke("check", written(tmp_path, {"mcpServers": {}, "supervisor": {"allow_remote": True}}))
    assert result.exit_code
    assert "trusted_proxies" in result.output


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "[::1]:0", "localhost:3001", "127.8.8.8:1"])
def test_loopback_addresses_need_no_permission(listen: str) -> None:
    run.check_exposure(Settings(listen=listen))


def test_what_is_degraded_is_a_line_with_the_time_and_the_reason() -> None:
    rows = [{"what": "store", "since": 100.0, "why": "nothing is saved until the disk recovers: disk is full"}]
    (line,) = status.list_degraded(rows, 100.0 + 125)
    assert line.plain == "degraded for 2m: store: nothing is saved until the disk recovers: disk is full"


def test_an_error_of_ours_names_the_command_and_one_of_a_server_stays() -> None:
    text = {"type": "text", "text": "there is no tool 'time'; use discover_mcp_tools to find tools"}
    ours = {"isError": True, "content": [text], "structuredContent": {"error": {"type": "not_found"}}}
    assert for_people(ours) == "there is no tool 'time'; use mcpvisor search to find tools"
    theirs = {**ours, "structuredContent": {"error": {"type": "server_error"}}}
    assert for_people(theirs) == text["text"]
