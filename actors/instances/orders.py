"""Orders to a launch with several instances: given to those that they are about, and answered when all are done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from actors.errors import ActorStopped, SupervisorError
from actors.instances.instance import Instance
from actors.kit import Reply, StartSoon
from actors.messages import (
    Departure,
    RefreshServer,
    RestartServer,
    SleepServer,
    StopServer,
    WakeServer,
)

Given = WakeServer | RestartServer | RefreshServer | SleepServer


class GroupOrders:
    """`leader` gives the instance that leads."""

    def __init__(
        self,
        server: str,
        instances: Mapping[int, Instance],
        leader: Callable[[], Instance],
        start_soon: StartSoon,
    ) -> None:
        self._server = server
        self._instances = instances
        self._leader = leader
        self._start_soon = start_soon

    def take(self, order: Given, reply: Reply[Any]) -> None:
        """Have an order carried out. To wake is to have one up, to refresh is to read what the launch offers."""
        staying = [each for each in self._instances.values() if not each.leaving]
        match order:
            case WakeServer():
                self._wake(staying, order, reply)
            case RefreshServer():
                self._leader().post.forward(order, reply)
            case RestartServer():
                busy = [each for each in staying if each is self._leader() or not each.actor.life.resting]
                self._give(busy, order, reply)
            case SleepServer():
                self._give(staying, order, reply)

    def _wake(self, staying: list[Instance], order: WakeServer, reply: Reply[None]) -> None:
        leader = self._leader()
        up = next((each for each in staying if each.up), None)
        fit = [each for each in staying if each is not leader and (each.proven or each.address)]
        if up is not None or not fit:
            (up or leader).post.forward(order, reply)
        else:
            reply.release()
            self._start_soon(self._wake_any, [leader, *fit], replace(order, urgent=False), reply)

    async def _wake_any(self, instances: list[Instance], order: WakeServer, reply: Reply[None]) -> None:
        """Wake one after the other until one is up; it fails with the first failure."""
        failure: SupervisorError | None = None
        for instance in instances:
            try:
                await instance.post.ask(order)
            except SupervisorError as error:
                failure = failure or error
            else:
                reply.answer(None)
                return
        reply.fail(failure or ActorStopped())

    def _give(self, instances: list[Instance], order: RestartServer | SleepServer, reply: Reply[Any]) -> None:
        """Give an order to several; it fails with the first failure, when all are done."""
        reply.release()
        self._start_soon(self._carry_out, instances, order, reply)

    async def _carry_out(
        self, instances: list[Instance], order: RestartServer | SleepServer, reply: Reply[Any]
    ) -> None:
        failure: SupervisorError | None = None
        given: list[Reply[Any]] = []
        for instance in instances:
            try:
                given.append(await instance.post.request_in_turn(order))
            except SupervisorError as error:
                failure = failure or error
        for each in given:
            try:
                await each.wait()
            except SupervisorError as error:
                failure = failure or error
        if failure is None:
            reply.answer(None)
        else:
            reply.fail(failure)

    async def end(self, instance: Instance, departure: Departure | None) -> None:
        """Have an instance end."""
        try:
            await instance.post.ask_in_turn(StopServer(departure))
        except SupervisorError:  # it is gone already
            return
