"""How much events may take: of memory, of the disk, of others' time. Pure.

What there is no room for is refused with `TooManyEvents`; that something is not kept any more is said (`truncated`).
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from actors.codes import CALLBACK_ENDPOINT, EVENT_NOT_FOUND, FORBIDDEN, INVALID_PARAMS, RESOURCE_EXHAUSTED, UNSUPPORTED
from actors.errors import SupervisorError
from actors.protocol.wire.jsonrpc import ErrorObject, encode

MAX_TOPICS: Final = 512
"""Topics that are followed at a time; principals share them."""
MAX_TOPICS_OF_SERVER: Final = 192
"""Of one launch of a server, which has 256 streams: the rest is for those at its own door."""
MAX_STREAMS: Final = 512
"""Open streams of clients; principals share them. Most have a connection each: others must find some, too."""
MAX_ARGUMENTS_BYTES: Final = 64 * 1024
"""Of the arguments of a subscription."""
MAX_EVENT_BYTES: Final = 256 * 1024
"""Of one occurrence (SEP-3415, "Delivery profile")."""
MAX_ID_CHARS: Final = 1024
"""Of the id of an event."""
MAX_CURSOR_CHARS: Final = 16 * 1024
"""Of a cursor of a server, which is kept for as long as its topic is."""
MAX_KEPT: Final = 1000
"""Occurrences that are kept of a topic."""
MAX_KEPT_BYTES: Final = 4 * 1024 * 1024
"""Of all that is kept of a topic."""
MAX_LOGS: Final = 1024
"""Topics of which the newest is kept in memory, followed or not."""
MAX_ALL_BYTES: Final = 64 * 1024 * 1024
"""Of all that is kept in memory; where there is more, half of what the largest topic has is forgotten."""
MAX_LISTED: Final = 500
MAX_LISTED_BYTES: Final = 512 * 1024
"""Event types on a page of their list, and the bytes of their definitions."""
MAX_POLLED: Final = 100
"""Events in one answer to a poll."""
MAX_READ_BYTES: Final = 1024 * 1024
"""Of the events that are read at a time; one of any size is."""
LINGER_S: Final = 60.0
"""So long a topic is followed that nobody holds; or for three times until the next poll, if that is more."""
HEARTBEAT_S: Final = 15.0
"""Between two signs of life on a stream, whatever else is told: half of what the extension asks for."""
STALLED_S: Final = 30.0
"""So long a client may not take what it is sent on a stream, before it loses it."""
POLL_MS: Final = 5000
"""When a client should ask again for what its server pushes."""

# Webhooks ------------------------------------------------------------------------------------------------------------

MAX_WEBHOOKS: Final = 4096
"""Subscriptions whose events are posted; principals share them."""
MAX_WEBHOOKS_OF_PRINCIPAL: Final = 256
"""Of one principal."""
DEFAULT_TTL_S: Final = 3600.0
"""So long a subscription holds whose client says nothing of it."""
MIN_TTL_S: Final = 300.0
MAX_TTL_S: Final = 86_400.0
"""No subscription holds shorter, or longer, than that without being refreshed (SEP-3415, "Subscription TTL")."""
ROTATION_S: Final = 600.0
"""So long what is posted is signed by the secret of before, too."""
VERIFIED_S: Final = 3600.0
"""So long an address that was verified is not verified again for the same principal, though no subscription is left."""
VERIFICATIONS_OF_PRINCIPAL: Final = 10
VERIFICATIONS_OF_HOST: Final = 20
"""Addresses that are verified in a minute for one principal, and at one host."""
MAX_ATTEMPTS: Final = 5
"""So often one event is posted, with growing pauses, within `RETRY_S`."""
RETRY_S: Final = 900.0
MAX_BODY_BYTES: Final = 256 * 1024
"""Of what is posted (SEP-3415, "Delivery profile")."""
MAX_IN_FLIGHT: Final = 4
"""Events of one subscription that are posted, or wait to be posted again: each is a task, of some 6 kB."""
MAX_POSTS: Final = 64
MAX_POSTS_OF_HOST: Final = 8
MAX_POSTS_OF_PRINCIPAL: Final = 16
"""Messages that are posted at a time: in all, to one host, for one principal."""
CALLBACK_S: Final = 10.0
"""So long an address may take for its answer, all included."""
VERIFY_S: Final = 3 * CALLBACK_S
"""So long somebody waits at most until an address has confirmed what it is asked, all before it included."""
CALLBACK_CONNECT_S: Final = 5.0


# What goes wrong with events by our own doing, in the codes of the extension (SEP-3415, "Error Handling").

_MAX_SHOWN: Final = 100
Reason = Literal["connection_refused", "timeout", "tls_error", "http_4xx", "http_5xx", "challenge_failed"]
"""The categories of the extension ("Webhook delivery status"). What is no answer of HTTP is `connection_refused`, and
what sends us on elsewhere `http_4xx`: there are no others."""


class UnknownEvent(SupervisorError, code=EVENT_NOT_FOUND, kind="not_found"):
    """The client sees no event type of that name. `events/list` tells which there are."""

    def __init__(self, name: str) -> None:
        text = f"there is no event type {name[:_MAX_SHOWN]!r} here; events/list tells which there are"
        super().__init__(text, details={"kind": "event"})


class TooManyEvents(SupervisorError, code=RESOURCE_EXHAUSTED, kind="overloaded", retryable=True):
    """A limit on what is followed or streamed is reached. `data.limit` names it; `data.max`, if it is there, is what
    all share."""

    def __init__(self, why: str, limit: str, most: int = 0) -> None:
        details = {"limit": limit, "max": most} if most else {"limit": limit}
        super().__init__(why, details=details, retry_after_s=1.0)


class UnsupportedDelivery(SupervisorError, code=UNSUPPORTED, kind="not_supported"):
    """Events cannot be delivered so here. `data` says what is not possible (`feature`, `value`)."""

    def __init__(self, text: str, **details: Any) -> None:
        super().__init__(text, details=details)


def members_of(error: ErrorObject) -> dict[str, Any]:
    """Return an error as notifications, and what is sent to addresses, have it."""
    data = {"data": error.data} if bytes(error.data) else {}
    return {"code": error.code, "message": error.message, **data}


class PrincipalNeeded(SupervisorError, code=FORBIDDEN, kind="forbidden"):
    """Events are sent to an address only for who shows who that is: there are no users here, or the request had no
    credential. Poll or stream them."""

    def __init__(self) -> None:
        text = "events are sent to an address only for who shows who that is; poll or stream them"
        super().__init__(text, details={"reason": "no_principal"})


class UnknownSubscription(SupervisorError, code=EVENT_NOT_FOUND, kind="not_found"):
    """The client has no subscription of this event type, with these arguments, to this address: it has expired, or was
    ended."""

    def __init__(self) -> None:
        text = "you have no subscription to this event type, with these arguments, for this address"
        super().__init__(text, details={"kind": "subscription"})


class CallbackUnusable(SupervisorError, code=CALLBACK_ENDPOINT, kind="callback"):
    """The address that events shall be sent to cannot be reached, or did not confirm that it wants them: `data.reason`
    says which."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(f"the callback address cannot be used: {text}", details={"reason": reason})


FINAL: Final = frozenset({EVENT_NOT_FOUND, FORBIDDEN, UNSUPPORTED, INVALID_PARAMS})
"""What is answered where to ask again for the same is in vain."""
REVOKED: Final = ErrorObject(FORBIDDEN, "Forbidden", msgspec.Raw(encode({"reason": "Access revoked"})))
"""Why the subscription of a client ends that may not see the events any more."""
REMOVED: Final = ErrorObject(EVENT_NOT_FOUND, "NotFound", msgspec.Raw(encode({"kind": "event"})))
"""Why the subscriptions to a type end that is not there any more."""


class Undelivered(Exception):
    """A message was not taken. `final`: it never will be. `retry_after_s`: how long its endpoint asks to wait."""

    def __init__(self, reason: Reason, *, final: bool = False, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.final = final
        self.retry_after_s = retry_after_s
