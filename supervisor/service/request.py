"""One request for a server: what the client asked for, as far as a server gets it, and how its answer is wanted."""

from __future__ import annotations

import msgspec

from actors.catalogue.offer import Tool
from actors.protocol.agreement.versions import Era
from supervisor.service.tasks import HeldTask


class ServerRequest(msgspec.Struct, frozen=True):
    """Whose answer it is, and what else is said about it, is in the `Exchange` it belongs to."""

    server: str
    method: str
    members: bytes
    """JSON members of the params, without braces."""
    meta: msgspec.Raw
    """The `_meta` of the client."""
    since: float
    """When the request came, by the trio clock: its deadline counts from there."""
    name: str = ""
    """What it is about: a tool, a prompt, a URI of the server."""
    uri: str = ""
    """What a `resources/read` is about, as the client wrote it."""
    era: Era | None = None
    """Which era the result is wanted in; that of the client if None."""
    written: Era | None = None
    """The era of the server, where errors reach a client of the same era as they are."""
    by_result: bool = False
    """The client may be asked by what it is answered."""
    labelled: bool = True
    """Questions say who asks."""
    tool: Tool | None = None
    """The one that is called, if the client was shown its definition."""
    as_task: bool = False
    """See `CallServer`."""
    task: HeldTask | None = None
    """The task that it is about."""
