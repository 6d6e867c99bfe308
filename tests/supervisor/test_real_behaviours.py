"""What real servers do, before one daemon: each ends ready and usable, to clients of both eras, at every door."""

from __future__ import annotations

import json
import re
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from supervisor.host.datadir import open_data_dir
from supervisor.service.doors.definitions import NAME_KEY, SERVER_KEY
from tests.fakes.behaving_remote import MANNERS, OTHERS, BehavingRemote
from tests.fakes.behaviours import BEHAVIOURS, RICH
from tests.fakes.era_clients import EraClient, NoResult
from tests.supervisor.test_daemon import configuration, running, until_ready

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
ERAS = ("legacy", "modern")
SILENT = ("probe-kills-the-reader", "pinned-slow", "websocket-deaf-to-the-probe")
"""What would take long to show with the usual `probe_timeout_s`."""
FAILED = {
    "wants-2099": "the server wants protocol version '2099-01-01', which we do not speak",
    "only-2099": "the server speaks 2099-01-01; we speak 2026-07-28",
}
"""What ends as failed, and what is said of it."""
PROBLEMS = {
    "same-name-twice": ["tool 3 ('echo') left out: a second tool of the name 'echo'"],
    "lists-missing": [
        "resources/list: -32602 Invalid request parameters",
        "prompts/list: -32602 Invalid request parameters",
    ],
}
"""What an operator is told of the others."""
NAMES = {name: [tool["name"] for tool in each.tools] for name, each in BEHAVIOURS.items()}
"""The tools of each."""
NAMES |= {name: ["echo", "heard"] for name in ("same-name-twice", *MANNERS, *OTHERS)}
USABLE = [name for name in NAMES if name not in FAILED]


@dataclass
class Seen:
    """What was seen of one server: its rows in the status, and by door and era what a client got."""

    row: dict[str, Any] = field(default_factory=dict)
    asleep: dict[str, Any] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)


def entry(name: str, url: str = "") -> dict[str, Any]:
    quick = {"probe_timeout_s": 0.7} if name in SILENT else {}
    if url:
        return {"url": url, **quick}
    arguments = ["-S", "-m", "tests.fakes.behaving_server", name]
    return {"command": sys.executable, "args": arguments, "cwd": str(ROOT), **quick}


async def look_at(http: httpx2.AsyncClient, name: str, seen: Seen) -> None:
    """Be a client of each era, at the door of this server and at those that it shares."""
    for era in ERAS:
        client, meta, everything = (EraClient(http, path, era) for path in (f"/mcp/servers/{name}", "/mcp", "/mcp/all"))
        try:
            seen.answers[f"greeting {era}"] = await client.greet()
            listed = await client.tools()
            seen.names[era] = [tool["name"] for tool in listed]
            found = await meta.result("tools/call", name="discover_mcp_tools", arguments={"query": f"{name}:*"})
            paths = [tool["tool_path"] for tool in found["structuredContent"]["tools"]]
            seen.names[f"{era} at /mcp"] = [path.removeprefix(f"{name}:") for path in paths]
            if NAMES[name]:
                seen.texts[era] = await client.call("echo", text="hello")
                path = {"tool_path": f"{name}:echo", "arguments": {"text": "hello"}}
                seen.texts[f"{era} at /mcp"] = await meta.call("execute_mcp_tool", **path)
                seen.texts[f"{era} at /mcp/all"] = await everything.call(f"{name}__echo", text="hello")
                seen.answers[f"heard {era}"] = await client.call("heard", text="")
            for called in BEHAVIOURS[name].calls if name in BEHAVIOURS else ():
                seen.answers[f"{called} {era}"] = await client.ask("tools/call", name=called, arguments={"text": ""})
                path = {"tool_path": f"{name}:{called}", "arguments": {"text": ""}}
                seen.answers[f"{called} {era} at /mcp"] = await meta.ask(
                    "tools/call", name="execute_mcp_tool", arguments=path
                )
            seen.answers[f"tools {era}"] = listed
            seen.answers[f"unknown tool {era}"] = await client.ask("tools/call", name="nothing", arguments={})
            seen.answers[f"no resource {era}"] = await client.ask("resources/read", uri="test://none")
        except NoResult as refusal:
            seen.wrong.append(str(refusal))
        seen.wrong += client.wrong + meta.wrong + everything.wrong


