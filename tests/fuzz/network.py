"""Servers in memory: whoever opens a connection talks to a function, and its clock is virtual."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

import trio
from httpcore2._backends.trio import TrioStream
from trio.testing import memory_stream_pair

Serve = Callable[[bytes], bytes]
"""Takes a request, with its body; returns what is written in answer, before the connection is closed."""


class Network:
    """Opens connections to a function. `written` is how many bytes came from it."""

    def __init__(self, serve: Serve, random: Random, nursery: trio.Nursery) -> None:
        self.written = 0
        self._serve = serve
        self._random = random
        self._nursery = nursery

    async def open(self, *_: Any, **__: Any) -> trio.StapledStream[Any, Any]:
        """Open one, in place of `trio.open_tcp_stream`."""
        await trio.lowlevel.checkpoint()
        ours, theirs = memory_stream_pair()
        self._nursery.start_soon(self._converse, theirs)
        return ours

    async def _converse(self, stream: trio.StapledStream[Any, Any]) -> None:
        try:
            data = self._serve(await _request(stream))
            self.written += len(data)
            while data:
                size = self._random.choice([1, 7, 60, 1000, 9000, 100_000])
                await stream.send_all(data[:size])
                data = data[size:]
            await trio.sleep(self._random.choice([0, 0.5, 2]))
            await stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.aclose_forcefully(stream)


async def _request(stream: trio.StapledStream[Any, Any]) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (part := await stream.receive_some()):
            return data
        data += part
    head, _, body = data.lower().partition(b"\r\n\r\n")
    _, _, rest = head.partition(b"content-length: ")
    length = int(rest.partition(b"\r\n")[0] or 0)
    while len(body) < length:
        if not (part := await stream.receive_some()):
            break
        body, data = body + part, data + part
    return data


async def _looked_up(_: str) -> list[str]:
    await trio.lowlevel.checkpoint()
    return ["93.184.216.34"]


def _info(_: TrioStream, info: str) -> Any:
    return True if info == "is_readable" else None  # so that no connection is kept


@contextmanager
def connected(network: Network) -> Iterator[None]:
    """Have every connection of the block lead to a network in memory."""
    with (
        mock.patch.object(trio, "open_tcp_stream", network.open),
        mock.patch("actors.kit.fairness.share.TURN_S", math.inf),  # turns are of the real clock
        mock.patch.object(TrioStream, "get_extra_info", _info),
        mock.patch("supervisor.oauth.issuers.fetch._looked_up", _looked_up),
    ):
        yield
