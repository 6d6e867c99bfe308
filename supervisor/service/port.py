"""What the front's transports need from the rest of the daemon, and nothing more.

A transport (HTTP, WebSocket) finds out who asks and in which era, and hands the request to the `Service`.
The service returns the bytes of a *result* that is already right for that client's era, or raises. Only this module
turns failures into JSON-RPC errors, so every transport gives the same answer to the same mistake.
"""

from __future__ import annotations

import logging
from typing import Protocol

import msgspec
import trio

from actors import codes
from actors.catalogue.diff import Revisions as Revisions
from actors.errors import Outcome, Starved, SupervisorError, forget_frames
from actors.kit import Signal, is_want, reason_of
from actors.protocol.listing import LISTED_BY
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.mirrors import Mirror
from supervisor.fleet.peers import HeldElsewhere
from supervisor.host.workbench import beside
from supervisor.identity.people import Person
from supervisor.identity.requester import MESSAGE_ID
from supervisor.metrics.families import code_label
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import InputNeeded
from supervisor.service.request import unknown_method

log = logging.getLogger(__name__)

LARGE_BYTES = 1024 * 1024
"""Of a result; putting the envelope around a larger one takes a millisecond a MiB and more."""
MARK = "mcpvisor/daemon"
"""In the `_meta` of our answers to a handshake: a daemon knows itself by it behind whatever proxies."""
KNOWN_METHODS = frozenset({*codes.NAMED_BY, *LISTED_BY, "completion/complete"})
"""Methods of the protocol that servers answer. What they say of any other, they say of the method itself."""


class Service(Protocol):
    """The methods of MCP, behind every transport of the front."""

    @property
    def changes(self) -> Signal:
        """Tells whenever `revisions` may have changed for somebody."""

    @property
    def revisions(self) -> Revisions:
        """Those of what is seen now."""

    async def perform(self, exchange: Exchange) -> bytes:
        """Return the JSON text of the result of one request, fitted to its client's era.

        Its `params` are empty (`b""`) where it had none. With `initialize` the client is who it will be in the session,
        its version negotiated. Never handles `subscriptions/listen`, notifications, or methods of the other era.
        Raises `SupervisorError` for our and the client's failures and `jsonrpc.RemoteError` for an error that a server
        answered; `InputNeeded` where the client is to answer something first. A checkpoint if it waits for anything.
        """

    async def mirrors_of(self, tool: str) -> tuple[Mirror, ...]:
        """Return which arguments the head of a call repeats, of a tool by its name here. A checkpoint if it waits."""

    async def subscribe(self, exchange: Exchange, name: str) -> None:
        """Tell the client of changes of a resource from now on: by `exchange.session.updates`, under this name.

        Raises as `perform` does, also where nobody would be told. A checkpoint if it waits for anything.
        """


class Door(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """What one address leads to. `name` is what stands behind the path of MCP: empty, `all`, `servers/github`; with
    `?profile=NAME` for clients of a profile, and `execute=by-effect` where reading is apart from acting."""

    name: str
    service: Service


class Doors(Protocol):
    """All doors there are."""

    async def find_for(self, person: Person, name: str, profile: str = "", execute: str = "") -> Door:
        """Return the door of an address for a person, as `find` does. A checkpoint for the first with such servers."""

    def find(self, name: str, profile: str = "", execute: str = "") -> Door:
        """Return the door of an address, for clients of a profile, empty for those who name none.

        `execute`: how tools are run there, empty for who says nothing of it. The name may be spelled in another way.
        Raises `UnknownDoor`, also for an unknown profile or another word for `execute`.
        """


class Answer(msgspec.Struct, frozen=True):
    """A whole JSON-RPC answer and the HTTP status a modern client gets with it. `good`: it is a result, no error.

    `error` is what kind of one it is, for metrics, `code` that of the answer. `life`: the node of the fleet that has
    what this is about, and can do better.
    """

    body: bytes
    status: int = 200
    good: bool = True
    error: str = ""
    code: int = 0
    life: str = ""


async def answer(service: Service, exchange: Exchange, mark: str = "") -> Answer:
    """Perform one request and return its answer, that to a handshake with `mark`. Cancelling it abandons the request.

    A bug is logged and answered as an internal error without its text; expected failures keep code and data.
    """
    id_, method = exchange.id, exchange.method
    outer = MESSAGE_ID.set(id_)
    try:
        await trio.lowlevel.checkpoint_if_cancelled()
        if method in (codes.REMOVED if exchange.client.era == "modern" else codes.ADDED):
            raise unknown_method(exchange)
        result = await service.perform(exchange)
        if mark and method in codes.HANDSHAKES:
            result = _sign(result, mark)
        if len(result) < LARGE_BYTES:
            return Answer(jsonrpc.success(id_, result))
        return Answer(await beside(lambda: jsonrpc.success(id_, result)))  # a join of so many bytes gives up the lock
    except InputNeeded as incomplete:
        forget_frames(incomplete)
        return Answer(jsonrpc.success(id_, incomplete.result))
    except SupervisorError as error:
        return failure(id_, error)
    except HeldElsewhere as held:
        forget_frames(held)
        return msgspec.structs.replace(failure(id_, held.error), life=held.life)
    except jsonrpc.RemoteError as error:
        forget_frames(error)
        remote = error.error
        data = remote.data if bytes(remote.data) else None
        status = _status(method, remote.code)
        body = jsonrpc.failure(id_, remote.code, remote.message, data)
        return Answer(body, status, False, code_label(remote.code), remote.code)
    except Exception as error:  # the border: a bug must neither reach the client as text nor end the connection
        if is_want(error):
            lacking = reason_of(error)
            log.debug("%s was not performed for want: %s", method, lacking)
            text = f"the daemon lacks what this request needs ({lacking}); retry shortly"
            outcome: Outcome = "unknown" if exchange.forwarded else "not_sent"
            return failure(id_, Starved(text, outcome=outcome, idempotent=exchange.idempotent))
        log.exception("a bug while performing %s", method)
        text = "internal error; the daemon's log says more"
        code = codes.INTERNAL_ERROR
        return Answer(jsonrpc.failure(id_, code, text), good=False, error=code_label(code), code=code)
    finally:
        MESSAGE_ID.reset(outer)
        if exchange.asking:
            exchange.close()


def _sign(result: bytes, mark: str) -> bytes:
    """Return the result of a handshake, a JSON object, with the mark in its `_meta` beside what is there."""
    members = json.MEMBERS.decode(result)
    if (meta := json.read_or(json.MEMBERS, members.get("_meta", b"{}"), None)) is None:
        return result  # a server wrote it so, and its clients shall see it so
    return jsonrpc.encode({**members, "_meta": {**meta, MARK: mark}})


def _status(method: str, code: int) -> int:
    """Return the status of a server's error: it is an answer that arrived, but where the specification says which."""
    if code == codes.MISSING_CAPABILITY:
        return 400
    return 404 if code == codes.METHOD_NOT_FOUND and method not in KNOWN_METHODS else 200


def failure(id_: bytes, error: SupervisorError) -> Answer:
    forget_frames(error)
    body = jsonrpc.failure(id_, error.code, error.message, error.data())
    return Answer(body, error.http_status, False, error.kind, error.code)
