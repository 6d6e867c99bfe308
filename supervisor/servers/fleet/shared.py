"""What is so at all nodes of a fleet once it is at one: approved tools, switches, tokens, sessions that have ended.

What a node approves by itself, as it sees a server for the first time, counts only where no other one has seen it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Final

import trio
from msgspec.structs import replace

from actors.catalogue.trust import Pins
from actors.errors import SupervisorError
from actors.kit import Pauses
from supervisor.fleet.engine import Engine
from supervisor.identity.tokens import SavedToken, TokenStore, TokenTable
from supervisor.servers.approvals import Approvals
from supervisor.servers.control import Control
from supervisor.servers.fleet.records import Pending, Shared, SharedRecords


class SharedApprovals(Shared[str, Pins]):
    """Implements `ApprovalSharing`. `run` has to run."""

    def __init__(self, records: SharedRecords, approvals: Approvals) -> None:
        super().__init__(records, "pins", str, Pins)
        self._approvals = approvals
        approvals.share(self)

    async def read(self) -> Mapping[str, Pins]:
        await self.records.complete.wait()
        return _given(self.take())

    async def run(self) -> None:
        """Take what other nodes approve, for ever, once it is known what is approved here."""
        await self._approvals.known.wait()
        while True:
            await self._approvals.hear(_given(await self.wait()))


def _given(heard: Mapping[str, Pins | None]) -> dict[str, Pins]:
    return {server: pins for server, pins in heard.items() if pins is not None}  # nobody takes an approval back


log = logging.getLogger(__name__)

_ON: Final = b"on"
_OFF: Final = b"off"


class SharedSwitches(Shared[str, bytes]):
    """Servers that are switched off, of which `off` are those that this node knows: what is ordered at one node is
    carried out at all. `run` has to run."""

    def __init__(self, records: SharedRecords, off: Iterable[str]) -> None:
        super().__init__(records, "switch", str, bytes)
        for server in off:
            self.know(server, _OFF)

    def note(self, server: str, on: bool) -> None:
        """Have other nodes know of what an operator has ordered here."""
        self.tell(server, _ON if on else _OFF)

    async def run(self, control: Control) -> None:
        """Carry out what other nodes were ordered, for ever."""
        while True:
            for server, state in (await self.wait(1)).items():
                try:
                    await control.switch(server, on=state != _OFF)
                except SupervisorError as error:
                    log.warning("%s is not switched as all nodes were told: %s", server, error.message)


class SharedTokens(Shared[str, SavedToken]):
    """Tokens: what is made or revoked at one node is so at all. When one was used each node notes for itself.

    Implements `TokenStore`, over the store of this node.
    """

    def __init__(self, store: TokenStore, records: SharedRecords) -> None:
        super().__init__(records, "token", str, SavedToken)
        self._store = store
        self._table: TokenTable

    def attach(self, table: TokenTable) -> None:
        """Have a table hear of what other nodes do."""
        self._table = table
        table.taken = self._know

    def _know(self, saved: Collection[SavedToken]) -> None:
        for token in saved:
            self.know(token.digest.hex(), replace(token, used_at=None))

    def put(self, token: SavedToken, /) -> None:
        self._store.put(token)
        self.tell(token.digest.hex(), replace(token, used_at=None))

    def forget(self, digest: bytes, /) -> None:
        self._store.forget(digest)
        self.tell(digest.hex(), None)

    async def secure(self) -> bool:
        return await self._store.secure() and await self.records.flush()

    def hear(self, key: str, value: SavedToken | None) -> None:
        if value is None:
            self._table.hear_revocation(bytes.fromhex(key))
        else:
            self._store.put(value)
            self._table.take([value])


# The sessions that end at this node, as the engine hears of them: whoever takes over for us must not revive them.

MAX_AT_ONCE: Final = 500
MAX_WAITING: Final = 20_000
"""Of what the engine was not told yet; then the oldest is forgotten."""


class EndedSessions:
    """Those that the engine was not told of yet. `now` gives unix seconds."""

    def __init__(self, engine: Engine, now: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._now = now
        self._expiring: dict[str, float] = {}
        self._pending = Pending()

    def note(self, digest: str, expires_at: float) -> None:
        """A session is over, whose id would be good until then, in unix seconds."""
        self._expiring[digest] = expires_at
        self._pending.add(digest)
        if len(self._pending) > MAX_WAITING:
            self._forget(next(iter(self._pending)))

    async def flush(self) -> None:
        """Return when the engine knows of those that have ended so far, or after a while. A checkpoint."""
        await self._pending.flush()

    async def run(self) -> None:
        """Tell the engine, as soon as it listens, for ever."""
        pauses = Pauses()
        while True:
            while not self._pending:
                await self._pending.wait()
            page, now = [*islice(self._pending, MAX_AT_ONCE)], self._now()
            try:
                await self._engine.end_sessions({each: max(0.0, self._expiring[each] - now) for each in page})
            except SupervisorError:
                await trio.sleep(pauses.next())
                continue
            pauses.reset()
            for each in page:
                self._forget(each)

    def _forget(self, digest: str) -> None:
        self._expiring.pop(digest, None)
        self._pending.remove(digest)
