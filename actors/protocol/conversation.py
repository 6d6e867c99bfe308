"""Everything said with one process of a server, without I/O: handshake, lists, calls, changes.

Messages in, facts out; what must be said is collected in `output`. One conversation serves one incarnation; the next
process gets a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

import msgspec

from actors import codes
from actors.codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from actors.protocol import changes
from actors.protocol.agreement.capabilities import ASKED_BY, LIST_ROOTS
from actors.protocol.agreement.era import Action, Agreement, Negotiation, NoAgreement, Send
from actors.protocol.agreement.versions import BATCH_VERSION, Era
from actors.protocol.asking.questions import COMPLETE, id_of, refusal, with_progress_token
from actors.protocol.changes import ServerSubscription
from actors.protocol.exchanges import MESSAGE, PROGRESS, Exchanges
from actors.protocol.facts import (
    CallAsked,
    CallLost,
    Fact,
    ListsChanged,
    LoginWanted,
    QuestionWithdrawn,
    Unreachable,
    VisitCompleted,
)
from actors.protocol.listing import METHODS, Kind, Listed, ListLimits, ListWalk, PageSummary, capability_names
from actors.protocol.outbound import CANCELLED, LISTENS, SIGN_OF_LIFE, ClientRequest, Outbound, Tag
from actors.protocol.task_calls import TaskCalls
from actors.protocol.tasks import STATUS
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.fragment import DecodedLine, Message
from actors.protocol.wire.framing import Oversized
from actors.protocol.wire.jsonrpc import ErrorObject, canonical, failure, notification, success
from actors.protocol.wire.mirrors import MirrorsOf
from actors.protocol.wire.peer import GONE, OUTAGES, Answered, Asked, Failure, Malformed, Notified, Outgoing, Refused

MAX_OPEN: Final = 64
MAX_OPEN_BYTES: Final = 32 * 1024 * 1024
"""Of all open questions of one server; those count that are held, too, as it is not known yet whose they are."""
NO_ROOTS: Final = b'{"roots":[]}'
NO_PARAMS: Final = msgspec.Raw(b"{}")
"""What is passed on of a question that has none."""
INITIALIZED: Final = "notifications/initialized"


class OpenQuestions:
    """The requests of a legacy server that wait for an answer of ours, and which call each is about. Bounded.

    Whose a question is must be known: by the stream it came on, by the token of a call that it repeats, or because only
    one call is in flight that can have led to it. Where several can, whoever takes the question finds out: its `call`
    is None.

    `allowed`: the capabilities that were declared to it. `roots` is the result that it gets for `roots/list`, whoever
    calls; empty if clients are asked.
    """

    def __init__(self, out: Outbound, exchanges: Exchanges, allowed: frozenset[str], roots: bytes = b"") -> None:
        self._out = out
        self._exchanges = exchanges
        self._allowed = allowed
        self._roots = roots
        self._open: dict[bytes, int] = {}
        self._bytes = 0

    def take(self, asked: Asked, stream: bytes) -> CallAsked | None:
        """Take a question of a legacy server: answer it, or return whose client is to be asked.

        It stays open until it is answered or taken back.
        """
        known = b"{}" if asked.method == "ping" else self._known_roots(asked, stream)
        if known is not None:
            self._out.write(success(asked.id, known))
            return None
        exchanges = self._exchanges
        call = exchanges.of(stream) if stream else self._call_by_token(asked.params) or exchanges.asker()
        about_some = call is not None or (not stream and len(exchanges) > 0)
        if not about_some and not stream:
            exchanges.asked_of_none()
        if (why := self._refusal(asked, known=about_some)) is not None:
            self._out.write(failure(asked.id, why.code, why.message))
            return None
        self._open[asked.id] = len(asked.params)
        self._bytes += len(asked.params)
        return CallAsked(call, asked.id, asked.method, asked.params if len(asked.params) else NO_PARAMS)

    def _refusal(self, asked: Asked, *, known: bool) -> ErrorObject | None:
        """Return why nobody is asked. `known`: it is about some call, though perhaps not yet known which."""
        if not self._allows(asked.method):
            return ErrorObject(METHOD_NOT_FOUND, f"{asked.method[:100]} is not supported here")
        if not known:
            return ErrorObject(METHOD_NOT_FOUND, "there is nobody to ask while no call is in flight")
        if (wrong := refusal(asked.method, asked.params)) is not None:
            return ErrorObject(INVALID_PARAMS, wrong)
        if asked.id in self._open or len(self._open) >= MAX_OPEN:
            return ErrorObject(INVALID_REQUEST, f"this id is in use, or {MAX_OPEN} questions wait for an answer")
        if self._bytes + len(asked.params) > MAX_OPEN_BYTES:
            return ErrorObject(INVALID_REQUEST, f"{self._bytes} bytes of questions wait for answers already")
        return None

    def _allows(self, method: str) -> bool:
        return ASKED_BY.get(method) in self._allowed

    def _known_roots(self, asked: Asked, stream: bytes) -> bytes | None:
        """Return the roots where no client is asked for them: they are configured, or this is about no call.

        Servers ask for them as soon as they are initialized, and share what they get among all calls.
        """
        if asked.method != LIST_ROOTS or not self._allows(LIST_ROOTS):
            return None
        if self._roots:
            return self._roots
        return None if stream or (self._exchanges.at_work and len(self._exchanges)) else NO_ROOTS

    def _call_by_token(self, params: msgspec.Raw) -> int | None:
        """Return the call whose progress token a question repeats (our id of it); None if it repeats none."""
        if b"progressToken" not in bytes(params):
            return None
        token = canonical(bytes(json.at(params, "_meta", "progressToken")))
        return self._exchanges.of(token) if token else None

    def answer(self, id_: bytes, result: bytes | ErrorObject) -> None:
        if not self.close(id_):
            return
        if isinstance(result, bytes):
            self._out.write(success(id_, result))
        else:
            data = result.data if bytes(result.data) else None
            self._out.write(failure(id_, result.code, result.message, data))

    def close(self, id_: bytes) -> bool:
        """Close a question, as its server does not want the answer any more; False if it is not open."""
        if id_ not in self._open:
            return False
        self._bytes -= self._open.pop(id_)
        return True

    def send_progress(self, token: bytes, params: bytes) -> None:
        """Tell the server how far a client is with an answer, under the token (JSON text) that it gave."""
        self._out.write(notification(PROGRESS, with_progress_token(params, token)), method=PROGRESS)


class Conversation:
    """One process's worth of MCP. `ids` are those of its requests, each given once, see `Shared.request_ids`.

    Whoever hands the `output` over clears it. `era` is the one that was agreed on, legacy before that.
    """

    def __init__(
        self,
        ids: Iterator[int],
        negotiation: Negotiation,
        limits: ListLimits,
        mirrors_of: MirrorsOf,
        needs_task: Callable[[str], bool],
        clock: Callable[[], float],
    ) -> None:
        self._out = Outbound(ids, mirrors_of)
        self.output: list[Outgoing] = self._out.messages
        self._negotiation = negotiation
        self._subscription = ServerSubscription(self._out)
        terms = negotiation.terms
        self.exchanges = Exchanges(clock)
        allowed = capability_names(msgspec.Raw(terms.capabilities))
        self.questions = OpenQuestions(self._out, self.exchanges, allowed, terms.roots)
        self.tasks = TaskCalls(self._out, self.exchanges, needs_task)
        self._limits = limits
        self._listing: ListWalk | None = None
        self.agreement: Agreement | None = None
        self.era: Era = "legacy"

    @property
    def strays(self) -> int:
        return self._out.peer.strays

    @property
    def probing(self) -> bool:
        return self._negotiation.probing

    @property
    def batches(self) -> bool:
        """Whether the server may send several messages at once (only in 2025-03-26, basic/index "Batching")."""
        return self.agreement is not None and self.agreement.version == BATCH_VERSION

    @property
    def listing(self) -> bool:
        return self._listing is not None

    def greet(self) -> None:
        self._follow(self._negotiation.start())

    def list_all(self, now: float) -> None:
        """Begin a walk over all lists; `now` is in seconds of the clock that `on_page` is told, too."""
        capabilities = self.agreement.capabilities if self.agreement else msgspec.Raw(b"{}")
        self._listing = ListWalk(capabilities, self._limits, now)
        for kind in METHODS:
            if self._listing.waits_for(kind):
                self._ask_page(self._listing, kind, None)

    def _ask_page(self, listing: ListWalk, kind: Kind, params: bytes | None) -> None:
        listing.expect(kind, self._out.ask(kind, METHODS[kind], params))

    def on_page(self, kind: Kind, page: PageSummary, now: float) -> Listed | None:
        self._out.forget(kind)
        self.exchanges.at_work = True
        if self._listing is None:
            return None
        following = self._listing.on_page(kind, page, now)
        if following is not None:
            self._ask_page(self._listing, *following)
        return self._finish_listing()

    def waits_for(self, kind: Kind) -> bool:
        return self._listing is not None and self._listing.waits_for(kind)

    def stop_listing(self, seconds: float) -> Listed | None:
        """Give up a walk over the lists that took these seconds; late pages are dropped."""
        for kind in METHODS:
            self._out.forget(kind)
        if self._listing is not None:
            self._listing.give_up(seconds)
        return self._finish_listing()

    def listen(self, uris: Iterable[str] = ()) -> None:
        """Ask to be told of changes of the lists, which a legacy server tells unasked, and of these resources."""
        self._subscription.listen(uris, self.era)

    def ask_for_life(self, *, again: bool = True) -> bool:
        """Ask for any answer at all; not `again`: unless one is awaited. Return whether it was asked for."""
        if asked := again or not self._out.peer.id_of("life"):
            self._out.ask("life", SIGN_OF_LIFE[self.era])
        return asked

    @property
    def awaits_life(self) -> bool:
        """Whether the server was asked for any answer at all, and has given none."""
        return bool(self._out.peer.id_of("life"))

    def call(self, call: int, asked: ClientRequest) -> None:
        if self.era == "modern" and asked.method in changes.OF_RESOURCES:
            self._subscription.call(call, asked.method, asked.name)
        elif self.tasks.spoken and self.tasks.concerns(asked):
            self.tasks.begin(call, asked)
        else:
            self.exchanges.begin(call, self._out.call(call, asked), asked.interest, asked.method, asked.client)

    def cancel(self, call: int, reason: str) -> None:
        self._subscription.drop(call)
        if call in self.tasks:
            self.tasks.cancel(call, reason)
            return
        id_ = self.exchanges.leave(call)
        if id_ is not None:
            self._out.cancel(id_, reason)

    def answer(self, id_: bytes, result: bytes | jsonrpc.ErrorObject) -> None:
        """Answer a question of the server: with a result, a JSON object, or an error; nothing if it is not open."""
        if (said := self.tasks.on_answer(id_, result)) is not None:
            self.questions.answer(id_, said)

    def receive(self, message: Message, spoiled_by: str = "", stream: bytes = b"") -> Fact | None:
        """Take one message of the server. Raises `ProtocolViolation` for what is no JSON-RPC.

        `spoiled_by` says why it cannot be used whatever it says; a call that it answers fails with that. `stream` is
        the id of the request on whose stream it came, empty where all share one.
        """
        page = None
        if self._listing is not None and isinstance(message, bytes | DecodedLine) and not spoiled_by:
            page = self._listing.recognise(message)
        return page or self._receive(message, spoiled_by, stream)

    def on_failure(self, failure: Failure) -> Fact | None:
        if not failure.id:
            return ListsChanged(missed=True)
        match self._out.peer.settle(failure.id):
            case int(call) if call in self.tasks:
                return self.tasks.on_failure(call, failure)
            case int(call):
                self.exchanges.end(call)
                return CallLost(call, failure)
            case str() if failure.bars:
                return LoginWanted(failure.reason)
            case "negotiation":
                if failure.cause in OUTAGES:
                    return Unreachable(failure.reason, failure.retry_after_s or 0.0)
                if failure.cause in ("unauthorized", "forbidden"):
                    return NoAgreement(failure.reason)
                return self._follow(self._negotiation.on_failure(failure.reason))
            case ("tools" | "resources" | "templates" | "prompts" | "skills" | "events") as kind if (
                self._listing is not None
            ):
                self._listing.lost = self._listing.lost or (failure.reason if failure.faulty else "")
                if failure.too_often:
                    self._listing.again_s = max(self._listing.again_s or 0.0, failure.retry_after_s or 0.0)
                return self._listing.take(kind, b"", failure.reason)
            case "listen" | "other listen" as tag:
                return self._subscription.on_end(failure, tag)
            case "life" if failure.cause in GONE:
                return Unreachable(failure.reason, failure.retry_after_s or 0.0)
            case _:
                return None

    def receive_other(self, message: bytes | DecodedLine, kind: Kind | None = None) -> Fact | None:
        """Take one message that turned out to be no page of list `kind`. Raises `ProtocolViolation`."""
        if self._listing is not None and kind is not None:
            self._listing.expect_again(kind)
        return self._receive(message, "", b"")

    def _receive(self, message: Message, spoiled_by: str, stream: bytes) -> Fact | None:
        peer = self._out.peer
        alone = self.agreement is None and not stream
        event = peer.spoil(message, spoiled_by) if spoiled_by else peer.receive(message, alone=alone)
        match event:
            case Answered(tag=int(call)) | Refused(tag=int(call)) | Malformed(tag=int(call)):
                answer = cast("Answered[int] | Refused[int] | Malformed[int]", event)
                if call in self.tasks:
                    return self.tasks.take(answer)
                self.exchanges.end(call, refused=isinstance(answer, Refused))
                return answer
            case Notified(method=method, params=params):
                return self._on_notification(method, params, stream)
            case Asked():
                return None if self.era == "modern" else self.questions.take(*self.tasks.place(event, stream))
            case None:
                return None
            case _:
                return self._receive_own(event, message if not (spoiled_by or isinstance(message, Oversized)) else b"")

    def _on_notification(self, method: str, params: msgspec.Raw, stream: bytes) -> Fact | None:
        if (part := self.exchanges.route_part(method, params)) is not None:
            return part
        if method in (PROGRESS, MESSAGE):
            return self.exchanges.route_note(method, params, self.tasks.stream_of(params, stream))
        if method == COMPLETE:
            visit = id_of(params)
            self.exchanges.unheard += not visit
            return VisitCompleted(visit) if visit else None
        if method == STATUS:
            return self.tasks.on_status(params)
        if method == changes.ACKNOWLEDGED:
            return self._subscription.on_acknowledged(params)
        return self._on_cancelled(params) if method == CANCELLED else changes.read_change(method, params)

    def _on_cancelled(self, params: msgspec.Raw) -> Fact | None:
        tag = self._subscription.tag_of(id_ := bytes(json.at(params, "requestId")))
        if tag is not None:
            return self._subscription.on_end(None, tag)
        return QuestionWithdrawn(id_) if self.questions.close(id_) else None

    def _receive_own(
        self, event: Answered[Tag] | Refused[Tag] | Malformed[Tag], message: bytes | DecodedLine
    ) -> Fact | None:
        """Answers to what we asked for ourselves. `message` is empty if it cannot be read, whatever is in it."""
        match event:
            case Answered(tag="negotiation", result=result):
                return self._follow(self._negotiation.on_result(result))
            case Refused(tag="negotiation", error=error):
                return self._follow(self._negotiation.on_error(error))
            case Malformed(tag="negotiation", reason=reason):
                error = jsonrpc.ErrorObject(codes.INTERNAL_ERROR, f"it answered with {reason}")
                return self._follow(self._negotiation.on_error(error))
        if event.tag in LISTENS:
            return self._subscription.on_end(event, event.tag)
        if self._listing is None or event.tag not in METHODS:  # it says nothing but that the server lives
            return None
        unreadable = f"it answered with {event.reason}" if isinstance(event, Malformed) and not message else ""
        return self._listing.take(event.tag, message, unreadable)

    def _finish_listing(self) -> Listed | None:
        if self._listing is None or not self._listing.done:
            return None
        listed = self._listing.result()
        self._listing = None
        return listed

    def _follow(self, action: Action) -> Fact | None:
        match action:
            case Send(method=method, params=params, version=version):
                self._out.request("negotiation", method, params, version)
                return None
            case Agreement():
                self.agreement, self.era = action, action.era
                self._out.on_agreement(action, self._negotiation.identity)
                self.tasks.on_agreement(action.capabilities, action.era)
                if action.era == "legacy":  # before anything else
                    self._out.write(jsonrpc.notification(INITIALIZED), method=INITIALIZED)
        return action
