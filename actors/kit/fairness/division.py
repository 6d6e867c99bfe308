"""One amount for several who want some of it, each as much as it can be given without another one getting less. Pure.

Who wants less than an equal part gets all of that, and the rest is divided among the others in the same way (max-min
fairness: Bertsekas and Gallager, Data Networks, 6.5.2).
"""

from __future__ import annotations

from collections.abc import Sequence


def divide(amount: int, wanted: Sequence[int]) -> list[int]:
    """Return what each gets, in the order of `wanted`; what does not divide goes to those who want most."""
    shares = [0] * len(wanted)
    left = amount
    for done, place in enumerate(sorted(range(len(wanted)), key=lambda place: wanted[place])):
        shares[place] = min(wanted[place], left // (len(wanted) - done))
        left -= shares[place]
    return shares
