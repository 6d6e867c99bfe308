"""A daemon in a world without chance: virtual time, entropy by a seed, no threads, tasks in the order of their birth.

Only the outermost doors are used: a configuration, a data directory, a socket, `Daemon`, and the command `mcpvisor`.
What is replaced for the time of a recording belongs to Python and trio, nothing to the daemon.
"""

from __future__ import annotations

import io
import logging
import math
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import h11
import pytest
import trio
from trio._core import _run  # as hypothesis has it: there is no public name for a scheduler without chance
from trio._threads import to_thread_run_sync as in_thread  # the public name may stand for something else in tests
from trio.testing import MockClock

from actors.transport.base import Transport
from supervisor import cli
from supervisor.config import Configuration, load
from supervisor.config.edits import Change
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets
from supervisor.host.datadir import DataDir, open_data_dir
from supervisor.servers.deployment import DeployedServer

T = TypeVar("T")

NOW: Final = 1_795_600_000.0
"""Unix time at the beginning."""
SWITCHED: Final = 101
IDLE_S: Final = 0.01
"""Real time in which nothing happens, before virtual time jumps to what is next: loopback takes a moment."""
PATIENCE_S: Final = 100_000.0
OURS: Final = ("actors", "supervisor", "tests")
TIMES: Final = ("time", "time_ns", "perf_counter")


class _InOrder:
    """Stands for trio's source of chance: tasks run in the order in which they were made."""

    def random(self) -> float:
        return 1.0

    def shuffle(self, tasks: list[Any]) -> None:
        del tasks


