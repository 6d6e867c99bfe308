"""Where launches are found in a fleet: here if this node owns them, else behind an address that looks like theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.errors import ActorStopped, SupervisorError
from actors.kit import Address, Reply
from actors.kit.directory import Directory
from actors.kit.mailbox import Envelope
from actors.messages import CallServer, RefreshServer, RestartServer, SleepServer, WakeServer
from actors.server import ServerMessage
from supervisor.fleet.links.frames import ForLaunch

Send = Callable[[str, ForLaunch, Reply[Any]], None]
"""Sends a message to a launch, wherever that is; its reply settles in any case."""


class LaunchAddress(Address[ServerMessage]):
    """Stands for a launch that may be at another node. What cannot be for another node is refused."""

    __slots__ = ("_launch", "_send_on")

    def __init__(self, launch: str, send: Send) -> None:
        self._launch = launch
        self._send_on = send

    def _put(self, envelope: Envelope[ServerMessage]) -> None:
        message, reply = envelope.message, envelope.reply
        if reply is None or not isinstance(
            message, CallServer | WakeServer | RestartServer | RefreshServer | SleepServer
        ):
            raise ActorStopped("only its own node does that with it")
        self._send_on(self._launch, message, reply)


class FleetDirectory(Directory[ServerMessage]):
    """Finds every launch. `local` has those that run here, `owns` says which may; `knows` of which that is asked."""

    def __init__(
        self, local: Directory[ServerMessage], owns: Callable[[str], bool], knows: Callable[[str], bool], send: Send
    ) -> None:
        super().__init__()
        self._local = local
        self._owns = owns
        self._knows = knows
        self._send = send

    def find(self, name: str) -> Address[ServerMessage] | None:
        address = self._local.find(name)
        if address is not None and self._owns(name):
            return address
        return LaunchAddress(name, self._send) if self._knows(name) else address

    def why_not(self, name: str) -> SupervisorError:
        return self._local.why_not(name)
