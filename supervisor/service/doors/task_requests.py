"""Tasks at the doors of servers: what clients ask about theirs, in the era of the server that works on it.

(MCP 2025-11-25, basic/utilities/tasks; the extension of 2026-07-28, SEP-2663.) Between the eras no task is shown: see
`actors/protocol/task_calls.py`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import trio

from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Entry
from actors.codes import MISSING_CAPABILITY
from actors.errors import SupervisorError
from actors.protocol import tasks
from actors.protocol.tasks import EXTENSION, GET, METHODS, RESULT, SINCE
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.asking.exchange import Exchange, label_result
from supervisor.service.client import Client
from supervisor.service.gateway import ServiceParts
from supervisor.service.request import MAX_NAME_CHARS, NO_META, Parts, ServerRequest, named_params, unknown_method
from supervisor.service.tasks import HeldTask

_READ_COST: Final = 16
"""So many bytes cost as much as one that a model wrote."""


class TasksNotDeclared(SupervisorError, code=MISSING_CAPABILITY, http_status=400, kind="capability"):
    """A modern client asks about a task and did not declare that it speaks tasks (SEP-2663)."""


def takes_task(client: Client, offer: Offer, wanted: msgspec.Raw) -> bool:
    """Say whether a client may get a task in place of a result. `wanted`: what a legacy one says of the task."""
    if offer.era != client.era or not tasks.speaks(offer.capabilities, offer.era):
        return False
    if client.era == "modern":
        return tasks.speaks(client.capabilities, "modern")
    return client.version >= SINCE and bytes(wanted)[:1] == b"{"


def request_of(
    exchange: Exchange, entry: Entry, parts: Parts, since: float, tool: Tool | None = None, *, labelled: bool = True
) -> ServerRequest:
    """Return a request as it goes to a server; a call of a tool as a task where its client may get one.

    `tool`: what is called, if the client was shown it.
    """
    method, members = exchange.method, parts.members
    calls = method == "tools/call"
    as_task = calls and takes_task(exchange.client, entry.offer, parts.task)
    if as_task and bytes(parts.task):
        members = b'%b%b"task":%b' % (members, b"," if members else b"", bytes(parts.task))
    return ServerRequest(
        entry.server,
        method,
        members,
        parts.meta,
        name=parts.name,
        since=since,
        uri=parts.name if method == "resources/read" else "",
        written=entry.offer.era,
        labelled=labelled,
        tool=tool,
        as_task=as_task,
    )


async def perform(parts: ServiceParts, exchange: Exchange, server: str | None = None) -> bytes:
    """Perform a request about a task, of one server or of any. Raises what `Forwarder.ask` does, and `UnknownTask`."""
    since, client, method = trio.current_time(), exchange.client, exchange.method
    if method not in METHODS[client.era] or client.version < SINCE:
        raise unknown_method(exchange)
    if client.era == "modern" and not tasks.speaks(client.capabilities, "modern"):
        required: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise TasksNotDeclared(f"{method}: the client did not declare {EXTENSION}", details=required)
    members, name = await named_params(parts.bench, exchange, "taskId")
    meta = members.pop("_meta", NO_META)
    task = parts.tasks.find(name[:MAX_NAME_CHARS], client.principal, client.era, server)
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
