"""Writes that wait for the disk. No I/O here.

The queue holds one write per key: a newer one replaces the older, usage is added up. It is therefore bounded by the
number of servers, principals and tools, launches, vectors and ended sessions, and by `max_keys` whatever those are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from actors.principal import Principal
from supervisor.store.records import EraName, SavedGrant, ToolUsage

Key = tuple[str, ...]
MAX_KEYS = 50_000

Payload = bytes | Callable[[], bytes]
"""What is kept, or what makes it: that is called on the thread that writes, as often as the write is tried."""


class SaveServer(msgspec.Struct, frozen=True, kw_only=True):
    """Put the snapshot of a server in the place of any older one."""

    name: str
    digest: str
    payload: Payload
    updated_at: float

    @property
    def key(self) -> Key:
        """Where a newer write replaces this one."""
        return ("server", self.name)


class ForgetServer(msgspec.Struct, frozen=True, kw_only=True):
    """Remove the snapshot of a server."""

    name: str

    @property
    def key(self) -> Key:
        """The key of the saved snapshot: the last of saving and forgetting wins."""
        return ("server", self.name)


class SwitchServer(msgspec.Struct, frozen=True, kw_only=True):
    """Keep whether an operator has switched a server off."""

    name: str
    disabled: bool
    updated_at: float

    @property
    def key(self) -> Key:
        """Where a newer write replaces this one."""
        return ("switch", self.name)


class SaveGrant(msgspec.Struct, frozen=True, kw_only=True):
    """Put a login in the place of any older one of the same principal at the same server."""

    grant: SavedGrant
    updated_at: float

    @property
    def key(self) -> Key:
        """Where a newer write replaces this one."""
        return ("grant", self.grant.principal, self.grant.server)


class ForgetGrant(msgspec.Struct, frozen=True, kw_only=True):
    """Remove a login."""

    principal: Principal
    server: str

    @property
    def key(self) -> Key:
        """The key of the saved login: the last of saving and forgetting wins."""
        return ("grant", self.principal, self.server)


class SaveEra(msgspec.Struct, frozen=True, kw_only=True):
    """Put the era verdict of a launch in the place of any older one."""

    digest: str
    era: EraName
    updated_at: float

    @property
    def key(self) -> Key:
        """Where a newer write replaces this one."""
        return ("era", self.digest)


class SaveVectors(msgspec.Struct, frozen=True, kw_only=True):
    """Keep what stands for some texts in the search, by the digest of each."""

    vectors: dict[bytes, bytes]
    used_at: float

    @property
    def key(self) -> Key:
        """A batch of texts is embedded once; its first digest stands for it."""
        return ("vectors", next(iter(self.vectors), b"").hex())


class EndSession(msgspec.Struct, frozen=True, kw_only=True):
    """Remember until `expires_at` (unix s) that a session was ended; `now` lets the same write purge expired ones."""

    id: str
    expires_at: float
    now: float

    @property
    def key(self) -> Key:
        """Where a newer write replaces this one."""
        return ("session", self.id)


class EndSessionsUntil(msgspec.Struct, frozen=True, kw_only=True):
    """Remember that all sessions that expire at `moment` (unix s) or before are ended, in the place of each of them."""

    moment: float

    @property
    def key(self) -> Key:
        """Where a newer write replaces this one."""
        return ("sessions",)


class AddUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Add to the usage of one tool."""

    usage: ToolUsage

    @property
    def key(self) -> Key:
        """Where a newer write is added to this one."""
        return ("usage", self.usage.principal, self.usage.server, self.usage.tool)


Write = (
    SaveServer
    | ForgetServer
    | SwitchServer
    | SaveGrant
    | ForgetGrant
    | SaveEra
    | SaveVectors
    | EndSession
    | EndSessionsUntil
    | AddUsage
)


class WriteQueue:
    """The newest write of each key, oldest key first."""

    def __init__(self, *, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._waiting: dict[Key, Write] = {}
        self._failed: set[Key] = set()  # waiting writes that were tried before
        self._failed_taken: set[Key] = set()  # the same of the batch that was taken

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, write: Write) -> bool:
        """Queue a write. False: the queue is full of other keys and the write is dropped."""
        key = write.key
        older = self._waiting.get(key)
        if older is None and len(self._waiting) >= self._max_keys:
            return False
        self._waiting[key] = _merged(older, write)
        self._failed.discard(key)
        return True

    def take(self) -> list[Write]:
        """Empty the queue into a batch."""
        batch = list(self._waiting.values())
        self._waiting = {}
        self._failed, self._failed_taken = set(), self._failed
        return batch

    def put_back(self, batch: Iterable[Write]) -> int:
        """Return the batch taken last, which failed; the number of its writes that had not failed before.

        What was queued meanwhile is newer and wins. The queue may pass `max_keys` here, by one batch at most.
        """
        returned = {write.key: write for write in batch}
        newer = self._waiting
        self._failed |= returned.keys() - newer.keys()
        self._waiting = returned | {key: _merged(returned.get(key), write) for key, write in newer.items()}
        return len(returned.keys() - self._failed_taken)


def _merged(older: Write | None, newer: Write) -> Write:
    if isinstance(older, AddUsage) and isinstance(newer, AddUsage):
        return AddUsage(usage=older.usage.plus(newer.usage))
    return newer
