"""One request of a client, from its arrival to its result, and what its client is told and asked in between.

Rules:
- Whatever is said never waits: a client that does not read costs what its queue holds, and nobody else anything.
- Only who has said that it can be asked is asked, on the way its request came, and only in the legacy era: a modern
  client gets no requests (MCP 2026-07-28, basic/patterns/mrtr).
- What a client sends as an answer is settled once, by the id of our question; ids are ours and unique in a session.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, Literal, Protocol

import msgspec
import trio

from actors import codes
from actors.catalogue.metadata import is_idempotent
from actors.catalogue.offer import Tool
from actors.errors import CannotAsk
from actors.kit import Latest, Quota, Reply
from actors.messages import Note, Question
from actors.principal import ClientKey
from actors.protocol.agreement.capabilities import (
    ELICIT,
    LIST_ROOTS,
    NOBODY,
    forwardable,
    missing_capability,
    with_elicitation,
)
from actors.protocol.agreement.versions import META_LOG_LEVEL, META_SUBSCRIPTION
from actors.protocol.asking.input_required import InputRequest, Retry
from actors.protocol.asking.questions import TooManyQuestions, Visitor, advance, with_token
from actors.protocol.exchanges import NOTHING, UNSAID, Interest, LogLevel
from actors.protocol.listing import LISTED_BY
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.jsonrpc import FIRST_IDS, RemoteError, canonical, encode
from actors.transport.redaction import Confidential
from supervisor.metatools.texts import clean
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.elicitations import CallElicitations
from supervisor.service.client import Client, Updates
from supervisor.tracing.context import RequestTrace

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
    """The questions that the client of one session has not answered, by their ids: ours, and never used again.

    They are integers, as the servers of the official SDKs send them. A client outlives a daemon: what it answers late
    must not be taken for the answer to a question of the next one. So each session begins somewhere else.
    """

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


# A person should see who asks before typing anything (MCP 2025-11-25, client/elicitation "Security Considerations"). At
# doors with many servers behind them a client could not know. The name is that of the configuration; what a server
# calls itself proves nothing.


def label(server: str, method: str, params: msgspec.Raw) -> msgspec.Raw:
    """Return the params of a question with the server's name before its message; others as they are."""
    if method != ELICIT or not server:
        return params
    try:
        members = json.read(json.MEMBERS, params)
        message = json.read(json.STRING, members["message"])
    except (json.UnreadableJson, KeyError):
        return params
    return msgspec.Raw(encode({**members, "message": f"[{clean(server)}] {message}"}))


def label_result(server: str, body: bytes, requests: Mapping[str, InputRequest]) -> bytes:
    shown = {key: InputRequest(each.method, label(server, each.method, each.params)) for key, each in requests.items()}
    return encode({**json.MEMBERS.decode(body), "inputRequests": shown})


# How much servers may ask: a question costs the attention of a person or the tokens of a model, and memory meanwhile.
#
# - Of one call so many, of all calls of one server so many in any minute: the same whatever era its clients and it
#   speak, and however it asks. `roots/list` costs nobody anything, and is counted in bytes only.
# - The bytes of questions without an answer are bounded for a call, and for all servers together, which share them
#   (`actors.kit.fairness.quota`).
# - Whoever asks more gets an error that says which bound it was and, if that passes, when to ask again.
# - Questions of ours (`confirm`) are none of a server's.

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


MAX_TOKEN_BYTES: Final = 512
_READING: Final = frozenset({*LISTED_BY, "resources/read", "prompts/get", "completion/complete"})
_TOKEN_STARTS: Final = frozenset(b'"-0123456789')
OVER: Final = "the request that this was about is over"
_UNREAD: Final = "the client does not read what it is sent"
_VISIT: Final = msgspec.Raw(b'{"mode":"url"}')


class Voice(Protocol):
    """How a client is spoken to before its request is answered."""

    def say(self, message: bytes) -> bool:
        """Send a JSON-RPC message. Never waits; False if there is no room for it, or nobody to read it."""


class _Meta(msgspec.Struct):
    token: msgspec.Raw = msgspec.field(name="progressToken", default=msgspec.Raw(b""))
    log_level: msgspec.Raw = msgspec.field(name=META_LOG_LEVEL, default=msgspec.Raw(b""))


