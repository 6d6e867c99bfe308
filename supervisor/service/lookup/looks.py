"""Reading the lists of a sleeping server for a tool that it did not have when they were read last.

A server may gain a tool while nobody is there to hear of it: the daemon was down, or the server slept. The bound is per
server, whatever names are asked for: after a reading that did not bring the tool none is made for `FIRST_PAUSE_S`, and
each further one in vain doubles that pause, up to `LONGEST_PAUSE_S`.
"""

from __future__ import annotations

import trio

from actors.errors import ServerStarting, SupervisorError
from actors.kit import Address
from actors.life.states import State
from actors.messages import Refreshed, RefreshServer
from actors.principal import Principal
from actors.router import Message as RouterMessage
from actors.server.calls.errors import log_hint
from actors.server.recovery import STARTING_RETRY_S
from supervisor.metatools.texts import clean
from supervisor.service.lookup.visible import Visible

FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 3600.0
_NOT_UP = frozenset({State.DORMANT, State.SPAWNING, State.HANDSHAKING, State.DISCOVERING})
"""Who is in one of these states reads its lists before, or right after, it is ready; whoever is ready has read them."""


class _Reading:
    """A reading that is under way: its result, or why there is none; neither if whoever asked for it went away."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self.refreshed = Refreshed()
        self.failure: SupervisorError | None = None


class Looks:
    """The readings of sleeping servers. A server has at most one at a time; others who name it wait for that."""

    def __init__(self, router: Address[RouterMessage], visible: Visible) -> None:
        self._router = router
        self._visible = visible
        self._under_way: dict[str, _Reading] = {}
        self._pauses: dict[str, tuple[float, float]] = {}  # by server: seconds, and the moment at which it is over

    async def find(self, server: str, tool: str, principal: Principal, by: float) -> None:
        """Wake a server that is not up and wait until the catalogue has its lists, unless that was done lately.

        `by` is a moment of the trio clock. Raises `ServerStarting` if the lists are not there by then, and what keeps
        the server from starting. A checkpoint if there is anything to wait for.
        """
        status = self._visible.statuses(principal).get(server)
        if status is None or status.state not in _NOT_UP:
            return
        reading = self._under_way.get(server)
        if reading is None and trio.current_time() < self._pauses.get(server, (0.0, 0.0))[1]:
            return
        with trio.move_on_at(by) as waiting:
            if reading is None:
                reading = await self._read(server, tool, principal)
            else:
                await reading.over.wait()
            if reading.failure is not None:
                raise reading.failure
            await self._visible.listing(principal, server, reading.refreshed.added)
        if waiting.cancelled_caught:
            text = f"server {server!r} is not ready yet: whether it has a tool {clean(tool[:100])!r} is not known"
            raise ServerStarting(f"{text}; {log_hint(server)}", server=server, retry_after_s=STARTING_RETRY_S)

    async def _read(self, server: str, tool: str, principal: Principal) -> _Reading:
        reading = self._under_way[server] = _Reading()
        pause_s = min(2 * self._pauses.get(server, (FIRST_PAUSE_S / 2, 0.0))[0], LONGEST_PAUSE_S)
        try:
            reading.refreshed = await self._router.ask(
                RefreshServer(server=server, operator=False, principal=principal)
            )
        except SupervisorError as error:
            reading.failure = error
        finally:
            if tool in reading.refreshed.added:
                self._pauses.pop(server, None)
            else:
                self._pauses[server] = pause_s, trio.current_time() + pause_s
            del self._under_way[server]
            reading.over.set()
        return reading
