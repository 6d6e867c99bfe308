"""While modules are being loaded, no garbage is searched for, and signals mean what they mean to any program.

- Modules make a hundred thousand objects and hardly any garbage: searches are a tenth of the time until the daemon
  answers. The objects are left out of all later searches, too.
- Ctrl-C ends the program, as nothing runs yet that would have to be ended in order; what does not end a daemon later
  does not end it then.
"""

from __future__ import annotations

import gc
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
