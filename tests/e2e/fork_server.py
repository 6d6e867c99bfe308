"""Starts Python processes by fork, from one that has loaded their modules: most of the time of all tests was imports.

What begins is a daemon, a command, a client or a server as any other, with a process, an environment and streams of its
own; only `exec` and the loading are behind it. What is about these starts it by its command (for daemons:
`daemons.COMMAND`).
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import marshal
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self

ROOT: Final = Path(__file__).parents[2]
START: Final = str(Path(__file__).with_name("start_forked.py"))
OURS: Final = (
    "tests.e2e.preloading",
    "supervisor.commands.run",
    "supervisor.process",
    "supervisor.fleet.valkey_engine",
    "supervisor.servers.fleet.node",
    "supervisor.commands.call",
    "supervisor.commands.connect",
    "supervisor.commands.status",
    "supervisor.commands.stdio",
    "supervisor.demo.tour",
)
"""What is loaded for daemons and commands."""
MAX_BYTES: Final = 200_000
"""Of one order: arguments, environment and directory."""
FILES: Final = 3
"""That come with an order: the standard streams."""
CLONE_NEWNET: Final = 0x40000000
READ_AT_START: Final = ("PYTHON", "LC_", "LANG", "TZ", "OPENBLAS_", "OMP_", "LD_", "MALLOC_")
"""How variables begin that a process reads once, at its start."""


class ForkedProcess:
    """A process that is no child of ours: what tests use of `subprocess.Popen`."""

    def __init__(self, server: socket.socket, stdout: TextIOWrapper) -> None:
        """`server` says its number first, and its exit code in the end."""
        self.pid = int(server.recv(20))
        self.stdout = stdout
        self.returncode: int | None = None
        self._server = server
        self._lock = threading.Lock()
        weakref.finalize(self, server.close)  # not before: threads may wait for it

    def poll(self) -> int | None:
        """Return the exit code, or the number of the signal that ended it, negative; None while it runs."""
        if self.returncode is None and select.select([self._server], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises `subprocess.TimeoutExpired`; `timeout` is in seconds."""
        if self.returncode is None:
            if not select.select([self._server], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def _end(self) -> None:
        with self._lock:
            if self.returncode is None:
                self.returncode = int(self._server.recv(20))

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stdout.close()
        self.wait()


def can_fork(environment: Mapping[str, str]) -> bool:
    """Say whether a daemon with this environment is the same when it was forked."""
    return not environment.get("COVERAGE") and _read_at_start(environment) == _READ


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


_READ: Final = _read_at_start(os.environ)


def fork(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stderr: int,
    *,
    descriptors: tuple[int, int] | None = None,
    network: str = "",
) -> ForkedProcess:
    """Start `mcpvisor` with these arguments and this environment.

    `descriptors` are its limits, soft and hard; `network` is the file of the network namespace that it runs in.
    """
    readable, stdout = os.pipe()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MAX_BYTES)
    server.connect(f"\0{_address(sys.executable, OURS)}")
    order = marshal.dumps((["-m", "supervisor", *arguments], {**environment}, str(ROOT), descriptors, network))
    with Path(os.devnull).open("rb") as stdin:
        socket.send_fds(server, [order], [stdin.fileno(), stdout, stderr])
    os.close(stdout)
    return ForkedProcess(server, os.fdopen(readable, encoding="utf-8"))


def forking(python: str = sys.executable, modules: tuple[str, ...] = OURS) -> list[str]:
    """Return what begins a command as this Python does, before a script or `-m` and a module, and starts it by fork.

    `modules` are those that are loaded already. The command works as long as this process.
    """
    if not can_fork(os.environ):
        return [python]
    return [sys.executable, "-I", "-S", START, _address(python, modules)]


