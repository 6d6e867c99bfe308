"""All sinks of the newest configuration, and what they are sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import trio

from actors.kit import Latest
from supervisor.config import Settings
from supervisor.config.sections.event_sinks import EventSink
from supervisor.delivery.courier import Courier, SinkStatus
from supervisor.delivery.sink import Sink
from supervisor.events.event import DaemonEvent

log = logging.getLogger(__name__)

FLUSH_S: Final = 5.0
"""At the end, and for a sink that is removed: what is not taken by then is lost."""


class Delivery:
    """Sends events to the sinks of the configuration. `make` makes a sink, `show` the id of an event.

    A sink whose entry is the same goes on as it was; one whose entry has changed gets what its predecessor of that name
    has left.
    """

    def __init__(
        self,
        make: Callable[[EventSink], Sink],
        show: Callable[[int], str],
        clock: Callable[[], float],
    ) -> None:
        self._make = make
        self._show = show
        self._clock = clock
        self._couriers: dict[str, Courier] = {}
        self._nursery: trio.Nursery | None = None

    def take(self, events: Iterable[DaemonEvent]) -> None:
        """Queue events for each sink that wants them."""
        if self._couriers:
            for event in events:
                for courier in self._couriers.values():
                    courier.take(event)

    def status(self) -> list[SinkStatus]:
        return [courier.status() for courier in self._couriers.values()]

    async def run(self, settings: Callable[[], Settings], changed: Latest[Any]) -> None:
        """Send for ever, to the sinks of the newest settings. It may be run again after it has crashed."""
        again = self._nursery is not None
        async with trio.open_nursery() as self._nursery:
            for name, courier in self._couriers.items():
                if again:
                    self._couriers[name] = self._begin(courier.config, courier)
                else:
                    self._nursery.start_soon(courier.run)
            while True:
                version = changed.version
                self.configure(settings())
                await changed.wait_newer(version)

    def hurry(self) -> None:
        """Send without pauses from now on: the daemon ends."""
        for courier in self._couriers.values():
            courier.hurry()

    async def flush(self, limit_s: float = FLUSH_S) -> None:
        """Send what waits, for so long at most. A checkpoint."""
        with trio.move_on_after(min(limit_s, FLUSH_S)):
            async with trio.open_nursery() as nursery:
                for courier in self._couriers.values():
                    nursery.start_soon(courier.flush)
        for courier in self._couriers.values():
            if courier.queue:
                log.warning("event sink %s: %d events are lost", courier.config.name, len(courier.queue))

    def configure(self, settings: Settings) -> None:
        """Send to the sinks of these settings from now on."""
        before, self._couriers = self._couriers, {}
        for config in settings.event_sinks:
            courier = before.pop(config.name, None)
            if courier is None or courier.config != config:
                courier = self._begin(config, courier)
            self._couriers[config.name] = courier
        for courier in before.values():
            if self._nursery is not None:
                self._nursery.start_soon(_end, courier)

    def _begin(self, config: EventSink, before: Courier | None) -> Courier:
        if before is not None:
            before.scope.cancel()
        queue = None if before is None else before.queue
        courier = Courier(config, self._make(config), self._show, self._clock, queue)
        if self._nursery is not None:
            self._nursery.start_soon(courier.run)
        return courier


async def _end(courier: Courier) -> None:
    with trio.move_on_after(FLUSH_S):
        await courier.flush()
    courier.scope.cancel()
