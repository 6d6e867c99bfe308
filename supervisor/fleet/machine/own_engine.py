"""The engine of a machine's nodes where none is configured: a Valkey or Redis server that ends with them.

- It listens at a socket in a directory that only this user can enter, and keeps nothing: what it knows of leases is of
  no use to nodes that begin anew.
- It runs below a shim, as servers do, so it ends however this process does.
- One that has died is started again, empty; the nodes tell it what they hold, as after any loss of an engine.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from actors.errors import ConfigError, SpawnFailed, SupervisorError
from actors.kit import Pauses
from actors.kit.paths import absolute
from actors.transport.stdio.containment import Contained, default_containment
from supervisor.config.sections import FleetSettings
from supervisor.fleet.valkey_engine import open_valkey
from supervisor.host.datadir import make_data_dir

log = logging.getLogger(__name__)

PROGRAMS: Final = ("valkey-server", "redis-server")
SOCKET: Final = "socket"
MAX_SOCKET_BYTES: Final = 100
"""Of its path; the system takes 107 (unix(7))."""
BEGIN_S: Final = 10.0
"""For a new one to answer."""
LOOK_S: Final = 0.05
MAX_PAUSE_S: Final = 5.0
END_S: Final = 2.0
SAID_CHARS: Final = 200
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9/._-]+")
"""What means the same in an address."""


def find_engine_program() -> str:
    """Return the program of an engine. Raises `ConfigError` where there is none."""
    for name in PROGRAMS:
        if (program := shutil.which(name)) is not None:
            return absolute(program)
    raise ConfigError(
        "several nodes need an engine, and there is neither valkey-server nor redis-server on PATH",
        key="supervisor.fleet.nodes",
        hint='install one ("apt install valkey-server"), or name an engine that runs in "fleet": {"engine": ...}',
    )


@contextmanager
def engine_directory(root: Path) -> Iterator[Path]:
    """Give a directory for this user alone: in a data directory, or where paths are shorter, for the block.

    Raises `ConfigError`.
    """
    own = root / "engine"
    if len(os.fsencode(own / SOCKET)) <= MAX_SOCKET_BYTES and _PLAIN_PATH.fullmatch(str(own)):
        yield make_data_dir(own)
        return
    try:
        directory = tempfile.TemporaryDirectory(prefix="mcpvisor-", dir="/tmp")  # that of TMPDIR may be as long
    except OSError as error:
        hint = "name a data directory with a shorter path"
        raise ConfigError(f"no socket of an engine fits below {own}, nor /tmp: {error.strerror}", hint=hint) from None
    with directory as place:
        yield Path(place)


class OwnEngine:
    """An engine in a `directory`; `url` is its address. `run` has to run."""

    def __init__(self, program: str, directory: Path, fleet: FleetSettings) -> None:
        self.directory = directory
        self.url = f"unix://{directory / SOCKET}"
        self._command = [program, "--port", "0", "--unixsocket", str(directory / SOCKET), "--unixsocketperm", "700"]
        self._command += ["--dir", str(directory), "--save", "", "--appendonly", "no", "--loglevel", "warning"]
        self._fleet = fleet
        self._containment = default_containment()
        self._settled = False
        self._said: deque[bytes] = deque(maxlen=2)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run it until this is cancelled; started when it grants leases. Raises `ConfigError` if it never does."""
        pauses = Pauses(max_s=MAX_PAUSE_S)
        while True:
            begun = trio.current_time()
            try:
                why = await self._run_once(task_status)
            except SpawnFailed as error:
                why = error.message
            if not self._settled:
                raise ConfigError(f"the engine {self._command[0]} did not start: {why}", key="supervisor.fleet.nodes")
            if trio.current_time() - begun > MAX_PAUSE_S:
                pauses.reset()
            pause_s = pauses.next()
            log.warning("the engine of the nodes is started again in %.1f s: %s", pause_s, why)
            await trio.sleep(pause_s)

    async def _run_once(self, task_status: trio.TaskStatus[None]) -> str:
        """Run one process to its end; return how it ended. Raises `SpawnFailed`."""
        contained = await self._containment.spawn(self._command, env={}, cwd="/")
        try:
            async with trio.open_nursery() as nursery:
                for stream in (contained.process.stdout, contained.process.stderr):
                    nursery.start_soon(self._listen, stream)
                if not self._settled:
                    nursery.start_soon(self._settle, task_status)
                code, number = await contained.wait()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await _end(contained)
        if code is None:
            return f"signal {number}"
        said = b"".join(self._said).decode(errors="replace").strip()
        return f"exit code {code}, {said[-SAID_CHARS:]}" if said else f"exit code {code}"

    async def _settle(self, task_status: trio.TaskStatus[None]) -> None:
        """Have the first process grant leases at once. Later ones do not: nodes hold what they lost."""
        async with open_valkey(self.url, self._fleet.prefix, self._fleet.lease_s) as engine:
            with trio.move_on_after(BEGIN_S):
                while not self._settled:
                    try:
                        await engine.settle()
                        self._settled = True
                    except SupervisorError:  # it does not listen yet
                        await trio.sleep(LOOK_S)
        if not self._settled:
            raise ConfigError(f"the engine {self._command[0]} does not answer", key="supervisor.fleet.nodes")
        log.info("the engine of the nodes is %s at %s", self._command[0], self.url)
        task_status.started()

    async def _listen(self, stream: trio.abc.ReceiveStream | None) -> None:
        """Read what it says, so that it never waits for us."""
        assert stream is not None
        async with stream:
            async for data in stream:
                self._said.append(bytes(data))


async def _end(contained: Contained) -> None:
    with trio.move_on_after(END_S):
        contained.kill()
        await contained.wait()
    contained.destroy()
