"""The calls of one incarnation that are about tasks: made as ones by clients, asking for them, or driven by us. Pure.

Whose it is what a legacy server says of a task is known by the task's id: it is told to the call that waits for the
result of that task. What is said of a task for which nobody waits goes to nobody; clients have to ask anyway (MCP
2025-11-25, basic/utilities/tasks).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from actors.codes import INTERNAL_ERROR
from actors.errors import ProtocolViolation
from actors.protocol import tasks
from actors.protocol.agreement.capabilities import ASKED_BY, ELICIT
from actors.protocol.agreement.versions import Era
from actors.protocol.asking.input_required import MAX_REQUESTS, RESPONSES
from actors.protocol.asking.questions import CANCELLED, MAX_QUESTION_BYTES, refusal
from actors.protocol.exchanges import MAX_NOTE_BYTES, Exchanges, Interest
from actors.protocol.facts import ENDS, CallAsked, CallEnd, CallLasts, CallLost, CallNoted, Fact
from actors.protocol.outbound import ClientRequest, Outbound
from actors.protocol.tasks import CALL, CANCEL, DEFAULT_PACE_S, GET, MAX_ID_CHARS, OVER, RESULT, STATUS, UPDATE, Task
from actors.protocol.wire.jsonrpc import ErrorObject, decode_error, encode
from actors.protocol.wire.peer import Answered, Asked, Failure, Malformed, Refused

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
MAX_OPEN: Final = 1024
"""Tasks of which something is known; then the oldest are forgotten."""
TTL_MS: Final = 3_600_000
"""For which a legacy server is asked to keep a task that we drive."""
NOWHERE: Final = b"-"
"""The stream of what is said of a task for which nobody waits."""


class DrivenTask:
    """A call that its server makes a task of, driven by us until it has its result: to its client it is a call.

    The task is made once: what fails afterwards is asked for again, or fails.

    - Legacy: the result is asked for at once (`tasks/result`), as questions come while somebody waits for it. A server
      that refuses that before the task is over is asked how far it is, at the pace that it suggests.
    - Modern: `tasks/get` has result, error and questions; those are asked one after the other (`tasks/update`).

    The task of one call. `id` is empty until the server has made it; `sent` tells whether an answer is awaited.
    """

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


class _Open(msgspec.Struct, frozen=True):
    """A task of a client. `id` is that of the request that made it, `token` what the client calls its progress."""

    lifetime_s: float
    id: bytes
    token: bytes


class _TaskCall(msgspec.Struct):
    """A call that is about a task, a client's or one `driven` by us; `id` is that of its last request."""

    method: str
    name: str
    id: bytes
    interest: Interest
    driven: DrivenTask | None = None

    @property
    def task(self) -> str:
        """The id of that task, empty before there is one; the name of a tool where a client makes one."""
        return self.name if self.driven is None else self.driven.id


