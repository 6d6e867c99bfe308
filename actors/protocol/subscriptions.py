"""The subscription of a modern server: one that is open, and the one that takes its place when more is wanted. Pure.

What is subscribed to cannot be changed, so another subscription is opened for it, and the old one is taken back when
the new one is acknowledged: nothing is missed in between. While one is being opened no further one is: however many
resources are asked for meanwhile, that is one more. A call that subscribes is answered by the acknowledgement.
(MCP 2026-07-28, basic/patterns/subscriptions.)
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from actors import codes
from actors.protocol import changes
from actors.protocol.agreement.versions import Era
from actors.protocol.facts import CallAnswered, CallLost, CallRefused, ListenEnded, Listening
from actors.protocol.outbound import LISTEN, LISTENS, ListenTag, Outbound, Tag
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.failure import Failure
from actors.protocol.wire.peer import Answered, Malformed, Refused

_DONE = msgspec.Raw(b"{}")
_UNREADABLE = "the server's acknowledgement of the subscription cannot be read"
_ENDED = "the server ended the subscription before it acknowledged it"
_NOT_HONOURED = "the server does not tell of changes of this resource"

End = Answered[Tag] | Refused[Tag] | Malformed[Tag] | Failure


class Wish(msgspec.Struct, frozen=True):
    """What a call is about: a resource, and whether changes of it are `wanted` or not any more."""

    uri: str
    wanted: bool


class ServerSubscription:
    """What one incarnation tells of. `out` is where it is asked for that."""

    def __init__(self, out: Outbound) -> None:
        self._out = out
        self._uris: dict[str, None] = {}
        self._asked: frozenset[str] = frozenset()
        self._open: ListenTag | None = None
        self._opening: ListenTag | None = None
        self._waiting: dict[int, Wish] = {}
        self._later: dict[int, Wish] = {}

    def listen(self, uris: Iterable[str], era: Era) -> None:
        """Ask for changes of the lists, and of these resources; a legacy server is asked for each of them by itself."""
        if era == "legacy":
            for uri in uris:
                self._out.ask("subscribe", changes.SUBSCRIBE, jsonrpc.encode({"uri": uri}))
            return
        self._uris |= dict.fromkeys(uris)
        if self._opening is None:
            self._ask()

    def call(self, call: int, method: str, uri: str) -> None:
        """Begin to ask for changes of a resource, or end that; the answer to the call comes with an acknowledgement."""
        wish = Wish(uri, method == changes.SUBSCRIBE)
        if wish.wanted:
            self._uris[uri] = None
        else:
            self._uris.pop(uri, None)
        if self._opening is None:
            self._ask()
        right = (uri in self._asked) == wish.wanted
        (self._waiting if right else self._later)[call] = wish

    def drop(self, call: int) -> None:
        """Forget a call that nobody waits for; what it asked for may come all the same."""
        for wishes in (self._waiting, self._later):
            wishes.pop(call, None)

    def on_acknowledged(self, params: msgspec.Raw) -> Listening | None:
        """Take an acknowledgement; None if it is not about the subscription that is being opened."""
        said, tag = changes.acknowledgement(params), self._opening
        if tag is None or (said is not None and said.id not in (b"", self._out.id_of(tag))):
            return None
        if self._open is not None:
            self._out.take_back(self._open, "another subscription has taken its place")
        self._open, self._opening = tag, None
        answers: list[CallAnswered | CallRefused] = []
        for call, wish in self._waiting.items():
            if not wish.wanted or (said is not None and wish.uri in said.uris):
                answers.append(CallAnswered(call, _DONE))
            else:
                answers.append(self._refuse(call, wish, _UNREADABLE if said is None else _NOT_HONOURED))
        self._go_on()
        return Listening(said is None or said.lists or bool(said.uris), tuple(answers))

    def on_end(self, end: End | None, tag: Tag) -> ListenEnded | None:
        """Take that a subscription is over; None if nothing is to be done. `end`: how; None if it was taken back."""
        self._out.forget(tag)
        if tag == self._open:
            self._open = None
            return ListenEnded(again=changes.is_supported(end)) if self._opening is None else None
        self._opening = None
        answers = tuple(self._fail(call, wish, end) for call, wish in self._waiting.items())
        self._go_on()
        kept = self._open is not None or self._opening is not None
        again = not kept and (changes.is_supported(end) or bool(answers))
        return ListenEnded(again=again, calls=answers)

    def tag_of(self, id_: bytes) -> ListenTag | None:
        """Return which of the two requests has this id, as JSON text; None if neither has."""
        return next((tag for tag in LISTENS if id_ and self._out.id_of(tag) == id_), None)

    def _ask(self) -> None:
        self._opening = LISTENS[1] if self._open == LISTENS[0] else LISTENS[0]
        self._asked = frozenset(self._uris)
        self._out.ask(self._opening, LISTEN, changes.listen_params(self._uris))

    def _go_on(self) -> None:
        self._waiting, self._later = self._later, {}
        if self._waiting:
            self._ask()

    def _refuse(self, call: int, wish: Wish, why: str) -> CallRefused:
        self._forget(wish)
        return CallRefused(call, jsonrpc.ErrorObject(codes.INVALID_PARAMS, why))

    def _fail(self, call: int, wish: Wish, end: End | None) -> CallLost | CallRefused:
        self._forget(wish)
        match end:
            case Failure():
                return CallLost(call, end)
            case Refused(error=error):
                return CallRefused(call, error)
            case _:
                return CallRefused(call, jsonrpc.ErrorObject(codes.INTERNAL_ERROR, _ENDED))

    def _forget(self, wish: Wish) -> None:
        """What the server does not tell of is not asked for with the next one."""
        if wish.wanted:
            self._uris.pop(wish.uri, None)
