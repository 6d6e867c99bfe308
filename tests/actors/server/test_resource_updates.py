"""Resources that clients are subscribed to: asked for in both eras, by every process anew, and told of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.life.states import State
from actors.protocol.agreement.versions import Era
from actors.server import ServerSettings
from actors.subscribers import Subscribers
from tests.actors.server.rig import Rig, running_server
from tests.fakes.mcp_server import FakeServer
from tests.fakes.turns import at_once

AWAKE = ServerSettings(idle_timeout_s=0)
ERAS: tuple[Era, ...] = ("legacy", "modern")
both = pytest.mark.parametrize("era", ERAS)


@asynccontextmanager
async def watching(
    era: Era, *uris: str, settings: ServerSettings = AWAKE, **more: Any
) -> AsyncIterator[tuple[Rig, FakeServer, list[str]]]:
    """A server of an era, with somebody who is subscribed to these resources, and what that one is told."""
    names: list[str] = []
    subscribers = more.pop("subscribers", None) or Subscribers(at_once)
    for uri in uris:
        subscribers.add("s", uri, lambda uri=uri: names.append(uri))  # type: ignore[misc]  # mypy knows no default here
    fake = FakeServer(probe="modern" if era == "modern" else "error", honours={"toolsListChanged": True})
    async with running_server(fake, settings=settings, era=era, subscribers=subscribers, **more) as rig:
        yield rig, fake, names


@both
async def test_a_new_process_is_asked_again_and_subscribers_are_told_once_that_they_may_have_missed_something(
    era: Era, autojump_clock: MockClock
) -> None:
    async with watching(era, "a", "b") as (rig, fake, told):
        await rig.wake()
        await wait_all_tasks_blocked()
        told.clear()
        await rig.restart()
        await wait_all_tasks_blocked()
        assert (fake.starts, sorted(fake.watched), sorted(told)) == (2, ["a", "b"], ["a", "b"])
        await fake.update("a")
        await wait_all_tasks_blocked()
        assert told[2:] == ["a"]


async def test_a_fresh_subscription_is_no_news(autojump_clock: MockClock) -> None:
    names: list[str] = []
    subscribers = Subscribers(at_once)
    async with running_server(FakeServer(), settings=AWAKE, subscribers=subscribers) as rig:
        subscribers.add("s", "a", lambda: names.append("a"))
        await rig.watch("a")
        await wait_all_tasks_blocked()
        assert (names, rig.fake.count("resources/subscribe")) == ([], 1)


@both
async def test_a_server_to_whose_resources_somebody_is_subscribed_does_not_fall_asleep(
    era: Era, autojump_clock: MockClock
) -> None:
    names: list[str] = []
    subscribers = Subscribers(at_once)
    fake = FakeServer(probe="modern" if era == "modern" else "error", honours={"toolsListChanged": True})
    settings = ServerSettings(idle_timeout_s=60)
    async with running_server(fake, settings=settings, era=era, subscribers=subscribers) as rig:
        tell = lambda: names.append("a")  # noqa: E731  (one object, which is taken out again)
        subscribers.add("s", "a", tell)
        await rig.watch("a")
        await trio.sleep(600)
        assert (await rig.status()).state is State.READY
        subscribers.remove("s", "a", tell)
        await trio.sleep(130)
        assert (await rig.status()).state is State.DORMANT


async def test_one_that_is_put_to_sleep_says_so_once_and_again_when_it_is_back(autojump_clock: MockClock) -> None:
    async with watching("legacy", "a") as (rig, fake, told):
        await rig.wake()
        told.clear()
        await rig.sleep()
        await wait_all_tasks_blocked()
        assert told == ["a"]
        await rig.wake()
        await wait_all_tasks_blocked()
        assert (fake.watched, told) == (["a"], ["a", "a"])


async def test_a_subscription_of_ours_that_ended_may_have_missed_something(autojump_clock: MockClock) -> None:
    async with watching("modern", "a") as (rig, fake, told):
        await rig.wake()
        await trio.sleep(100)
        told.clear()
        await fake.end_subscription()
        await wait_all_tasks_blocked()
        assert told == []
        await trio.sleep(2)
        assert (fake.watched, told) == (["a"], ["a"])


async def test_a_call_whose_process_dies_before_the_acknowledgement_fails(autojump_clock: MockClock) -> None:
    async with watching("modern") as (rig, fake, _):
        await rig.wake()
        await wait_all_tasks_blocked()
        fake.exits_at = "subscriptions/listen"
        with pytest.raises(Exception, match="stopped while the call was in flight"):
            await rig.watch("a")


@both
async def test_the_process_of_a_successor_is_asked_for_what_clients_are_subscribed_to_and_they_are_told(
    era: Era, autojump_clock: MockClock
) -> None:
    subscribers, gone = Subscribers(at_once), trio.Event()
    async with watching(era, "a", "b", subscribers=subscribers) as (old, fake, _):
        told: list[str] = []
        for uri in ("a", "b"):
            subscribers.add("s", uri, partial(told.append, uri))
            await old.watch(uri)
        assert sorted(fake.watched) == ["a", "b"]
        fresh = FakeServer(probe=fake.probe, honours=fake.honours)
        async with running_server(fresh, settings=AWAKE, era=era, subscribers=subscribers, predecessor=gone) as new:
            subscribers.add("s", "c", partial(told.append, "c"))
            await old.watch("c")  # it was in flight
            told.clear()
            await old.leave(new).wait()
            gone.set()
            await new.wake()
            await wait_all_tasks_blocked()
            assert sorted(fresh.watched) == ["a", "b", "c"]
            assert sorted(told) == ["a", "b", "c"]
            await fresh.update("a")
            await wait_all_tasks_blocked()
            assert sorted(told) == ["a", "a", "b", "c"]