_meta = msgspec.json.Decoder(_Meta)
_level = msgspec.json.Decoder(LogLevel)


class SessionState(msgspec.Struct):
    """What outlasts a request: of a session, or of the one request that a subscription is."""

    questions: QuestionTable | None = None
    """Those that the client has not answered; None where it cannot be asked."""
    log_level: LogLevel | Literal[""] | None = None
    """What it has asked for; empty if it has not, None if it cannot."""
    updates: Updates | None = None
    """Where changes of resources are noted; None where they could not be told."""


class Exchange(Confidential, msgspec.Struct, eq=False):
    """One request; implements `actors.messages.Caller`. `id` is JSON text.

    `voice` is None where nothing can be said before the answer; `session` outlasts the request. `asking` are the
    questions that were asked, by their ids or pages. `retry` is what a request says that is made again; `wish` what it
    wants to hear. `asked_by` is the server that questions are told to be of, empty where the client knows.
    `elicitations`: who is told that something is asked, and where somebody else may answer. `allowance`: how much the
    server may ask; None before it is asked anything itself. `tool` is the one that is called, None before it is known.
    `forwarded`: a server may have been asked; `waited_s`: how long that waited, see `Result`. `called` is the tool that
    a client named, of ours or of a server, `failed`: its result says that it has. `only_reads`: it calls no tool but
    one that surely does only that. `asks_later`: it is one of several calls of a request, so what an incomplete result
    would ask waits until its client makes the call alone. `confirmed`: the digest of the call that its user said yes
    to, for once. `calls`: what ends the calls of such a request that have not ended, whose result tells of each, and is
    sent all the same. `trace` is None without traces; `protocol` and `lines`, those of the head where there is one, are
    told there.
    """

    client: Client
    id: bytes
    method: str
    params: msgspec.Raw
    voice: Voice | None = None
    session: SessionState = msgspec.field(default_factory=SessionState)
    retry: Retry | None = None
    wish: Interest = NOTHING
    asked_by: str = ""
    tool: Tool | None = None
    called: str = ""
    failed: bool = False
    only_reads: bool = False
    asks_later: bool = False
    confirmed: bytes = b""
    calls: trio.CancelScope | None = None
    trace: RequestTrace | None = None
    protocol: str = "http"
    lines: Mapping[bytes, bytes] | None = None
    forwarded: bool = False
    waited_s: float = 0.0
    elicitations: CallElicitations | None = None
    allowance: CallAllowance | None = None
    asking: dict[int | str, Reply[msgspec.Raw]] = {}

    @property
    def idempotent(self) -> bool:
        """Whether it only reads, or calls a tool that says of itself that it may be called twice."""
        return self.method in _READING if self.tool is None else is_idempotent(self.tool)

    @property
    def capabilities(self) -> bytes:
        """What the client can be asked meanwhile, as a server of the modern era is told: a JSON object."""
        if self.client.era == "legacy" and (self.voice is None or self.session.questions is None):
            return NOBODY
        return forwardable(self.client.capabilities)

    def interest(self, meta: msgspec.Raw, *, asked: bool = True, everyone: bool = False) -> Interest:
        """Return what the client wants to hear meanwhile; `meta` is the `_meta` of its request.

        `asked`: it may be asked something, too, as far as it can be; `everyone`: otherwise a person is in another way.
        """
        self.wish = wish = self._wish(meta)
        capabilities = self.capabilities if asked else NOBODY
        if everyone:
            capabilities = with_elicitation(capabilities)
        return wish if capabilities == NOBODY else Interest(wish.progress, wish.log_level, capabilities)

    def _wish(self, meta: msgspec.Raw) -> Interest:
        if self.voice is None:
            return NOTHING
        token, level = b"", self.session.log_level
        if len(meta) > 2:
            if (wanted := json.read_or(_meta, meta, None)) is None:
                return NOTHING
            token = bytes(wanted.token)
            if token[:1] and (token[0] not in _TOKEN_STARTS or len(token) > MAX_TOKEN_BYTES):
                token = b""
            if self.client.era == "modern":
                level = _level_of(wanted.log_level)
        if not token and not level:
            return NOTHING if level is None else UNSAID
        return Interest(token, level)

    def note(self, note: Note) -> bool:
        # What a part of a stream names is our request; its client knows it by the id of its own.
        params = json.with_meta(note.params, META_SUBSCRIPTION, self.id)
        return self.voice is not None and self.voice.say(jsonrpc.notification(note.method, params))

    def lacks(self, question: Question) -> str:
        """Return why the client cannot be asked this; empty if it can."""
        legacy = self.client.era == "legacy"
        if legacy and (self.voice is None or self.session.questions is None):
            return "the client that made this call cannot be asked"
        lacks = missing_capability(self.client.capabilities, question.method, question.params)
        return f"the client that made this call did not declare {lacks}" if lacks else ""

    def reaches_people(self, question: Question) -> bool:
        """Say whether a person may answer on a page what the client cannot be asked."""
        return self.elicitations is not None and self.elicitations.everyone and question.method == ELICIT

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        reply: Reply[msgspec.Raw] = Reply()
        elicitations = self.elicitations
        if self.trace is not None:
            self.trace.ask(question.method, reply)
        try:
            if elicitations is not None and self.reaches_people(question) and not self._takes(question):
                self.admit(question, reply)
                page = elicitations.offer(question, reply)
                self.asking[page] = reply
                return reply
            self._ask(question, reply)
            if elicitations is not None:
                elicitations.on_asked(question, reply)
        except CannotAsk as error:
            reply.fail(error)
        return reply

    def admit(self, question: Question, reply: Reply[msgspec.Raw]) -> None:
        """Count a question that is about to be asked. Raises `TooManyQuestions` if its server may ask no more."""
        if self.allowance is not None:
            self.allowance.take(question, reply)

    @property
    def identity(self) -> ClientKey:
        """Its session; a client without one is known by its name. See `Caller.identity`."""
        return self.client.principal, self.client.session or self.client.name

    def visitor(self, question: Question | None = None) -> Visitor | None:
        """Return who hears of the end of a visit, in the session of the client; see `Caller.visitor`."""
        if self.session.updates is None:
            return None
        able = (
            self._takes(question)
            if question is not None
            else not missing_capability(self.client.capabilities, ELICIT, _VISIT)
        )
        return self.session.updates.visited if able else None

    def _takes(self, question: Question) -> bool:
        return self.client.era == "legacy" and not self.lacks(question)

    def _ask(self, question: Question, reply: Reply[msgspec.Raw]) -> None:
        if refused := self.lacks(question):
            raise CannotAsk(refused)
        voice, questions = self.voice, self.session.questions
        if voice is None or questions is None or self.client.era == "modern":
            raise CannotAsk("the client that made this call cannot be asked")
        self.admit(question, reply)
        id_ = questions.add(reply, question.progress)
        if id_ is None:
            raise CannotAsk(f"the client has {MAX_OPEN} questions that it has not answered")
        token = jsonrpc.encode(id_) if question.progress is not None else b""
        params = with_token(label(self.asked_by, question.method, question.params), token)
        if not voice.say(jsonrpc.request(jsonrpc.encode(id_), question.method, bytes(params))):
            questions.take(id_)
            raise CannotAsk(_UNREAD)
        self.asking[id_] = reply
        reply.on_abandon(lambda: self._withdraw(id_))

    def _withdraw(self, id_: int) -> None:
        voice, questions = self.voice, self.session.questions
        if questions is not None and questions.take(id_) is not None and voice is not None:
            params = jsonrpc.encode({"requestId": id_, "reason": "nobody waits for the answer any more"})
            voice.say(jsonrpc.notification("notifications/cancelled", params))

    def close(self) -> None:
        """The request is over, however that came: what its client was asked, and has not answered, is taken back.

        Its server has answered all the same, is gone, or was replaced; nobody waits for that form any more.
        """
        for id_, reply in self.asking.items():
            if isinstance(id_, int):
                self._withdraw(id_)
            reply.fail(CannotAsk(OVER))


def _level_of(raw: msgspec.Raw) -> LogLevel | None:
    return json.read_or(_level, raw, None) if len(raw) else None
