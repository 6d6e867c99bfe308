"""Failed attempts to show who one is: a bucket for each address, so that guessing is slow. Pure.

A valid credential never waits: whoever shares an address with one that guesses is not shut out. So an attempt is looked
at first, and counts here only if it failed.
"""

from __future__ import annotations

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final

MAX_ADDRESSES: Final = 4096
"""So many are remembered; for one more the one that was quiet for the longest is forgotten."""
BURST: Final = 10
"""So many attempts may fail at once: a client with a stale token tries it at every door."""
EVERY_S: Final = 6.0
"""After that one in so long."""
_NETWORK_BITS: Final = 64
"""Whoever has one address of IPv6 has a network of these (RFC 6177 2)."""


class FailedAttempts:
    """Moments are seconds of one clock that does not go back. `total` counts all that failed, also forgotten ones."""

    def __init__(self) -> None:
        self.total = 0
        self._free_at: OrderedDict[str, float] = OrderedDict()
        """When all of an address is forgiven."""

    def fail(self, address: str, now: float) -> float:
        """Count an attempt that failed; return how many seconds the next one should wait, 0 while there may be more."""
        self.total += 1
        network = network_of(address)
        free_at = min(max(self._free_at.pop(network, now), now) + EVERY_S, now + (BURST + 1) * EVERY_S)
        self._free_at[network] = free_at
        if len(self._free_at) > MAX_ADDRESSES:
            self._free_at.popitem(last=False)
        return max(0.0, free_at - now - BURST * EVERY_S)


def network_of(address: str) -> str:
    """Return by what an address is counted: itself, or the network that whoever has it has; empty for none."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(known, IPv6Address):
        mapped = known.ipv4_mapped
        return str(mapped) if mapped is not None else f"{int(known) >> _NETWORK_BITS:x}::"
    return str(known)
