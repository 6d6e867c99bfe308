"""Names of launches: a server as it is started for some people.

Where all share one, the launch is called as the server. One that is started otherwise, for some people, has a digest of
its configuration behind the name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SEPARATOR: Final = "~"
"""In the name of no server."""
_DIGITS: Final = 16
"""Of the digest: enough that no two launches of a server have the same by chance."""


def launch_name(server: str, digest: str) -> str:
    """Return the name of a launch that not all share; `digest` has hexadecimal digits."""
    return f"{server}{SEPARATOR}{digest[:_DIGITS]}"


def server_of(launch: str) -> str:
    """Return the server that a launch is one of."""
    return launch.partition(SEPARATOR)[0] if SEPARATOR in launch else launch


def launches_of(server: str, launches: Iterable[str]) -> list[str]:
    """Return which of some launches are of a server."""
    return [launch for launch in launches if server_of(launch) == server]


def is_own(launch: str) -> bool:
    """Say whether a launch is one that not all share."""
    return SEPARATOR in launch
