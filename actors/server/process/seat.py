"""What an instance of a launch is among the others: a cell between its actor and who chooses among them."""

from __future__ import annotations

import msgspec


class Seat(msgspec.Struct):
    """Who chooses among instances writes it, and the actor of the instance reads it.

    `leads`: what it lists is what the launch offers, and it tells of resources. `replaceable`: others can take the
    calls that were not sent, so these do not wait for its next process. `expected_until`: a client may go on with what
    only its process knows until that moment of the trio clock, so it does not sleep before. `run` is the other way
    round: the name of its present process, empty if there is none.
    """

    leads: bool = True
    replaceable: bool = False
    expected_until: float = 0.0
    run: str = ""
