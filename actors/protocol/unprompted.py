"""What a server says of its own accord while it works: notes and questions about calls, and whose they are. Pure.

Whose a question is must be known: by the stream it came on, by the token of a call that it repeats, or because only
one call is in flight that can have led to it. Where several can, whoever takes the fact finds out: its `call` is None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import msgspec

from actors.protocol.agreement.client_capabilities import LIST_ROOTS
from actors.protocol.asking.question_progress import told_with
from actors.protocol.asking.questions import Questions
from actors.protocol.asking.visits import completed
from actors.protocol.exchanges import MESSAGE, PROGRESS, Exchanges
from actors.protocol.facts import CallAsked, CallNoted, QuestionWithdrawn, VisitCompleted
from actors.protocol.outbound import ClientRequest, Outbound
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.peer import Asked

NOTES: Final = (PROGRESS, MESSAGE)
NO_ROOTS: Final = b'{"roots":[]}'


class _Meta(msgspec.Struct):
    token: str = msgspec.field(name="progressToken", default="")


class _Params(msgspec.Struct):
    meta: _Meta = msgspec.field(name="_meta", default_factory=_Meta)


_params = msgspec.json.Decoder(_Params)


class Unprompted:
    """The notes and questions of one incarnation of a server. `allowed`: the capabilities that were declared to it.

    `roots` is the result that it gets for `roots/list`, whoever calls; empty if clients are asked.
    """

    def __init__(self, out: Outbound, allowed: frozenset[str], clock: Callable[[], float], roots: bytes = b"") -> None:
        self._out = out
        self._exchanges = Exchanges(clock)
        self._questions = Questions(allowed)
        self._roots = roots
        self._at_work = False

    @property
    def askers(self) -> frozenset[int]:
        """The calls that may have led to a question that comes now; see `Exchanges.askers`."""
        return self._exchanges.askers

    @property
    def doubt_s(self) -> float:
        """After how many seconds no call that was left is meant any more; see `Exchanges.doubt_s`."""
        return self._exchanges.doubt_s

    @property
    def unheard(self) -> int:
        """Notes that went to nobody."""
        return self._exchanges.unheard

    def begin(self, call: int, id_: bytes, asked: ClientRequest) -> None:
        """A call was sent as the request with this id (JSON text)."""
        self._exchanges.begin(call, id_, asked.interest, asked.method, asked.client)

    def also(self, call: int, id_: bytes, token: bytes = b"", *, instead_of: bytes = b"") -> None:
        """A call is known by one more id; see `Exchanges.also`."""
        self._exchanges.also(call, id_, token, instead_of=instead_of)

    def end(self, call: int, *, refused: bool = False) -> None:
        """The server has answered a call; see `Exchanges.end`."""
        self._at_work = True
        self._exchanges.end(call, refused=refused)

    def leave(self, call: int) -> bytes | None:
        """Nobody waits for a call any more; see `Exchanges.leave`."""
        return self._exchanges.leave(call)

    def on_page(self) -> None:
        """The server has answered something after its handshake: what it asks from now on is about calls."""
        self._at_work = True

    def noted(self, method: str, params: msgspec.Raw, stream: bytes) -> CallNoted | None:
        """Take a note; see `Exchanges.route_note`."""
        return self._exchanges.route_note(method, params, stream)

    def drop(self) -> None:
        """A note is for nobody."""
        self._exchanges.unheard += 1

    def on_complete(self, params: msgspec.Raw) -> VisitCompleted | None:
        """Take that a person is done at an address; None, and counted, if that cannot be read."""
        fact = completed(params)
        self._exchanges.unheard += fact is None
        return fact

    def withdraw(self, id_: bytes) -> QuestionWithdrawn | None:
        """Close a question that the server does not want answered any more."""
        return self._questions.withdraw(id_)

    def asker(self, among: Collection[int] | None = None) -> int | None:
        """Return the only call that can have led to a question on a stream that all share; see `Exchanges.asker`."""
        return self._exchanges.asker(among)

    def on_question(self, asked: Asked, stream: bytes) -> CallAsked | None:
        """Take a question of a legacy server: answer it, or return whose client is to be asked."""
        if asked.method == "ping":
            self._out.write(jsonrpc.success(asked.id, b"{}"))
            return None
        if (roots := self._known_roots(asked, stream)) is not None:
            self._out.write(jsonrpc.success(asked.id, roots))
            return None
        call = self._exchanges.of(stream) if stream else self._call_by_token(asked.params) or self.asker()
        known = call is not None or (not stream and len(self._exchanges) > 0)
        if not known and not stream:
            self._exchanges.asked_of_none()
        match self._questions.take(asked.id, asked.method, asked.params, call, known=known):
            case CallAsked() as question:
                return question
            case refusal:
                self._out.write(jsonrpc.failure(asked.id, refusal.code, refusal.message))
                return None

    def answer(self, id_: bytes, result: bytes | jsonrpc.ErrorObject) -> None:
        """Answer a question with a result, a JSON object, or an error; nothing if it is not open."""
        if (message := self._questions.answer(id_, result)) is not None:
            self._out.write(message)

    def send_progress(self, token: bytes, params: bytes) -> None:
        """Tell the server how far a client is with an answer, under the token (JSON text) that it gave."""
        self._out.write(jsonrpc.notification(PROGRESS, told_with(params, token)), method=PROGRESS)

    def _known_roots(self, asked: Asked, stream: bytes) -> bytes | None:
        """Return the roots where no client is asked for them: they are configured, or this is about no call.

        Servers ask for them as soon as they are initialized, and share what they get among all calls.
        """
        if asked.method != LIST_ROOTS or not self._questions.allows(LIST_ROOTS):
            return None
        if self._roots:
            return self._roots
        return None if stream or (self._at_work and len(self._exchanges)) else NO_ROOTS

    def _call_by_token(self, params: msgspec.Raw) -> int | None:
        """Return the call whose progress token a question repeats (our id of it); None if it repeats none."""
        if b"progressToken" not in bytes(params):
            return None
        try:
            token = _params.decode(params).meta.token
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return self._exchanges.of(jsonrpc.encode(token)) if token else None
