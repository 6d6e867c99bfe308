"""Takes away what the system gives, at the border where it is asked for, and gives it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio


@contextmanager
def no_threads() -> Iterator[None]:
    """No thread can be started for the block."""

    async def refuse(*_arguments: object, **_options: object) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trio.to_thread, "run_sync", refuse)
        yield
