"""Loading: no searches for garbage meanwhile, and all of them afterwards."""

from __future__ import annotations

import gc
from contextlib import suppress

from supervisor.host.loading import pause_gc


def test_garbage_is_searched_for_again_when_the_outermost_block_ends_however_it_does() -> None:
    assert gc.isenabled()
    with suppress(ImportError), pause_gc():
        with pause_gc():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()
