"""One call of a server: what is asked, and how far it has come."""

from __future__ import annotations

import math
from typing import Final

import msgspec
from msgspec.structs import replace

from actors.codes import HEADER_MISMATCH
from actors.kit import Mark, Reply
from actors.messages import CallServer, Result
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.failure import Failure
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from actors.protocol.wire.mirrors import Mirror

MAX_UNREACHED: Final = 3
"""So often a call that found nobody at a server that lives is sent again."""
MAX_STALE: Final = 2
"""So often a call is sent again that was refused, as its session may not have been known any more."""
MAX_PUT_OFF: Final = 4
"""So often a call is sent again that came too often."""
_SPREAD_S: Final = 1.0
"""Within this time, doubled with each refusal, calls that came too often are sent again, as others wait beside them."""
_WORTH_S: Final = 1.0
"""By less than this no deadline is moved: a server may tell of progress a thousand times a second."""


class Call(msgspec.Struct, eq=False):
    """One request on its way; `deadline` is a moment of the trio clock, and so is `began`.

    `asks`: a question was about it, or may have been; `asked_at` is when the first of those came that are open.
    `told`: its client knows that it waits for its turn.
    `tool` is empty for what is no call of a tool. `size`: bytes to be written for it. `mark`: where they begin in the
    stream to the server, once it was sent, before which it waited for `waited_s`. `woke`: the server was not up when it
    came.
    `unreached`: how often it found nobody who could have carried it out, `stale`: how often it was refused, though
    maybe only for its session, by the present incarnation, `stale_in`. `put_off`: how often it came too often, and
    `not_before`: when it may be sent again. `word_by`: until when others wait for its first question. `refused`: its
    headers were not those that the server wants, whose list may have changed, so it waits for that to be read;
    `mirrors` as they were.
    """

    number: int
    message: CallServer
    reply: Reply[Result]
    size: int
    began: float
    deadline: float
    tool: str = ""
    questions: int = 0
    asks: bool = False
    asked_at: float = 0.0
    told: bool = False
    left_s: float = 0.0
    sent_at: float | None = None
    waited_s: float = 0.0
    mark: Mark | None = None
    woke: bool = False
    unreached: int = 0
    stale: int = 0
    stale_in: str = ""
    put_off: int = 0
    not_before: float = -math.inf
    word_by: float = -math.inf
    refused: RemoteError | None = None
    mirrors: tuple[Mirror, ...] | None = None

    def message_in_trace(self) -> CallServer:
        """Return what is sent of it now, with the context of its trace, which is told so."""
        trace, message = self.message.trace, self.message
        return message if trace is None else replace(message, meta=trace.send(message.meta))

    @property
    def left(self) -> bool:
        """Whether the server may know of it: it was sent, and bytes of it were written."""
        return self.mark is not None and self.mark.passed

    def may_wait(self, failure: Failure, run: str) -> bool:
        """Say whether it is sent again after this: nothing of it was done, as its session is over or nobody was found.

        What is no proof of the first is counted for the incarnation `run`, and the second for all.
        """
        if self.stale_in != run:
            self.stale, self.stale_in = 0, run
        self.unreached += failure.unreached
        self.stale += failure.stale
        again = (failure.unreached and self.unreached <= MAX_UNREACHED) or (failure.stale and self.stale <= MAX_STALE)
        return failure.cause == "expired" or again

    def put_off_by(self, failure: Failure, now: float, jitter: float) -> bool:
        """Say whether it is sent again later, as it came too often, and note when. `jitter` is in 0..1.

        Not before the server says, and not where that is after the deadline: its client knows that better at once.
        """
        if not failure.too_often or self.put_off >= MAX_PUT_OFF:
            return False
        spread_s = _SPREAD_S * 2.0**self.put_off
        earliest = now + max(failure.retry_after_s or 0.0, spread_s)
        if earliest >= self.deadline:
            return False
        self.put_off += 1
        self.not_before = earliest + min(spread_s, (self.deadline - earliest) / 2) * jitter
        return True

    def is_outdated(self, error: ErrorObject, era: Era) -> bool:
        """Say whether it is refused for its headers, for the first time (MCP 2026-07-28, streamable-http)."""
        return era == "modern" and error.code == HEADER_MISMATCH and self.mirrors is None

    def move(self, deadline: float, most_s: float, *, earlier: bool) -> bool:
        """Move the deadline, to `most_s` from the beginning at most; False if that changes hardly anything."""
        deadline = max(min(deadline, self.began + most_s), self.began + self.message.deadline_s)
        if deadline <= self.deadline + _WORTH_S and not (earlier and deadline < self.deadline):
            return False
        self.deadline = deadline
        return True
