"""The process of one node of a machine: started, heard of when it listens, told to end or to reload.

It is watched as systemd watches a daemon (sd_notify(3)): one whose loop is stuck is killed, as it would be given
connections all the same.
"""

from __future__ import annotations

import logging
import math
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
import trio

from supervisor.fleet.machine.setup import BUSY, IDLE, LISTENING, NodeSetup, encode_setup

log = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 4096
READ_BYTES: Final = 65_536
SIGN_S: Final = 20.0
"""So often a node gives a sign of life at the least, mostly twice as often."""
SILENT_S = 60.0
"""One that has given none for this time is stuck."""
STOPPING: Final = b"STOPPING=1"


class NodeCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How a node is started: its command and environment."""

    words: Sequence[str]
    environ: dict[str, str]


class NodeProcess:
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
        watch = {"NOTIFY_SOCKET": f"@{name}", "WATCHDOG_USEC": str(round(SIGN_S * 1e6))}
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
                if STOPPING in await signs.recv(MAX_LINE_BYTES):
                    return  # its end has a bound of its own
                limit_s = SILENT_S
            if patience.cancelled_caught:
                log.error("%s gives no sign of life for %g s: it is stuck, and killed", self.name, SILENT_S)
                process.kill()
                return

    async def _hear(self, process: trio.Process, on_listening: Callable[[], None], on_idle: Callable[[], None]) -> None:
        """Read all that it writes to its standard output."""
        assert process.stdout is not None
        rest = b""
        while data := await process.stdout.receive_some(READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:MAX_LINE_BYTES]
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
