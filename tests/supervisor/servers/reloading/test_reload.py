"""A whole daemon over memory transports whose file is edited while it runs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
import trio.testing

from supervisor.daemon_client.sockets import open_socket
from supervisor.host.datadir import DataDir
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import message
from tests.scenario.daemon import BY_HAND, A, B, World, world


async def begun(shown: World, nursery: trio.Nursery, results: list[Any], server: str, seconds: float) -> None:
    """Begin a call that takes its time, and return once its server has it."""
    shown.fakes[server].called = trio.Event()

    async def call() -> None:
        results.append(await shown.call(f"{server}-sleep", s=seconds))

    nursery.start_soon(call)
    await shown.fakes[server].called.wait()


@pytest.mark.case("D05")
async def test_what_has_not_changed_keeps_its_process_and_its_calls(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"a": A, "b": B}) as shown:
        await shown.call("a-echo")
        results = list[Any]()
        async with trio.open_nursery() as nursery:
            await begun(shown, nursery, results, "a", 0.3)
            said = await shown.edit({"c": A, "b": {**B, "args": ["-v"]}, "a": {**A, "description": "It echoes."}})
            assert said == "1 server added (c); 1 server replaced (b); 1 server changed (a)"
        assert results[0]["result"]["structuredContent"] == {"s": 0.3}
        assert shown.fakes["a"].starts == 1
        assert (await shown.reload())["outcome"] == "unchanged"


@pytest.mark.case("D09")
async def test_of_a_changed_one_the_call_in_flight_ends_and_the_next_one_waits_for_the_new_process(
    tmp_path: Path, data: DataDir
) -> None:
    async with world(tmp_path, data, {"a": A}) as shown:
        results = list[Any]()
        async with trio.open_nursery() as nursery:
            await begun(shown, nursery, results, "a", 0.3)
            assert await shown.edit({"a": B}) == "1 server replaced (a)"
            assert shown.fakes["a"].starts == 1
            results.append(await shown.call("a-echo", n=1))
        assert [each["result"]["structuredContent"] for each in results] == [{"s": 0.3}, {"n": 1}]
        assert (shown.fakes["a"].starts, shown.fakes["a"].exits) == (2, 1)
        assert (await shown.row("a"))["state"] == "ready"


@pytest.mark.case("D05")
async def test_the_tools_of_a_removed_one_are_gone_and_those_of_an_added_one_are_found(
    tmp_path: Path, data: DataDir
) -> None:
    async with world(tmp_path, data, {"a": A, "b": B}) as shown:
        await shown.until_found("a:echo", ["a:echo"])
        assert await shown.edit({"b": B, "c": A}) == "1 server added (c); 1 server removed (a)"
        await shown.until_found("c:*", ["c:echo", "c:sleep"])
        assert not [path for path in await shown.discover("echo") if path.startswith("a:")]
        assert {*await shown.rows()} == {"b", "c"}
        assert (await shown.ready())["servers"] == 2
        assert (await shown.http.get("/api/servers/a")).status_code == 404
        assert (await shown.http.get("/mcp/servers/a")).status_code == 404
        assert failure(await shown.call("a-echo"))["data"]["outcome"] == "not_sent"
        assert shown.fakes["a"].starts == shown.fakes["a"].exits == 1
        assert await shown.edit({"a": A, "b": B}) == "1 server added (a); 1 server removed (c)"
        await shown.until_found("a:*", ["a:echo", "a:sleep"])
        assert "result" in await shown.call("a-echo")


@pytest.mark.case("P25")
async def test_one_that_gets_another_name_ends_its_call_and_is_there_once(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"a": A, "c": B}) as shown:
        results = list[Any]()
        async with trio.open_nursery() as nursery:
            await begun(shown, nursery, results, "a", 0.3)
            assert await shown.edit({"b": A, "c": B}) == "1 server added (b); 1 server removed (a)"
            assert (await shown.call("b-echo", n=1))["result"]["structuredContent"] == {"n": 1}
            assert "no server 'a'" in failure(await shown.call("a:echo"))["message"]
        assert results[0]["result"]["structuredContent"] == {"s": 0.3}
        await shown.until_found("echo", ["b:echo", "c:echo"])
        assert [row["server"] for row in (await shown.status())["servers"]] == ["b", "c"]
        assert (shown.fakes["a"].starts, shown.fakes["a"].exits, shown.fakes["b"].starts) == (1, 1, 1)


async def test_one_that_is_switched_off_and_on_in_the_file_follows(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"a": A, "b": B}) as shown:
        await shown.until_found("a:echo", ["a:echo"])
        await shown.edit({"a": {**A, "disabled": True}, "b": B})
        row = await shown.row("a")
        assert (row["state"], row["disabled"]) == ("stopped", True)
        assert "switched off" in failure(await shown.call("a-echo"))["message"]
        await shown.until_found("a:*", [])
        await shown.edit({"a": A, "b": B})
        await shown.until_found("a:*", ["a:echo", "a:sleep"])
        assert not (await shown.row("a"))["disabled"]
        assert "result" in await shown.call("a-echo")


async def test_one_that_its_operator_has_switched_off_stays_off(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"a": A}) as shown:
        await shown.ordered("a", "disable")
        starts = shown.fakes["a"].starts
        assert await shown.edit({"a": B}) == "1 server replaced (a)"
        assert (await shown.row("a"))["disabled"]
        assert "mcpvisor enable a" in failure(await shown.call("a-echo"))["message"]
        assert shown.fakes["a"].starts == starts == shown.fakes["a"].exits
        await shown.ordered("a", "enable")
        assert "result" in await shown.call("a-echo")
        await shown.ordered("a", "disable")
        await shown.edit({})
        await shown.edit({"a": A})  # one that was taken out is forgotten, and so is what was ordered of it
        assert not (await shown.row("a"))["disabled"]


BAD = (
    ('{"mcpServers": {"a": {"command": "x"},', ":1"),
    ('{"mcpServers": {"a": {"command": "z"}, "b": {"comand": "x"}}}', 'did you mean "command"?'),
    ('{"mcpServers": {"a": {"command": "z"}}, "supervisor": {"drain_s": "soon"}}', "drain_s"),
    ("", ""),
)


@pytest.mark.case("D06")
async def test_a_bad_file_changes_nothing_and_says_so_everywhere(
    tmp_path: Path, data: DataDir, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(tmp_path, data, {"a": A}) as shown:
        await shown.call("a-echo")
        for text, said in BAD:
            shown.path.write_text(text)
            caplog.clear()
            for _ in range(2):
                refused = await shown.reload(422)
                assert said in refused["error"]["message"]
                assert str(shown.path) in refused["error"]["message"]
            source = await shown.source()
            assert source["refused"]
            assert said in source["refused"][0]
            assert (await shown.status())["configuration"].items() <= source.items()
            assert len([r for r in caplog.records if "everything runs as before" in r.getMessage()]) == 1
            assert "result" in await shown.call("a-echo")
            assert await shown.edit({"a": A}) == "nothing has changed"
            source = await shown.source()
            assert (source["refused"], source["path"]) == ([], str(shown.path))
        assert shown.fakes["a"].starts == 1


async def test_an_entry_that_was_wrong_at_the_start_stays_left_out_and_holds_up_nothing(
    tmp_path: Path, data: DataDir
) -> None:
    wrong = {"comand": "x"}
    async with world(tmp_path, data, {"a": A, "w": wrong}) as shown:
        assert await shown.edit({"a": A, "b": B, "w": wrong}) == "1 server added (b)"
        assert 'did you mean "command"?' in (await shown.row("w"))["last_error"]
        shown.fakes["w"] = FakeServer()
        assert await shown.edit({"a": A, "b": B, "w": A}) == "1 server changed (w)"
        await shown.until_found("w:*", ["w:echo"])
        assert (await shown.row("w"))["last_error"] is None


async def test_a_server_is_found_by_what_its_entry_says_that_it_is_for(tmp_path: Path, data: DataDir) -> None:
    holidays = "Plans holidays of the company: leave, absence, substitutes."
    async with world(tmp_path, data, {"a": {**A, "description": holidays}, "b": B}) as shown:

        async def servers_for(query: str) -> set[str]:
            return {path.partition(":")[0] for path in await shown.discover(query)}

        assert await servers_for("plan my holidays") == {"a"}
        assert await servers_for("rent a bicycle") == set()
        await shown.edit({"a": {**A, "description": holidays}, "b": {**B, "description": "Rents bicycles."}})
        for _ in range(1000):  # until it is indexed
            if await servers_for("rent a bicycle") == {"b"}:
                break
            await trio.sleep(0.01)
        else:
            pytest.fail("the description of the entry is not searched")
        assert shown.fakes["b"].starts == 1


async def test_a_plan_says_what_a_reload_would_do_and_does_nothing(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"a": A}) as shown:
        shown.write({"b": B})
        plan = (await shown.http.post("/api/reload", params={"plan": "true"})).json()
        assert (plan["outcome"], plan["changes"]["added"], plan["changes"]["removed"]) == ("planned", ["b"], ["a"])
        other = tmp_path / "other.json"
        other.write_text(json.dumps({"mcpServers": {"a": A, "c": B}, "supervisor": {"drain_s": 0.2, **BY_HAND}}))
        params = {"plan": "true", "path": str(other)}
        plan = (await shown.http.post("/api/reload", params=params)).json()
        assert (plan["changes"]["added"], plan["changes"]["restart"]) == (["c"], ["shutdown_s"])
        other.write_text("{")
        assert (await shown.http.post("/api/reload", params=params)).status_code == 422
        params["path"] = str(tmp_path / "none.json")
        missing = await shown.http.post("/api/reload", params=params)
        assert (missing.status_code, "none.json" in missing.text) == (422, True)
        assert {*await shown.rows()} == {"a"}
        assert (await shown.source())["refused"] == []


async def test_settings_take_effect_at_once_or_are_said_to_wait_for_a_restart(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    before = root.level
    async with world(tmp_path, data, {"a": A}, log_level="warning") as shown:
        try:
            said = await shown.edit({"a": A}, log_level="debug", max_sessions=7, call_timeout_s=5)
            assert root.level == logging.DEBUG
        finally:
            root.setLevel(before)
        assert said == (
            "settings changed: call_timeout_s, log_level. These take effect when the daemon is started again: "
            "max_sessions"
        )
        assert (await shown.source())["restart"] == ["max_sessions"]
        assert await shown.edit({"a": A}, log_level="debug", max_sessions=7, call_timeout_s=5) == (
            "nothing has changed. These take effect when the daemon is started again: max_sessions"
        )
        await shown.edit({"a": A}, log_level="debug", call_timeout_s=5)
        assert (await shown.source())["restart"] == []


@pytest.mark.case("D09")
async def test_who_ask_at_once_share_a_reading_that_began_after_they_asked(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"a": A}) as shown:
        shown.gate = trio.Event()
        shown.write({"a": A, "b": B})
        answers = list[Any]()

        async def ask() -> None:
            answers.append(await shown.reload())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            while not shown.reads:  # noqa: ASYNC110 - it is read in a thread
                await trio.sleep(0.01)
            shown.write({"a": A, "c": B})
            for _ in range(3):
                nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked(0.1)
            shown.gate.set()
        assert shown.reads == 2
        assert {*await shown.rows()} == {"a", "c"}
        assert [answer["outcome"] for answer in answers[1:]] == [answers[1]["outcome"]] * 3


@pytest.mark.case("D09")
async def test_a_reload_during_a_question_and_others_beside_it_cost_neither_question_nor_call(
    tmp_path: Path, data: DataDir
) -> None:
    async with world(tmp_path, data, {"a": A}) as shown:
        shown.fakes["a"].tools.append(tool("ask"))
        await shown.ordered("a", "refresh")
        async with shown.socket("/mcp/servers/a") as socket:
            await socket.greet(elicitation={})
            await socket.send(message("tools/call", {"name": "ask", "arguments": {}}))
            asked = await socket.next()
            assert asked["method"] == "elicitation/create"
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(shown.reload)
                shown.write({"a": B})
            assert shown.fakes["a"].starts == 1
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
            await socket.send(reply)
            told = await socket.next()
            assert (told["id"], "result" in told) == (1, True), told
            assert "decline" in json.dumps(told)
        assert (await shown.reload())["outcome"] == "unchanged"
        assert (await shown.call("a-echo", n=1))["result"]["structuredContent"] == {"n": 1}
        assert shown.fakes["a"].starts == 2


async def test_a_reload_during_the_end_is_refused_at_once_and_changes_nothing(tmp_path: Path, data: DataDir) -> None:
    answers: list[httpx2.Response] = []

    async def ask() -> None:
        answers.append(await shown.ask("POST", "/api/reload"))

    async with world(tmp_path, data, {"a": A}, drain_s=2) as shown, trio.open_nursery() as asking:
        shown.gate = trio.Event()
        shown.write({"a": B, "b": B})
        asking.start_soon(ask)
        while not shown.reads:  # noqa: ASYNC110 - it is read in a thread
            await trio.sleep(0.01)
        asking.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked(0.05)
        shown.closing.set()
    assert [answer.status_code for answer in answers] == [503, 503]
    assert {answer.json()["error"]["message"] for answer in answers} == {"the daemon is shutting down"}
    assert (shown.fakes["a"].starts, shown.fakes["a"].exits, shown.fakes["b"].starts) == (1, 1, 0)


async def test_what_happens_to_the_file_is_told_in_the_feed_once(tmp_path: Path, data: DataDir) -> None:
    async with (
        world(tmp_path, data, {"a": A}) as shown,
        open_socket(str(shown.http.base_url), "/api/events") as socket,
    ):
        await shown.edit({"a": A, "b": B})
        shown.path.write_text("{")
        await shown.reload(422)
        await shown.reload(422)
        await shown.edit({"a": A, "b": B})
        told = list[dict[str, Any]]()
        while len(told) < 3:
            event = await socket.receive()
            if event["type"].startswith("config."):
                told.append(event)
        assert [(event["type"], event.get("data", {}).get("added")) for event in told] == [
            ("config.refreshed", ["b"]),
            ("config.error", None),
            ("config.refreshed", None),
        ]
        assert str(shown.path) in told[1]["data"]["error_message"]


async def test_what_is_wrong_with_the_file_is_told_at_no_great_length(tmp_path: Path, data: DataDir) -> None:
    async with (
        world(tmp_path, data, {"a": A}) as shown,
        open_socket(str(shown.http.base_url), "/api/events") as socket,
    ):
        shown.write({"a": {"command": {"x" * 5000: 1}}})
        await shown.reload(422)
        while (event := await socket.receive())["type"] != "config.error":
            pass
        assert 0 < len(event["data"]["error_message"]) <= 500


async def test_a_file_that_is_saved_is_read_without_being_asked_for(tmp_path: Path, data: DataDir) -> None:
    settings: dict[str, Any] = {"reload_on_change": True, "reload_poll_s": 0.05}
    async with world(tmp_path, data, {"a": A}, **settings) as shown:
        shown.write({"a": A, "b": B}, **settings)
        await shown.until_found("b:*", ["b:echo", "b:sleep"])
        assert "result" in await shown.call("b-echo")


async def test_a_file_beside_it_that_was_missing_is_read_as_soon_as_it_is_there(tmp_path: Path, data: DataDir) -> None:
    settings: dict[str, Any] = {"reload_on_change": True, "reload_poll_s": 0.05}
    async with world(tmp_path, data, {"a": A}, **settings) as shown:
        shown.write({"a": A, "b": {**B, "envFile": "b.env"}}, **settings)
        while not (await shown.source())["refused"]:  # noqa: ASYNC110 - the file is watched from threads
            await trio.sleep(0.01)
        (tmp_path / "b.env").write_text("X=1")
        await shown.until_found("b:*", ["b:echo", "b:sleep"])
        assert (await shown.source())["refused"] == []
