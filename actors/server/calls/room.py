"""Whether there is room for one more call of a server. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain

from actors.launch import is_own
from actors.messages import CallServer
from actors.principal import LOCAL
from actors.server.calls.call import Call
from actors.server.calls.errors import busy_error, too_large_error
from actors.server.calls.queue import CallQueue
from actors.server.settings import ServerSettings

_ENVELOPE_BYTES = 512
"""What is written around the arguments of a call, about."""


class CallRoom:
    """The room of one server. `queue` has the calls that wait, `in_flight` are the others, by number.

    `streams` are those of them that take no room, see `Calls.sendable`.
    """

    def __init__(
        self,
        server: str,
        settings: ServerSettings,
        queue: CallQueue,
        in_flight: Mapping[int, Call],
        streams: Collection[int],
    ) -> None:
        self._server = server
        self._is_for_one = is_own(server)
        self._max_open = settings.max_in_flight + settings.max_queued
        self._max_bytes = settings.max_queued_bytes
        self._queue = queue
        self._waiting = queue.calls
        self._in_flight = in_flight
        self._streams = streams

    def check(self, message: CallServer) -> int:
        """Return the bytes to be written for a call.

        Raises `TooManyCalls`, and `CallTooLarge` for one that would never fit.
        """
        size = len(message.members) + len(message.meta) + len(message.retry) + len(message.interest.capabilities)
        if size > self._max_bytes:
            raise too_large_error(self._server, size, self._max_bytes)
        waiting, in_flight = len(self._waiting), len(self._in_flight) - len(self._streams)
        free = self._max_open - waiting - in_flight
        if free <= 0:
            raise busy_error(self._server, f"{in_flight} calls are in flight, {waiting} wait")
        if 2 * free <= self._max_open and not self._is_for_one:
            self._check_share(message, free)
        left = self._max_bytes - self._queue.size - size
        if left < 0 or (2 * left < self._max_bytes and not self._is_for_one and self._holds_more(message, size, left)):
            raise busy_error(self._server, f"{waiting} calls of {self._queue.size} bytes wait for it")
        return size + _ENVELOPE_BYTES

    def _holds_more(self, message: CallServer, size: int, left: int) -> bool:
        """Say whether calls of somebody wait that would have more bytes with this one than are left for others."""
        principal = message.principal
        own = sum(call.size for call in self._waiting.values() if call.message.principal == principal)
        return bool(own) and own + size > left and principal != LOCAL

    def _check_share(self, message: CallServer, free: int) -> None:
        """Raise `TooManyCalls` where somebody has as many calls here as are left for others, or more; see `Quota`."""
        principal = message.principal
        lasting = self._streams
        own = sum(
            call.message.principal == principal and call.number not in lasting
            for call in chain(self._waiting.values(), self._in_flight.values())
        )
        if own >= free and own and principal != LOCAL:
            raise busy_error(
                self._server, f"{own} calls of yours are open, and the rest of the room is for others: end one"
            )
