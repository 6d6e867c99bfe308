"""The progress of several calls of one request, told with its one token as that of all of them. Pure.

Progress must grow with each notification (MCP 2025-11-25 and 2026-07-28, basic/utilities/progress). So what is told is
how many calls are done, of how many, with the part that each of the others says it has done. One that does not say of
how much gets nearer to done with each step, and is never there.
"""

from __future__ import annotations

from collections.abc import Sequence

from actors.messages import Note
from actors.protocol.exchanges import PROGRESS
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.lenient_json import number, plain

_DIGITS = 4


class JointProgress:
    """That of some calls, by their places; `numbers` are what their client knows them by."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._done = [0.0] * len(numbers)
        self._told = 0.0

    def merge(self, place: int, note: Note) -> Note | None:
        """Return what one call tells as progress of all; None for what does not grow."""
        told = json.members(note.params)
        done, total = number(plain(told.get("progress"))), number(plain(told.get("total")))
        part = done / total if total > 0 else 1 - 1 / (1 + done) if done > 0 else 0.0
        said = json.text_at(told.get("message"))
        return self._tell(place, min(part, 1.0) if part > 0 else 0.0, told.get("progressToken"), said)

    def end(self, place: int, token: bytes) -> Note | None:
        """Return that a call is done, with the token of the client, JSON text."""
        return self._tell(place, 1.0, token, "")

    def _tell(self, place: int, part: float, token: bytes | None, said: str) -> Note | None:
        self._done[place] = max(self._done[place], part)
        whole = round(sum(self._done), _DIGITS)
        if whole <= self._told or token is None:
            return None
        self._told = whole
        message = encode(f"[{self._numbers[place]}] {said}") if said else b""
        params = b'{"progressToken":%b,"progress":%b,"total":%d' % (token, encode(whole), len(self._done))
        return Note(PROGRESS, params + (b',"message":%b}' % message if message else b"}"))