async def rows(http: httpx2.AsyncClient) -> dict[str, Any]:
    return {row["server"]: row for row in (await http.get("/api/status")).json()["servers"]}


async def look(directory: Path) -> dict[str, Seen]:
    """Run all servers and a daemon before them, look at each, and put them to sleep."""
    async with AsyncExitStack() as stack:
        remotes = {name: BehavingRemote(manner) for name, manner in MANNERS.items()}
        entries = {name: entry(name) for name in BEHAVIOURS}
        for name, remote in remotes.items():
            entries[name] = entry(name, (await stack.enter_async_context(remote.server().running())).url)
        for name, make in OTHERS.items():
            server = make()
            await stack.enter_async_context(server.running())
            entries[name] = entry(name, server.url)
        seen = await look_before(entries, directory)
        for name, remote in remotes.items():
            seen[name].wrong += [*remote.wrong, *(f"{session} was not ended" for session in remote.left)]
    return seen


async def look_before(entries: dict[str, Any], directory: Path) -> dict[str, Seen]:
    seen = {name: Seen() for name in entries}
    config = configuration(directory, entries, starts_per_s=100, cold_starts=8)
    with open_data_dir(directory / "data", {}) as data:
        async with running(config, data, patience_s=100) as http:
            await until_ready(http)
            for name, row in (await rows(http)).items():
                seen[name].row = row
            for era in ERAS:
                client = EraClient(http, "/mcp/all", era)
                for meta in [tool["_meta"] for tool in await client.tools()]:
                    seen[meta[SERVER_KEY]].names.setdefault(f"{era} at /mcp/all", []).append(meta[NAME_KEY])
                seen["plain"].wrong += client.wrong
            async with trio.open_nursery() as nursery:
                for name in USABLE:
                    nursery.start_soon(look_at, http, name, seen[name])
            async with trio.open_nursery() as nursery:
                for name in USABLE:
                    nursery.start_soon(http.post, f"/api/servers/{name}/sleep")
            for name, row in (await rows(http)).items():
                seen[name].asleep = row
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    return trio.run(look, tmp_path_factory.mktemp("behaviours"))


@pytest.mark.parametrize("name", USABLE)
def test_it_is_ready_and_usable_by_clients_of_both_eras_at_every_door(seen: dict[str, Seen], name: str) -> None:
    each = seen[name]
    assert (each.row["state"], each.row["tools"], each.row["last_error"]) == ("ready", len(NAMES[name]), None)
    assert each.row["problems"] == PROBLEMS.get(name, [])
    assert each.wrong == []
    places = [f"{era}{door}" for era in ERAS for door in ("", " at /mcp", " at /mcp/all")]
    assert {place: sorted(each.names.get(place, [])) for place in places} == dict.fromkeys(places, sorted(NAMES[name]))
    assert each.texts == dict.fromkeys(places if NAMES[name] else (), "hello")


@pytest.mark.parametrize("name", USABLE)
def test_it_ends_without_a_failure(seen: dict[str, Seen], name: str) -> None:
    assert (seen[name].asleep["state"], seen[name].asleep["last_error"]) == ("dormant", None)


@pytest.mark.parametrize("name", FAILED)
def test_it_is_said_why_it_cannot_be_used(seen: dict[str, Seen], name: str) -> None:
    assert seen[name].row["state"] == "failed"
    assert FAILED[name] in seen[name].row["last_error"]


def test_its_questions_are_answered(seen: dict[str, Seen]) -> None:
    for era in ERAS:
        assert json.loads(seen["asks-for-roots"].answers[f"heard {era}"]) == {"0": {"roots": []}}
        heard = json.loads(seen["asks-outside-of-calls"].answers[f"heard {era}"])
        assert heard == {"ping-1": {}, "sample": -32601, "2": -32601}
        assert json.loads(seen["tells-before-it-greets"].answers[f"heard {era}"]) == {"ping-1": {}}
        assert json.loads(seen["modern-asks"].answers[f"heard {era}"]) == {}


@pytest.mark.parametrize("era", ERAS)
def test_what_it_says_of_unknown_tools_is_passed_on(seen: dict[str, Seen], era: str) -> None:
    assert seen["plain"].answers[f"unknown tool {era}"]["error"]["code"] == -32602
    assert seen["unknown-tool-is-a-result"].answers[f"unknown tool {era}"]["result"]["isError"]


