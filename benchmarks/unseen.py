"""`python -m benchmarks.unseen run ...`: the daemon with all that is counted and told of calls switched off.

No setting does that: it is what `benchmarks.seeing` compares with.
"""

from __future__ import annotations

from typing import Any

from supervisor.__main__ import main
from supervisor.front.dispatch import Dispatch
from supervisor.metrics.collector import Durations
from supervisor.metrics.meters import Meters
from supervisor.usage.totals import Usage


def nothing(*_: Any, **__: Any) -> None:
    """Count nothing."""


def switch_off() -> None:
    """Count and tell nothing of calls from now on."""
    for of, names in ((Usage, ("add",)), (Durations, ("add",)), (Meters, ("on_answer", "on_wait", "on_search"))):
        for name in names:
            setattr(of, name, nothing)
    Dispatch._count = nothing  # type: ignore[method-assign]  # nobody times requests either


if __name__ == "__main__":
    switch_off()
    main()
