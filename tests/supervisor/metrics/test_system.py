"""The figures of this process are those of a real one."""

from __future__ import annotations

import os
import time

from supervisor.metrics.system import read_own


def test_the_figures_of_this_process_are_plausible() -> None:
    own = read_own()
    assert own.resident_bytes is not None
    assert own.open_files is not None
    assert own.max_files is not None
    assert own.started is not None
    assert own.resident_bytes > 10_000_000
    before = own.open_files
    descriptors = [os.dup(0) for _ in range(5)]
    try:
        more = read_own().open_files
        assert more == before + 5
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    assert own.max_files >= own.open_files
    assert own.started < time.time()
    assert 0 < own.cpu_s <= read_own().cpu_s
