"""One request of a client, from its arrival to its result, and what is said to the client in between.

Rules:
- Whatever is said never waits: a client that does not read costs what its queue holds, and nobody else anything.
- Only who has said that it can be asked is asked, on the way its request came, and only in the legacy era: a modern
  client gets no requests (MCP 2026-07-28, basic/patterns/mrtr).
- What a client sends as an answer is settled once, by the id of our question; ids are ours and unique in a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Protocol

import msgspec
import trio

from actors.catalogue.metadata import is_idempotent
from actors.catalogue.offer import Tool
from actors.errors import CannotAsk
from actors.kit import Reply
from actors.messages import Note, Question
from actors.principal import ClientKey
from actors.protocol.agreement.capabilities import (
    ELICIT,
    NOBODY,
    forwardable,
    missing_capability,
    with_elicitation,
)
from actors.protocol.agreement.versions import META_LOG_LEVEL, META_SUBSCRIPTION
from actors.protocol.asking.input_required import Retry
from actors.protocol.asking.questions import Visitor, with_token
from actors.protocol.exchanges import NOTHING, UNSAID, Interest, LogLevel
from actors.protocol.listing import LISTED_BY
from actors.protocol.wire import json, jsonrpc
from actors.transport.redaction import Confidential
from supervisor.service.asking.allowance import CallAllowance
from supervisor.service.asking.elicitations import CallElicitations
from supervisor.service.asking.labels import label
from supervisor.service.asking.question_table import MAX_OPEN, QuestionTable
from supervisor.service.client import Client
from supervisor.service.updates import Updates
from supervisor.tracing.port import RequestTrace

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
