"""One run: a world, load on it, faults by schedule, and everything that is seen of it."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import httpx2
import trio
from msgspec import Struct

from tests.chaos.faults import Mischief
from tests.chaos.history import End, History, Sample, Start
from tests.chaos.load import Load
from tests.chaos.report import progress
from tests.chaos.schedule import QUIET, Fault
from tests.chaos.world import CANARIES, HEALTHY, World
from tests.e2e.invariants import (
    OPEN,
    below,
    complaints_in,
    figures_of,
    files_below,
    is_alive,
    leaks_of,
    metrics_of,
    ready_in,
    zombies,
)
from tests.e2e.test_login import guarded

SAMPLE_S = 0.5
PROGRESS_S = 10.0
READY_S = 60.0
CALM_S = 15.0
END_S = 60.0
PAGES = ("/api/status", "/api/status/debug", "/metrics", "/api/audit", "/api/events/kept", "/api/calls")


class Plan(Struct, frozen=True):
    """A run of so many seconds with these faults, and `calls_per_s`, only `at` these servers if any are named."""

    seconds: float
    seed: int
    faults: tuple[Fault, ...]
    calls_per_s: float
    at: tuple[str, ...] = ()


class Run:
    """One run in a directory. `say` gets a line now and then."""

    def __init__(self, directory: Path, plan: Plan, say: Callable[[str], None]) -> None:
        self.history = History(healthy=HEALTHY)
        self._directory = directory
        self._plan = plan
        self._say = say
        self._world = World(directory)
        self._begin_s = 0.0

    async def go(self) -> History:
        """Run it all, and return what was seen."""
        world, history = self._world, self.history
        world.servers["time"] = {"command": sys.executable, "args": ["-m", "mcp_server_time"], "call_timeout_s": 4}
        async with guarded(self._directory, life_s=3) as login:
            world.servers |= login.entry
            async with world.running():
                history.ledgered = world.ledgered - {"time"}
                history.budgets, history.lives = world.budgets, world.lives
                await self._until_up()
                await world.log_in("guarded")
                load = Load(world, history, self._plan.seed, self._plan.calls_per_s, self._plan.at)
                load.guarded = login
                mischief = Mischief(world, load)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._sample_for_ever)
                    nursery.start_soon(self._tell_for_ever)
                    await self._suffer(load, mischief)
                    await self._calm()
                    nursery.cancel_scope.cancel()
                await self._end(mischief)
        self._read_ledger()
        return history

    async def _until_up(self) -> None:
        with trio.move_on_after(READY_S):
            while not (await self._world.page("/readyz"))["ready"]:  # noqa: ASYNC110 - nothing tells another process
                await trio.sleep(0.1)
        await self._sample()

    async def _suffer(self, load: Load, mischief: Mischief) -> None:
        self._begin_s = monotonic()
        self.history.quiet_s = self._begin_s + self._plan.seconds * QUIET
        async with load.running(), trio.open_nursery() as nursery:
            for fault in self._plan.faults:
                await trio.sleep(max(0.0, self._begin_s + fault.at_s - monotonic()))
                self.history.done[fault.kind.name] += 1
                nursery.start_soon(mischief.do, fault)
            await trio.sleep(max(0.0, self._begin_s + self._plan.seconds - monotonic()))

    async def _tell_for_ever(self) -> None:
        while True:
            await trio.sleep(PROGRESS_S)
            self._say(progress(self.history, monotonic() - self._begin_s))

    # What is seen of the daemon -------------------------------------------------------------------------------------

    async def _sample_for_ever(self) -> None:
        while True:
            await trio.sleep(SAMPLE_S)
            with suppress(httpx2.HTTPError, OSError, ValueError, KeyError):
                await self._sample()

    async def _sample(self) -> dict[str, float]:
        """Look at the daemon once, and return its metrics. Raises `httpx2.HTTPError`, `OSError`."""
        process = self._world.daemon.process
        if process.poll() is not None:
            raise ProcessLookupError
        pid = process.pid
        page = (await self._world.fetch("/metrics")).text
        metrics = metrics_of(page)
        every = {name: len(found) for name, found in self._world.processes().items()}
        figures = figures_of(pid)
        self.history.samples.append(
            Sample(
                at_s=monotonic(),
                rss_mib=figures.rss_mib,
                descriptors=figures.descriptors,
                threads=figures.threads,
                tasks=int(metrics["mcpvisor_tasks"]),
                awake=int(ready_in(page)),
                doubles=tuple(name for name, number in every.items() if number > 1),
                zombies=tuple(zombies(pid)),
            )
        )
        return metrics

    async def _calm(self) -> None:
        """Wait until nothing is open any more, for a time; then look once more."""
        metrics: dict[str, float] = {}
        with trio.move_on_after(CALM_S):
            while not metrics or any(metrics.get(name) for name in OPEN):
                await trio.sleep(0.2)
                with suppress(httpx2.HTTPError, OSError):
                    metrics = await self._sample()
        self.history.end.gauges = {name: metrics.get(name, -1.0) for name in OPEN}

    # The end --------------------------------------------------------------------------------------------------------

    async def _end(self, mischief: Mischief) -> None:
        daemon, end = self._world.daemon, self.history.end
        shown = {}
        for path in PAGES:
            with suppress(httpx2.HTTPError):
                shown[path] = (await self._world.fetch(path)).content
        processes = below(daemon.process.pid)
        deaths: list[int] = []
        if (ended := daemon.process.poll()) is not None:
            deaths.append(ended)
        else:
            daemon.process.send_signal(signal.SIGTERM)
            code = await daemon.ended(END_S)
            deaths += [code] if code else []
        left = [*mischief.left, *(f"{each.pid} is left at the end" for each in processes if is_alive(each))]
        left += [f"a process of {name} is left" for name in self._world.processes()]
        shown |= {f"data/{name}": text for name, text in files_below(self._directory / "data").items()}
        shown["the log"] = daemon.log.encode(errors="replace")
        self.history.end = End(
            leaks=leaks_of((*CANARIES.values(), *self._world.tokens.values()), shown),
            left=tuple(left),
            deaths=tuple(deaths),
            complaints=complaints_in(daemon.log),
            gauges=end.gauges,
        )

    def _read_ledger(self) -> None:
        ran: Counter[str] = Counter()
        for line in self._world.ledger.read_text().splitlines():
            entry = json.loads(line)
            if entry["what"] == "run":
                ran[entry["key"]] += 1
            else:
                self.history.starts.append(Start(entry["server"], entry["pid"], entry["at_s"]))
        self.history.ran = dict(ran)
