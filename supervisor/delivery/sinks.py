"""Which sink goes with an entry of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from supervisor.config.sections.event_sinks import EventSink
from supervisor.delivery.file_sink import FileSink
from supervisor.delivery.sink import Delivered, EventBatch, Sink
from supervisor.delivery.store_sink import StoreSink
from supervisor.host.loop.workbench import beside
from supervisor.host.preload import preload
from supervisor.store import Store


class LateHttpSink:
    """An HTTP sink whose libraries are imported in a thread, before its first batch: they take a fifth of a second."""

    def __init__(self, config: EventSink, clock: Callable[[], float]) -> None:
        self._config = config
        self._clock = clock
        self._sink: Sink | None = None

    async def deliver(self, batch: EventBatch) -> Delivered:
        if self._sink is None:
            await beside(partial(preload, remote=True))
            from supervisor.delivery.http_sink import HttpSink

            self._sink = HttpSink(self._config, self._clock)
        return await self._sink.deliver(batch)

    async def close(self) -> None:
        if self._sink is not None:
            await self._sink.close()


class Sinks:
    """Makes sinks. `clock` gives unix seconds."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def make(self, config: EventSink) -> Sink:
        match config.type:
            case "store":
                return StoreSink(config, self._store, self._clock)
            case "file":
                return FileSink(config)
            case "http":
                return LateHttpSink(config, self._clock)
