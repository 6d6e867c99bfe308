"""Ctrl-C while modules are being loaded: nothing runs yet that would have to be ended in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def plain_interrupt() -> Iterator[None]:
    """Let SIGINT end the process for the block, as the kernel does it, instead of raising somewhere in an import.

    For the main thread. A SIGINT that is ignored stays ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
