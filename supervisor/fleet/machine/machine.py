"""Several nodes on one machine, behind one address: the process that starts them, and serves nothing itself.

- Each node is a daemon as any other one, with a data directory of its own; the first has that of the machine, so a
  daemon that becomes several keeps what it knew. They are a fleet by an engine that is configured, or of their own.
  With the latter, which knows nothing at first, what they have in common is what the first node has kept.
- All listen at a port that this process holds for them. The system gives each new connection to one of them.
- All have to come up once. Then one that ends is started again, and the others go on; only where none is left that has
  not ended more than five times within a minute is that the end of all.
- Nodes and engine end with this process, however it does. All of them hold the lock of the data directory: whoever
  starts the next ones finds none of these.
"""

from __future__ import annotations

import logging
import random
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from actors.errors import ConfigError
from actors.kit import Latest, is_want, reason_of
from actors.life.policy import RestartLog, RestartPolicy
from supervisor.config.sections import FleetSettings
from supervisor.fleet.machine.node_process import NodeCommand, NodeProcess
from supervisor.fleet.machine.own_engine import OwnEngine, engine_directory, find_engine_program
from supervisor.fleet.machine.setup import NodeSetup
from supervisor.host.datadir import DATABASE, PUBLISHED, DataDir, make_data_dir, previous_of
from supervisor.host.files import write_atomically
from supervisor.host.program import EXIT_CRASH, EXIT_STUCK, ProgramFailed, Systemd
from supervisor.store import open_store

log = logging.getLogger(__name__)

POLICY: Final = RestartPolicy(max_restarts=5, period_s=60.0, backoff_initial_s=0.1, backoff_max_s=5.0)
AGAIN_S: Final = 60.0
"""Before a node is started again that ended too often."""


