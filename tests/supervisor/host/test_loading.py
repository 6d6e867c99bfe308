"""Loading: no searches for garbage meanwhile, and all of them afterwards."""

from __future__ import annotations

import gc

import pytest

from supervisor.host.loading import pause_gc


def test_garbage_is_searched_for_again_when_the_outermost_block_ends() -> None:
    assert gc.isenabled()
    with pause_gc():
        with pause_gc():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_is_searched_for_again_after_a_module_that_cannot_be_loaded() -> None:
    with pytest.raises(ImportError), pause_gc():
        raise ImportError
    assert gc.isenabled()
