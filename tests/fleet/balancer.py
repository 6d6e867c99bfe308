"""A balancer that knows nothing of sessions: each request goes to the next node.

`python -m tests.fleet.balancer PORT URL...` writes a line when it listens. A connection is closed behind each answer,
so that whoever keeps one open has all nodes, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle
from urllib.parse import urlsplit

import trio

MAX_HEAD_BYTES = 64 * 1024
_LINES = re.compile(rb"\r\nconnection:[^\r]*", re.IGNORECASE)
GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


async def balance(
    port: int, nodes: Sequence[str], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Pass requests on to nodes in turn, for ever; from `started` on."""
    listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
    task_status.started()
    await trio.serve_listeners(partial(_pass_on, cycle([urlsplit(node).netloc for node in nodes])), listeners)


async def _pass_on(nodes: Iterator[str], client: trio.SocketStream) -> None:
    try:
        head, rest = await _read_head(client)
        if head:
            await _relay(next(nodes), head, rest, client)
    except* GONE:
        pass
    await trio.aclose_forcefully(client)


async def _relay(netloc: str, head: bytes, rest: bytes, client: trio.SocketStream) -> None:
    host, _, port = netloc.rpartition(":")
    head = _LINES.sub(b"", head) + b"\r\nConnection: close\r\n\r\n"
    async with await trio.open_tcp_stream(host, int(port)) as node, trio.open_nursery() as nursery:
        await node.send_all(head + rest)
        nursery.start_soon(_pour, client, node)
        async for data in node:
            await client.send_all(data)
        nursery.cancel_scope.cancel()


async def _read_head(client: trio.SocketStream) -> tuple[bytes, bytes]:
    """Return the head of a request without its end, and what follows it; empty if there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = bytes(await client.receive_some())
        if not more or len(data) > MAX_HEAD_BYTES:
            return b"", b""
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


async def _pour(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    """Carry what a client sends; one that leaves has left its node."""
    with suppress(*GONE):
        async for data in source:
            await sink.send_all(data)
    await sink.aclose()


async def _main() -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(balance, int(sys.argv[1]), sys.argv[2:])
        print("listening", flush=True)


if __name__ == "__main__":
    trio.run(_main)
