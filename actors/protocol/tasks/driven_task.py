"""A call that its server makes a task of, driven by us until it has its result: to its client it is a call. Pure.

The task is made once: what fails afterwards is asked for again, or fails.

- Legacy: the result is asked for at once (`tasks/result`), as questions come while somebody waits for it. A server that
  refuses that before the task is over is asked how far it is, at the pace that it suggests.
- Modern: `tasks/get` has result, error and questions; those are asked one after the other (`tasks/update`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from actors.codes import INTERNAL_ERROR
from actors.errors import ProtocolViolation
from actors.protocol.agreement.client_capabilities import ASKED_BY, ELICIT
from actors.protocol.agreement.versions import Era
from actors.protocol.asking.input_required import MAX_REQUESTS, RESPONSES
from actors.protocol.asking.questions import CANCELLED, refusal
from actors.protocol.facts import CallAsked, CallLasts, CallLost, Fact
from actors.protocol.tasks import tasks
from actors.protocol.tasks.tasks import CANCEL, DEFAULT_PACE_S, GET, MAX_ID_CHARS, OVER, RESULT, UPDATE, Task
from actors.protocol.wire.failure import Failure
from actors.protocol.wire.jsonrpc import ErrorObject, decode_error, encode
from actors.protocol.wire.peer import Answered, Malformed, Refused

Request = Literal["tasks/result", "tasks/get", "tasks/update", "tasks/cancel"]
Step = Request | Literal["make", "wait", "ask"]
"""What is waited for: an answer, a while, or an answer of the client."""
UNREADABLE: Final = "a task that cannot be read"
MAX_QUESTIONS: Final = 256
"""Of one task; what it asks beyond that nobody is asked."""
MAX_REWRITTEN_BYTES: Final = 4 * 1024 * 1024
"""A larger result keeps what its server says in it of the task: to be written anew it would hold up everybody else."""

Send = Callable[[str, bytes], None]
"""Sends a request about the task: its method, and the members of its params beside `taskId`."""


class DrivenTask:
    """The task of one call. `id` is empty until the server has made it; `sent` tells whether an answer is awaited."""

    def __init__(self, call: int, era: Era, send: Send) -> None:
        self.id = ""
        self._call = call
        self._era = era
        self._send = send
        self._step: Step = "make"
        self._refused: ErrorObject | None = None
        self._last = self._missed = False
        self._asked: set[str] = set()
        self._question = ("", "")

    @property
    def sent(self) -> bool:
        """Whether a request about it, or that makes it, waits for its answer."""
        return self._step not in ("wait", "ask")

    def on_result(self, result: msgspec.Raw) -> Fact | None:
        self._missed = False
        match self._step:
            case "make":
                made = tasks.read_created(result, self._era)
                return Answered(self._call, result) if made is None else self._on_created(made)
            case "tasks/result":
                unnamed = len(result) > MAX_REWRITTEN_BYTES
                return Answered(self._call, result if unnamed else msgspec.Raw(tasks.with_related(bytes(result), "")))
            case "tasks/get":
                told = tasks.read_task(result)
                if told is None:
                    return Malformed(self._call, UNREADABLE)
                return self._on_legacy_status(told) if self._era == "legacy" else self._on_modern_status(told)
        return self._ask(GET)

    def on_error(self, error: ErrorObject) -> Fact | None:
        match self._step:
            case "tasks/result" if not self._last:
                self._refused = error
                return self._ask(GET)
            case "make" | "tasks/result" | "tasks/get":
                return Refused(self._call, error)
        return self._ask(GET)

    def on_failure(self, failure: Failure) -> Fact | None:
        """Take that the last request has no answer: a task that was made is asked for once more, if it may be there."""
        if self._step == "make":
            return CallLost(self._call, failure)
        if self._missed or failure.cause == "expired":
            return CallLost(self._call, replace(failure, cause="crashed", sent=True))
        self._missed = not failure.too_often
        return self._pause(max(DEFAULT_PACE_S, failure.retry_after_s or 0.0))

    def due(self) -> None:
        if self._step == "wait":
            self._ask(GET)

    def on_answer(self, answer: bytes | ErrorObject) -> None:
        """Take what the client has answered to a question, a JSON object, or why it has not."""
        key, method = self._question
        if self._step != "ask":
            return
        if isinstance(answer, ErrorObject) and method != ELICIT:  # there is no way to say that to the server
            self._refused = answer
            self._ask(CANCEL)
            return
        given = CANCELLED if isinstance(answer, ErrorObject) else answer
        self._ask(UPDATE, b'"%b":%b' % (RESPONSES.encode(), encode({key: msgspec.Raw(given)})))

    def _on_created(self, task: Task) -> CallLasts:
        self.id = task.id
        if self._era == "modern":
            return self._pause(task.pause_s)
        self._ask(RESULT)
        return CallLasts(self._call)

    def _on_legacy_status(self, task: Task) -> Fact | None:
        refused, self._refused = self._refused, None
        if task.status in OVER:
            if refused is not None and task.status != "completed":
                return Refused(self._call, refused)
            self._last = True
            return self._ask(RESULT)
        if task.status == "input_required" and refused is None:
            return self._ask(RESULT)
        return self._pause(task.pause_s)

    def _on_modern_status(self, task: Task) -> Fact | None:
        match task.status:
            case "completed" if bytes(task.result)[:1] == b"{":
                return Answered(self._call, task.result)
            case "completed":
                return Malformed(self._call, "a task that is completed and has no result", done=True)
            case "failed":
                return self._fail(task)
            case "cancelled":
                text = f"the task was cancelled: {task.message}" if task.message else "the task was cancelled"
                return Refused(self._call, self._refused or ErrorObject(INTERNAL_ERROR, text))
            case "input_required" if (asked := self._next_question(task)) is not None:
                return asked
        return self._pause(task.pause_s)

    def _fail(self, task: Task) -> Fact:
        try:
            return Refused(self._call, decode_error(task.error))
        except ProtocolViolation as violation:
            return Malformed(self._call, violation.message)

    def _next_question(self, task: Task) -> Fact | None:
        """Return the next question that was not asked so far; its keys are unique in the life of a task."""
        for key, request in islice(task.requests.items(), MAX_REQUESTS):
            if key not in self._asked and len(key) <= MAX_ID_CHARS and len(self._asked) < MAX_QUESTIONS:
                self._asked.add(key)
                if request.method not in ASKED_BY or refusal(request.method, request.params):
                    continue
                self._step, self._question = "ask", (key, request.method)
                id_ = encode(f"task-{self._call}-{len(self._asked)}")
                return CallAsked(self._call, id_, request.method, request.params)
        return None

    def _ask(self, step: Request, more: bytes = b"") -> Fact | None:
        """Send a request; there is nothing to tell before its answer."""
        self._step = step
        self._send(step, more)
        return None

    def _pause(self, seconds: float) -> CallLasts:
        self._step = "wait"
        return CallLasts(self._call, seconds)
