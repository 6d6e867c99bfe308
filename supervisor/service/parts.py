"""What every door works with: what can be seen, the way to servers, and who is told of calls."""

from __future__ import annotations

from collections.abc import Mapping

from actors.catalogue.snapshot import Catalogue
from actors.kit import Address, Latest
from actors.messages import ServerStatus
from actors.router import Message as RouterMessage
from actors.server.subscribers import Subscribers
from supervisor.host.loop.workbench import Workbench
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.asking.parking import Parking
from supervisor.service.calls.counting import Used
from supervisor.service.forward import Forwarder
from supervisor.service.lookup.arrival import Arrival
from supervisor.service.lookup.looks import Looks
from supervisor.service.lookup.visible import Visible
from supervisor.service.subscriptions import Subscriptions
from supervisor.service.tasks import HeldTasks


class ServiceParts:
    """The parts that all doors share.

    `used` is told of each call that ended; `subscribers` are those whom the servers' actors tell of changed resources;
    `key` seals the names of parked calls and tasks; `parking.run` has to run somewhere.
    """

    def __init__(
        self,
        router: Address[RouterMessage],
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        deployment: Latest[Deployment],
        *,
        used: Used,
        subscribers: Subscribers,
        key: bytes,
        elicitations: Elicitations,
    ) -> None:
        self.catalogue = catalogue
        self.deployment = deployment
        self.used = used
        self.bench = Workbench()
        self.visible = Visible(catalogue, statuses)
        self.arrival = Arrival(router, self.visible)
        self.looks = Looks(router, self.visible)
        self.parking = Parking(key)
        self.tasks = HeldTasks(deployment, key)
        self.forward = Forwarder(router, deployment, self.bench, self.parking, self.tasks, elicitations)
        self.subscriptions = Subscriptions(subscribers, router, self.forward, self.visible, self.bench)
