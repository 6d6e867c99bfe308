"""How servers are doing, asked of themselves. Those that do not tell in time are shown as last reported."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import trio

from actors.errors import SupervisorError
from actors.kit import Reply
from actors.kit.directory import Directory
from actors.messages import ReadServer, ServerStatus
from actors.server import ServerMessage

ASK_S = 2.0
"""How long a page waits for servers to tell how they do."""


async def told_by(server: str, directory: Directory[ServerMessage]) -> ServerStatus | None:
    """Return what one server says of itself now; None if it says nothing in time. A checkpoint."""
    address = directory.find(server)
    with trio.move_on_after(ASK_S), suppress(SupervisorError):
        if address is not None:
            return await address.ask(ReadServer())
    return None


async def fresh(reported: Mapping[str, ServerStatus], directory: Directory[ServerMessage]) -> dict[str, ServerStatus]:
    """Return every server's status: asked now of those that run, all at once, as last reported of the others."""
    statuses = dict(reported)
    asked: dict[str, Reply[ServerStatus]] = {}
    for name in directory.names():
        address = directory.find(name)
        with suppress(SupervisorError):  # busy or gone: what was reported last is shown
            if address is not None:
                asked[name] = address.request(ReadServer())
    with trio.move_on_after(ASK_S):
        for name, reply in asked.items():
            with suppress(SupervisorError):
                statuses[name] = await reply.wait()
    return dict(sorted(statuses.items()))


async def with_stderr(
    reported: Mapping[str, ServerStatus], directory: Directory[ServerMessage]
) -> dict[str, ServerStatus]:
    """Return the statuses with what the servers wrote to stderr, one after the other: each takes some milliseconds."""
    statuses = dict(reported)
    with trio.move_on_after(ASK_S):
        for name in directory.names():
            address = directory.find(name)
            with suppress(SupervisorError):
                if address is not None:
                    statuses[name] = await address.ask(ReadServer(stderr=True))
    return dict(sorted(statuses.items()))
