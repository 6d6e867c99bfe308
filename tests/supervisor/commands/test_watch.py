"""What `mcpvisor watch` shows: a line for each event, and that it goes on after the daemon was away."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from string import Formatter
from typing import Any

import msgspec
import pytest
import trio
import trio_websocket
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from supervisor.cli import cli
from supervisor.commands import watch
from supervisor.events.kinds import KINDS

OF_A = {"server_id": "a", "server_slug": "a", "installation_id": "a"}


def shown(type_: str, /, **data: Any) -> str:
    event = {"id": "1-1", "type": type_, "timestamp": "2026-11-26T18:29:38.962Z", "data": data}
    time, _, text = watch.line(event).plain.partition(" ")
    assert len(time) == len("00:00:00")
    return text


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("mcp.server.registered", OF_A, "a registered"),
        ("mcp.server.status_changed", {**OF_A, "previous_status": "online", "status": "error",
          "previous_state": "ready", "state": "respawning",
          "status_message": "no"}, "a online -> error (ready -> respawning): no"),
        ("mcp.server.status_changed", {**OF_A, "previous_status": "online", "status": "online", "state": "dormant"},
         "a online (dormant)"),
        ("mcp.server.started", {**OF_A, "spawn_duration_ms": 12.4, "tool_count": 2}, "a started: in 12 ms, 2 tools"),
        ("mcp.server.started", OF_A, "a started"),
        ("mcp.server.crashed", {**OF_A, "reason": "exit code 1", "crash_count": 3, "will_restart": True},
         "a crashed: exit code 1, crashes until now: 3"),
        ("mcp.server.away", {**OF_A, "tool_count": 2, "reason": "gone"}, "a away: 2 tools, gone"),
        ("mcp.server.away", OF_A, "a away"),
        ("mcp.server.back", {**OF_A, "tool_count": 2, "away_duration_seconds": 7.5}, "a back: 2 tools, after 8 s"),
        ("mcp.breaker.opened", {**OF_A, "breaker": "tool", "tool": "t", "seconds": 29.6, "reason": "it is silent"},
         "a breaker opened: tool, t, for 30 s, it is silent"),
        ("mcp.breaker.closed", {**OF_A, "breaker": "server"}, "a breaker closed: server"),
        ("mcp.discovery.completed", {**OF_A, "tool_count": 2, "problems": ["bad", "odd"]},
         "a discovery completed: 2 tools, bad; odd"),
        ("mcp.tools.discovered", {**OF_A, "tool_count": 1, "total_tokens": 90, "tools": [{"tool_name": "x"}]},
         "a tools discovered: 1 tools, 90 tokens"),
        ("mcp.tools.updated", {**OF_A, "added_tools": ["x"], "removed_tools": ["y"], "changed_tools": ["z"]},
         "a tools updated: +x -y ~z"),
        ("mcp.tools.updated", {**OF_A, "added_tools": ["x", "n"], "removed_tools": ["o"], "renamed_tools": {"o": "n"}},
         "a tools updated: +x o->n"),
        ("mcp.tools.updated", OF_A, "a tools updated"),
        ("mcp.prompts.updated", {**OF_A, "added": ["x"], "changed": ["z"]}, "a prompts updated: +x ~z"),
        ("mcp.tools.waiting", {**OF_A, "waiting": 1, "held": True, "tools": {"x": "new"}}, "a tools waiting: 1, x"),
        ("mcp.tool.executed", {"server_slug": "a", "tool_name": "t", "outcome": "timeout", "response_time_ms": 99.6},
         "a called: t, timeout, 100 ms"),
        ("mcp.elicitation.asked",
         {"server_slug": "a", "tool_name": "t", "kind": "form", "asked": "page", "question_id": "q"},
         "a elicitation asked: t, a form, by its page, /questions/q"),
        ("mcp.elicitation.ended", {"server_slug": "a", "kind": "url", "asked": "client", "action": "accept"},
         "a elicitation ended: a url, by its client, accept"),
        ("config.refreshed",
         {"server_count": 3, "added": ["n"], "removed": ["o"], "changed": ["c"], "settings": ["env"],
          "restart": ["auth"]},
         "config refreshed: 3 servers, +n -o ~c env auth (when the daemon is started again)"),
        ("config.error", {"error_type": "config", "error_message": "one\ntwo"}, "config error: one two"),
        ("plugin.disabled", {"plugin": "p", "hook": "h", "guards": True, "reason": "late"},
         "plugin disabled: p, h, late"),
        ("security.auth.failed", {"reason": "role", "target": "GET /", "user_id": "ben", "count": 2},
         "security auth failed: role, 2 times, GET /, ben"),
        ("resource.limit.exceeded", {"resource": "store", "reason": "full"}, "resource limit exceeded: store, full"),
        ("of.a.later.version", {"server_slug": "a"}, "a of a later version"),
    ],
)  # fmt: skip
def test_an_event_is_one_line(kind: str, data: dict[str, Any], text: str) -> None:
    assert shown(kind, **data) == text


def test_what_the_stream_says_of_itself() -> None:
    hello = {"type": "hello", "version": "0.1.0", "timestamp": "2026-11-26T18:29:38.962Z"}
    assert watch.line(hello).plain.split(" ", 1)[1] == "connected: version 0.1.0"
    assert watch.line({**hello, "revision": 3}).plain.endswith("version 0.1.0, catalogue revision 3")
    assert "some events are missing" in watch.line({"type": "reset", "start": "1"}).plain


def test_long_lists_of_names_are_cut() -> None:
    text = shown("mcp.tools.updated", **OF_A, added_tools=[f"t{number}" for number in range(1000)])
    assert text.endswith("+t18 +t19 and 980 more")


def test_each_kind_has_a_line_of_fields_that_it_has() -> None:
    assert watch.DETAILS.keys() - {"hello", "reset"} == KINDS.keys()
    for kind, struct in KINDS.items():
        fields = {field.name for field in msgspec.structs.fields(struct)}
        used = {name for part in watch.DETAILS[kind] for _, name, *_ in Formatter().parse(part) if name}
        assert used <= fields, kind


LISTS = {
    *(f"{what}{of}" for what in ("added", "removed", "changed") for of in ("", "_tools")),
    *("problems", "settings", "restart", "tools"),
}


@given(st.sampled_from([*KINDS]), st.data())
def test_whatever_a_server_calls_itself_a_line_is_one_line_without_controls(kind: str, data: st.DataObject) -> None:
    fields = [field.name for field in msgspec.structs.fields(KINDS[kind])]
    text = st.text(max_size=20)
    told: dict[str, Any] = {name: data.draw(text, name) for name in fields}
    told |= {name: data.draw(st.lists(text, max_size=3), name) for name in LISTS & told.keys()}
    if "renamed_tools" in told:
        told["renamed_tools"] = data.draw(st.dictionaries(text, text, max_size=3), "renamed_tools")
    assert shown(kind, **told).isprintable()


def test_not_even_a_state_has_controls() -> None:
    assert shown("mcp.server.status_changed", status="\x1f").isprintable()


@asynccontextmanager
async def telling(*rounds: list[dict[str, Any]]) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve WebSockets that tell these messages and end, but for the last one. Yield the address and the paths."""
    paths: list[str] = []

    async def serve(request: trio_websocket.WebSocketRequest) -> None:
        paths.append(request.path)
        socket = await request.accept()
        for message in rounds[min(len(paths), len(rounds)) - 1]:
            await socket.send_message(json.dumps(message))
        if len(paths) < len(rounds):
            await socket.aclose(1001, "bye")
        else:
            await trio.sleep_forever()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            server = await nursery.start(trio_websocket.serve_websocket, serve, "127.0.0.1", 0, None)
            yield f"http://127.0.0.1:{server.port}", paths
            nursery.cancel_scope.cancel()


