"""How many threads numpy's linear algebra uses: one.

Its own threads wait for each other in loops, so with a second query, the loop, or a server on the same processors they
fight instead of helping. Several queries at once are several threads of ours.
"""

from __future__ import annotations

try:
    from threadpoolctl import threadpool_limits
except ImportError:  # it comes with the extra `neural`, and is imported before the daemon listens or not at all
    threadpool_limits = None


def one_thread() -> None:
    """Let every product of matrices in this process run in the thread that asks for it, from now on.

    Raises `ImportError` without the package threadpoolctl.
    """
    if threadpool_limits is None:
        raise ImportError("the package threadpoolctl is not installed")
    threadpool_limits(1, user_api="blas")
