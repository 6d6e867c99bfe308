"""How much servers may ask: a question costs the attention of a person or the tokens of a model, and memory meanwhile.

Rules:
- Of one call so many, of all calls of one server so many in any minute: the same whatever era its clients and it speak,
  and however it asks. `roots/list` costs nobody anything, and is counted in bytes only.
- The bytes of questions without an answer are bounded for a call, and for all servers together, which share them
  (`actors.kit.fairness.quota`).
- Whoever asks more gets an error that says which bound it was and, if that passes, when to ask again.
- Questions of ours (`confirm`) are none of a server's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Final

import msgspec
import trio

from actors.kit import Latest, Quota, Reply
from actors.messages import Question
from actors.protocol.agreement.capabilities import LIST_ROOTS
from actors.protocol.asking.input_required import InputRequest
from actors.protocol.asking.questions import TooManyQuestions
from supervisor.servers.deployment import Deployment

MAX_CALL_BYTES: Final = 8 * 1024 * 1024
"""Of the questions of one call that have no answer: two of the largest."""
MINUTE_S: Final = 60.0


class Allowances:
    """What each server has asked, over all calls and clients."""

    def __init__(self, deployment: Latest[Deployment]) -> None:
        self._deployment = deployment
        self._asked: dict[str, deque[float]] = {}
        self._bytes = Quota(0)

    def count(self, server: str, questions: int) -> None:
        """Count questions that are asked now. Raises `TooManyQuestions`, and then counts none of them."""
        most = self._deployment.value.rules_of(server).questions_per_min
        now, asked = trio.current_time(), self._asked.setdefault(server, deque())
        while asked and asked[0] <= now - MINUTE_S:
            asked.popleft()
        if len(asked) + questions > most:
            text = f"server {server!r} asked {len(asked)} questions within a minute, of {most} (max_questions_per_min)"
            wait_s = asked[0] + MINUTE_S - now if asked else MINUTE_S
            raise TooManyQuestions(text, server=server, outcome="unknown", retry_after_s=wait_s)
        asked.extend([now] * questions)

    def per_call(self, server: str) -> int:
        return self._deployment.value.rules_of(server).questions_per_call

    def keep(self, server: str, size: int, reply: Reply[msgspec.Raw]) -> None:
        """Count the bytes of a question until it is settled. Raises `TooManyQuestions`."""
        self._bytes.limit = self._deployment.value.settings.max_question_bytes
        if not self._bytes.has_room(server, size):
            text = f"{self._bytes.amount_of(server)} bytes of questions of server {server!r} wait for answers already"
            text += f"; all servers share {self._bytes.limit} (max_question_bytes)"
            raise TooManyQuestions(text, server=server, outcome="unknown", retry_after_s=1.0)
        self._bytes.add(server, size)
        reply.on_settled(partial(self._bytes.remove, server, size))


class CallAllowance(msgspec.Struct, eq=False):
    """What one call of a server may still ask its client, over all its rounds.

    `of_all`: what all calls of all servers may; `asked` so many questions, of which so many `bytes` have no answer.
    """

    of_all: Allowances
    server: str
    asked: int = 0
    bytes: int = 0

    def take(self, question: Question, reply: Reply[msgspec.Raw]) -> None:
        """Count a question whose answer will be in `reply`. Raises `TooManyQuestions` if it may not be asked."""
        size = len(question.params)
        if self.bytes + size > MAX_CALL_BYTES:
            text = f"{self.bytes} bytes of questions of this call wait for answers, {MAX_CALL_BYTES} are the most"
            raise TooManyQuestions(text, server=self.server, outcome="unknown", retry_after_s=1.0)
        self.count_all([question])
        self.of_all.keep(self.server, size, reply)
        self.bytes += size
        reply.on_settled(partial(self._give_back, size))

    def count_all(self, questions: Iterable[Question | InputRequest]) -> None:
        """Count questions that are asked together. Raises `TooManyQuestions`, and then counts none of them."""
        costly = sum(question.method != LIST_ROOTS for question in questions)
        most = self.of_all.per_call(self.server)
        if self.asked + costly > most:
            text = f"{self.asked} questions were asked during this call, of {most} (max_questions_per_call)"
            raise TooManyQuestions(text, server=self.server, outcome="unknown")
        self.of_all.count(self.server, costly)
        self.asked += costly

    def _give_back(self, size: int) -> None:
        self.bytes -= size