CALL = {"id": "5-3", "type": watch.CALL, "data": {"tool_name": "quiet", "outcome": "ok", "response_time_ms": 1.0}}


@pytest.mark.parametrize(
    ("options", "calls"), [((), 0), (("--calls",), 1), (("--json",), 0), (("--json", "--calls"), 1)]
)
async def test_it_goes_on_behind_the_last_event_and_shows_calls_if_asked(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], calls: int
) -> None:
    monkeypatch.setattr(watch, "BACKOFF_INITIAL_S", 0.01)
    hello, end = {"id": "5-2", "type": "hello"}, {"id": "5-4", "type": "config.error", "data": {"error_message": "bad"}}
    async with telling([hello, CALL], [{**hello, "id": "5-3"}, end], []) as (url, paths):
        stopped = watch.follow

        async def follow(*arguments: Any) -> None:
            with trio.move_on_after(20):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(stopped, *arguments)
                    while len(paths) < 3:  # noqa: ASYNC110 - a socket in another thread tells nobody
                        await trio.sleep(0.01)
                    nursery.cancel_scope.cancel()

        monkeypatch.setattr(watch, "follow", follow)
        result = await trio.to_thread.run_sync(lambda: CliRunner().invoke(cli, ["watch", "--url", url, *options]))
        assert result.exit_code == 0, result.output
        assert paths[:3] == ["/api/events", "/api/events?after=5-3", "/api/events?after=5-4"]
        assert result.stdout.count("quiet") == calls
        assert result.stdout.count("bad") == 1
        assert "connected again" in result.stderr