@cache
def _address(python: str, modules: tuple[str, ...]) -> str:
    """Return where a server of this process listens, which ends with it: a name that begins with a null byte."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("")
    listener.listen(100)
    ours, its = socket.socketpair()
    files = [listener.fileno(), its.fileno()]
    command = [python, "-m", "tests.e2e.fork_server", *map(str, files), *modules]
    subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=files, check=True)
    address: bytes = listener.getsockname()
    listener.close()
    its.close()
    ours.detach()  # open until this process ends
    return address[1:].decode()


def _serve(listener: socket.socket, maker: socket.socket) -> list[str]:
    """Fork a process for each order, and return its arguments there. The server ends with whoever made it."""
    connections: dict[socket.socket, int] = {}  # and their processes, once these are there
    running: dict[int, tuple[int, socket.socket]] = {}  # by the file of a process: its number, and who waits for it
    while True:
        files: list[Any] = [listener, maker, *connections, *running]
        for ready in select.select(files, [], [])[0]:
            if ready is maker:
                sys.exit()
            if ready is listener:
                connections[listener.accept()[0]] = 0
            elif ready in running:
                pid, connection = running.pop(ready)
                _, status = os.waitpid(pid, 0)
                with suppress(OSError):  # nobody waits for it any more
                    connection.send(str(os.waitstatus_to_exitcode(status)).encode())
                connections.pop(connection, None)
                connection.close()
                os.close(ready)
            elif pid := connections.get(ready, 0):  # nobody says more than one thing: who waited is gone
                os.kill(pid, signal.SIGKILL)
                connections.pop(ready)
                ready.close()
            elif ready in connections:
                order, streams, _, _ = socket.recv_fds(ready, MAX_BYTES, FILES)
                if not order:
                    connections.pop(ready)
                    ready.close()
                    continue
                arguments, environment, directory, descriptors, network = marshal.loads(order)
                pid = os.fork()
                if not pid:
                    _become(streams, environment, directory)
                    if network:
                        _enter(network)
                    if descriptors is not None:
                        resource.setrlimit(resource.RLIMIT_NOFILE, descriptors)
                    return [*arguments]
                connections[ready] = pid
                running[os.pidfd_open(pid)] = pid, ready
                for stream in streams:
                    os.close(stream)
                with suppress(OSError):  # gone already, which is seen next
                    ready.send(str(pid).encode())


def _become(files: Sequence[int], environment: Mapping[str, str], directory: str) -> None:
    """Have these streams, no other files, this environment and this directory."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(FILES, os.sysconf("SC_OPEN_MAX"))
    # Those that there were go by what the streams were when they were made.
    sys.stdin, sys.stdout, sys.stderr = map(partial(open, closefd=False), (0, 1, 2), ("r", "w", "w"))
    sys.stderr.reconfigure(line_buffering=True, errors="backslashreplace")
    os.environ.clear()
    os.environ.update(environment)
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    os.chdir(directory)


def _enter(network: str) -> None:
    """Be in a network namespace. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(network).open() as file:
        if libc.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), network)


def _run(arguments: Sequence[str]) -> None:
    """Do what a Python does with these arguments."""
    is_module = arguments[0] == "-m"
    name, *rest = arguments[is_module:]
    sys.argv[:] = [name, *rest]
    sys.path[0] = str(Path.cwd()) if is_module else str(Path(name).parent)
    if is_module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(name, run_name="__main__")


def _end(code: int) -> NoReturn:
    """End as Python does, but for taking apart all that is loaded, which takes longer than most of what is run here."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # what has a word to say at its end says it
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # so that the tests have no child that is not theirs
    _listener, _maker, *_modules = sys.argv[1:]
    for module in _modules:
        import_module(module)
    gc.freeze()  # what is loaded is never garbage, and searching it would copy its pages
    try:
        _run(_serve(socket.socket(fileno=int(_listener)), socket.socket(fileno=int(_maker))))
    except SystemExit as error:
        if isinstance(error.code, str):
            raise
        _end(error.code or 0)
    _end(0)
