"""What the front's transports need from the rest of the daemon, and nothing more.

A transport (HTTP, WebSocket) finds out who asks and in which era, and hands the request to the `Service`.
The service returns the bytes of a *result* that is already right for that client's era, or raises. Only this module
turns failures into JSON-RPC errors, so every transport gives the same answer to the same mistake.
"""

from __future__ import annotations

import logging
from typing import Protocol

import msgspec

from actors.errors import Starved, SupervisorError
from actors.kit import Latest, is_want, reason_of
from actors.principal import Principal
from actors.protocol import jsonrpc
from supervisor.host.workbench import beside
from supervisor.service.exchange import Exchange

log = logging.getLogger(__name__)

LARGE_BYTES = 1024 * 1024
"""Of a result; putting the envelope around a larger one takes a millisecond a MiB and more."""


class Revisions(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers that grow when what one principal can see changes."""

    tools: int = 0
    resources: int = 0
    prompts: int = 0


class Service(Protocol):
    """The methods of MCP, behind every transport of the front."""

    changes: Latest[object]
    """Set whenever `revisions` may have changed for somebody."""

    def revisions(self, principal: Principal) -> Revisions:
        """Return what `principal` sees now."""

    async def perform(self, exchange: Exchange) -> bytes:
        """Return the JSON text of the result of one request, fitted to its client's era.

        Its `params` are empty (`b""`) where it had none. Never handles `initialize` of a session,
        `subscriptions/listen` or notifications: those belong to the transport. Raises `SupervisorError` for our and
        the client's failures and `jsonrpc.RemoteError` for an error that a server answered. A checkpoint if it
        waits for anything.
        """

    def initialize(self, version: str, principal: Principal) -> bytes:
        """Return the JSON text of an `initialize` result that says `version`, for `principal`."""


class Answer(msgspec.Struct, frozen=True):
    """A whole JSON-RPC answer and the HTTP status a modern client gets with it."""

    body: bytes
    status: int = 200


async def answer(service: Service, exchange: Exchange) -> Answer:
    """Perform one request and return its answer. Cancelling it abandons the request.

    A bug is logged and answered as an internal error without its text; expected failures keep code and data.
    """
    id_, method = exchange.id, exchange.method
    try:
        result = await service.perform(exchange)
        if len(result) < LARGE_BYTES:
            return Answer(jsonrpc.success(id_, result))
        return Answer(await beside(lambda: jsonrpc.success(id_, result)))  # a join of so many bytes gives up the lock
    except SupervisorError as error:
        return failure(id_, error)
    except jsonrpc.RemoteError as error:
        remote = error.error
        data = remote.data if bytes(remote.data) else None
        return Answer(jsonrpc.failure(id_, remote.code, remote.message, data))
    except Exception as error:  # the border: a bug must neither reach the client as text nor end the connection
        if is_want(error):
            lacking = reason_of(error)
            log.debug("%s was not performed for want: %s", method, lacking)
            return failure(id_, Starved(f"the daemon lacks what this request needs ({lacking}); retry shortly"))
        log.exception("a bug while performing %s", method)
        return Answer(jsonrpc.failure(id_, jsonrpc.INTERNAL_ERROR, "internal error; the daemon's log says more"))
    finally:
        if exchange.asking:
            exchange.close()


def failure(id_: bytes, error: SupervisorError) -> Answer:
    """Return the answer for an expected failure."""
    return Answer(jsonrpc.failure(id_, error.code, error.message, error.data()), error.http_status)
