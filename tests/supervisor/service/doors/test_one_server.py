"""The door of one server: as if its client had connected to it, in either era, awake or asleep.

What passes there as it is does at the door of all servers, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.names import ServerNames
from actors.catalogue.snapshot import Entry
from actors.errors import ServerGaveUp, ServerStarting, UnknownDoor
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.protocol.agreement.versions import META_SERVER_INFO, META_SUBSCRIPTION, Era
from actors.protocol.wire.mirrors import Mirror
from supervisor.config import Settings
from supervisor.identity.people import principal_of
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Client
from supervisor.service.doors.one_server import OneServer
from supervisor.service.port import Answer, Revisions, Service, answer
from supervisor.usage.records import CallRecord
from tests.fakes.exchanges import LEGACY, Ear, exchange
from tests.fakes.published import Served, served
from tests.fakes.whole_server import CAPABILITIES, INFO, INSTRUCTIONS, ODD, TOOLS, WholeServer

MODERN = Client(era="modern", version="2026-07-28", capabilities=msgspec.Raw(b'{"sampling":{}}'))
CLIENTS: dict[Era, Client] = {"legacy": LEGACY, "modern": MODERN}
PASSED = {
    **{name: CAPABILITIES[name] for name in ("tools", "prompts", "completions", "logging", "experimental")},
    "resources": CAPABILITIES["resources"],
    "extensions": {"io.modelcontextprotocol/ui": {}},
}

both = pytest.mark.parametrize("era", ["legacy", "modern"])
NAMES = {"servers/whole": "tool0", "all": "whole__tool0"}
"""What a tool of the server is called at each door."""
each_door = pytest.mark.parametrize("at", NAMES)


class Rig:
    """One door and the server behind it."""

    def __init__(self, running: Served, server: WholeServer, at: str) -> None:
        self.running = running
        self.server = server
        self.door: Service = running.doors.find(at).service

    async def answer(self, client: Client, method: str, params: Any = None) -> Answer:
        data = b"" if params is None else json.dumps(params).encode()
        return await answer(self.door, exchange(client, method, data))

    async def ask(self, client: Client, method: str, params: Any = None) -> Any:
        return json.loads((await self.answer(client, method, params)).body)

    async def result(self, client: Client, method: str, params: Any = None) -> Any:
        return (await self.ask(client, method, params))["result"]

    async def sleep(self) -> None:
        """Send the server to sleep, and forget what it was asked."""
        await self.running.sleep("whole")
        self.server.asked.clear()


@asynccontextmanager
async def door(era: Era = "legacy", at: str = "servers/whole", **more: Any) -> AsyncIterator[Rig]:
    server = WholeServer(era, **{key: more.pop(key) for key in ("page", "capabilities") if key in more})
    async with served({"whole": server}, era=era, also={"whole-key": "whole"}, **more) as running:
        rig = Rig(running, server, at)
        server.asked.clear()
        yield rig


# Greeting -------------------------------------------------------------------------------------------------------------


async def test_initialize_is_what_the_server_answered_but_for_the_revision_and_what_does_not_get_through() -> None:
    async with door() as rig:
        for version in ("2024-11-05", "2025-11-25"):
            result = await rig.result(Client(version=version), "initialize", {"protocolVersion": "ignored"})
            assert result == {
                "protocolVersion": version,
                "capabilities": PASSED,
                "serverInfo": INFO,
                "instructions": INSTRUCTIONS,
                "x-own": {"more": [1.0]},
            }
        assert rig.server.asked == []


async def test_discover_is_what_the_server_answered() -> None:
    async with door("modern") as rig:
        assert await rig.result(MODERN, "server/discover") == {
            "resultType": "complete",
            "ttlMs": 7,
            "cacheScope": "public",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {**PASSED, "extensions": CAPABILITIES["extensions"]},
            "instructions": INSTRUCTIONS,
            "_meta": {META_SERVER_INFO: INFO, "x-own/a": 1},
            "x-own": {"more": [1.0]},
        }


async def test_a_greeting_of_the_other_era_says_the_same_in_its_form() -> None:
    async with door("modern") as rig:
        assert await rig.result(LEGACY, "initialize") == {
            "protocolVersion": "2025-11-25",
            "capabilities": PASSED,
            "serverInfo": INFO,
            "instructions": INSTRUCTIONS,
        }
    async with door("legacy") as rig:
        result = await rig.result(MODERN, "server/discover")
        assert (result.pop("resultType"), result.pop("ttlMs") >= 0, result.pop("cacheScope")) == (
            "complete",
            True,
            "private",
        )
        assert result == {
            "supportedVersions": ["2026-07-28"],
            "capabilities": PASSED,
            "instructions": INSTRUCTIONS,
            "_meta": {META_SERVER_INFO: INFO},
        }


@both
async def test_a_sleeping_server_greets_without_being_woken(era: Era) -> None:
    async with door(era) as rig:
        await rig.sleep()
        greeting = "initialize" if era == "legacy" else "server/discover"
        assert (await rig.result(CLIENTS[era], greeting))["instructions"] == INSTRUCTIONS
        assert (rig.server.starts, rig.server.asked) == (1, [])


async def test_a_server_that_was_never_up_is_woken_by_the_first_greeting() -> None:
    async with door(undiscovered=["whole"]) as rig:
        assert rig.server.starts == 0
        assert (await rig.result(LEGACY, "initialize"))["serverInfo"] == INFO
        assert rig.server.starts == 1


async def test_one_that_cannot_come_up_is_a_typed_error_in_time() -> None:
    settings = Settings(first_discovery_wait_s=0.0, call_timeout_s=0.5)
    async with door(undiscovered=["whole"], settings=settings) as rig:
        rig.server.dies = True
        with trio.fail_after(30):
            told = await rig.answer(LEGACY, "initialize")
        error = json.loads(told.body)["error"]
        assert not told.good
        assert error["data"]["server"] == "whole"
        assert error["data"]["type"] in (ServerStarting.kind, ServerGaveUp.kind)


async def test_one_that_is_switched_off_says_so() -> None:
    async with door() as rig:
        rig.running.report("whole", State.STOPPED, disabled=True, reason="it is switched off")
        statuses = rig.running.registry.statuses
        while not statuses.value["whole"].disabled:
            await statuses.wait_newer(statuses.version)
        for method in ("initialize", "prompts/get"):
            error = (await rig.ask(LEGACY, method))["error"]
            assert error["data"]["type"] == "disabled"
        failed = await rig.result(LEGACY, "tools/call", {"name": "tool0"})
        assert failed["isError"] is True
        assert "switched off" in failed["content"][0]["text"]


# Passing on -----------------------------------------------------------------------------------------------------------


@both
@each_door
async def test_a_call_and_its_result_pass_as_they_are(era: Era, at: str) -> None:
    async with door(era, at) as rig:
        params = {
            "name": NAMES[at],
            "arguments": {"a": 1.0},
            "x-own": [None],
            "_meta": {"x-own/a": 1, "progressToken": 5},
        }
        told = await rig.answer(CLIENTS[era], "tools/call", params)
        assert ODD in told.body
        assert rig.server.last() == ("tools/call", {**params, "name": "tool0", "_meta": {"x-own/a": 1}})


async def test_a_method_that_nobody_here_knows_is_the_servers() -> None:
    async with door() as rig:
        assert (await rig.result(LEGACY, "x-own/method", {"a": [1.0], "_meta": {"b": 1}}))["x"] == json.loads(ODD)
        assert rig.server.last() == ("x-own/method", {"a": [1.0], "_meta": {"b": 1}})
        for method, status in (("x-own/nothing", 404), ("prompts/get", 200)):
            told = await rig.answer(LEGACY, method)
            error = {"code": -32601, "message": f"no {method} at all", "data": {"x-own": 1}}
            assert (json.loads(told.body)["error"], told.status) == (error, status)


@pytest.mark.parametrize("method", ["notifications/cancelled", "subscriptions/listen", "a b", "a\r\nb", "x" * 129, ""])
async def test_what_belongs_to_the_hop_or_is_no_name_goes_no_further(method: str) -> None:
    async with door() as rig:
        assert (await rig.ask(LEGACY, method))["error"]["code"] == -32601
        assert rig.server.asked == []


async def test_the_methods_of_the_hop_belong_to_their_era() -> None:
    async with door() as rig:
        assert await rig.result(LEGACY, "ping") == {}
        for client, method in ((LEGACY, "server/discover"), (MODERN, "ping"), (MODERN, "initialize")):
            assert (await rig.ask(client, method))["error"]["code"] == -32601
        assert rig.server.asked == []


@both
@pytest.mark.parametrize("code", [-32602, -32002, 0, -32050, 7])
async def test_an_error_of_a_server_of_the_same_era_comes_as_it_is(era: Era, code: int) -> None:
    async with door(era) as rig:
        for method in ("tools/call", "resources/read", "prompts/get"):
            rig.server.errors[method] = error = {"code": code, "message": "not found", "data": {"uri": "a", "n": 1.0}}
            assert (await rig.ask(CLIENTS[era], method, {"name": "a", "uri": "a"}))["error"] == error
        there = await rig.running.ask("tools/call", CLIENTS[era], "all", name=NAMES["all"])
        assert there["error"]["code"] == code


async def test_that_a_client_lacks_a_capability_is_told_only_if_it_does() -> None:
    async with door("modern") as rig:
        for wanted, status in (("elicitation", 400), ("sampling", 200)):
            data: dict[str, Any] = {"requiredCapabilities": {wanted: {}}}
            rig.server.errors["tools/call"] = error = {"code": -32021, "message": "no", "data": data}
            told = await rig.answer(MODERN, "tools/call", {"name": "tool0"})
            body = json.loads(told.body)
            assert told.status == status
            assert body.get("error") == (error if status == 400 else None)
            assert ("result" in body) == (status == 200)
        rig.server.errors["prompts/get"] = error
        assert "error" in await rig.ask(MODERN, "prompts/get", {"name": "a"}), "only a call can fail as a result"


@each_door
async def test_a_call_that_fails_by_our_doing_is_a_result_for_the_model(at: str) -> None:
    policy = RestartPolicy(max_restarts=1, backoff_initial_s=0.01)
    async with door(at=at, policy=policy) as rig:
        await rig.sleep()
        rig.server.dies = True
        for client in (LEGACY, MODERN):
            failed = await rig.result(client, "tools/call", {"name": NAMES[at]})
            assert failed["isError"] is True
            assert failed["structuredContent"]["error"]["server"] == "whole"
            assert ("resultType" in failed) == (client is MODERN)
        if at != "all":
            error = (await rig.ask(LEGACY, "prompts/get", {"name": "a"}))["error"]
            assert error["data"]["server"] == "whole"


async def test_calls_are_counted_of_tools_that_nobody_knows_as_such() -> None:
    used: list[tuple[str, str, str]] = []

    def note(record: CallRecord, given: object = None) -> None:
        used.append((record.server, record.tool, record.outcome))

    async with door(used=note) as rig:
        await rig.ask(LEGACY, "tools/call", {"name": "tool0"})
        await rig.ask(LEGACY, "tools/call", {"name": "made up"})
        rig.server.errors["tools/call"] = {"code": 1, "message": "no"}
        await rig.ask(LEGACY, "tools/call", {"name": "tool1"})
        await rig.ask(LEGACY, "tools/call", {"name": "tool1", "Name": "tool0"})
        of_tools = [("tool0", "ok"), ("_unknown", "ok"), ("tool1", "error"), ("_unknown", "rejected")]
        assert used == [("whole", *each) for each in of_tools]


# Lists ----------------------------------------------------------------------------------------------------------------


@both
async def test_a_list_of_a_running_server_is_the_servers_own_answer(era: Era) -> None:
    async with door(era, page=2) as rig:
        first = await rig.result(CLIENTS[era], "tools/list")
        more = {"resultType": "complete", "ttlMs": 7, "cacheScope": "public"} if era == "modern" else {}
        assert first == {**more, "tools": TOOLS[:2], "nextCursor": "2", "_meta": {"x-own/page": 0}}
        second = await rig.result(CLIENTS[era], "tools/list", {"cursor": "2"})
        assert second == {**more, "tools": TOOLS[2:4], "nextCursor": "4", "_meta": {"x-own/page": 2}}


@pytest.mark.case("L19", "I22")
async def test_what_a_server_calls_public_is_for_one_user_where_there_are_users() -> None:
    async with door("modern") as rig:
        for client, scope in ((MODERN, "public"), (replace(MODERN, principal=principal_of("ana")), "private")):
            for method in ("server/discover", "tools/list", "resources/read"):
                told = await rig.result(client, method, {"uri": "file:///a"} if method == "resources/read" else None)
                assert (method, told["cacheScope"], told["ttlMs"]) == (method, scope, 7)


@both
async def test_a_sleeping_server_is_listed_whole_without_being_woken(era: Era) -> None:
    async with door(era, page=2) as rig:
        await rig.sleep()
        for client in (LEGACY, MODERN):
            listed = await rig.result(client, "tools/list")
            assert listed["tools"] == TOOLS
            assert ("ttlMs" in listed, "resultType" in listed) == ((True, True) if client is MODERN else (False, False))
            assert (await rig.result(client, "resources/list"))["resources"] == [{"uri": "file:///a", "name": "a"}]
        assert (rig.server.starts, rig.server.asked) == (1, [])


async def test_what_is_not_known_whole_wakes_the_server() -> None:
    for cursor, capabilities in (("4", CAPABILITIES), (None, {"tools": {}})):
        async with door(page=2, capabilities=capabilities) as rig:
            await rig.sleep()
            if cursor is not None:
                listed = await rig.result(LEGACY, "tools/list", {"cursor": cursor})
                assert [tool["name"] for tool in listed["tools"]] == ["tool4"]
            else:
                assert (await rig.ask(LEGACY, "prompts/list"))["result"] == {"prompts": []}
            assert rig.server.starts == 2


async def test_a_server_of_which_nothing_is_known_has_no_lists_that_could_change() -> None:
    async with door(undiscovered=["whole"]) as rig:
        assert rig.door.revisions == Revisions()


async def test_changes_are_those_of_this_server_alone() -> None:
    other = WholeServer()
    server = WholeServer()
    async with served({"whole": server, "other": other}) as running:
        whole, beside = (running.doors.find(f"servers/{name}").service for name in ("whole", "other"))
        before = whole.revisions, beside.revisions
        rung = trio.Event()
        with whole.changes.on_set(rung.set):
            server.tools = server.tools[1:]
            await server.notify("notifications/tools/list_changed")
            while whole.revisions == before[0]:
                await running.registry.catalogue.wait_newer(running.registry.catalogue.version)
            await rung.wait()
        after = whole.revisions
        assert after.tools > before[0].tools
        assert (after.resources, after.prompts) == (before[0].resources, before[0].prompts)
        assert beside.revisions == before[1]


# Addresses ------------------------------------------------------------------------------------------------------------


async def test_an_address_means_exactly_one_door() -> None:
    async with door() as rig:
        doors = rig.running.doors
        assert doors.find("").service is rig.running.gateway
        for name in ("servers/whole", "servers/whole-key"):
            assert doors.find(name).name == "servers/whole"
            assert isinstance(doors.find(name).service, OneServer)
        assert doors.find("servers/whole").service is doors.find("servers/whole-key").service
        for name in ("servers/Whole", "servers/", "servers/whole/", "servers", "x", "servers/../whole", "all/"):
            with pytest.raises(UnknownDoor) as caught:
                doors.find(name)
            assert "whole" in caught.value.message or "/mcp/servers/NAME" in caught.value.message


async def test_the_address_of_a_server_that_was_removed_is_none_and_nothing_of_it_is_kept() -> None:
    async with served({"whole": WholeServer(), "other": WholeServer()}) as running:
        doors, cell = running.doors, running.gateway.parts.deployment
        before = cell.value
        doors.find("servers/whole")
        cell.set(replace(before, names=ServerNames({"other": "other"})))
        with pytest.raises(UnknownDoor):
            doors.find("servers/whole")
        kept = doors.find("servers/other")
        assert list(doors._of_all[""]._servers) == ["other"]
        cell.set(before)
        assert doors.find("servers/whole").name == "servers/whole"
        assert doors.find("servers/other") is kept


async def test_a_tool_that_must_not_be_called_as_it_is_reached_is_not_listed_either() -> None:
    async with door("modern") as rig:
        known = rig.running.registry.catalogue
        offer = known.value.entries["whole"].offer
        barred = replace(offer, tools=offer.tools[1:], barred=("tool0",), problems=("tool 'tool0' left out",))
        known.set(replace(known.value, entries={"whole": Entry.make("whole", "http", barred)}))
        listed = (await rig.result(LEGACY, "tools/list"))["tools"]
        assert [tool["name"] for tool in listed] == [tool.name for tool in offer.tools[1:]]
        failed = await rig.result(LEGACY, "tools/call", {"name": "tool0"})
        assert "marks its parameters for headers wrongly" in failed["content"][0]["text"]
        for name, called in (
            ("all", {"name": "whole__tool0"}),
            ("", {"name": "execute_mcp_tool", "arguments": {"tool_path": "whole:tool0"}}),
        ):
            failed = await rig.running.ask("tools/call", LEGACY, name, **called)
            assert "marks its parameters for headers wrongly" in json.dumps(failed)
        assert rig.server.asked == []


@both
async def test_a_list_whose_pages_have_no_end_is_told_as_it_is_known(era: Era) -> None:
    async with door(era) as rig:
        known = rig.running.registry.catalogue
        circular = replace(known.value.entries["whole"].offer, circular=("tools",))
        known.set(replace(known.value, entries={"whole": Entry.make("whole", "http", circular)}))
        assert [tool["name"] for tool in (await rig.result(LEGACY, "tools/list"))["tools"]] == [
            tool["name"] for tool in TOOLS
        ]
        assert rig.server.asked == []
        assert (await rig.result(LEGACY, "prompts/list"))["prompts"] == []
        assert rig.server.methods() == ["prompts/list"]


async def test_doors_know_what_the_head_of_a_call_repeats() -> None:
    mirrors = (Mirror("mcp-param-region", ("region",)),)
    async with door() as rig:
        known = rig.running.gateway.parts.catalogue
        offer = known.value.entries["whole"].offer
        tools = (replace(offer.tools[0], mirrors=mirrors), *offer.tools[1:])
        known.set(replace(known.value, entries={"whole": Entry.make("whole", "http", replace(offer, tools=tools))}))
        first, second = tools[0].name, tools[1].name
        everything = rig.running.doors.find("all").service
        assert await rig.door.mirrors_of(first) == mirrors
        assert await everything.mirrors_of(f"whole__{first}") == mirrors
        for service, name in ((rig.door, second), (rig.door, "no such"), (everything, first), (everything, "x__y")):
            assert await service.mirrors_of(name) == ()
        assert await rig.running.gateway.mirrors_of(first) == ()


# Streams --------------------------------------------------------------------------------------------------------------

WATCH = msgspec.Raw(b'{"name":"mail.received","arguments":{},"cursor":null}')


@asynccontextmanager
async def streaming(clock: MockClock) -> AsyncIterator[tuple[Rig, trio.Nursery]]:
    """A door in whose block time passes by itself; before that threads are at work."""
    async with door("modern") as rig, trio.open_nursery() as nursery:
        clock.autojump_threshold = 0
        yield rig, nursery
        clock.autojump_threshold = math.inf
        nursery.cancel_scope.cancel()


async def watch(
    rig: Rig, nursery: trio.Nursery, ear: Ear, id_: bytes, answers: list[Any], client: Client = MODERN
) -> None:
    """Open a stream of events for a client that calls it so."""

    async def ask() -> None:
        asked = Exchange(client, id_, "events/stream", WATCH, voice=ear)
        answers.append(json.loads((await answer(rig.door, asked)).body))

    before = rig.server.opened
    nursery.start_soon(ask)
    while rig.server.opened == before:  # noqa: ASYNC110 - a virtual clock
        await trio.sleep(0.01)
    await wait_all_tasks_blocked()


async def test_events_reach_the_client_of_their_stream_by_its_own_id_until_the_server_ends_it(
    mock_clock: MockClock,
) -> None:
    first, second, answers = Ear(), Ear(), list[Any]()
    async with streaming(mock_clock) as (rig, nursery):
        await watch(rig, nursery, first, b'"mine"', answers)
        await watch(rig, nursery, second, b"7", answers)
        one, other = rig.server.streams
        await rig.server.stream("event", other, data={"n": 1})
        await rig.server.stream("heartbeat", one)
        await rig.server.stream("of/another/extension", one)
        await wait_all_tasks_blocked()
        told = [(each["method"], each["params"]["_meta"]) for each in (*first.heard, *second.heard)]
        mine, others = {META_SUBSCRIPTION: "mine", "x-own": 1}, {META_SUBSCRIPTION: 7, "x-own": 1}
        assert told == [
            ("notifications/events/active", mine),
            ("notifications/events/heartbeat", mine),
            ("notifications/events/of/another/extension", mine),
            ("notifications/events/active", others),
            ("notifications/events/event", others),
        ]
        assert second.heard[1]["params"]["data"] == {"n": 1}
        await rig.server.end_stream(one)
        await wait_all_tasks_blocked()
        closing = {"resultType": "complete", "_meta": {META_SUBSCRIPTION: "mine"}}
        assert answers == [{"jsonrpc": "2.0", "id": "mine", "result": closing}]


async def test_a_stream_lasts_while_something_comes_takes_no_place_of_a_call_and_ends_when_nothing_comes(
    mock_clock: MockClock,
) -> None:
    answers = list[Any]()
    async with streaming(mock_clock) as (rig, nursery):
        for number in range(200):  # more than calls that are in flight, and wait, here and in the daemon
            await watch(rig, nursery, Ear(), b"%d" % number, answers)
        assert (await rig.result(MODERN, "tools/call", {"name": "tool1", "arguments": {}}))["content"] == []
        for _ in range(25):  # longer than any call
            await trio.sleep(30)
            await rig.server.stream("heartbeat", rig.server.streams[0])
            await wait_all_tasks_blocked()
        assert len(answers) == 199  # of those that said nothing
        assert {each["error"]["data"]["type"] for each in answers} == {"timeout"}
        assert len(rig.server.streams) == 1


async def test_a_client_that_misses_an_event_is_told_that_its_stream_is_over(mock_clock: MockClock) -> None:
    answers = list[Any]()
    async with streaming(mock_clock) as (rig, nursery):
        await watch(rig, nursery, Ear(room=2), b"1", answers)
        (stream,) = rig.server.streams
        for number in range(3):
            await rig.server.stream("event", stream, data={"n": number})
        await wait_all_tasks_blocked()
        assert answers[0]["error"]["data"]["type"] == "overloaded"
        assert "go on from the last cursor" in answers[0]["error"]["message"]
        assert rig.server.streams == []


async def test_who_opens_very_many_streams_leaves_streams_and_calls_to_others(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.server.calls.calls.MAX_STREAMS", 8)
    greedy, other = (replace(MODERN, principal=principal_of(name)) for name in ("greedy", "other"))
    answers, others = list[Any](), list[Any]()
    async with streaming(mock_clock) as (rig, nursery):
        for number in range(100):
            await watch(rig, nursery, Ear(), b"%d" % number, answers, greedy)
        assert 90 < len(answers) < 100
        assert {each["error"]["data"]["type"] for each in answers} == {"overloaded"}
        ear = Ear()
        await watch(rig, nursery, ear, b"1", others, other)
        assert (others, len(ear.heard)) == ([], 1)
        assert (await rig.result(other, "tools/call", {"name": "tool1", "arguments": {}}))["content"] == []