class TaskCalls:
    """Those of one incarnation. `needs_task` says of a tool of a legacy server that it can only be run as a task.

    `spoken`: the server declared tasks.
    """

    def __init__(self, out: Outbound, exchanges: Exchanges, needs_task: Callable[[str], bool]) -> None:
        self._out = out
        self._exchanges = exchanges
        self._needs_task = needs_task
        self._era: Era = "legacy"
        self.spoken = False
        self._calls: dict[int, _TaskCall] = {}
        self._open: dict[str, _Open] = {}
        self._waiting: dict[str, int] = {}
        self._questions: dict[bytes, int] = {}
        self._tasks: dict[bytes, str] = {}

    def __contains__(self, call: int) -> bool:
        return call in self._calls

    @property
    def open(self) -> int:
        """How many tasks of clients are not over, as far as is known."""
        return len(self._open)

    @property
    def longest_s(self) -> float:
        """For how long the server keeps those tasks of clients that are not over, at most; 0 if there is none."""
        return max((task.lifetime_s for task in self._open.values()), default=0.0)

    def on_agreement(self, capabilities: msgspec.Raw, era: Era) -> None:
        self._era, self.spoken = era, tasks.speaks(capabilities, era)

    # Requests -------------------------------------------------------------------------------------------------------

    def concerns(self, asked: ClientRequest) -> bool:
        """Say whether a request to a server that speaks tasks is to be begun here."""
        if asked.method == CALL:
            return asked.as_task or self._era == "modern" or self._needs_task(asked.name)
        return asked.method in tasks.OF_ONE

    def begin(self, call: int, asked: ClientRequest) -> None:
        interest, members = asked.interest, asked.members
        drives = asked.method == CALL and not asked.as_task
        if self._era == "modern":
            interest = replace(interest, capabilities=tasks.with_extension(interest.capabilities))
        elif drives:
            members = b",".join(part for part in (members, b'"task":{"ttl":%d}' % TTL_MS) if part)
        id_ = self._out.call(call, replace(asked, members=members, interest=interest))
        self._exchanges.begin(call, id_, interest, asked.method, asked.client)
        begun = self._calls[call] = _TaskCall(asked.method, asked.name, id_, interest)
        if drives:
            begun.driven = DrivenTask(call, self._era, partial(self._send, call))
        elif asked.method == RESULT:
            self._waiting[asked.name] = call
            if (known := self._open.get(asked.name)) is not None and known.token:
                self._exchanges.also(call, known.id, known.token)

    def _send(self, call: int, method: str, more: bytes) -> None:
        about = self._calls[call]
        before, about.id = about.id, self._out.call(call, self._about(about.task, method, more, about.interest))
        self._exchanges.also(call, about.id, instead_of=before)

    def _about(self, task: str, method: str, more: bytes, interest: Interest) -> ClientRequest:
        members = b'"taskId":' + encode(task) + (b"," if more else b"") + more
        asking = Interest(capabilities=interest.capabilities)
        return ClientRequest(method=method, members=members, interest=asking, name=task)

    # Answers --------------------------------------------------------------------------------------------------------

    def take(self, answer: Answered[int] | Refused[int] | Malformed[int]) -> Fact | None:
        call, about = answer.tag, self._calls[answer.tag]
        match answer, about.driven:
            case Answered(result=result), DrivenTask() as driven:
                return self._drive(call, driven, driven.on_result(result))
            case Refused(error=error), DrivenTask() as driven:
                return self._drive(call, driven, driven.on_error(error))
            case Answered(result=result), _:
                self._learn(about, result)
        return self._finish(answer)

    def _learn(self, asking: _TaskCall, result: msgspec.Raw) -> None:
        if asking.method == CALL:
            self._add(asking, tasks.read_created(result, self._era))
        elif asking.method == RESULT:
            self._open.pop(asking.task, None)
        elif (task := tasks.read_task(result)) is not None:
            self._update(task)

    def on_failure(self, call: int, failure: Failure) -> Fact | None:
        if (driven := self._calls[call].driven) is not None:
            return self._drive(call, driven, driven.on_failure(failure))
        return self._finish(CallLost(call, failure))

    def due(self, call: int) -> None:
        if (driven := self._driven(call)) is not None:
            driven.due()

    def on_answer(self, id_: bytes, answer: bytes | ErrorObject) -> bytes | ErrorObject | None:
        """Take the answer of a client to a question, and return what the server gets for it.

        None if it has got it already: a task of a modern server led to the question.
        """
        task, call = self._tasks.pop(id_, None), self._questions.pop(id_, None)
        if call is not None:
            if (driven := self._driven(call)) is not None:
                driven.on_answer(answer)
            return None
        return answer if task is None or isinstance(answer, ErrorObject) else tasks.with_related(answer, task)

    def _driven(self, call: int) -> DrivenTask | None:
        return self._calls[call].driven if call in self._calls else None

    def _drive(self, call: int, driven: DrivenTask, fact: Fact | None) -> Fact | None:
        """Note what has become of a task that we drive: its id, what it asks, or its end."""
        if driven.id and self._era == "legacy":
            self._waiting[driven.id] = call
        if isinstance(fact, CallAsked):
            self._questions[fact.id] = call
        return self._finish(fact) if isinstance(fact, ENDS) else fact

    def _finish(self, fact: CallEnd) -> CallEnd:
        self._end(fact.tag)
        return fact

    def _end(self, call: int, *, answered: bool = True) -> None:
        if answered:
            self._exchanges.end(call)
        else:
            self._exchanges.leave(call)
        task = self._calls.pop(call).task
        if self._waiting.get(task) == call:
            del self._waiting[task]
            self._tasks = {id_: about for id_, about in self._tasks.items() if about != task}

    def cancel(self, call: int, reason: str) -> None:
        """Nobody waits for a call any more: a task that we drive is cancelled, one of a client is not."""
        about = self._calls[call]
        driven = about.driven
        self._end(call, answered=False)
        if driven is None or driven.sent:
            self._out.cancel(about.id, reason)
        if driven is not None and driven.id:
            self._out.call("task", self._about(driven.id, CANCEL, b"", about.interest))

    # What the server says -------------------------------------------------------------------------------------------

    def place(self, asked: Asked, stream: bytes) -> tuple[Asked, bytes]:
        """Return a question of a legacy server, and the stream on which it is to be taken."""
        if not self.spoken or len(asked.params) > MAX_QUESTION_BYTES or not (task := tasks.related_task(asked.params)):
            return asked, stream
        call = self._waiting.get(task)
        if call is None:
            return asked, NOWHERE
        if self._calls[call].driven is not None:
            asked = replace(asked, params=msgspec.Raw(tasks.with_related(bytes(asked.params), "")))
        elif len(self._tasks) < MAX_OPEN:
            self._tasks[asked.id] = task
        return asked, self._calls[call].id

    def stream_of(self, params: msgspec.Raw, stream: bytes) -> bytes:
        """Return the stream on which something is to be taken: that of the call to whose task it belongs, if to any."""
        if not self.spoken or not (task := tasks.related_task(params)):
            return stream
        call = self._waiting.get(task)
        return NOWHERE if call is None else self._calls[call].id

    def on_status(self, params: msgspec.Raw) -> CallNoted | None:
        """Take how a task is doing; return for which call that is, None, and counted, if for none."""
        task = tasks.read_task(params) if self.spoken and len(params) <= MAX_NOTE_BYTES else None
        if task is not None:
            self._update(task)
        call = self._waiting.get(task.id) if task is not None else None
        if call is not None and self._calls[call].driven is None:
            return CallNoted(call, STATUS, bytes(params))
        self._exchanges.unheard += 1
        return None

    def _add(self, asking: _TaskCall, task: Task | None) -> None:
        if task is None or task.status in tasks.OVER:
            return
        while len(self._open) >= MAX_OPEN:
            del self._open[next(iter(self._open))]
        self._open[task.id] = _Open(task.lifetime_s, asking.id, asking.interest.progress)

    def _update(self, task: Task) -> None:
        if task.status in tasks.OVER:
            self._open.pop(task.id, None)
