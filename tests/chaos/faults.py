"""What each kind of fault does, by name. Each takes as long as it lasts, and leaves nothing of it behind."""

from __future__ import annotations

import os
import random
import resource
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic

import httpx2
import trio

from tests.chaos import remote_faults
from tests.chaos.deaf import deaf_client
from tests.chaos.history import USERS, Change, Disturbance
from tests.chaos.load import Load
from tests.chaos.schedule import Fault
from tests.chaos.world import LIVELY, World
from tests.e2e.invariants import below, is_alive
from tests.fakes.fault_server import FAULTS

VICTIMS = ("mortal", "wild", "sleepy", "stormy", "own", "edited", "asking")
REVOKED = USERS[-1]
CONVERGE_S = 30.0
"""So long it is waited for a change; how soon it must come is in `Bounds`."""
LOOK_S = 0.05
GONE_S = 2.0
AT_ONCE = 40
HALF_A_DAY_S = 43_200.0
"""Less than the longest age of a session, which is in its id and follows the wall clock, also over restarts."""


class Mischief:
    """Does faults to a world under load. `left`: processes that outlived a daemon that was killed."""

    def __init__(self, world: World, load: Load) -> None:
        self.world = world
        self.load = load
        self.left: list[str] = []
        self._variant = 1

    async def do(self, fault: Fault) -> None:
        """Do one fault, to its end."""
        luck = random.Random(fault.luck)
        what = DEEDS[fault.kind.name]
        if fault.kind.shakes:
            async with self.world.shaking:
                await what(self, luck, fault.lasts_s)
        else:
            await what(self, luck, fault.lasts_s)

    @contextmanager
    def _noted(self, what: str, whom: str = "") -> Iterator[None]:
        noted = Disturbance(what=what, whom=whom, from_s=monotonic(), to_s=float("inf"))
        self.load.history.disturbances.append(noted)
        try:
            yield
        finally:
            noted.to_s = monotonic()

    def _victim(self, luck: random.Random) -> tuple[str, int] | None:
        found = [
            (name, process.pid)
            for name, each in sorted(self.world.processes().items())
            if name.partition(" ")[0] in VICTIMS
            for process in each
        ]
        return luck.choice(found) if found else None

    # Servers --------------------------------------------------------------------------------------------------------

    async def kill_server(self, luck: random.Random, _: float) -> None:
        await trio.lowlevel.checkpoint()
        if (victim := self._victim(luck)) is not None:
            with self._noted("kill server", victim[0]), suppress(ProcessLookupError):
                os.kill(victim[1], luck.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)))

    async def stop_server(self, luck: random.Random, lasts_s: float) -> None:
        if (victim := self._victim(luck)) is None:
            return
        with self._noted("stop server", victim[0]), suppress(ProcessLookupError):
            os.kill(victim[1], signal.SIGSTOP)
            await trio.sleep(lasts_s)
            os.kill(victim[1], signal.SIGCONT)

    async def wire_fault(self, luck: random.Random, _: float) -> None:
        name = luck.choice(sorted(FAULTS))
        self.load.history.done[f"wire: {name}"] += 1
        await self.load.probe("wild", "fault", fault=name)

    async def many_at_once(self, luck: random.Random, _: float) -> None:
        async with trio.open_nursery() as nursery:
            for _number in range(AT_ONCE):
                nursery.start_soon(self.load.probe, luck.choice(("sleepy", "mortal")), "echo")

    async def storm(self, _luck: random.Random, _: float) -> None:
        """Have a server say without end that its tools changed, and they did."""
        async with self.world.editing:
            await self.load.probe("stormy", "storm")

    async def remote_fault(self, luck: random.Random, lasts_s: float) -> None:
        name = luck.choice(sorted(remote_faults.FAULTS))
        self.load.history.done[f"remote: {name}"] += 1
        server = luck.choice((self.world.web, self.world.modern))
        whom = "web" if server is self.world.web else "modern"
        with self._noted("remote fault", whom):
            server.faults["tools/call"] = remote_faults.noted(name, str(self.world.ledger), whom)
            await trio.sleep(lasts_s)
            server.faults.pop("tools/call", None)

    async def tear_remote(self, luck: random.Random, _: float) -> None:
        await trio.lowlevel.checkpoint()
        remote_faults.tear_some(luck, self.world)

    async def expire_login(self, _luck: random.Random, _: float) -> None:
        await self.load.probe("guarded", "echo")
        await self.load.forget()
        await self.load.probe("guarded", "echo")

    # Clients --------------------------------------------------------------------------------------------------------

    async def vanish(self, luck: random.Random, _: float) -> None:
        await trio.lowlevel.checkpoint()
        for client in luck.sample(self.load.clients, luck.randint(1, 3)):
            client.tear()

    async def deaf_client(self, luck: random.Random, lasts_s: float) -> None:
        user = luck.choice(USERS[:-1])
        await deaf_client(self.world.daemon.port, self.world.tokens[user], user, lasts_s)

    # Configuration --------------------------------------------------------------------------------------------------

    async def _seen(self, what: str, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something can be seen, and note how long that took."""
        begin, took_s = monotonic(), None
        with trio.move_on_after(CONVERGE_S + 10):
            while took_s is None:
                with suppress(httpx2.HTTPError, ValueError, KeyError, OSError):
                    if await holds():
                        took_s = monotonic() - begin
                await trio.sleep(LOOK_S)
        self.load.history.changes.append(Change(what, begin, took_s))

    async def add_or_remove(self, _luck: random.Random, _: float) -> None:
        async with self.world.editing:
            there = "extra" not in self.world.servers
            if there:
                self.world.servers["extra"] = self.world.stdio("extra", **LIVELY)
            else:
                del self.world.servers["extra"]
            with self._noted("add or remove", "extra"):
                self.world.write()

                async def holds() -> bool:
                    return ("extra__echo" in await self.world.listed(USERS[0])) is there

                await self._seen(f"extra {'came' if there else 'went'}", holds)

    async def change_server(self, _luck: random.Random, _: float) -> None:
        async with self.world.editing:
            self._variant += 1
            variant = self._variant
            self.world.servers["edited"] = self.world.stdio("edited", str(variant), **LIVELY)
            with self._noted("change server", "edited"):
                self.world.write()

                async def holds() -> bool:
                    found = {name for name in await self.world.listed(USERS[0]) if name.startswith("edited__only")}
                    return found == {f"edited__only_{variant}"}

                await self._seen(f"edited became {variant}", holds)

    async def bad_file(self, luck: random.Random, _: float) -> None:
        """Break the file, see that this is refused, and mend it."""
        async with self.world.editing:
            good = (self.world.directory / "mcp.json").read_text()
            bad = (good[: len(good) // 2], good.replace('"command"', '"comand"', 1), "\0\xff", "[]")
            self.world.write(luck.choice(bad))
            await self._seen("a bad file is refused", partial(self._refused, True))
            self.world.write()
            await self._seen("the good file is back", partial(self._refused, False))

    async def _refused(self, wanted: bool) -> bool:
        return bool((await self.world.page("/api/status"))["configuration"]["refused"]) is wanted

    async def hang_up(self, _luck: random.Random, _: float) -> None:
        await trio.lowlevel.checkpoint()
        if self.world.daemon.process.poll() is None:
            self.world.daemon.process.send_signal(signal.SIGHUP)

    async def revoke_user(self, _luck: random.Random, lasts_s: float) -> None:
        async with self.world.editing:
            with self._noted("revoke user", REVOKED):
                values = self.world.users.pop(REVOKED)
                self.world.write()
                await self._seen(f"{REVOKED} went", partial(self._admitted, False))
                await trio.sleep(lasts_s)
                self.world.users[REVOKED] = values
                self.world.write()
                await self._seen(f"{REVOKED} came", partial(self._admitted, True))

    async def _admitted(self, wanted: bool) -> bool:
        return ((await self.world.fetch("/api/me", user=REVOKED)).status_code == 200) is wanted

    # The daemon -----------------------------------------------------------------------------------------------------

    async def full_disk(self, _luck: random.Random, lasts_s: float) -> None:
        pid = self.world.daemon.process.pid
        with self._noted("full disk"), suppress(ProcessLookupError):
            before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
            await trio.sleep(lasts_s)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)

    async def step_clock(self, luck: random.Random, lasts_s: float) -> None:
        with self._noted("step clock"):
            self.world.step_clock(luck.choice((-HALF_A_DAY_S, -60.0, 3.0, 60.0, HALF_A_DAY_S)))
            await trio.sleep(lasts_s)
            self.world.step_clock(0)

    async def stop_daemon(self, _luck: random.Random, lasts_s: float) -> None:
        with self._noted("stop daemon"):
            self.world.daemon.process.send_signal(signal.SIGSTOP)
            await trio.sleep(lasts_s)
            self.world.daemon.process.send_signal(signal.SIGCONT)
            await self._answers()

    async def kill_daemon(self, _luck: random.Random, _: float) -> None:
        """`kill -9` the daemon, see that nothing outlives it, and start another one at its address."""
        with self._noted("kill daemon"):
            daemon = self.world.daemon
            processes = below(daemon.process.pid)
            await daemon.kill()
            with trio.move_on_after(GONE_S):
                while any(is_alive(process) for process in processes):  # noqa: ASYNC110 - nothing tells another process
                    await trio.sleep(LOOK_S)
            self.left += [f"{process.pid} outlived the daemon" for process in processes if is_alive(process)]
            if daemon.process.stdout is not None:
                daemon.process.stdout.close()
            await self.world.start(f"127.0.0.1:{daemon.port}")
            await self._answers()

    async def _answers(self) -> None:
        with trio.move_on_after(CONVERGE_S):
            while True:
                with suppress(httpx2.HTTPError):
                    await self.world.fetch("/healthz")
                    return
                await trio.sleep(LOOK_S)


DEEDS: dict[str, Callable[[Mischief, random.Random, float], Awaitable[None]]] = {
    "kill server": Mischief.kill_server,
    "stop server": Mischief.stop_server,
    "wire fault": Mischief.wire_fault,
    "remote fault": Mischief.remote_fault,
    "tear remote": Mischief.tear_remote,
    "vanish": Mischief.vanish,
    "deaf client": Mischief.deaf_client,
    "storm": Mischief.storm,
    "many at once": Mischief.many_at_once,
    "expire login": Mischief.expire_login,
    "add or remove": Mischief.add_or_remove,
    "change server": Mischief.change_server,
    "bad file": Mischief.bad_file,
    "hang up": Mischief.hang_up,
    "revoke user": Mischief.revoke_user,
    "full disk": Mischief.full_disk,
    "step clock": Mischief.step_clock,
    "stop daemon": Mischief.stop_daemon,
    "kill daemon": Mischief.kill_daemon,
}
