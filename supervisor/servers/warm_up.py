"""Starting a server ahead of the call that a search makes likely.

A search answers from the catalogue and waits for no server. Where its first hit is good, the next call of its client
probably goes there, so that server may start meanwhile:

- only a process that sleeps and never failed since it was up; a search sends nothing to another machine;
- only where a start would wait for nothing and nothing is wanted; a start that a call waits for goes first;
- `warm_up` of them at most wait for their first call, and one that nobody calls sleeps again.

Whose search it was says which launch is started. Whether it was right is counted by the calls that have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

import msgspec
import trio

from actors.errors import SupervisorError
from actors.kit import Address, Latest
from actors.launch import server_of
from actors.life.states import State
from actors.messages import ServerStatus, SleepServer, WakeServer
from actors.principal import Principal
from actors.router import LaunchOf
from actors.router import Message as RouterMessage
from supervisor.metrics.meters import Meters, WarmUpOutcome
from supervisor.servers.deployment import Deployment
from supervisor.usage.records import MAX_CLIENT_CHARS, UNKNOWN, CallRecord

NEXT_CALL_S: Final = 60.0
"""A call that comes later has nothing to do with the search."""
MAX_OPEN: Final = 1000
"""Of so many at a time it is counted whether they were right."""
START_S: Final = 60.0
"""How long a start is waited for; it goes on after that."""
SLEEP_S: Final = 10.0
_ENDED_BY_SLEEP: Final = frozenset({State.READY, State.RESPAWNING})


class Searcher(Protocol):
    """The client whose search it was."""

    @property
    def principal(self) -> Principal: ...

    @property
    def name(self) -> str: ...


class Warmed(msgspec.Struct, kw_only=True, eq=False):
    """A server that was started ahead at `began`; `ready` is when it was, in unix seconds. `calls` it had before."""

    server: str
    launch: str
    principal: Principal
    client: str
    calls: int
    began: float
    ready: float | None = None
    decided: trio.Event = msgspec.field(default_factory=trio.Event)
    used: trio.Event = msgspec.field(default_factory=trio.Event)


class WarmUp:
    """Starts servers ahead. `room`: whether a start would wait for nothing; `live` says how a launch is doing now.

    `clock` gives unix seconds, as in the records of calls.
    """

    def __init__(
        self,
        router: Address[RouterMessage],
        launch_of: LaunchOf,
        room: Callable[[], bool],
        live: Callable[[str], ServerStatus | None],
        deployment: Latest[Deployment],
        clock: Callable[[], float],
        meters: Meters,
    ) -> None:
        self._router = router
        self._launch_of = launch_of
        self._room = room
        self._live = live
        self._deployment = deployment
        self._clock = clock
        self._meters = meters
        self._nursery: trio.Nursery | None = None
        self._unused: dict[str, Warmed] = {}
        self._open: list[Warmed] = []

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await trio.sleep_forever()

    def consider(self, client: Searcher, server: str, status: ServerStatus) -> None:
        """Start a server if that may be. `status` is how it was last for the client. Implements `Ahead`. At once."""
        most = self._deployment.value.settings.warm_up
        full = len(self._unused) >= most or len(self._open) >= MAX_OPEN
        if self._nursery is None or full or not _may_start(status) or not self._room():
            return
        with suppress(SupervisorError):  # there is none for whoever asks
            launch = self._launch_of(server, client.principal)
            status = self._live(launch) or status
            if launch not in self._unused and _may_start(status):
                warmed = self._unused[launch] = Warmed(
                    server=server,
                    launch=launch,
                    principal=client.principal,
                    client=client.name[:MAX_CLIENT_CHARS],
                    calls=status.calls,
                    began=self._clock(),
                )
                self._open.append(warmed)
                self._nursery.start_soon(self._start, warmed)
                self._nursery.start_soon(self._await_call, warmed)

    def take(self, records: Sequence[CallRecord]) -> None:
        """See which call of each client came next. Implements `supervisor.usage.totals.Take`."""
        if not self._open:
            return
        for record in records:
            if record.server in ("", UNKNOWN):
                continue
            began = record.time - (record.waited_ms + record.took_ms) / 1000
            for warmed in [each for each in self._open if _is_next(each, record, began)]:
                right = server_of(record.server) == warmed.server
                until = began if warmed.ready is None else min(began, warmed.ready)
                self._decide(warmed, "right" if right else "wrong", until - warmed.began if right else 0.0)

    def _decide(self, warmed: Warmed, outcome: WarmUpOutcome, saved_s: float = 0.0) -> None:
        if warmed in self._open:
            self._open.remove(warmed)
            warmed.decided.set()
            if outcome == "right":
                warmed.used.set()
            self._meters.on_warm_up(outcome, saved_s)

    async def _await_call(self, warmed: Warmed) -> None:
        with trio.move_on_after(NEXT_CALL_S):
            await warmed.decided.wait()
        self._decide(warmed, "unused")

    async def _start(self, warmed: Warmed) -> None:
        try:
            with trio.move_on_after(START_S):
                await self._router.ask(WakeServer(server=warmed.server, urgent=False, principal=warmed.principal))
                warmed.ready = self._clock()
            with trio.move_on_after(self._deployment.value.settings.warm_up_unused_s):
                await warmed.used.wait()
            await self._put_to_sleep(warmed)
        except SupervisorError:
            self._decide(warmed, "failed")
            await self._put_to_sleep(warmed)  # nobody waits for it: it need not be tried again
        finally:
            del self._unused[warmed.launch]

    async def _put_to_sleep(self, warmed: Warmed) -> None:
        """Put a server to sleep that nobody at all has called, unless it is to be kept running."""
        status, kept = self._live(warmed.launch), self._deployment.value.never_sleeps(warmed.launch)
        if status is None or kept or status.state not in _ENDED_BY_SLEEP or status.calls != warmed.calls:
            return
        if not (status.in_flight or status.waiting or status.tasks):
            with trio.move_on_after(SLEEP_S), suppress(SupervisorError):
                await self._router.ask(SleepServer(server=warmed.server, principal=warmed.principal))


def _may_start(status: ServerStatus) -> bool:
    healthy = status.last_error is None and not status.requires_reauth and not status.reason
    return status.state is State.DORMANT and status.transport == "stdio" and healthy


def _is_next(warmed: Warmed, record: CallRecord, began: float) -> bool:
    """Say whether a call is one of whoever searched, and came after the search."""
    return (record.principal, record.client) == (warmed.principal, warmed.client) and began >= warmed.began
