"""Subscriptions whose events are posted: whose they are, how long they last, what outlives the daemon, how they end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from actors.codes import EVENT_NOT_FOUND, FORBIDDEN, UNSUPPORTED
from actors.errors import InvalidArguments, ServerError, Starved
from actors.kit import Latest
from actors.principal import Principal
from actors.protocol.wire.jsonrpc import ErrorObject
from supervisor.events.event import key_of
from supervisor.operations import Role
from supervisor.service.events.journal import Journal
from supervisor.service.events.limits import (
    MAX_TTL_S,
    MIN_TTL_S,
    ROTATION_S,
    CallbackUnusable,
    PrincipalNeeded,
    TooManyEvents,
    UnknownEvent,
    UnknownSubscription,
    UnsupportedDelivery,
)
from supervisor.service.events.sources import Terminated, Viewpoint
from supervisor.service.events.webhooks import RIGHTS_S, Webhooks
from supervisor.service.lookup.visible import Visible
from supervisor.store.records import WEBHOOKS
from tests.fakes.callbacks import Endpoint
from tests.fakes.event_source import NAME, NOW, FakeSource, at, topics_of
from tests.fakes.kept_audit import KeptAudit
from tests.fakes.rows import MemoryRows
from tests.fakes.webhook_receiver import new_secret

URL, SECRET, KEY = "https://hooks.example/1", new_secret(), b"k" * 32
HOUR_S = 3600.0


class World:
    """What outlives a daemon: its source, endpoint, journal and store. `gone` are who is nobody any more."""

    def __init__(self) -> None:
        self.source = FakeSource()
        self.endpoint = Endpoint()
        self.store = MemoryRows(WEBHOOKS, now)
        self.journal = Journal(now)
        self.gone: set[str] = set()
        self.trouble = False
        self.audit = KeptAudit()
        self.changes = Latest(0)
        self.asked_for: list[Role] = []
        self.names, self.entries = {"desk"}, {"desk"}
        self.webhooks: Webhooks

    def seen(self, principal: str, role: Role = "member") -> Viewpoint:
        return replace(viewpoint(principal, lambda: (self.names, self.entries)), role=role)

    async def view(self, principal: Principal, role: Role) -> Viewpoint | None:
        await trio.lowlevel.checkpoint()
        if self.trouble:
            raise ServerError("not now")
        self.asked_for.append(role)
        return None if principal in self.gone else self.seen(principal, role)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """One life of the daemon."""
        async with topics_of(self.source, self.journal) as topics, trio.open_nursery() as nursery:
            endpoint: Any = self.endpoint
            whole = self.seen("local")
            self.webhooks = Webhooks(topics, endpoint, self.store, KEY, self.view, whole, self.changes, now, self.audit)
            closing = trio.Event()
            nursery.start_soon(self.webhooks.run, closing)
            await trio.sleep(0.1)
            yield
            closing.set()

    async def subscribe(self, principal: str = "user:ada", role: Role = "member", **params: Any) -> dict[str, Any]:
        delivery = {"mode": "webhook", "url": URL, "secret": SECRET, **params.pop("delivery", {})}
        said = {"name": NAME, "arguments": {}, "delivery": delivery, **params}
        given = msgspec.Raw(json.dumps(said).encode())
        return dict(json.loads(msgspec.json.encode(await self.webhooks.subscribe(self.seen(principal, role), given))))

    async def unsubscribe(self, principal: str = "user:ada", url: str = URL) -> dict[str, Any]:
        said = {"name": NAME, "arguments": {}, "delivery": {"url": url}}
        return await self.webhooks.unsubscribe(self.seen(principal), msgspec.Raw(json.dumps(said).encode()))

    async def happen(self, *ids: str) -> None:
        await self.source.tell(*ids)
        await trio.sleep(0.5)

    @property
    def events(self) -> list[str]:
        return [body["eventId"] for body in self.endpoint.of("event")]


def viewpoint(principal: str, known: Callable[[], tuple[set[str], set[str]]]) -> Viewpoint:
    """What somebody sees: servers by name, and those of which more is known."""

    class Seen:
        @property
        def catalogue(self) -> object:
            names, entries = known()
            return SimpleNamespace(names=SimpleNamespace(literal={name: name for name in names}.get), entries=entries)

    return Viewpoint(Principal(principal), cast("Visible", Seen()))


def now() -> float:
    return NOW + trio.current_time()


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.fixture
async def world(autojump_clock: MockClock) -> World:
    return World()


async def test_what_happens_is_posted_from_then_on_until_it_is_ended(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        made = await world.subscribe()
        assert made.keys() == {"id", "refreshBefore", "cursor", "truncated"}
        assert (made["truncated"], made["refreshBefore"][-1]) == (False, "Z")
        await world.happen("a", "b")
        assert sorted(world.events) == ["a", "b"]
        assert {each.id for each in world.endpoint.receivers} == {made["id"]}
        assert await world.unsubscribe() == {}
        await world.happen("c")
        assert sorted(world.events) == ["a", "b"]
        assert world.store.kept == {}
        with pytest.raises(UnknownSubscription) as unknown:
            await world.unsubscribe()
        assert (unknown.value.code, unknown.value.details) == (EVENT_NOT_FOUND, {"kind": "subscription"})
    where = f"hooks.example, {made['id']}"
    assert world.audit.notes == [
        ("webhook.subscribe", NAME, "done", where),
        ("webhook.unsubscribe", NAME, "done", where),
    ]


async def test_only_who_is_known_may_subscribe(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        for asking in (world.subscribe("local"), world.unsubscribe("local")):
            with pytest.raises(PrincipalNeeded) as refused:
                await asking
            assert refused.value.code == FORBIDDEN
    assert world.endpoint.verified == []


@pytest.mark.parametrize(
    "delivery",
    [
        *(
            {"url": url}
            for url in ("http://a.example/", "https://", "https://u:p@a.example/", "https://a.example/#x", "x")
        ),
        *({"secret": secret} for secret in ("", "short", "whsec_", "whsec_AAAA", "whsec_!!!", new_secret()[6:])),
        *({"secret": new_secret(size)} for size in (23, 65)),
    ],
)
async def test_an_address_or_a_secret_of_another_form_is_not_valid(
    world: World, autojump_clock: MockClock, delivery: dict[str, str]
) -> None:
    async with world.running():
        with pytest.raises(InvalidArguments) as refused:
            await world.subscribe(delivery=delivery)
        assert refused.value.code == -32602
        assert not (secret := delivery.get("secret")) or secret not in str(refused.value) or len(secret) < 7
    assert (world.endpoint.verified, world.store.kept) == ([], {})


async def test_another_mode_is_not_for_this_method(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        with pytest.raises(UnsupportedDelivery) as refused:
            await world.subscribe(delivery={"mode": "push"})
    assert (refused.value.code, refused.value.details) == (UNSUPPORTED, {"feature": "deliveryMode", "value": "push"})


async def test_an_id_is_the_same_for_the_same_principal_address_type_and_arguments(
    world: World, autojump_clock: MockClock
) -> None:
    async with world.running():
        first = await world.subscribe(arguments={"a": 1, "b": 2})
        again = await world.subscribe(arguments={"b": 2, "a": 1}, delivery={"secret": new_secret()})
        others = [
            await world.subscribe(arguments={"a": 1}),
            await world.subscribe("user:bob", arguments={"a": 1, "b": 2}),
            await world.subscribe(arguments={"a": 1, "b": 2}, delivery={"url": f"{URL}?x"}),
        ]
        assert again["id"] == first["id"]
        assert len({first["id"], *(each["id"] for each in others)}) == 4
        assert len(world.store.kept) == 4
        with pytest.raises(UnknownSubscription):
            await world.unsubscribe("user:eve")
    async with world.running():
        assert (await world.subscribe(arguments={"a": 1, "b": 2}))["id"] == first["id"]


@pytest.mark.parametrize(
    ("suggested", "granted_s"),
    [
        *(({}, HOUR_S), ({"ttlMs": 7_200_000}, 2 * HOUR_S), ({"ttlMs": 1}, MIN_TTL_S), ({"ttlMs": -5}, MIN_TTL_S)),
        *(({"ttlMs": 10**15}, MAX_TTL_S), ({"ttlMs": None}, MAX_TTL_S)),
    ],
)
async def test_a_subscription_is_granted_a_time_and_ends_with_it(
    world: World, autojump_clock: MockClock, suggested: dict[str, Any], granted_s: float
) -> None:
    async with world.running():
        made = await world.subscribe(**suggested)
        assert abs(moment(made["refreshBefore"]) - now() - granted_s) < 0.1
        await trio.sleep(granted_s - 1)
        await world.happen("a")
        await trio.sleep(2)
        await world.happen("b")
        assert world.events == ["a"]
        assert world.store.kept == {}
        assert world.endpoint.of("terminated") == []


async def test_a_refresh_grants_the_time_again(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        await world.subscribe()
        await trio.sleep(HOUR_S - 1)
        again = await world.subscribe()
        assert abs(moment(again["refreshBefore"]) - now() - HOUR_S) < 0.1
        await trio.sleep(HOUR_S - 1)
        await world.happen("a")
        assert world.events == ["a"]
        assert again["deliveryStatus"] == {"active": True, "lastDeliveryAt": None, "lastError": None}


async def test_a_new_secret_signs_first_and_the_old_one_for_a_while(world: World, autojump_clock: MockClock) -> None:
    newer = new_secret()
    async with world.running():
        await world.subscribe()
        await world.happen("a")
        await world.subscribe(delivery={"secret": newer})
        await world.happen("b")
    async with world.running():
        await world.happen("c")
        await trio.sleep(ROTATION_S)
        await world.happen("d")
    both = (key_of(newer), key_of(SECRET))
    assert [each.keys for each in world.endpoint.receivers] == [(key_of(SECRET),), both, both, (key_of(newer),)]


async def test_an_address_is_verified_once_for_each_principal(world: World, autojump_clock: MockClock) -> None:
    world.endpoint.took_s = 1.0
    async with world.running():
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(partial(world.subscribe, arguments={"number": number}))
        assert world.endpoint.verified == [URL]
        await world.subscribe("user:bob")
        assert world.endpoint.verified == [URL] * 2
        await world.unsubscribe("user:bob")
        await world.subscribe("user:bob")
        assert world.endpoint.verified == [URL] * 2, "that holds for a while"
        await world.unsubscribe("user:bob")
        await trio.sleep(HOUR_S)
        await world.subscribe("user:bob")
        assert world.endpoint.verified == [URL] * 3


async def test_nothing_is_posted_to_an_address_that_does_not_confirm(world: World, autojump_clock: MockClock) -> None:
    world.endpoint.refuses = True
    async with world.running():
        for _ in range(2):
            with pytest.raises(CallbackUnusable):
                await world.subscribe()
        assert len(world.endpoint.verified) == 2
        assert world.store.kept == {}
        world.endpoint.refuses = False
        await world.subscribe()
        await world.happen("a")
        assert world.events == ["a"]


async def test_it_begins_where_its_client_has_come_to(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        made = await world.subscribe()
        await world.happen("a", "b")
        later = await world.subscribe()
        await world.unsubscribe()
        await world.happen("c")
        again = await world.subscribe(cursor=made["cursor"])
        assert not again["truncated"]
        await trio.sleep(0.5)
        assert sorted(world.events) == ["a", "a", "b", "b", "c"]
        assert not (await world.subscribe(cursor="whatever"))["truncated"], "it goes on where it is"
        await world.unsubscribe()
        assert not (await world.subscribe(cursor=later["cursor"]))["truncated"]
        await trio.sleep(0.5)
        assert sorted(world.events) == ["a", "a", "b", "b", "c", "c"]
        await world.unsubscribe()
        assert (await world.subscribe(cursor="of another life"))["truncated"]


async def test_the_cursor_of_a_refresh_is_behind_what_was_not_taken(world: World, autojump_clock: MockClock) -> None:
    world.endpoint.answer = lambda body: "http_5xx" if body.get("eventId") == "b" else None
    async with world.running():
        await world.subscribe()
        await world.happen("a", "b", "c")
        stuck = await world.subscribe()
        assert stuck["deliveryStatus"]["active"]
        await world.unsubscribe()
        world.endpoint.answer, world.endpoint.posted = (lambda body: None), []
        await world.subscribe(cursor=stuck["cursor"])
        await trio.sleep(0.5)
        assert sorted(world.events) == ["b", "c"]


async def test_it_goes_on_after_a_restart_and_misses_nothing(world: World, autojump_clock: MockClock) -> None:
    world.endpoint.answer = lambda body: "timeout" if body.get("eventId") == "b" else None
    async with world.running():
        made = await world.subscribe()
        await world.happen("a", "b", "c")
    [row] = world.store.kept.values()
    assert SECRET.encode() not in row.sealed
    assert key_of(SECRET) not in row.sealed
    assert b"hooks.example" not in row.sealed
    world.endpoint.answer, world.endpoint.posted, world.endpoint.verified = (lambda body: None), [], []
    async with world.running():
        await trio.sleep(1)
        assert sorted(world.events) == ["b", "c"], "what was taken behind one that was not comes twice"
        await world.happen("d")
        assert sorted(world.events) == ["b", "c", "d"]
        again = await world.subscribe()
        assert again["id"] == made["id"]
        assert "deliveryStatus" in again
        await world.subscribe(arguments={"more": True})
        assert world.endpoint.verified == [], "that holds after a restart, too"
    assert world.endpoint.of("gap") == world.endpoint.of("terminated") == []


async def test_what_the_journal_lost_meanwhile_is_told_as_a_gap(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        await world.subscribe()
        await world.happen("a")
    world.journal = Journal(now)
    async with world.running():
        await world.happen("b")
        assert world.events == ["a", "b"]
        assert len(world.endpoint.of("gap")) == 1


async def test_a_row_of_another_key_is_lost_and_harms_nobody(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        made = await world.subscribe()
        await world.subscribe("user:bob")
    row = world.store.kept[made["id"]]
    world.store.kept[made["id"]] = msgspec.structs.replace(row, sealed=row.sealed[::-1])
    async with world.running():
        await world.happen("a")
        assert len(world.events) == 1
        assert made["id"] not in world.store.kept


@pytest.mark.parametrize("how", ["hidden", "gone"])
async def test_who_loses_the_right_is_told_so_once_and_nothing_more(
    world: World, autojump_clock: MockClock, how: str
) -> None:
    async with world.running():
        await world.subscribe()
        await world.happen("a")
        if how == "hidden":
            world.source.hidden.add("user:ada")
            world.names, world.entries = set(), set()
        else:
            world.gone.add("user:ada")
        world.webhooks._whole = viewpoint("local", lambda: ({"desk"}, {"desk"}))
        await world.happen("b")
        await trio.sleep(60)
        assert world.events == ["a"]
        [ended] = world.endpoint.of("terminated")
        assert ended["error"]["code"] == FORBIDDEN
        assert world.store.kept == {}
        if how == "hidden":
            with pytest.raises(UnknownEvent):
                await world.subscribe()


@pytest.mark.parametrize("told", [True, False])
async def test_who_loses_the_right_is_told_so_though_nothing_happens(
    world: World, autojump_clock: MockClock, told: bool
) -> None:
    async with world.running():
        await world.subscribe()
        await world.subscribe("user:bob", delivery={"url": f"{URL}/bob"})
        await world.happen("a")
        world.gone.add("user:ada")
        if told:
            world.changes.set(1)
        await trio.sleep(3 if told else RIGHTS_S + 3)
        [ended] = world.endpoint.of("terminated")
        assert ended["error"]["code"] == FORBIDDEN
        assert len(world.store.kept) == 1
        await world.happen("b")
        assert sorted(world.events) == ["a", "a", "b"]


async def test_who_has_lost_the_right_cannot_refresh(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        made = await world.subscribe()
        await trio.sleep(60)
        world.source.hidden.add("user:ada")
        with pytest.raises(UnknownEvent):
            await world.subscribe(delivery={"secret": new_secret()})
        assert abs(world.store.kept[made["id"]].expires_at - moment(made["refreshBefore"])) < 0.01


async def test_what_its_server_ends_is_ended_with_its_words(world: World, autojump_clock: MockClock) -> None:
    error = ErrorObject(UNSUPPORTED, "Unsupported", msgspec.Raw(b'{"feature":"payloadSchema"}'))
    async with world.running():
        await world.subscribe()
        await world.happen("a")
        world.source.followed[-1].fail(Terminated(error))
        await trio.sleep(5)
        [ended] = world.endpoint.of("terminated")
        assert ended["error"] == {"code": UNSUPPORTED, "message": "Unsupported", "data": {"feature": "payloadSchema"}}
        assert world.store.kept == {}


async def test_the_end_of_one_is_not_told_of_the_next(world: World, autojump_clock: MockClock) -> None:
    world.endpoint.answer = lambda body: "http_5xx"
    async with world.running():
        await world.subscribe()
        await trio.sleep(1)
        world.source.followed[-1].fail(Terminated(ErrorObject(UNSUPPORTED, "Unsupported")))
        await trio.sleep(1)
        assert len(world.endpoint.of("terminated")) == 1
        await world.subscribe()
        await trio.sleep(HOUR_S / 2)
        assert len(world.endpoint.of("terminated")) == 1


async def test_a_type_that_is_removed_ends_it(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        await world.subscribe()
        world.source.hidden.add("user:ada")
        world.source.followed[-1].fail(ServerError("gone"))
        await trio.sleep(60)
        assert [each["error"]["code"] for each in world.endpoint.of("terminated")] == [EVENT_NOT_FOUND]


async def test_a_server_whose_types_are_not_known_yet_is_waited_for(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        await world.subscribe()
    world.source.hidden.add("user:ada")
    world.entries = set()
    async with world.running():
        await trio.sleep(HOUR_S / 2)
        world.source.hidden.clear()
        await trio.sleep(60)
        await world.happen("a")
        assert world.events == ["a"]


async def test_trouble_with_a_server_is_waited_out(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        await world.subscribe()
        await world.happen("a")
        world.source.followed[-1].fail(ServerError("it crashed"))
        await trio.sleep(10)
        await world.happen("b")
        assert world.events == ["a", "b"]
        assert world.endpoint.of("terminated") == []


async def test_a_bug_costs_one_subscription_a_while(
    world: World, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.running():
        await world.subscribe()
        await world.subscribe("user:bob")
        bugs = [ZeroDivisionError(SECRET)]

        def answer(body: dict[str, Any]) -> None:
            if bugs:
                raise bugs.pop()

        world.endpoint.answer = answer
        await world.happen("a")
        await trio.sleep(5)
        assert sorted(world.events) == ["a", "a", "a"]
    assert caplog.messages == ["a bug while events are posted"]


async def test_who_cannot_be_looked_up_for_now_is_not_forgotten(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        await world.subscribe()
        world.trouble = True
        await world.happen("a")
        await trio.sleep(60)
        assert world.events == []
        world.trouble = False
        await trio.sleep(60)
        assert world.events == ["a"]


async def test_nobody_has_more_than_the_limit(
    world: World, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.service.events.webhooks.MAX_WEBHOOKS_OF_PRINCIPAL", 2)
    async with world.running():
        for number in range(2):
            await world.subscribe(arguments={"number": number})
        with pytest.raises(TooManyEvents) as refused:
            await world.subscribe(arguments={"number": 2})
        assert refused.value.details == {"limit": "subscriptions", "max": 2}
        await world.subscribe(arguments={"number": 1})
        await world.subscribe("user:bob")
        await trio.sleep(HOUR_S + 1)
        await world.subscribe(arguments={"number": 2})


async def test_what_is_not_known_yet_is_not_refreshed(world: World, autojump_clock: MockClock) -> None:
    world.store.ready = trio.Event()
    async with world.running():
        with pytest.raises(Starved, match="not read yet"):
            await world.subscribe()
        world.store.outages = 2
        world.store.ready.set()
        await trio.sleep(11)
        await world.subscribe()


async def test_an_unknown_type_is_said_before_anything_is_posted(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        with pytest.raises(UnknownEvent):
            await world.subscribe(name="desk:tock")
    assert world.endpoint.verified == []
    assert at("user:ada").modes == ("poll", "push", "webhook")


async def test_it_is_for_the_role_that_it_was_begun_in_also_in_another_life_of_the_daemon(world: World) -> None:
    async with world.running():
        await world.subscribe(role="auditor")
        await world.happen("a")
    assert {*world.asked_for} == {"auditor"}
    world.asked_for.clear()
    async with world.running():
        await world.subscribe(role="member")
        await world.happen("b")
    assert {*world.asked_for} == {"auditor"}, "another credential refreshes it as it is"
    assert world.events == ["a", "b"]
