"""What is freed without a search for garbage: objects that are part of no cycle."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def no_search() -> Iterator[Callable[..., int]]:
    """Have nobody search for garbage in the block; yields what counts the objects of some kinds that were made in it.

    Others may be alive for long: those of a test that failed, as its report keeps its frames.
    """
    gc.collect()
    gc.disable()
    gc.freeze()  # what is frozen is not among `gc.get_objects`, and costs no later search anything

    def alive(*kinds: type) -> int:
        return sum(isinstance(each, kinds) for each in gc.get_objects())

    try:
        yield alive
    finally:
        gc.enable()
