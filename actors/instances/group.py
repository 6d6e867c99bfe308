"""The actor of a launch with several instances. What is sent to the launch comes here.

It is to others what a `ServerActor` is: it takes the same messages, and reports as one server. Each instance is a
`ServerActor` with a life of its own. One of them leads: what it lists is what the launch offers, and it tells of
resources. Another one leads only when that one is down and the other one is up.

The first instance may have been there before: its task is another one's, and it goes on when the group begins.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal

from actors.catalogue.offer import Offer, unchanged
from actors.errors import SupervisorError
from actors.instance_status import InstanceChanged, InstanceStatus
from actors.instances.clients import ClientInstances
from actors.instances.dispatch import InstanceDispatch
from actors.instances.inbox import (
    ClientLeft,
    GroupMessage,
    InstanceFact,
    InstanceFree,
    InstanceGone,
    InstanceReport,
    Resize,
    WaitOver,
)
from actors.instances.instance import Instance, InstanceSpec, MakeInstance
from actors.instances.leading import Leading
from actors.instances.orders import GroupOrders
from actors.instances.settings import InstanceSettings
from actors.instances.status import whole
from actors.kit import Actor, Reply
from actors.kit.reporter import Reporter
from actors.kit.timers import Timers
from actors.life.states import State
from actors.messages import (
    CallServer,
    CloseBreakers,
    Departure,
    EraLearned,
    ReadServer,
    RefreshServer,
    RestartServer,
    ServerChanged,
    ServerListed,
    ServerStatus,
    SleepServer,
    StopServer,
    WakeServer,
)
from actors.principal import LOCAL
from actors.server import ServerSettings

FEWER: Final = "fewer instances of it are wanted"
UNUSED: Final = "its client is gone"


class InstanceGroup(Actor[GroupMessage]):
    """One for a launch. `reporter` is that of the launch, which has as many instances as is `wanted`."""

    def __init__(
        self,
        server: str,
        first: Instance,
        make: MakeInstance,
        settings: ServerSettings,
        reporter: Reporter,
        wanted: InstanceSettings,
    ) -> None:
        super().__init__(4 * (settings.max_in_flight + settings.max_queued) + 256)
        self._server = server
        self._make_instance = make
        self._reporter = reporter
        self._wanted = wanted
        self._instances: dict[int, Instance] = {1: first}
        self._first = first
        self._leading = Leading(self._instances, first)
        self._known, self._era = first.known, first.last.era
        self._state = first.last.state
        self._timers: Timers[Literal["waiting"]] = Timers(
            lambda name, number: self.address.tell(WaitOver(name, number)), self.start_soon
        )
        self._dispatch = InstanceDispatch(server, self._instances, lambda: self._leading.leader, settings, self._free)
        self._clients = ClientInstances(server, self._instances, 0, partial(self._make, ""), self._end_unused)
        self._orders = GroupOrders(server, self._instances, lambda: self._leading.leader, self.start_soon)
        self._departure: Departure | None = None
        self._stopping: list[Reply[None]] = []
        first.reporter.redirect(self.address, partial(InstanceReport, 1))

    def on_start(self) -> None:
        self.start_soon(self._reporter.run)
        self.resize(self._wanted, 0.0)

    def status(self, stderr: bool = False) -> ServerStatus:
        """Return how the launch is doing; `stderr`: with the newest lines of the instance that leads."""
        leader = self._leading.leader
        led = leader.status(stderr)
        others = {number: each.status() for number, each in self._instances.items() if each is not leader}
        every = {**others, leader.number: led}
        rows = [each.row(every[number]) for number, each in self._instances.items()]
        return whole(led, [*others.values()], rows, len(self._dispatch.waiting))

    def handle(self, message: GroupMessage, reply: Reply[Any] | None) -> None:
        match message:
            case CallServer() if reply is not None:
                self._on_call(message, reply)
            case InstanceReport(number=number, fact=fact):
                self._on_report(number, fact)
            case InstanceGone(number=number):
                self._on_gone(number)
            case ClientLeft(client=client):
                self._clients.leave(client)
            case WaitOver(name=name, number=number):
                self._timers.take(name, number)
            case Resize(wanted=wanted, drain_s=drain_s) if reply is not None:
                self.resize(wanted, drain_s)
                reply.answer(None)
            case CloseBreakers():
                for each in self._instances.values():
                    each.breakers.close()
            case StopServer(departure=departure) if reply is not None:
                self._stop(departure, reply)
            case ReadServer(stderr=stderr) if reply is not None:
                reply.answer(self.status(stderr))
            case WakeServer() | RestartServer() | RefreshServer() | SleepServer() if reply is not None:
                self._on_order(message, reply)
            case _:
                pass
        self._go_on()

    def _go_on(self) -> None:
        """See what becomes of calls that wait, and be told when to look again."""
        waiting = self._dispatch.waiting
        if waiting:
            self._dispatch.pump()
        if waiting and (moment := self._dispatch.next_moment()) is not None:
            self._timers.start_by("waiting", moment)
        if not self._instances:
            for reply in self._stopping:
                reply.answer(None)
            self.finish()

    def _free(self) -> None:
        with suppress(SupervisorError):  # full: whatever is in the mailbox has the same effect
            self.address.tell_nowait(InstanceFree())

    def _on_call(self, message: CallServer, reply: Reply[Any]) -> None:
        if reply.settled:  # the client went away before anybody looked
            return
        successor = None if self._departure is None else self._departure.successor
        if successor is not None and not message.run:
            successor.forward(message, reply)
        else:
            self._dispatch.take(message, reply)

    def _on_order(self, message: WakeServer | RestartServer | RefreshServer | SleepServer, reply: Reply[Any]) -> None:
        if self._departure is not None and self._departure.successor is not None:
            self._departure.successor.forward(message, reply)
        else:
            self._orders.take(message, reply)

    # What instances report ------------------------------------------------------------------------------------------

    def _on_report(self, number: int, fact: InstanceFact) -> None:
        instance = self._instances.get(number)
        if instance is None:
            return
        match fact:
            case ServerChanged():
                self._on_changed(instance, fact)
            case ServerListed(offer=offer):
                self._on_listed(instance, offer, fact)
            case EraLearned(era=era) if instance is self._leading.leader:
                self._era = era
                self._reporter.report(fact)

    def _on_changed(self, instance: Instance, fact: ServerChanged) -> None:
        instance.note(fact.status)
        self._leading.follow()
        if fact.previous is not fact.status.state:
            self._tell(instance.row(fact.status), fact.previous, fact.reason)
        self._report(fact.reason)
        self._clients.look(instance)

    def _tell(self, row: InstanceStatus, previous: State, reason: str) -> None:
        self._reporter.report(InstanceChanged(server=self._server, instance=row, previous=previous, reason=reason))

    def _report(self, reason: str = "") -> None:
        """Tell how the launch is doing as one."""
        status, previous = self.status(), self._state
        self._state = status.state
        self._reporter.report(ServerChanged(status=status, previous=previous, reason=reason))

    def _on_listed(self, instance: Instance, offer: Offer, fact: ServerListed) -> None:
        """Take what the one that leads offers. Another one that offers something else has it look again, too."""
        news = self._known is None or not unchanged(self._known, offer)
        if instance is not self._leading.leader and news:
            if self._leading.leader.up:
                order = RefreshServer(server=self._server, operator=False, principal=LOCAL)
                with suppress(SupervisorError):
                    self._leading.leader.post.request(order)
            elif instance.up:
                self._leading.lead(instance, reads=False)
        if instance is self._leading.leader:
            self._known = offer
            self._reporter.report(fact)

    # How many there are ---------------------------------------------------------------------------------------------

    def resize(self, wanted: InstanceSettings, drain_s: float) -> None:
        """Have other instances than before; those that stay are not disturbed. To be called within the group's task."""
        self._wanted = wanted
        self._clients.limit = wanted.max_instances
        self._dispatch.own = self._clients.of if wanted.per_client else None
        missing = Counter(wanted.addresses)
        for instance in [*self._instances.values()]:
            stays = wanted.per_client if instance.client is not None else missing[instance.address] > 0
            if not stays and not instance.leaving:
                self._retire(instance, FEWER, drain_s)
            elif instance.client is None and not instance.leaving:
                missing[instance.address] -= 1
        for address in missing.elements():
            self._make(address)
        self._leading.follow()
        self._report()

    def _make(self, address: str) -> Instance:
        number = next(number for number in range(1, len(self._instances) + 2) if number not in self._instances)
        spec = InstanceSpec(number=number, address=address, known=self._known, era=self._era)
        instance = self._make_instance(spec)
        instance.seat.leads = False
        instance.reporter.redirect(self.address, partial(InstanceReport, number))
        self._instances[number] = instance
        for each in sorted(self._instances):  # in the order of their numbers
            self._instances[each] = self._instances.pop(each)
        self.start_soon(self._run, instance)
        return instance

    async def _run(self, instance: Instance) -> None:
        await instance.actor.run()
        await self.address.tell(InstanceGone(instance.number))

    def _end_unused(self, instance: Instance) -> None:
        self._retire(instance, UNUSED, 0.0)

    def _retire(self, instance: Instance, reason: str, drain_s: float) -> None:
        """Have an instance end: calls in flight have so many seconds, others come back."""
        instance.leaving = True
        departure = Departure(reason=reason, drain_s=drain_s, successor=self.address)
        self.start_soon(self._end, instance, departure)

    async def _end(self, instance: Instance, departure: Departure | None) -> None:
        await self._orders.end(instance, departure)
        if instance is self._first:  # its task is not ours
            await self.address.tell(InstanceGone(instance.number))

    def _on_gone(self, number: int) -> None:
        instance = self._instances.pop(number, None)
        if instance is not None and self._instances:
            previous = instance.last.state
            self._tell(instance.row(instance.status()), previous, "")
            self._report()

    # The end --------------------------------------------------------------------------------------------------------

    def _stop(self, departure: Departure | None, reply: Reply[None]) -> None:
        self._stopping.append(reply)
        if departure is not None:
            self._departure = departure
            self._reporter.end()
        self._dispatch.end(None if departure is None else departure.successor)
        for instance in self._instances.values():
            instance.leaving = True
            self.start_soon(self._end, instance, departure)
