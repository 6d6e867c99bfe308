"""Network namespaces for nodes of a fleet, so that the network between any two of them can be cut. Linux, as root.

Each namespace has an address on one bridge. A node listens for clients at 127.0.0.1 of its own namespace, so what comes
to the same port here is carried there through a socket in a directory, which all namespaces share.

    test ──▶ 127.0.0.1:PORT ──▶ DIRECTORY/NAME.socket ──▶ namespace: 127.0.0.1:PORT ──▶ node
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path

import trio

from benchmarks.machine import until

NETWORK = "10.213.77"
_NUMBERS = count()
ROOT = Path(__file__).parents[2]
Connect = Callable[[], Awaitable[trio.SocketStream]]


def why_not() -> str:
    """Return why there can be none here; empty if there can."""
    if shutil.which("ip") is None:
        return "iproute2 is not installed"
    probe = f"mcpv-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False)
    if made.returncode == 0:
        subprocess.run(["ip", "netns", "del", probe], check=False)
        return ""
    return "no network namespace can be made: that takes root"


class Namespaces:
    """One for each name. `cut` and `heal` the way between two, both ways."""

    def __init__(self, directory: Path, names: tuple[str, ...]) -> None:
        self._directory = directory
        self._mark = (
            f"m{os.getpid() % 100_000}.{next(_NUMBERS)}"  # those before go away some time after they are removed
        )
        self._numbers = {name: number for number, name in enumerate(names, 1)}

    def address(self, name: str) -> str:
        return f"{NETWORK}.{self._numbers[name]}"

    def inside(self, name: str) -> tuple[str, ...]:
        """Return what begins a command that runs in a namespace."""
        return ("ip", "netns", "exec", self._namespace(name))

    def place(self, name: str) -> str:
        """Return the file of a namespace, for `setns`."""
        return f"/run/netns/{self._namespace(name)}"

    def make(self) -> None:
        _ip("link", "add", self._mark, "type", "bridge")
        _ip("link", "set", self._mark, "up")
        for name, number in self._numbers.items():
            here, there = f"{self._mark}{number}h", f"{self._mark}{number}t"
            _ip("netns", "add", self._namespace(name))
            _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", self._namespace(name))
            _ip("link", "set", here, "master", self._mark, "up")
            for command in (
                ("link", "set", "lo", "up"),
                ("addr", "add", f"{self.address(name)}/24", "dev", there),
                ("link", "set", there, "up"),
            ):
                _ip("-n", self._namespace(name), *command)

    def remove(self) -> None:
        for name in self._numbers:
            _ip("netns", "del", self._namespace(name), may_fail=True)
        _ip("link", "del", self._mark, may_fail=True)

    def cut(self, one: str, other: str) -> None:
        """Lose whatever they send to one another, without a word."""
        self._route("add", one, other)

    def heal(self, one: str, other: str) -> None:
        self._route("del", one, other)

    def _route(self, what: str, one: str, other: str) -> None:
        for name, peer in ((one, other), (other, one)):
            _ip("-n", self._namespace(name), "route", what, "blackhole", f"{self.address(peer)}/32")

    def _carrier(self, name: str, path: Path, port: int) -> subprocess.Popen[bytes]:
        command = [*self.inside(name), sys.executable, "-m", "tests.fleet.namespaces", str(path), str(port)]
        return subprocess.Popen(command, cwd=ROOT)

    def _namespace(self, name: str) -> str:
        return f"{self._mark}-{name}"

    @asynccontextmanager
    async def door(self, name: str, port: int) -> AsyncIterator[None]:
        """Have this port lead to the same one of a namespace, as long as the block lasts."""
        path = self._directory / f"{name}.socket"
        carrier = self._carrier(name, path, port)
        try:
            await trio.to_thread.run_sync(until, path.exists, "the carrier listens")
            async with trio.open_nursery() as nursery:
                lead = partial(_carry, partial(trio.open_unix_socket, str(path)))
                await nursery.start(partial(trio.serve_tcp, lead, port, host="127.0.0.1"))
                yield
                nursery.cancel_scope.cancel()
        finally:
            carrier.kill()
            carrier.wait()


@contextmanager
def namespaces(directory: Path, *names: str) -> Iterator[Namespaces]:
    made = Namespaces(directory, names)
    try:
        made.make()
        yield made
    finally:
        made.remove()


def _ip(*arguments: str, may_fail: bool = False) -> None:
    subprocess.run(["ip", *arguments], check=not may_fail, capture_output=True)


async def _carry(connect: Connect, stream: trio.SocketStream) -> None:
    """Carry bytes both ways until either side ends."""
    with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        async with await connect() as other, trio.open_nursery() as nursery:
            nursery.start_soon(_pour, stream, other)
            await _pour(other, stream)
            nursery.cancel_scope.cancel()


async def _pour(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async for data in source:
            await sink.send_all(data)
        await sink.send_eof()


async def carry(path: str, port: int) -> None:
    """Carry what comes to a socket to a port of the namespace that this runs in, for ever."""
    listener = trio.socket.socket(trio.socket.AF_UNIX)
    await listener.bind(f"{path}.new")
    listener.listen(100)
    await trio.Path(f"{path}.new").rename(path)  # whoever waits for it finds it listening
    connect = partial(trio.open_tcp_stream, "127.0.0.1", port)
    await trio.serve_listeners(partial(_carry, connect), [trio.SocketListener(listener)])


if __name__ == "__main__":
    trio.run(carry, sys.argv[1], int(sys.argv[2]))
