"""What a server held in memory for a client is gone with the process that held it: whether, and to whom that is said.

Of a server that holds something (`ServerSettings.held`) it is known of each client which process answered it last. If
another one answers now, whatever ended the process before, the client is told so with that answer, once. A server that
nothing is known of may show it itself: calls of a tool that had worked fail right after its process is a new one.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from actors.kit import ClientQuota
from actors.principal import ClientKey
from actors.protocol.wire import json
from actors.server.settings import HELD, ServerSettings

MAX_CLIENTS: Final = 1024
"""Of a principal with more than its share the one that was answered longest ago is not told."""
MAX_TOOLS: Final = 64
"""So many tools of a client that worked are known."""
FAILED_WAKES: Final = 2
"""After so many a server is taken for one that holds something."""
_FAILED: Final = re.compile(rb'"isError"\s*:\s*true')


class _Client(msgspec.Struct):
    process: int
    worked: set[str]


class StateLoss:
    """Of one server; `watches`: who is answered matters. `learned` is told that it holds something, as calls show."""

    def __init__(self, settings: ServerSettings, learned: Callable[[], None]) -> None:
        self._settings = settings
        self.held = settings.held
        self._learns = settings.stateful == "learn" and not self.held
        self.watches = self._learns or bool(self.held)
        self._learned = learned
        self._failed_wakes = 0
        self._clients: OrderedDict[ClientKey, _Client] = OrderedDict()
        self._quota = ClientQuota(MAX_CLIENTS)

    @property
    def idle_s(self) -> float:
        """After how long without a call the server sleeps; 0: never."""
        return self._settings.idle_s(holds=bool(self.held))

    def on_answer(self, client: ClientKey, tool: str, process: int, result: msgspec.Raw) -> str:
        """Take the answer to a call of a tool; return what is lost and has to be said with it, if anything."""
        known = self._clients.pop(client, None)
        lost = known is not None and known.process != process
        if self._learns:
            known = self._learn(known, tool, lost=lost, failed=_has_failed(bytes(result)))
        known = known or _Client(process, set())
        known.process = process
        self._remember(client, known)
        return self.held if lost else ""

    def _remember(self, client: ClientKey, known: _Client) -> None:
        if not self._quota.amount_of(client):
            if not self._quota.has_room(client):
                own = (each for each in self._clients if each[0] == client[0])
                oldest = next(own, None) or next(iter(self._clients))
                del self._clients[oldest]
                self._quota.remove(oldest)
            self._quota.add(client)
        self._clients[client] = known

    def _learn(self, known: _Client | None, tool: str, *, lost: bool, failed: bool) -> _Client:
        client = known or _Client(0, set())
        if lost and failed and tool in client.worked:
            self._failed_wakes += 1
            if self._failed_wakes >= FAILED_WAKES:
                self.held, self._learns = HELD, False
                self._learned()
        elif not failed and len(client.worked) < MAX_TOOLS:
            client.worked.add(tool)
        return client


def _has_failed(result: bytes) -> bool:
    return json.may_hold(result, _FAILED, b'"isError"') and _FAILED.search(result) is not None