class MachineNodes:
    """The nodes of one machine; implements `Program`. `command` starts a node that has a data directory."""

    def __init__(
        self,
        fleet: FleetSettings,
        data: DataDir,
        listen: str,
        command: Callable[[Path], NodeCommand],
    ) -> None:
        """`listen`: the address that is reserved for them."""
        self.closing = trio.Event()
        self.ending: Callable[[], None] = lambda: None
        self.urls: Latest[list[str]] = Latest([])
        self.systemd = Systemd({})
        self._fleet, self._data, self._listen = fleet, data, listen
        self._command = command
        self._nodes: list[NodeProcess] = []
        self._lost: set[NodeProcess] = set()
        self._codes: list[int] = []

    def reload(self) -> None:
        """Have all nodes read the configuration again."""
        self.systemd.begin_reload()
        for node in self._nodes:
            if node.urls:  # one that begins reads it anyway
                node.signal(signal.SIGHUP)
        self.systemd.ready("its nodes read the configuration again")

    async def run(self, *, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED) -> None:
        """Run all until `closing` is set; started when all nodes listen.

        Raises `ConfigError` where there is no engine, and `ProgramFailed` if a node does not come up, if all of them
        are lost, or if one does not end in order.
        """
        if self._fleet.engine:
            await self._run_nodes(task_status)
            return
        program = find_engine_program()
        with engine_directory(self._data.root) as place:
            engine = OwnEngine(program, place, self._fleet)
            async with trio.open_nursery() as around:
                await around.start(engine.run)
                await self._run_nodes(task_status, engine)
                around.cancel_scope.cancel()

    async def _run_nodes(self, task_status: trio.TaskStatus[list[str]], engine: OwnEngine | None = None) -> None:
        self._nodes = [self._make_node(number, engine) for number in range(1, self._fleet.nodes + 1)]
        async with trio.open_nursery() as core:
            core.start_soon(self._watch_end)
            core.start_soon(self.systemd.give_signs_of_life)
            async with trio.open_nursery() as running:
                first, *others = self._nodes
                for number in range(2, self._fleet.nodes + 1) if engine is not None else ():
                    await _forget_shared(self._data.root / "nodes" / str(number))
                await running.start(self._keep, first)  # the others know at once what it has kept
                async with trio.open_nursery() as starting:
                    for node in others if not self.closing.is_set() else ():
                        starting.start_soon(partial(running.start, self._keep, node))
                if begun := not self.closing.is_set():
                    task_status.started(self.urls.value)
            core.cancel_scope.cancel()
        code = next(filter(None, self._codes), 0)
        if code or not begun:
            raise ProgramFailed(code)

    def _make_node(self, number: int, engine: OwnEngine | None) -> NodeProcess:
        """Return a node, whose data directory is there. Raises `ConfigError`."""
        places = (self._data.root,) if engine is None else (self._data.root, engine.directory)
        setup = NodeSetup(
            number=number,
            machine=self._fleet.node or socket.gethostname(),
            listen=self._listen,
            fleet=self._fleet,
            engine="" if engine is None else engine.url,
            key="" if engine is None else self._data.key("fleet").hex(),
            boot=self._data.boot.hex(),
            private=tuple(map(str, places)),
            lock_fd=self._data.lock_fd,
        )
        root = self._data.root
        if number > 1:
            root = make_data_dir(make_data_dir(self._data.root / "nodes") / str(number))
            self._data.key("page")  # it is made; commands of this user show that they can read it, to any node
            published = self._data.root / PUBLISHED
            for file in (self._data.root / "page.key", published, previous_of(published)):
                _mirror(file, root / file.name)
        return NodeProcess(setup, self._command(root))

    async def _watch_end(self) -> None:
        """Have all nodes end when that is wanted. Says so also where a crash cancels this task."""
        try:
            await self.closing.wait()
        finally:
            self.systemd.begin_stop()
            self.ending()
        log.info("ending: %d nodes are told to", sum(bool(node.urls) for node in self._nodes))
        for node in self._nodes:
            node.signal(signal.SIGTERM)

    def _end_if_idle(self) -> None:
        if all(node.is_idle for node in self._nodes if node not in self._lost):
            log.info("no node has had a client for long: the end")
            self.closing.set()

    # One node ---------------------------------------------------------------------------------------------------------

    async def _keep(self, node: NodeProcess, *, task_status: trio.TaskStatus[None]) -> None:
        """Run a node until all end; started when it listens for the first time, or all end before that."""
        restarts = RestartLog(POLICY, random.random)
        listened = False

        def note_listening() -> None:
            nonlocal listened
            if listened:
                log.info("%s listens again", node.name)
            else:
                listened = True
                self.urls.set(node.urls)
                task_status.started()
            restarts.ready(trio.current_time())
            self._lost.discard(node)

        while True:
            code = await self._run_once(node, note_listening)
            if self.closing.is_set():
                self._codes.append(0 if code == -signal.SIGTERM else code)
                break
            if not listened:
                log.error("%s did not come up: %s", node.name, _describe_end(code))
                raise ProgramFailed(code if code > 0 else EXIT_CRASH)
            await self._pause(node, code, restarts)
            if self.closing.is_set():
                break
        if not listened:
            task_status.started()

    async def _run_once(self, node: NodeProcess, on_listening: Callable[[], None]) -> int:
        try:
            return await node.run(on_listening, self._end_if_idle, self.closing)
        except (OSError, RuntimeError) as error:
            if not is_want(error):
                raise
            log.warning("%s cannot be started: %s", node.name, reason_of(error))
            return EXIT_STUCK

    async def _pause(self, node: NodeProcess, code: int, restarts: RestartLog) -> None:
        """Wait before a node is started again, or until all end. Raises `ProgramFailed` if it was the last one."""
        pause_s = restarts.admit(trio.current_time())
        if pause_s is None:
            self._lost.add(node)
            if len(self._lost) == len(self._nodes):
                log.error("%s has ended (%s): no node is left that does not", node.name, _describe_end(code))
                raise ProgramFailed(EXIT_CRASH)
            pause_s = AGAIN_S
        log.warning(
            "%s has ended (%s): it is started again in %.1f s, the others go on",
            node.name,
            _describe_end(code),
            pause_s,
        )
        with trio.move_on_after(pause_s):
            await self.closing.wait()


def _mirror(file: Path, copy: Path) -> None:
    """Have a node begin with a file of the machine, if there is one. Raises `ConfigError`."""
    try:
        content = file.read_bytes()
        with suppress(FileNotFoundError):
            if copy.read_bytes() == content:  # the disk may be full
                return
        write_atomically(copy, content)
    except FileNotFoundError:
        return
    except OSError as error:
        if is_want(error):
            raise
        raise ConfigError(f"it cannot be written: {error.strerror}", path=str(copy), hint="check permissions") from None


async def _forget_shared(root: Path) -> None:
    """Have a node begin without what all have in common, which it is told again.

    It may have been away when a token was revoked, and an engine that begins does not know either that one was.
    """
    async with open_store(root / DATABASE) as store:
        store.forget_shared()
        if not await store.secure():
            log.warning("%s cannot be changed: what was revoked while its node was away may be good again", root)


def _describe_end(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
