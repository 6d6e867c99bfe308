"""Modules are loaded without searches for garbage: they make a hundred thousand objects and hardly any garbage.

It is a tenth of the time until the daemon answers. The objects are left out of all later searches, too.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
