"""What a node learns of what the others' servers offer."""

from __future__ import annotations

from typing import Any, cast

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer, encode_offer
from actors.kit import Address, Latest
from actors.messages import ServerListed
from supervisor.fleet.engine import LaunchGrant, OfferPublished, Offers
from supervisor.fleet.membership import Ownership
from supervisor.servers.deployment import Deployment
from supervisor.servers.fleet.launch_messages import LaunchKeys
from supervisor.servers.fleet.offers import FleetOffers
from tests.fakes.deployments import server
from tests.fleet.memory_engine import MemoryEngine

DIGESTS = {"desk": "1" * 64}


class SlowEngine(MemoryEngine):
    """Says what is offered when it is let; it is what was offered when it was asked."""

    def __init__(self) -> None:
        super().__init__(60.0)
        self.let = trio.Event()

    async def offers(self) -> Offers:
        offers = await super().offers()
        await self.let.wait()
        return offers


class Heard:
    """A registry that only listens."""

    def __init__(self) -> None:
        self.told: list[ServerListed] = []

    async def tell(self, message: ServerListed) -> None:
        await trio.lowlevel.checkpoint()
        self.told.append(message)


async def test_what_the_feed_tells_while_everything_is_read_is_newer(autojump_clock: MockClock) -> None:
    engine, registry = SlowEngine(), Heard()
    keys = LaunchKeys(Latest(Deployment(servers={"desk": server("desk")}, digests=DIGESTS)))
    grant = LaunchGrant(launch=keys.key("desk"), incarnation="a", fence=1)
    offers = FleetOffers(engine, cast("Ownership", None), keys)  # it owns nothing
    await engine.publish(grant, "old", encode_offer(Offer(instructions="old")))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(offers.run, cast("Address[Any]", registry))
        offers.want_everything()
        await wait_all_tasks_blocked()
        await engine.publish(grant, "new", encode_offer(Offer(instructions="new")))
        offers.take(OfferPublished(grant.launch, "new", 1))
        engine.let.set()
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert [each.offer.instructions for each in registry.told] == ["new"]
