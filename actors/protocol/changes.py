"""How a server tells of changes: by notifications, which a modern one sends on a subscription. Pure.

A subscription has no memory: what changes while there is none is never told. It may end at any time, by its result, by
a `notifications/cancelled` of the server, or with its stream; then it is asked for again.

What is subscribed to cannot be changed, so another subscription is opened for it, and the old one is taken back when
the new one is acknowledged: nothing is missed in between. While one is being opened no further one is: however many
resources are asked for meanwhile, that is one more. A call that subscribes is answered by the acknowledgement.
(MCP 2026-07-28, basic/patterns/subscriptions.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from actors import codes
from actors.protocol.agreement.capabilities import events_declared
from actors.protocol.agreement.versions import META_SUBSCRIPTION, Era
from actors.protocol.facts import (
    CallLost,
    ListenEnded,
    Listening,
    ListsChanged,
    ResourceUpdated,
)
from actors.protocol.outbound import LISTEN, LISTENS, ListenTag, Outbound, Tag
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.jsonrpc import canonical
from actors.protocol.wire.peer import Answered, Failure, Malformed, Refused

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
OF_RESOURCES: Final = frozenset({SUBSCRIBE, UNSUBSCRIBE})
"""Requests of the legacy era; in the modern one `subscriptions/listen` is in their place."""
CHANGES: Final = frozenset(
    {"notifications/tools/list_changed", "notifications/resources/list_changed", "notifications/prompts/list_changed"}
)
EVENTS_CHANGED: Final = "notifications/events/list_changed"
"""Of the Events extension ("Dynamic event types"). It is subscribed to, and told, as a resource of that name is: no
URI is like it."""
MAX_URI_CHARS: Final = 8192
"""Of a resource that clients are told of."""
_LISTS: Final = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}
_DONE = msgspec.Raw(b"{}")
_UNREADABLE = "the server's acknowledgement of the subscription cannot be read"
_ENDED = "the server ended the subscription before it acknowledged it"
_NOT_HONOURED = "the server does not tell of changes of this resource"

End = Answered[Tag] | Refused[Tag] | Malformed[Tag] | Failure


class _Honoured(msgspec.Struct):
    toolsListChanged: bool = False
    resourcesListChanged: bool = False
    promptsListChanged: bool = False
    eventsListChanged: bool = False
    resourceSubscriptions: tuple[str, ...] | None = None


class Acknowledgement(msgspec.Struct, frozen=True):
    """What a server will tell of: `lists`, and which resources. `id` is that of the request, empty if unsaid."""

    id: bytes
    lists: bool
    uris: frozenset[str]


_honoured = msgspec.json.Decoder(_Honoured)


def listen_params(uris: Collection[str]) -> bytes:
    wanted = {"eventsListChanged": True} if EVENTS_CHANGED in uris else {}
    resources = {"resourceSubscriptions": named} if (named := [uri for uri in uris if uri != EVENTS_CHANGED]) else {}
    return jsonrpc.encode({"notifications": {**_LISTS, **wanted, **resources}})


def read_change(method: str, params: msgspec.Raw) -> ListsChanged | ResourceUpdated | None:
    """Return what a notification says of lists and resources, None if it is about something else."""
    if method in CHANGES:
        return ListsChanged()
    if method == EVENTS_CHANGED:
        return ResourceUpdated(EVENTS_CHANGED)
    if method != UPDATED:
        return None
    uri = json.text_at(params, "uri")
    return ResourceUpdated(uri) if 0 < len(uri) <= MAX_URI_CHARS else None


def acknowledgement(params: msgspec.Raw) -> Acknowledgement | None:
    """Return what a server acknowledges; None if that cannot be read."""
    if (honoured := json.read_or(_honoured, json.at(params, "notifications"), None)) is None:
        return None
    lists = honoured.toolsListChanged or honoured.resourcesListChanged or honoured.promptsListChanged
    id_ = canonical(bytes(json.at(params, "_meta", META_SUBSCRIPTION)))
    events = {EVENTS_CHANGED} if honoured.eventsListChanged else set()
    return Acknowledgement(id_, lists, frozenset(honoured.resourceSubscriptions or ()) | events)


def is_supported(end: End | None) -> bool:
    """Say of the end of a subscription whether the server knows such a thing, so that it may be asked for again."""
    match end:
        case Refused(error=error) if error.code in (codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS):
            return False
        case Failure(cause="refused"):
            return False
        case _:
            return True


def subscribable(capabilities: msgspec.Raw, uri: str = "") -> bool:
    """Say whether a server with these capabilities tells of changes of resources (MCP, server/resources)."""
    if uri == EVENTS_CHANGED:
        return bytes(json.at(events_declared(capabilities), "listChanged")) == b"true"
    return bytes(json.at(capabilities, "resources", "subscribe")) == b"true"


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
                self._out.ask("subscribe", SUBSCRIBE, jsonrpc.encode({"uri": uri}))
            return
        self._uris |= dict.fromkeys(uris)
        if self._opening is None:
            self._ask()

    def call(self, call: int, method: str, uri: str) -> None:
        """Begin to ask for changes of a resource, or end that; the answer to the call comes with an acknowledgement."""
        wish = Wish(uri, method == SUBSCRIBE)
        if wish.wanted:
            self._uris[uri] = None
        else:
            self._take_out(uri)
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
        said, tag = acknowledgement(params), self._opening
        if tag is None or (said is not None and said.id not in (b"", self._out.peer.id_of(tag))):
            return None
        if self._open is not None:
            self._out.take_back(self._open, "another subscription has taken its place")
        self._open, self._opening = tag, None
        answers: list[Answered[int] | Refused[int]] = []
        for call, wish in self._waiting.items():
            if not wish.wanted or (said is not None and wish.uri in said.uris):
                answers.append(Answered(call, _DONE))
            else:
                self._forget(wish)
                why = _UNREADABLE if said is None else _NOT_HONOURED
                answers.append(Refused(call, jsonrpc.ErrorObject(codes.INVALID_PARAMS, why)))
        self._go_on()
        return Listening(said is None or said.lists or bool(said.uris), tuple(answers))

    def on_end(self, end: End | None, tag: Tag) -> ListenEnded | None:
        """Take that a subscription is over; None if nothing is to be done. `end`: how; None if it was taken back."""
        self._out.forget(tag)
        if tag == self._open:
            self._open = None
            return ListenEnded(again=is_supported(end)) if self._opening is None else None
        self._opening = None
        answers = tuple(self._fail(call, wish, end) for call, wish in self._waiting.items())
        self._go_on()
        kept = self._open is not None or self._opening is not None
        again = not kept and (is_supported(end) or bool(answers))
        return ListenEnded(again=again, calls=answers)

    def tag_of(self, id_: bytes) -> ListenTag | None:
        """Return which of the two requests has this id, as JSON text; None if neither has."""
        own = canonical(id_)
        return next((tag for tag in LISTENS if own and self._out.peer.id_of(tag) == own), None)

    def _ask(self) -> None:
        self._opening = LISTENS[1] if self._open == LISTENS[0] else LISTENS[0]
        self._asked = frozenset(self._uris)
        self._out.ask(self._opening, LISTEN, listen_params(self._uris))

    def _go_on(self) -> None:
        """Open another one for those who came while the last one was opened."""
        self._waiting, self._later = self._later, {}
        if self._waiting:
            self._ask()

    def _fail(self, call: int, wish: Wish, end: End | None) -> CallLost | Refused[int]:
        self._forget(wish)
        match end:
            case Failure():
                return CallLost(call, end)
            case Refused(error=error):
                return Refused(call, error)
            case _:
                return Refused(call, jsonrpc.ErrorObject(codes.INTERNAL_ERROR, _ENDED))

    def _forget(self, wish: Wish) -> None:
        """What the server does not tell of is not asked for with the next one."""
        if wish.wanted:
            self._take_out(wish.uri)

    def _take_out(self, uri: str) -> None:
        if uri != EVENTS_CHANGED:  # the list is kept here, whoever else wants to hear of it
            self._uris.pop(uri, None)
