"""What goes wrong with events by our own doing, in the codes of the extension (SEP-3415, "Error Handling")."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from actors.codes import CALLBACK_ENDPOINT, EVENT_NOT_FOUND, FORBIDDEN, INVALID_PARAMS, RESOURCE_EXHAUSTED, UNSUPPORTED
from actors.errors import SupervisorError
from actors.protocol.wire.jsonrpc import ErrorObject, encode

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
