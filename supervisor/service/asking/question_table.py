"""The questions that the client of one session has not answered, by their ids: ours, and never used again.

They are integers, as the servers of the official SDKs send them. A client outlives a daemon: what it answers late must
not be taken for the answer to a question of the next one. So each session begins somewhere else.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from actors import codes
from actors.errors import CannotAsk
from actors.kit import Reply
from actors.protocol.asking.questions import advance
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.jsonrpc import FIRST_IDS, RemoteError, canonical

MAX_OPEN: Final = 32

_UNSAID: Final = msgspec.Raw(b"")
_REFUSED: Final = msgspec.Raw(b'{"code":-1,"message":"the client has cancelled this"}')
_error = msgspec.json.Decoder(jsonrpc.ErrorObject)


class _Open(msgspec.Struct, eq=False):
    """A question; `hear` is told of progress, of which `progress` was the last."""

    reply: Reply[msgspec.Raw]
    hear: Callable[[bytes], None] | None
    progress: float = -math.inf


class QuestionTable:
    """The questions that the client of one session has not answered."""

    def __init__(self) -> None:
        self._ids = itertools.count(secrets.choice(FIRST_IDS))
        self._open: dict[int, _Open] = {}

    def add(self, reply: Reply[msgspec.Raw], progress: Callable[[bytes], None] | None = None) -> int | None:
        """Return the id of a new question, which is its token if `progress` is heard; None if too many are open."""
        if len(self._open) >= MAX_OPEN:
            return None
        id_ = next(self._ids)
        self._open[id_] = _Open(reply, progress)
        return id_

    def take(self, id_: str | int) -> Reply[msgspec.Raw] | None:
        number = canonical(jsonrpc.encode(id_))
        asked = self._open.pop(int(number), None) if number else None
        return None if asked is None else asked.reply

    def on_progress(self, params: msgspec.Raw) -> None:
        """Take a `notifications/progress`: what is about no open question, or does not grow, is dropped."""
        if not self._open or (told := advance(params)) is None:
            return
        asked = self._open.get(told[0])
        if asked is not None and asked.hear is not None and told[1] > asked.progress:
            asked.progress = told[1]
            asked.hear(bytes(params))

    def on_answer(self, id_: str | int, result: msgspec.Raw, error: msgspec.Raw) -> bool:
        """Settle a question with what a client sent, either of them empty; False if it is not open."""
        reply = self.take(id_)
        if reply is None:
            return False
        if bytes(memoryview(result)[:1]) == b"{":
            reply.answer(result)
        else:
            said = json.read_or(
                _error,
                error,
                jsonrpc.ErrorObject(codes.INTERNAL_ERROR, "the client answered with something unreadable"),
            )
            reply.fail(RemoteError(said))
        return True

    def on_cancelled(self, id_: str | int) -> None:
        """The client takes a question for cancelled, if this is one: it has refused to answer."""
        self.on_answer(id_, _UNSAID, _REFUSED)

    def close(self) -> None:
        for id_ in list(self._open):
            if (reply := self.take(id_)) is not None:
                reply.fail(CannotAsk("the client has gone"))
