"""Which instance gave which `requestState`: a client that goes on with one must reach the process that knows it. Pure.

(MCP 2026-07-28, basic/patterns/mrtr.) A state is known by its digest, so that it costs the same whatever its size. It
counts for one user and one request only: servers may say the same to several, such as the number of a step.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

import msgspec

from actors.errors import MalformedRequest, ProtocolViolation
from actors.messages import CallServer, Result
from actors.protocol.asking import input_required
from actors.protocol.wire import json

MAX_STATES: Final = 4096
"""Of one launch; the oldest is forgotten for one more."""
_retry = msgspec.json.Decoder(input_required.Retry)


class Giver(msgspec.Struct, frozen=True):
    """The instance that gave a state, and the process that it was then."""

    number: int
    run: str


class GivenStates:
    """The states that clients may go on with."""

    def __init__(self) -> None:
        self._givers: OrderedDict[bytes, Giver] = OrderedDict()

    def note(self, message: CallServer, result: Result, giver: Giver) -> bool:
        """Note the state of a result that is not complete; False if it has none."""
        if result.era != "modern" or message.method not in input_required.METHODS:
            return False
        if len(result.body) > input_required.MAX_BYTES or not input_required.is_incomplete(result.body):
            return False
        try:
            state = input_required.state_of(input_required.Retry(state=input_required.read(result.body).state))
        except (ProtocolViolation, MalformedRequest):  # whoever passes it on says so
            return False
        if state:
            self._givers[_digest(message, state)] = giver
            if len(self._givers) > MAX_STATES:
                self._givers.popitem(last=False)
        return bool(state)

    def find(self, message: CallServer) -> tuple[str, Giver | None]:
        """Return the state that a request goes on with, empty if it has none, and who gave that, if it is known.

        Raises `MalformedRequest` if it is no string.
        """
        if not message.retry:
            return "", None
        retry = json.read_or(_retry, b"{" + message.retry + b"}", input_required.Retry())
        state = input_required.state_of(retry)
        return state, self._givers.get(_digest(message, state)) if state else None


def _digest(message: CallServer, state: str) -> bytes:
    """Return by what the state of this request is known."""
    parts = (message.principal, message.method, message.name, state)
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
