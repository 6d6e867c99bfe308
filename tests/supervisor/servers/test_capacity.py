"""Room for servers that are wanted, made by those that nobody uses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import msgspec
import trio
from trio.testing import MockClock

from actors.kit import Actor, Conditions, Reply
from actors.kit.directory import Directory
from actors.life.states import State
from actors.messages import ServerStatus, SleepServer
from actors.server import ServerMessage
from actors.transport.stdio.descriptors import RUNNING, SPAWN, WHAT
from supervisor.config import ServerConfig
from supervisor.servers.capacity import Capacity
from supervisor.servers.statuses import Statuses
from tests.fakes.deployments import deployment


class Server(Actor[ServerMessage]):
    """Sleeps when it is told to."""

    def __init__(self, status: ServerStatus) -> None:
        super().__init__(8)
        self.status = status

    def read(self, stderr: bool) -> ServerStatus:
        del stderr
        return self.status

    def handle(self, message: ServerMessage, reply: Reply[Any] | None) -> None:
        assert reply is not None
        match message:
            case SleepServer():
                self.status = msgspec.structs.replace(self.status, state=State.DORMANT)
                reply.answer(None)


def server(name: str, since: float = 0.0, **more: Any) -> Server:
    status = ServerStatus(server=name, state=State.READY, wanted="up", since=since)
    return Server(msgspec.structs.replace(status, **more))


@asynccontextmanager
async def running(*servers: Server, free: int, kept: tuple[str, ...] = ()) -> AsyncIterator[Conditions]:
    directory: Directory[ServerMessage] = Directory()
    statuses, conditions = Statuses(), Conditions()
    names = [each.status.server for each in servers]
    entries = deployment(*(ServerConfig(name=name, idle_timeout_s=0.0 if name in kept else 9.0) for name in names))

    def free_now() -> int:
        return free + RUNNING * sum(each.status.state is State.DORMANT for each in servers)

    async with trio.open_nursery() as nursery:
        with ExitStack() as stack:
            for each in servers:
                await nursery.start(each.run)
                stack.enter_context(directory.register(each.status.server, each.address))
                stack.enter_context(statuses.register(each.status.server, each.read))
            nursery.start_soon(Capacity(directory, statuses, conditions, entries, free_now).run)
            yield conditions
            nursery.cancel_scope.cancel()


def asleep(*servers: Server) -> list[str]:
    return [each.status.server for each in servers if each.status.state is State.DORMANT]


async def test_the_servers_that_are_idle_longest_sleep_until_there_is_room(autojump_clock: MockClock) -> None:
    servers = [server(name, since) for name, since in (("c", 3.0), ("a", 1.0), ("d", 4.0), ("b", 2.0), ("e", 5.0))]
    async with running(*servers, free=SPAWN - 2) as conditions:
        await trio.sleep(10)
        assert asleep(*servers) == []
        conditions.begin(WHAT, "Too many open files")
        await trio.sleep(10)
        assert asleep(*servers) == ["a", "b"]


async def test_who_works_who_is_called_and_who_is_to_be_kept_stays_awake(autojump_clock: MockClock) -> None:
    working, waited_for = server("working", in_flight=1), server("waited", waiting=1)
    kept, called, starting = server("kept"), server("called"), server("starting", state=State.HANDSHAKING)
    servers = (working, waited_for, kept, called, starting)

    async def call() -> None:
        while True:
            called.status = msgspec.structs.replace(called.status, calls=called.status.calls + 1)
            await trio.sleep(0.01)

    async with running(*servers, free=0, kept=("kept",)) as conditions, trio.open_nursery() as nursery:
        nursery.start_soon(call)
        conditions.begin(WHAT, "Too many open files")
        await trio.sleep(5)
        assert asleep(*servers) == []
        nursery.cancel_scope.cancel()


async def test_it_rests_once_servers_can_be_started(autojump_clock: MockClock) -> None:
    idle = server("idle")
    async with running(idle, free=0) as conditions:
        conditions.begin(WHAT, "Too many open files")
        conditions.end(WHAT)
        await trio.sleep(10)
        assert asleep(idle) == []
