"""Subscriptions of clients of this node to resources of launches that run at other nodes, and of theirs here.

A node that has subscribed clients asks the owner, as it asks a server; the owner tells it of each change. Where a
launch moves, or the connection breaks, it asks again, wherever the launch is then, and its clients are told that what
they are subscribed to may have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio

from actors.errors import SupervisorError
from actors.kit import Pauses, Reply
from actors.messages import CallServer
from actors.principal import LOCAL
from actors.protocol.changes import SUBSCRIBE, UNSUBSCRIBE
from actors.protocol.wire.jsonrpc import RemoteError, encode
from actors.server.subscribers import Subscribers
from supervisor.fleet.links.frames import ForLaunch
from supervisor.servers.fleet.launch_keys import LaunchKeys

ASK_S: Final = 60.0
"""How long an owner has to be asked again: its server may have to start."""


class FleetSubscriptions:
    """Implements `supervisor.fleet.links.watches.Watchers`. `owns` says whether a launch is here."""

    def __init__(
        self,
        subscribers: Subscribers,
        keys: LaunchKeys,
        owns: Callable[[str], bool],
        send: Callable[[str, ForLaunch, Reply[Any]], None],
    ) -> None:
        self._subscribers = subscribers
        self._keys = keys
        self._owns = owns
        self._send = send
        self._is_of_node = False
        self._again: set[str] = set()
        self._bell = trio.lowlevel.ParkingLot()
        subscribers.left = self._leave

    def add(self, launch: str, uri: str, tell: Callable[[], None], node: object) -> None:
        if name := self._keys.name(launch):
            self._subscribers.add(name, uri, tell, (LOCAL, node))

    def remove(self, launch: str, uri: str, tell: Callable[[], None]) -> bool:
        self._is_of_node = True
        try:
            return self._subscribers.remove(self._keys.launch(launch), uri, tell)
        finally:
            self._is_of_node = False

    def hear(self, launch: str, uri: str) -> None:
        if name := self._keys.name(launch):
            self._subscribers.tell_missed(name, (uri,))

    def hear_move(self, launch: str) -> None:
        self.ask_again(self._keys.launch(launch))

    def hear_break(self) -> None:
        for name in self._subscribers.servers():
            self.ask_again(name)

    def ask_again(self, name: str) -> None:
        """A launch of this name is not where it was: whoever is subscribed here is to be told of it from there."""
        if self._subscribers.uris(name) and self._keys.has(name):
            self._again.add(name)
            self._bell.unpark_all()

    async def run(self) -> None:
        """Ask owners again, until each of them has answered, for ever."""
        pauses = Pauses()
        while True:
            while not self._again:
                await self._bell.park()
            again, self._again = self._again, set()
            for name in sorted(again):
                if not await self._ask(name):
                    self._again.add(name)
            if self._again:
                await trio.sleep(pauses.next())
            else:
                pauses.reset()

    async def _ask(self, name: str) -> bool:
        """Ask the owner of a launch for all its resources; whoever runs here is asked by its actor. False: again."""
        for uri in () if self._owns(name) else self._subscribers.uris(name):
            reply: Reply[Any] = Reply()
            self._send(name, _message(name, SUBSCRIBE, uri), reply)
            try:
                with trio.fail_after(ASK_S):
                    await reply.wait()
            except RemoteError:
                continue  # it has no such resource any more
            except (SupervisorError, trio.TooSlowError):
                return False
            self._subscribers.tell_missed(name, (uri,))
        return True

    def _leave(self, name: str, uri: str) -> None:
        """Nobody here is subscribed to a resource any more: its owner need not tell us."""
        if not self._is_of_node and self._keys.has(name) and not self._owns(name):
            self._send(name, _message(name, UNSUBSCRIBE, uri), Reply())


def _message(name: str, method: str, uri: str) -> CallServer:
    members = b'"uri":' + encode(uri)
    return CallServer(server=name, method=method, members=members, name=uri, deadline_s=ASK_S, principal=LOCAL)
