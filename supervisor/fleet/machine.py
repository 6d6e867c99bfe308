"""Several nodes on one machine, behind one address: the process that starts them, and serves nothing itself.

- Each node is a daemon as any other one, with a data directory of its own; the first has that of the machine, so a
  daemon that becomes several keeps what it knew. They are a fleet by an engine that is configured, or of their own.
  With the latter, which knows nothing at first, what they have in common is what the first node has kept.
- All listen at a port that this process holds for them. The system gives each new connection to one of them.
- All have to come up once. Then one that ends is started again, and the others go on; only where none is left that has
  not ended more than five times within a minute is that the end of all.
- Nodes and engine end with this process, however it does. All of them hold the lock of the data directory: whoever
  starts the next ones finds none of these.
- A node is watched as systemd watches a daemon (sd_notify(3)): one whose loop is stuck is killed, as it would be given
  connections all the same.
- An engine of their own is a Valkey or Redis server. It listens at a socket in a directory that only this user can
  enter, and keeps nothing: what it knows of leases is of no use to nodes that begin anew. It runs below a shim, as
  servers do. One that has died is started again, empty; the nodes tell it what they hold, as after any loss of an
  engine.
"""

from __future__ import annotations

import logging
import math
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from actors.errors import ConfigError, SpawnFailed, SupervisorError
from actors.kit import Latest, Pauses, is_want, reason_of
from actors.kit.paths import absolute
from actors.life.policy import RestartLog, RestartPolicy
from actors.transport.stdio.containment import Contained, default_containment
from supervisor.config.sections import FleetSettings
from supervisor.fleet.node_setup import BUSY, IDLE, LISTENING, NodeSetup, encode_setup
from supervisor.fleet.valkey_engine import open_valkey
from supervisor.host.datadir import DATABASE, PUBLISHED, DataDir, make_data_dir, previous_of
from supervisor.host.files import write_atomically
from supervisor.host.program import EXIT_CRASH, EXIT_STUCK, ProgramFailed, Systemd
from supervisor.store import open_store

log = logging.getLogger(__name__)

_MAX_LINE_BYTES: Final = 4096
_READ_BYTES: Final = 65_536
_SIGN_S: Final = 20.0
"""So often a node gives a sign of life at the least, mostly twice as often."""
_SILENT_S = 60.0
"""One that has given none for this time is stuck."""
_STOPPING: Final = b"STOPPING=1"


class NodeCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How a node is started: its command and environment."""

    words: Sequence[str]
    environ: dict[str, str]


class _NodeProcess:
    """One node; `run` runs one process of it after the other."""

    def __init__(self, setup: NodeSetup, command: NodeCommand) -> None:
        self.name = setup.name
        self.urls: list[str] = []
        """Where it listens; empty while it does not."""
        self.is_idle = False
        self._setup = setup
        self._command = command
        self._process: trio.Process | None = None

    async def run(self, on_listening: Callable[[], None], on_idle: Callable[[], None], closing: trio.Event) -> int:
        """Run a process to its end; return its exit code, less than 0 for a signal. Raises `OSError`.

        Its log goes where ours does. It is killed if this is cancelled, and told to end if `closing` was set meanwhile.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as signs:
            signs.bind("")  # a name that Linux makes, which no file has (unix(7), "Autobind feature")
            return await self._run_watched(trio.socket.from_stdlib_socket(signs), on_listening, on_idle, closing)

    async def _run_watched(
        self,
        signs: trio.socket.SocketType,
        on_listening: Callable[[], None],
        on_idle: Callable[[], None],
        closing: trio.Event,
    ) -> int:
        name = signs.getsockname()[1:].decode()
        watch = {"NOTIFY_SOCKET": f"@{name}", "WATCHDOG_USEC": str(round(_SIGN_S * 1e6))}
        self._process = process = await trio.lowlevel.open_process(
            self._command.words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._command.environ | watch,
            pass_fds=(self._setup.lock_fd,),
            process_group=0,  # what a terminal sends, such as Ctrl-C, is for us to pass on
        )
        try:
            if closing.is_set():
                self.signal(signal.SIGTERM)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, process, signs)
                nursery.start_soon(self._hear, process, on_listening, on_idle)
                with suppress(trio.BrokenResourceError):  # it has ended
                    assert process.stdin is not None
                    await process.stdin.send_all(encode_setup(self._setup))
                code = await process.wait()
                nursery.cancel_scope.cancel()  # what it started may have its standard output still
        finally:
            self.urls, self.is_idle, self._process = [], False, None
            with trio.CancelScope(shield=True):
                await _close(process)
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if there is one."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _watch(self, process: trio.Process, signs: trio.socket.SocketType) -> None:
        """Kill a process that has given signs of life and gives none any more, until it says that it ends."""
        limit_s = math.inf  # the start may take long
        while True:
            with trio.move_on_after(limit_s) as patience:
                if _STOPPING in await signs.recv(_MAX_LINE_BYTES):
                    return  # its end has a bound of its own
                limit_s = _SILENT_S
            if patience.cancelled_caught:
                log.error("%s gives no sign of life for %g s: it is stuck, and killed", self.name, _SILENT_S)
                process.kill()
                return

    async def _hear(self, process: trio.Process, on_listening: Callable[[], None], on_idle: Callable[[], None]) -> None:
        """Read all that it writes to its standard output."""
        assert process.stdout is not None
        rest = b""
        while data := await process.stdout.receive_some(_READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:_MAX_LINE_BYTES]
            texts = [line.decode(errors="replace") for line in lines]
            urls = [text.removeprefix(LISTENING) for text in texts if text.startswith(LISTENING)]
            if not self.urls and urls:
                self.urls = urls
                on_listening()
            for text in texts:
                if text in (IDLE, BUSY):
                    self.is_idle = text == IDLE
                    on_idle()


