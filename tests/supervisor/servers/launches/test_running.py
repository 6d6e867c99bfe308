"""What is started for those who come in, whatever becomes of them meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer
from actors.kit import Latest
from actors.registry.actor import Registry
from supervisor.identity.people import Person
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.running import Launches
from tests.fakes.deployments import read
from tests.fakes.fleet import fleet
from tests.fakes.mcp_server import FakeServer

SERVERS: dict[str, Any] = {name: {"command": "c", "args": ["${user:ZONE:-utc}"]} for name in ("clock", "diary")}
IDENTITY: dict[str, Any] = {
    "users": {"ana": {"values": {"clock": {"ZONE": "cet"}, "diary": {"ZONE": "cet"}}}},
}


def of(*servers: str) -> Deployment:
    entries = {name: SERVERS[name] for name in servers or SERVERS}
    values = {name: IDENTITY["users"]["ana"]["values"][name] for name in entries}
    return read(entries, identity={"users": {"ana": {"values": values}}})


def ana(deployment: Deployment) -> Person:
    found = deployment.person("ana", role="member", team="")
    assert found is not None
    return found


class Recall:
    """What is known from earlier, which takes until it `may_answer`: an `offer` of all launches, or nothing."""

    def __init__(self, offer: Offer | None = None) -> None:
        self._offer = offer
        self.may_answer = trio.Event()
        self.asked: list[str] = []

    async def recall_offers(self, launches: Collection[str]) -> dict[str, Offer]:
        self.asked += launches
        await self.may_answer.wait()
        return {} if self._offer is None else dict.fromkeys(launches, self._offer)

    async def recall_era(self, digest: str) -> None:
        del digest
        await trio.lowlevel.checkpoint()


async def test_what_was_begun_for_somebody_who_left_is_there_for_whoever_comes_next(
    autojump_clock: MockClock,
) -> None:
    deployment, recall = Latest(of()), Recall()
    unused: Any = None
    async with fleet(defaultdict(FakeServer)) as running, trio.open_nursery() as nursery:
        launches = Launches(deployment, running.servers, Registry({}, unused, unused, trio.current_time), recall)
        nursery.start_soon(launches.run)
        person = ana(deployment.value)
        async with trio.open_nursery() as request:
            request.start_soon(launches.prepare, person)
            await wait_all_tasks_blocked()
            assert len(recall.asked) == len(SERVERS)
            request.cancel_scope.cancel()
            recall.may_answer.set()
        await launches.prepare(person)
        for server in SERVERS:
            launch = launches.names.of(server, person.principal)
            assert launch != server
            assert running.servers.directory.find(launch) is not None, f"{launch} never came up"
        assert len(recall.asked) == len(SERVERS)
        nursery.cancel_scope.cancel()


async def test_a_server_that_is_removed_while_it_is_looked_up_for_somebody_is_no_bug(autojump_clock: MockClock) -> None:
    deployment, recall = Latest(of()), Recall(Offer())
    unused: Any = None
    registry = Registry({}, unused, unused, trio.current_time)
    async with fleet(defaultdict(FakeServer)) as running, trio.open_nursery() as nursery:
        await nursery.start(registry.run)
        launches = Launches(deployment, running.servers, registry, recall)
        nursery.start_soon(launches.run)
        person = ana(deployment.value)
        gone, stays = (launch.name for launch in sorted(person.rights.launches, key=lambda each: each.server))
        async with trio.open_nursery() as request:
            request.start_soon(launches.prepare, person)
            await wait_all_tasks_blocked()
            deployment.set(of("diary"))
            recall.may_answer.set()
        await wait_all_tasks_blocked()
        assert not launches.has(gone)
        assert launches.has(stays)
        assert registry.offer(stays) is not None
        assert running.servers.directory.find(stays) is None, "nobody has called it"
        nursery.cancel_scope.cancel()
