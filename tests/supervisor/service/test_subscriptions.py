"""Subscriptions to resources through the doors: the first asks the server, the last to leave tells it, both eras."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.life.states import State
from actors.messages import SleepServer
from actors.protocol.agreement.versions import META_SUBSCRIPTION, Era
from supervisor.front.listen import Updated, read_subscription, subscribe_all
from supervisor.service.client import Client, Updates
from tests.fakes.exchanges import LEGACY, MODERN, exchange
from tests.fakes.mcp_server import FakeServer
from tests.fakes.published import Served, served

ERAS: tuple[Era, ...] = ("legacy", "modern")
both = pytest.mark.parametrize("era", ERAS)
DOORS = {"servers/s": "", "all": "mcp://s/", "": "s|", " ": "mcp://s/", "all ": ""}
SUBSCRIBES: dict[str, Any] = {"tools": {}, "resources": {"subscribe": True}}


class Rig:
    """The doors before one server."""

    def __init__(self, server: FakeServer, running: Served) -> None:
        self.doors = running.doors
        self.server = server
        self.running = running

    async def ask(self, door: str, method: str, uri: Any, updates: Updates | None, client: Client = LEGACY) -> Any:
        params = b"" if uri is None else json.dumps({"uri": uri}).encode()
        asked = exchange(client, method, params, updates=updates)
        return await self.running.answer(asked, door)

    async def subscribe(self, updates: Updates | None, uri: Any = "file:///a", door: str = "servers/s") -> Any:
        return await self.ask(door, "resources/subscribe", uri, updates)

    async def unsubscribe(self, updates: Updates | None, uri: Any = "file:///a", door: str = "servers/s") -> Any:
        return await self.ask(door, "resources/unsubscribe", uri, updates)

    async def update(self, uri: str = "file:///a") -> None:
        await self.server.update(uri)
        await wait_all_tasks_blocked()


@asynccontextmanager
async def before(era: Era = "legacy", capabilities: Any = None, **more: Any) -> AsyncIterator[Rig]:
    server = FakeServer(
        probe="modern" if era == "modern" else "error",
        capabilities=SUBSCRIBES if capabilities is None else capabilities,
        honours={"toolsListChanged": True},
    )
    async with served({"s": server}, era=era, **more) as running:
        yield Rig(server, running)


@both
async def test_the_first_asks_the_server_the_next_have_it_at_once_and_all_are_told(era: Era) -> None:
    async with before(era) as rig:
        clients = [Updates() for _ in range(3)]
        for updates in (*clients, clients[0]):
            assert (await rig.subscribe(updates))["result"] == {}
        assert rig.server.watched == ["file:///a"]
        assert rig.server.count("resources/subscribe") == (1 if era == "legacy" else 0)
        assert rig.server.count("subscriptions/listen") == (0 if era == "legacy" else 2)
        await rig.update()
        await rig.update("file:///b")
        assert [updates.take() for updates in clients] == [("file:///a",)] * 3
        assert all(updates.used for updates in clients)


EVENTS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/events": {"listChanged": True}}, "tools": {}}


async def test_who_wants_to_hear_of_changed_event_types_does_and_the_server_is_asked_for_that() -> None:
    async with before("modern", EVENTS) as rig:
        rig.server.honours = {"toolsListChanged": True, "eventsListChanged": True}
        asked = read_subscription(b"7", msgspec.Raw(b'{"notifications":{"eventsListChanged":true}}'))
        updates = Updates()
        listen = exchange(MODERN, "subscriptions/listen", updates=updates)
        honoured = await subscribe_all(rig.doors.find("servers/s").service, listen, asked.uris)
        said = json.loads(asked.acknowledge(honoured))["params"]
        assert said == {"_meta": {META_SUBSCRIPTION: 7}, "notifications": {"eventsListChanged": True}}
        wanted = [each["params"] for each in rig.server.messages if "listen" in each["method"]][-1]["notifications"]
        assert (wanted["eventsListChanged"], "resourceSubscriptions" in wanted) == (True, False)
        await rig.server.notify("notifications/events/list_changed")
        await wait_all_tasks_blocked()
        told = [json.loads(asked.notification(Updated(name))) for name in updates.take()]
        changed = {"method": "notifications/events/list_changed", "params": {"_meta": {META_SUBSCRIPTION: 7}}}
        assert told == [{"jsonrpc": "2.0", **changed}]


async def test_where_its_server_does_not_tell_of_changed_event_types_that_is_left_out() -> None:
    async with before("modern", SUBSCRIBES) as rig:
        asked = read_subscription(b"7", msgspec.Raw(b'{"notifications":{"eventsListChanged":true}}'))
        listen = exchange(MODERN, "subscriptions/listen", updates=Updates())
        honoured = await subscribe_all(rig.doors.find("servers/s").service, listen, asked.uris)
        assert json.loads(asked.acknowledge(honoured))["params"]["notifications"] == {}


@both
async def test_the_last_to_leave_tells_the_server(era: Era) -> None:
    async with before(era) as rig:
        one, other = Updates(), Updates()
        for updates in (one, other):
            await rig.subscribe(updates)
        assert (await rig.unsubscribe(one))["result"] == {}
        await wait_all_tasks_blocked()
        assert rig.server.watched == ["file:///a"]
        await rig.update()
        assert (one.take(), other.take()) == ((), ("file:///a",))
        other.end()
        await wait_all_tasks_blocked()
        assert rig.server.watched == []
        assert (await rig.unsubscribe(one))["result"] == {}
        fresh = Updates()
        await rig.subscribe(fresh)
        assert rig.server.watched == ["file:///a"]


async def test_a_client_with_very_long_uris_leaves_subscriptions_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.subscribers.MAX_BYTES", 40_000)
    greedy, other = (Client(version="2025-11-25", name=name) for name in ("greedy", "other"))
    async with before() as rig:
        sessions = [Updates(), Updates()]
        refused = 0
        for number in range(12):
            uri = f"file:///{number}/" + "a" * 4000
            answered = await rig.ask("servers/s", "resources/subscribe", uri, sessions[number % 2], greedy)
            refused += "error" in answered
        assert 0 < refused < 12
        told, wanted = Updates(), "file:///" + "b" * 4000
        assert (await rig.ask("servers/s", "resources/subscribe", wanted, told, other))["result"] == {}
        await rig.update(wanted)
        assert told.take() == (wanted,)
        for _ in range(2):
            sessions.pop().end()
        assert (await rig.ask("servers/s", "resources/subscribe", "file:///c", Updates(), greedy))["result"] == {}


async def test_who_subscribes_while_the_last_one_leaves_is_not_overtaken() -> None:
    async with before() as rig:
        one, other = Updates(), Updates()
        await rig.subscribe(one)
        one.end()
        await rig.subscribe(other)
        asked = [method for method in rig.server.asked[-1] if method.startswith("resources/")]
        assert asked[-3:] == ["resources/subscribe", "resources/unsubscribe", "resources/subscribe"]
        await rig.update()
        assert other.owed


@both
@pytest.mark.parametrize(("door", "prefix"), DOORS.items())
async def test_a_resource_is_told_of_under_the_name_that_its_client_gave_it(door: str, prefix: str, era: Era) -> None:
    async with before(era) as rig:
        updates = Updates()
        name = f"{prefix}file:///a"
        if door == "all ":  # nobody lists it, so only its name says whose it is
            refused = await rig.subscribe(updates, name, "all")
            assert refused["error"]["code"] == -32002
            return
        assert (await rig.subscribe(updates, name, door.strip()))["result"] == {}
        await rig.update()
        assert updates.take() == (name,)
        assert (await rig.unsubscribe(updates, name, door.strip()))["result"] == {}
        await rig.update()
        assert not updates.owed


@both
async def test_the_servers_own_error_reaches_who_asked(era: Era) -> None:
    async with before(era) as rig:
        updates = Updates()
        refused = await rig.subscribe(updates, "odd:x")
        assert refused["error"]["code"] == (-32002 if era == "legacy" else -32602)
        assert ("odd:x" in updates, updates.used) == (False, False)
        assert rig.server.count("resources/unsubscribe") == 0


@pytest.mark.parametrize("door", ["servers/s", "all", ""])
async def test_what_the_server_does_not_offer_is_neither_announced_nor_taken(door: str) -> None:
    async with before(capabilities={"tools": {}, "resources": {}}) as rig:
        said = await rig.ask(door, "initialize", None, None)
        assert "subscribe" not in said["result"]["capabilities"]["resources"]
        refused = await rig.subscribe(Updates(), "file:///a" if door == "servers/s" else "mcp://s/file:///a", door)
        assert refused["error"]["code"] == -32601
        assert rig.server.count("resources/subscribe") == 0


@pytest.mark.parametrize("door", ["servers/s", "all", ""])
async def test_it_is_announced_at_every_door(door: str) -> None:
    async with before() as rig:
        for client, method in ((LEGACY, "initialize"), (MODERN, "server/discover")):
            said = await rig.ask(door, method, None, None, client)
            assert said["result"]["capabilities"]["resources"]["subscribe"] is True


@pytest.mark.parametrize("uri", [None, 7, "x" * 8193])
async def test_a_subscription_to_nothing_or_to_too_much_is_refused(uri: Any) -> None:
    async with before() as rig:
        assert (await rig.subscribe(Updates(), uri))["error"]["code"] == -32602


async def test_without_a_session_there_is_nobody_to_tell() -> None:
    async with before() as rig:
        assert (await rig.subscribe(None))["error"]["code"] == -32601
        assert (await rig.unsubscribe(None))["error"]["code"] == -32601
        assert (await rig.ask("servers/s", "resources/subscribe", "a", Updates(), MODERN))["error"]["code"] == -32601


async def test_one_that_was_put_to_sleep_is_not_woken_by_who_leaves_and_is_by_who_comes() -> None:
    async with before() as rig:
        one, other = Updates(), Updates()
        await rig.subscribe(one)
        actor = rig.running.actors["s"]
        await actor.address.ask(SleepServer(server="s"))
        await wait_all_tasks_blocked()
        assert one.take() == ("file:///a",)
        await rig.subscribe(other)
        assert (actor.status().state, rig.server.watched) == (State.READY, ["file:///a"])
        await actor.address.ask(SleepServer(server="s"))
        await wait_all_tasks_blocked()
        starts = rig.server.starts
        for updates in (one, other):
            updates.end()
        await wait_all_tasks_blocked()
        assert (actor.status().state, rig.server.starts) == (State.DORMANT, starts)


async def test_a_session_that_ends_while_it_subscribes_leaves_nothing_behind() -> None:
    async with before() as rig:
        updates = Updates()
        rig.server.silent_at.add("resources/subscribe")
        with trio.move_on_after(0.05):
            await rig.subscribe(updates)
        assert "file:///a" not in updates
        rig.server.silent_at.clear()
        assert (await rig.subscribe(updates))["result"] == {}
        late = Updates()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.subscribe, late, "file:///b")
            while "file:///b" not in late:
                await trio.lowlevel.checkpoint()
            late.end()
        await wait_all_tasks_blocked()
        assert rig.server.watched == ["file:///a"]
