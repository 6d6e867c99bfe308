"""Which of the calls that wait is sent next: the oldest, and one at a time where nobody could tell whose a question is.

Over stdio nothing links a question of a legacy server to the call that led to it (MCP 2025-11-25, basic/transports).
Most servers never ask, or are asked one thing at a time; so only a server that was seen to ask while several calls were
in flight is given one at a time, of those during which servers ask.
"""

from __future__ import annotations

from collections.abc import Mapping

from actors.protocol.input_required import METHODS as ASKING
from actors.server.call import Call


class CallTurns:
    """Chooses. `taken`: calls during which the server may ask take turns, as long as its actor lives."""

    def __init__(self) -> None:
        self.taken = False

    def next(self, waiting: Mapping[int, Call], in_flight: Mapping[int, Call]) -> Call | None:
        """Return the call to be sent now; None if there is none, or all have to wait for another one to end."""
        if not self.taken:
            return next(iter(waiting.values()), None)
        busy = any(call.message.method in ASKING for call in in_flight.values())
        return next((call for call in waiting.values() if not (busy and call.message.method in ASKING)), None)