async def _close(process: trio.Process) -> None:
    """Free what belongs to a process, which is killed if it has not ended."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            await stream.aclose()


_PROGRAMS: Final = ("valkey-server", "redis-server")
SOCKET: Final = "socket"
_MAX_SOCKET_BYTES: Final = 100
"""Of its path; the system takes 107 (unix(7))."""
_BEGIN_S: Final = 10.0
"""For a new one to answer."""
_LOOK_S: Final = 0.05
_MAX_PAUSE_S: Final = 5.0
_END_S: Final = 2.0
_SAID_CHARS: Final = 200
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9/._-]+")
"""What means the same in an address."""


def _find_engine_program() -> str:
    """Return the program of an engine. Raises `ConfigError` where there is none."""
    for name in _PROGRAMS:
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
    if len(os.fsencode(own / SOCKET)) <= _MAX_SOCKET_BYTES and _PLAIN_PATH.fullmatch(str(own)):
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
        pauses = Pauses(max_s=_MAX_PAUSE_S)
        while True:
            begun = trio.current_time()
            try:
                why = await self._run_once(task_status)
            except SpawnFailed as error:
                why = error.message
            if not self._settled:
                raise ConfigError(f"the engine {self._command[0]} did not start: {why}", key="supervisor.fleet.nodes")
            if trio.current_time() - begun > _MAX_PAUSE_S:
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
        return f"exit code {code}, {said[-_SAID_CHARS:]}" if said else f"exit code {code}"

    async def _settle(self, task_status: trio.TaskStatus[None]) -> None:
        """Have the first process grant leases at once. Later ones do not: nodes hold what they lost."""
        async with open_valkey(self.url, self._fleet.prefix, self._fleet.lease_s) as engine:
            with trio.move_on_after(_BEGIN_S):
                while not self._settled:
                    try:
                        await engine.settle()
                        self._settled = True
                    except SupervisorError:  # it does not listen yet
                        await trio.sleep(_LOOK_S)
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
    with trio.move_on_after(_END_S):
        contained.kill()
        await contained.wait()
    contained.destroy()


_POLICY: Final = RestartPolicy(max_restarts=5, period_s=60.0, backoff_initial_s=0.1, backoff_max_s=5.0)
_AGAIN_S: Final = 60.0
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
        self._nodes: list[_NodeProcess] = []
        self._lost: set[_NodeProcess] = set()
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
        program = _find_engine_program()
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

    def _make_node(self, number: int, engine: OwnEngine | None) -> _NodeProcess:
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
        return _NodeProcess(setup, self._command(root))

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

    async def _keep(self, node: _NodeProcess, *, task_status: trio.TaskStatus[None]) -> None:
        """Run a node until all end; started when it listens for the first time, or all end before that."""
        restarts = RestartLog(_POLICY, random.random)
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

    async def _run_once(self, node: _NodeProcess, on_listening: Callable[[], None]) -> int:
        try:
            return await node.run(on_listening, self._end_if_idle, self.closing)
        except (OSError, RuntimeError) as error:
            if not is_want(error):
                raise
            log.warning("%s cannot be started: %s", node.name, reason_of(error))
            return EXIT_STUCK

    async def _pause(self, node: _NodeProcess, code: int, restarts: RestartLog) -> None:
        """Wait before a node is started again, or until all end. Raises `ProgramFailed` if it was the last one."""
        pause_s = restarts.admit(trio.current_time())
        if pause_s is None:
            self._lost.add(node)
            if len(self._lost) == len(self._nodes):
                log.error("%s has ended (%s): no node is left that does not", node.name, _describe_end(code))
                raise ProgramFailed(EXIT_CRASH)
            pause_s = _AGAIN_S
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
        store.forget_replicated()
        if not await store.secure():
            log.warning("%s cannot be changed: what was revoked while its node was away may be good again", root)


def _describe_end(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
