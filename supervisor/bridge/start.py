"""Starting the daemon where none is: one, however many clients come at once, and it outlives the one that started it.

Rules of this file:
- Who starts it holds a lock of the kernel in the data directory until it listens or has failed. All others look again
  and again whether it is there. A lock that its owner died with is free, and a second daemon ends at once: it does not
  get the data directory.
- It is nobody's child in effect: a session of its own, no terminal, the home directory, its output in a file. It ends
  by itself, a while after its last client has left.
"""

from __future__ import annotations

import fcntl
import os
import site
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import supervisor
from actors.errors import ConfigError
from actors.kit.paths import objection_to_directory

_IDLE_EXIT_S: Final = 60
"""How long a daemon that was started here goes on without a client."""
START_S: Final = 60.0
"""For a daemon to listen; then another one may be started."""
_MAX_LOG_BYTES: Final = 1024 * 1024
"""A log that is longer is put aside before a daemon is started; the one before that is dropped."""
_MAX_SAID_BYTES: Final = 2000
"""Of the log of a daemon that could not start, in what clients are told."""
OTHER_S: Final = 5.0
"""For a daemon that has the data directory to listen here: it may have been started at the same moment."""
_PACKAGE_ROOT: Final = str(Path(supervisor.__file__).parent.parent)


def daemon_command(*options: str) -> list[str]:
    """Return the command of another daemon of this installation, which is run with `with_package`."""
    return [sys.executable, "-P", "-m", "supervisor", "run", *options]


def with_package(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which this package is found from any directory."""
    checkout = _PACKAGE_ROOT not in site.getsitepackages()
    return {**environ, "PYTHONPATH": _PACKAGE_ROOT} if checkout else dict(environ)


class NotStarted(Exception):
    """There will be no daemon until somebody does something; the text says what."""


class Starter:
    """Starts the daemon of one address."""

    def __init__(self, port: int, options: Callable[[], Sequence[str]], environ: Mapping[str, str]) -> None:
        """`options`: those of `mcpvisor run`; raises `ConfigError` if there is no configuration."""
        self._port = port
        self._options = options
        self._environ = environ
        self._lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._former: subprocess.Popen[bytes] | None = None  # nobody else asks for its exit code
        self._log: Path | None = None
        self._log_from = 0
        self._late_at = 0.0
        self._failure = ""
        self._failed_at = 0.0

    def step(self, now: float) -> str:
        """Do the next thing, as nobody listens; return what is done, empty if there is nothing to be seen of it.

        `now` is in seconds of any clock that only goes forward. Raises `NotStarted`.
        """
        try:
            if self._failure:
                return self._fail(now)
            if self._process is not None:
                return self._look(self._process, now)
            if self._lock is None:
                self._lock = self._try_lock()
                return ""  # whoever had it may have started one: look again
            return self._start(now)
        except ConfigError as error:
            self.finish()
            raise NotStarted(str(error)) from None
        except OSError as error:
            self.finish()
            raise NotStarted(f"no daemon can be started: {error.strerror or error}") from None

    def finish(self) -> None:
        """A daemon listens, or nobody wants one any more."""
        if self._former is not None and self._former.poll() is not None:
            self._former = None
        self._former, self._process, self._failure = self._process or self._former, None, ""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _open(self, name: str, flags: int) -> tuple[Path, int]:
        """Open a file in the data directory."""
        from supervisor.host.datadir import make_data_dir, open_private  # only where none runs
        from supervisor.host.places import default_data_dir

        path = make_data_dir(default_data_dir(self._environ)) / name
        return path, open_private(path, flags)

    def _try_lock(self) -> int | None:
        _, fd = self._open(f"start-{self._port}.lock", os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def _open_log(self) -> int:
        name, flags = f"daemon-{self._port}.log", os.O_WRONLY | os.O_APPEND
        self._log, log = self._open(name, flags)
        if os.fstat(log).st_size > _MAX_LOG_BYTES:
            os.close(log)
            self._log.replace(self._log.with_suffix(".log.old"))
            self._log, log = self._open(name, flags)
        self._log_from = os.fstat(log).st_size
        return log

    def _start(self, now: float) -> str:
        command = daemon_command("--idle-exit", f"{_IDLE_EXIT_S}", *self._options())
        log = self._open_log()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._home(),
                env=with_package(self._environ),
                start_new_session=True,
            )
        finally:
            os.close(log)
        self._late_at = now + START_S
        return f"no daemon is there: started one, process {self._process.pid}, log {self._log}"

    def _home(self) -> str:
        home = self._environ.get("HOME", "")
        return "/" if objection_to_directory(home) or not Path(home).is_absolute() else home

    def _look(self, process: subprocess.Popen[bytes], now: float) -> str:
        """See what has become of it. If it has ended, somebody is looked for once more before that is told."""
        if process.poll() is not None:
            said = " ".join(self._last_words().split())
            self.finish()
            self._failure, self._failed_at = f"the daemon ended with exit code {process.returncode}: {said}", now
        elif now >= self._late_at:
            self.finish()
        return ""

    def _fail(self, now: float) -> str:
        from supervisor.host.datadir import OCCUPIED

        if OCCUPIED in self._failure and now < self._failed_at + OTHER_S:
            return ""
        failure, self._failure = self._failure, ""
        raise NotStarted(failure)

    def _last_words(self) -> str:
        """Return the end of what it wrote: its error, where that can be seen."""
        assert self._log is not None
        with self._log.open("rb") as log:
            log.seek(max(self._log_from, os.fstat(log.fileno()).st_size - _MAX_SAID_BYTES))
            said = log.read(_MAX_SAID_BYTES).decode(errors="replace")
        _, error, what = said.rpartition("Error: ")
        return what if error else said
