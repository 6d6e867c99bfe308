"""The requests of a legacy server that wait for an answer of ours: how many there may be, and which call each is about.

Whose a question is must be known: by the stream it came on, by the token of a call that it repeats, or because only
one call is in flight that can have led to it. Where several can, whoever takes the question finds out: its `call` is
None. Pure.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from actors.protocol.agreement.client_capabilities import ASKED_BY, LIST_ROOTS
from actors.protocol.asking.questions import refusal, with_progress_token
from actors.protocol.exchanges import PROGRESS, Exchanges
from actors.protocol.facts import CallAsked
from actors.protocol.outbound import Outbound
from actors.protocol.wire import json
from actors.protocol.wire.ids import canonical
from actors.protocol.wire.jsonrpc import ErrorObject, failure, notification, success
from actors.protocol.wire.peer import Asked

MAX_OPEN: Final = 64
MAX_OPEN_BYTES: Final = 32 * 1024 * 1024
"""Of all open questions of one server; those count that are held, too, as it is not known yet whose they are."""
NO_ROOTS: Final = b'{"roots":[]}'
NO_PARAMS: Final = msgspec.Raw(b"{}")
"""What is passed on of a question that has none."""


class OpenQuestions:
    """Those of one server that wait for an answer. `allowed`: the capabilities that were declared to it.

    `roots` is the result that it gets for `roots/list`, whoever calls; empty if clients are asked.
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
