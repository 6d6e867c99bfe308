"""While modules are being loaded, no garbage is searched for, and signals mean what they mean to any program.

- Modules make a hundred thousand objects and hardly any garbage: searches are a tenth of the time until the daemon
  answers. The objects are left out of all later searches, too.
- Ctrl-C ends the program, as nothing runs yet that would have to be ended in order; what does not end a daemon later
  does not end it then.
- What is imported late by others is imported first by `preload`: at the start there are descriptors and memory for it.
  An import that fails in the middle of the work, because the system has no descriptor left, fails that work. A test
  compares what is loaded then with what is loaded after everything was used once.
"""

from __future__ import annotations

import gc
import importlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager

OUTLIVED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""They end a program that says nothing of them (POSIX.1-2017, signal.h), and are sent by a terminal that is closed, or
to ask for something that other daemons do: reload, open the log again, tell how they are.
"""


@contextmanager
def pause_gc() -> Iterator[None]:
    """Search for no garbage in the block. One may be inside of another."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.freeze()
            gc.enable()


def outlive_signals() -> None:
    """Take no notice of `OUTLIVED` until somebody else does. Programs that we start end by them as usual."""
    for number in OUTLIVED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


@contextmanager
def plain_interrupt() -> Iterator[None]:
    """Let SIGINT end the process for the block, as the kernel does, unless it is ignored. For the main thread."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


LATE = (
    "actors.protocol.wire.outline",  # messages that are large
    "mmap",  # np.memmap
    "concurrent.futures.thread",  # tiktoken
    "encodings.cp437",  # zipfile, of the sentence model
    "encodings.idna",  # names of hosts
    "tiktoken",
    "tiktoken.load",
    "watchdog.events",
    "watchdog.observers",
)
FOR_REMOTE = (
    "actors.transport.http.transport",
    "actors.transport.websocket",
    "supervisor.oauth.accounts",  # logins, and what they take
    "stringprep",  # names of hosts
    "encodings.utf_8_sig",  # event streams
    "truststore",  # httpx2, and what follows
    "httpcore2",
    "httpcore2._async.http11",
    "httpcore2._backends.trio",
)


def preload(*, remote: bool) -> None:
    """Import what would be imported later: 20 ms, 2 MB, ten times that if `remote`. Raises want of resources."""
    for name in (*LATE, *FOR_REMOTE) if remote else LATE:
        importlib.import_module(name)
    # Its plugins are modules of their own. The vocabulary, which costs tens of megabytes, is read at the first count.
    importlib.import_module("tiktoken").list_encoding_names()
