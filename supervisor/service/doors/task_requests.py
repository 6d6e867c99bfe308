"""Tasks at the doors of servers: what clients ask about theirs, in the era of the server that works on it.

(MCP 2025-11-25, basic/utilities/tasks; the extension of 2026-07-28, SEP-2663.) Between the eras no task is shown: see
`actors/protocol/tasks/driven_task.py`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import trio

from actors.catalogue.offer import Offer
from actors.codes import MISSING_CAPABILITY
from actors.errors import MalformedRequest, SupervisorError, UnknownMethod
from actors.protocol.tasks import tasks
from actors.protocol.tasks.tasks import EXTENSION, GET, METHODS, RESULT, SINCE
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.labels import label_result
from supervisor.service.client import Client
from supervisor.service.doors.requests import NO_META, members_of, text_of
from supervisor.service.parts import ServiceParts
from supervisor.service.request import ServerRequest
from supervisor.service.tasks import HeldTask

_READ_COST: Final = 16
"""So many bytes cost as much as one that a model wrote."""


class TasksNotDeclared(SupervisorError):
    """A modern client asks about a task, and did not declare that it speaks them (SEP-2663)."""

    code = MISSING_CAPABILITY
    http_status = 400
    kind = "capability"


def takes_task(client: Client, offer: Offer | None, wanted: msgspec.Raw) -> bool:
    """Say whether a client may get a task in place of a result. `wanted`: what a legacy one says of the task."""
    if offer is None or offer.era != client.era or not tasks.speaks(offer.capabilities, offer.era):
        return False
    if client.era == "modern":
        return tasks.speaks(client.capabilities, "modern")
    return client.version >= SINCE and bytes(wanted)[:1] == b"{"


def with_task(members: bytes, wanted: msgspec.Raw) -> bytes:
    """Return the members of the params of a call that a legacy client wants as a task; as they are if it does not."""
    return b'%b%b"task":%b' % (members, b"," if members else b"", bytes(wanted)) if bytes(wanted) else members


async def perform(parts: ServiceParts, exchange: Exchange, server: str | None = None) -> bytes:
    """Perform a request about a task, of one server or of any. Raises what `Forwarder.ask` does, and `UnknownTask`."""
    since, client, method = trio.current_time(), exchange.client, exchange.method
    if method not in METHODS[client.era] or client.version < SINCE:
        raise UnknownMethod(f"there is no method {method!r} here, in protocol version {client.version}")
    if client.era == "modern" and not tasks.speaks(client.capabilities, "modern"):
        required: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise TasksNotDeclared(f"{method}: the client did not declare {EXTENSION}", details=required)
    params = exchange.params
    members = await parts.bench.run(len(params) // _READ_COST, members_of, params)
    meta = members.pop("_meta", NO_META)
    name = text_of(members.get("taskId"))
    if not name:
        raise MalformedRequest(f"{method}: params need a 'taskId'")
    task = parts.tasks.find(name, client.principal, client.era, server)
    asked = encode({**members, "taskId": task.own})[1:-1]
    body = await parts.forward.ask(
        exchange,
        ServerRequest(
            task.server,
            method,
            asked,
            meta,
            name=task.own,
            since=since,
            written=task.era,
            labelled=server is None,
            task=task,
        ),
    )
    return await parts.bench.run(len(body) // _READ_COST, _rename_task, task, body, method, exchange.asked_by)


def _rename_task(task: HeldTask, said: bytes, method: str, asked_by: str) -> bytes:
    """Return what a server said about a task under our name of it; its questions say whose they are, if need be."""
    task.over = task.over or method == RESULT
    task.hear(msgspec.Raw(said))
    if asked_by and method == GET and (told := tasks.read_task(msgspec.Raw(said))) is not None and told.requests:
        said = label_result(asked_by, said, told.requests)
    return task.rename(said, method)