async def _run_here(work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Stands for a thread: what it would do is done at once."""
    await trio.lowlevel.checkpoint()
    del options
    return work(*arguments)


class World:
    """`clock` is that of the loop; `log` has what the daemon logged, as `level: message`."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.log: list[str] = []

    def now(self) -> float:
        """Return unix time."""
        return NOW + self.clock.current_time()

    def run(self, play: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Return what `play` returns."""
        with pytest.MonkeyPatch.context() as patch, self._logging():
            self._without_chance(patch)
            return trio.run(self._bounded, play, arguments, clock=self.clock)

    async def _bounded(self, play: Callable[..., Awaitable[T]], arguments: tuple[Any, ...]) -> T:
        self.flows()
        with trio.fail_after(PATIENCE_S):
            return await play(*arguments)

    def flows(self) -> None:
        self.clock.autojump_threshold = IDLE_S

    def stands(self) -> None:
        """From now on time stands still, until it `flows` again."""
        self.clock.autojump_threshold = math.inf

    def _without_chance(self, patch: pytest.MonkeyPatch) -> None:
        chance = random.Random(7)
        patch.setattr(_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        patch.setattr(_run, "_r", _InOrder())
        patch.setattr(random, "_urandom", chance.randbytes)
        patch.setattr(trio.to_thread, "run_sync", _run_here)
        patch.setattr(random, "getrandbits", chance.getrandbits)
        patch.setattr(random, "random", lambda: 0.5)  # not by turns: what is drawn once more changes nothing else
        patch.setattr(random, "uniform", lambda least, most: (least + most) / 2)
        stood: dict[str, Callable[[], Any]] = {
            "time": self.now,
            "time_ns": lambda: int(self.now() * 1e9),
            "perf_counter": self.clock.current_time,
        }
        real = {name: getattr(time, name) for name in TIMES}
        modules = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] in OURS]
        for name in TIMES:
            for module in modules:
                if vars(module).get(name) is real[name]:
                    patch.setattr(module, name, stood[name])
            patch.setattr(time, name, stood[name])

    @contextmanager
    def _logging(self) -> Iterator[None]:
        root, keeper = logging.getLogger(), _Keeper(self.log)
        before = root.level
        root.addHandler(keeper)
        root.setLevel(logging.INFO)
        try:
            yield
        finally:
            root.removeHandler(keeper)
            root.setLevel(before)


class _Keeper(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in OURS:
            self._lines.append(f"{record.levelname.lower()}: {record.getMessage()}")


@asynccontextmanager
async def serving(
    world: World, path: Path, root: Path, connect: Callable[[DeployedServer], Transport]
) -> AsyncIterator[tuple[int, str]]:
    """Run a daemon with a configuration for the block; yield its port and the key of its operator."""

    def read(other: str | None, change: Change) -> Configuration:
        return load(Path(other or path), dict(os.environ), change=change)

    with open_data_dir(root, {}) as data:
        daemon = Daemon(
            load(path, dict(os.environ)), data, open_sockets("127.0.0.1:0", 5.0), world.now, connect=connect
        )
        daemon.read = read
        async with trio.open_nursery() as nursery:
            (url,) = await nursery.start(daemon.run)
            yield int(url.rpartition(":")[2]), _key(data)
            daemon.closing.set()


def _key(data: DataDir) -> str:
    return data.key("page").hex()


class Answer(NamedTuple):
    """`headers` have small names; `body` may be empty."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Request(NamedTuple):
    """`line` has method and path."""

    line: str
    headers: Mapping[str, str]
    body: bytes


class Client:
    """One connection to a daemon, made when it is needed and again when it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stream: trio.SocketStream | None = None
        self._http = h11.Connection(h11.CLIENT)

    async def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """Return the whole answer to a request; of a stream, or of what is no HTTP any more, the beginning."""
        length = {"content-length": str(len(body))} if body else {}
        lines = [*{"host": f"127.0.0.1:{self._port}", **headers, **length}.items()]
        request = h11.Request(method=method, target=path, headers=lines)
        try:
            return await self._exchange(request, body)
        except trio.Cancelled:  # who does not want the answer leaves
            with trio.CancelScope(shield=True):
                await self.close()
            raise

    async def _exchange(self, request: h11.Request, body: bytes) -> Answer:
        kept = self._stream is not None
        head = await self._send(request, body)
        if kept and isinstance(head, h11.ConnectionClosed):  # it was idle for too long
            await self.close()
            head = await self._send(request, body)
        told = {name.decode(): value.decode() for name, value in head.headers}
        parts = bytearray()
        if head.status_code != SWITCHED and told.get("content-type") != "text/event-stream":
            while isinstance(event := await self._next(), h11.Data):
                parts += event.data
        if self._http.our_state is self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            await self.close()
        return Answer(head.status_code, told, bytes(parts))

    async def _send(self, request: h11.Request, body: bytes) -> Any:
        """Send a request; return the head of its answer, or that the daemon has closed the connection."""
        if self._stream is None:
            self._stream = await trio.open_tcp_stream("127.0.0.1", self._port)
            self._http = h11.Connection(h11.CLIENT)
        said = self._http.send(request) or b""
        said += self._http.send(h11.Data(data=body)) or b"" if body else b""
        self._http.send(h11.EndOfMessage())
        try:
            await self._stream.send_all(said)
            return await self._next()
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            return h11.ConnectionClosed()

    async def _next(self) -> Any:
        assert self._stream is not None
        return await next_event(self._http, self._stream)

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = None


async def receive(requests: list[Request], stream: trio.SocketStream) -> None:
    """Take requests on a connection, and answer each with 200."""
    http = h11.Connection(h11.SERVER)
    async with stream:
        while not isinstance(event := await next_event(http, stream), h11.ConnectionClosed):
            if isinstance(event, h11.Request):
                head, parts = event, bytearray()
            elif isinstance(event, h11.Data):
                parts += event.data
            elif isinstance(event, h11.EndOfMessage):
                named = {name.decode(): value.decode() for name, value in head.headers}
                requests.append(Request(f"{head.method.decode()} {head.target.decode()}", named, bytes(parts)))
                answer = http.send(h11.Response(status_code=200, headers=[("content-length", "0")])) or b""
                http.send(h11.EndOfMessage())
                await stream.send_all(answer)
                http.start_next_cycle()


async def next_event(http: h11.Connection, stream: trio.SocketStream) -> Any:
    """Return what comes next on a connection."""
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await stream.receive_some(65536))
    return event


async def command(world: World, words: list[str], within_s: float, stdin: str = "") -> tuple[int, str, str]:
    """Run `mcpvisor` with these arguments; return its exit code, and what it wrote to stdout and stderr.

    What it asks a daemon is asked in this loop, so that time stands still meanwhile, and goes on while it waits. After
    `within_s` of that somebody presses Ctrl-C.
    """

    async def ask(question: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> Any:
        world.flows()
        try:
            with trio.move_on_after(within_s):
                return await question(*arguments)
            raise KeyboardInterrupt
        finally:
            world.stands()

    def run_there(question: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        del options
        return trio.from_thread.run(ask, question, arguments)

    def work() -> tuple[int, str, str]:
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            patch.setattr(trio, "run", run_there)
            try:
                cli.main(words)
            except SystemExit as exit_:
                return int(exit_.code or 0), out.getvalue(), errors.getvalue()
        raise AssertionError("a command exits")

    world.stands()
    try:
        return await in_thread(work)
    finally:
        world.flows()