@pytest.mark.parametrize("name", ["not-found-is-0", "not-found-is-32002", "not-found-is-32602"])
def test_modern_clients_are_told_of_missing_resources_by_their_code(seen: dict[str, Seen], name: str) -> None:
    assert seen[name].answers["no resource modern"]["error"]["code"] == -32602
    direct = int(name.rpartition("-")[2])
    assert seen[name].answers["no resource legacy"]["error"]["code"] == -direct


def test_a_greeting_says_who_and_what_there_is(seen: dict[str, Seen]) -> None:
    for era in ERAS:
        assert seen["not-announced"].answers[f"greeting {era}"]["capabilities"] == {"tools": {}}
        assert "tasks" not in seen["execution"].answers[f"greeting {era}"]["capabilities"]
    assert seen["bare-greeting"].answers["greeting legacy"]["serverInfo"]["name"] == "bare-greeting"


NO_OBJECT = "answered with a result that is no object; the tool has run"
NO_ERROR = "answered with an error without a proper code or message"
OUTCOMES: dict[str, dict[str, tuple[Any, Any]]] = {
    "odd-results": {
        **dict.fromkeys(("text", "nothing", "list"), (NO_OBJECT, NO_OBJECT)),
        "neither": ("neither a result nor an error", "neither a result nor an error"),
    },
    "odd-errors": {
        **dict.fromkeys(("text", "no-code", "code-is-text"), (NO_ERROR, NO_ERROR)),
        "code-0": (0, 0),
        "cancelled": (-32800, -32800),
        "wants-a-url": (-32042, -32603),
        "not-found": (-32002, -32603),
        "vendor": (-32000, -32000),
    },
    "modern-errors": {
        "headers": (-32603, -32603),
        "capability": ("Sampling needed", -32021),
        "version": (-32603, -32603),
        "vendor": (-31000, -31000),
    },
    "modern-tasks": {"task": ('a result of type "task"',) * 2, "odd": ("a result of type 7",) * 2},
}
"""What clients of the two eras get at the door of a server: the code of an error, or words of a failed call."""


@pytest.mark.parametrize(("name", "tool"), [(name, tool) for name, tools in OUTCOMES.items() for tool in tools])
def test_a_call_that_is_answered_oddly_fails_and_says_why(seen: dict[str, Seen], name: str, tool: str) -> None:
    for era, outcome in zip(ERAS, OUTCOMES[name][tool], strict=True):
        answer, at_meta = (seen[name].answers[f"{tool} {era}{door}"] for door in ("", " at /mcp"))
        if isinstance(outcome, str):
            assert outcome in answer["result"]["content"][0]["text"]
            assert answer["result"]["isError"]
        else:
            assert answer["error"]["code"] == outcome
        assert at_meta["result"]["isError"] if tool != "wants-a-url" else at_meta


def test_every_outcome_is_told_for_every_odd_call() -> None:
    assert {name: set(tools) for name, tools in OUTCOMES.items()} == {
        name: set(behaviour.calls) for name, behaviour in BEHAVIOURS.items() if len(behaviour.calls) > 1
    }


@pytest.mark.parametrize("era", ERAS)
def test_what_is_not_wrong_arrives_as_it_was_written(seen: dict[str, Seen], era: str) -> None:
    definition = seen["rich-definitions"].answers[f"tools {era}"][-1]
    assert json.dumps(definition) == json.dumps(RICH)
    result = seen["more-members"].answers[f"echo {era}"]["result"]
    assert result["x-own"] == {"big": 123456789012345678901234567890, "a": [None]}
    assert result["_meta"] == {"x-own/a": 1}


@pytest.mark.parametrize("era", ERAS)
def test_a_status_of_http_is_not_what_an_error_means(seen: dict[str, Seen], era: str) -> None:
    answers = seen["http-modern-statuses"].answers
    assert answers[f"unknown tool {era}"]["error"] == {"code": -32602, "message": "Unknown tool: nothing"}
    assert answers[f"no resource {era}"]["error"] == {"code": -32601, "message": "Method not found"}


def test_every_behaviour_is_in_the_table_of_the_documentation() -> None:
    page = (ROOT / "docs" / "compatibility.md").read_text()
    table = page.partition("<!-- behaviours -->")[2].partition("<!-- end of behaviours -->")[0]
    named = [name for row in table.splitlines()[3:] for name in re.findall("`([a-z0-9-]+)`", row.split("|")[1])]
    assert sorted(set(named) & NAMES.keys()) == sorted(NAMES)
