"""What is so at all nodes of a fleet once it is at one: approved tools, switches, tokens, sessions that have ended.

What a node approves by itself, as it sees a server for the first time, counts only where no other one has seen it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.trust import Pins
from actors.errors import SupervisorError
from actors.kit import Pauses
from supervisor.fleet.engine import Engine
from supervisor.identity.tokens import SavedToken, TokenStore, TokenTable
from supervisor.servers.fleet.records import Pending
from supervisor.store.approvals import Approvals

if TYPE_CHECKING:
    from supervisor.servers.fleet.records import SharedRecords


_PINS_KIND: Final = "pins"
_PINS: Final = msgspec.msgpack.Decoder(Pins)


class SharedApprovals:
    """Implements `ApprovalSharing`. `run` has to run."""

    def __init__(self, records: SharedRecords, approvals: Approvals) -> None:
        self._records = records
        self._approvals = approvals
        self._heard = records.hear(_PINS_KIND, _read_pins)
        approvals.share(self)

    def tell(self, server: str, pins: Pins) -> None:
        self._records.put(_PINS_KIND, server, msgspec.msgpack.encode(pins))

    def offer(self, server: str, pins: Pins) -> None:
        self._records.offer(_PINS_KIND, server, msgspec.msgpack.encode(pins))

    async def read(self) -> Mapping[str, Pins]:
        await self._records.complete.wait()
        return _given_pins(self._heard.take())

    async def run(self) -> None:
        """Take what other nodes approve, for ever, once it is known what is approved here."""
        await self._approvals.known.wait()
        while True:
            await self._approvals.hear(_given_pins(await self._heard.wait()))


def _read_pins(server: str, payload: bytes | None) -> tuple[str, Pins | None]:
    return server, None if payload is None else _PINS.decode(payload)


def _given_pins(heard: Mapping[str, Pins | None]) -> dict[str, Pins]:
    return {server: pins for server, pins in heard.items() if pins is not None}  # nobody takes an approval back


# Servers that are switched off, at all nodes of a fleet: what is ordered at one of them is carried out at all.

log = logging.getLogger(__name__)

_SWITCH_KIND: Final = "switch"
_ON: Final = b"on"
_OFF: Final = b"off"


class SwitchBoard(Protocol):
    """Who switches the servers of this node. `switched` is called with what an operator has ordered here."""

    switched: Callable[[str, bool], None]

    def switch(self, server: str, *, on: bool) -> Awaitable[None]:
        """Carry out what was ordered elsewhere. Raises what an order raises."""


class SharedSwitches:
    """`off` are the servers that this node knows as switched off. `run` has to run."""

    def __init__(self, records: SharedRecords, board: SwitchBoard, off: Iterable[str]) -> None:
        self._board = board
        self._heard = records.hear(_SWITCH_KIND, lambda server, payload: (server, payload != _OFF))
        for server in off:
            records.know(_SWITCH_KIND, server, _OFF)
        board.switched = lambda server, on: records.put(_SWITCH_KIND, server, _ON if on else _OFF)

    async def run(self) -> None:
        """Carry out what other nodes were ordered, for ever."""
        while True:
            for server, on in (await self._heard.wait(1)).items():
                try:
                    await self._board.switch(server, on=on)
                except SupervisorError as error:
                    log.warning("%s is not switched as all nodes were told: %s", server, error.message)


# Tokens of a fleet: what is made or revoked at one node is so at all.

_TOKEN_KIND: Final = "token"
_TOKEN: Final = msgspec.msgpack.Decoder(SavedToken)


class SharedTokens:
    """Implements `TokenStore`: the store of this node, and the records of the fleet. When one was used each node notes
    for itself."""

    def __init__(self, store: TokenStore, records: SharedRecords) -> None:
        self._store = store
        self._records = records
        self._table: TokenTable

    def attach(self, table: TokenTable) -> None:
        """Have a table hear of what other nodes do."""
        self._table = table
        table.taken = self._know
        self._records.follow(_TOKEN_KIND, self._hear)

    def _know(self, saved: Collection[SavedToken]) -> None:
        for token in saved:
            self._records.know(_TOKEN_KIND, token.digest.hex(), _encode_token(token))

    def save_token(self, token: SavedToken) -> None:
        self._store.save_token(token)
        self._records.put(_TOKEN_KIND, token.digest.hex(), _encode_token(token))

    def forget_token(self, digest: bytes) -> None:
        self._store.forget_token(digest)
        self._records.put(_TOKEN_KIND, digest.hex(), None)

    async def secure(self) -> bool:
        return await self._store.secure() and await self._records.flush()

    def _hear(self, name: str, payload: bytes | None) -> None:
        if payload is None:
            self._table.hear_revocation(bytes.fromhex(name))
        else:
            token = _TOKEN.decode(payload)
            self._store.save_token(token)
            self._table.take([token])


def _encode_token(token: SavedToken) -> bytes:
    return msgspec.msgpack.encode(replace(token, used_at=None))


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
