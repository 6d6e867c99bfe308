"""The audit of a daemon: records go to the store as they are made; nobody waits for the disk.

What the store has no room for is lost, which is counted, shown by the status, and said by the next record that is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal

import trio
from msgspec import Struct
from msgspec.structs import replace

from supervisor.config import Settings
from supervisor.identity.audit import AuditQuery, AuditRecord, Outcome, Tallies, record_of
from supervisor.identity.requester import ORIGIN, RequestOrigin
from supervisor.identity.tokens import NotKept, SavedToken, id_of
from supervisor.store import Store
from supervisor.store.records import DAY_S

TICK_S: Final = 5.0
"""How often minutes that are over are looked for."""
EXPIRE_S: Final = 3600.0
"""How often records are removed that are too old; until then they are not shown."""
DIGEST_CHARS: Final = 16
"""So much of a digest is recorded: more looks like a secret."""


_RECORDED: Final[dict[str, Outcome]] = {"ok": "done", "rejected": "refused", "cancelled": "unknown"}
"""What a call that ended so is in the audit; every other one has failed."""


class AuditStatus(Struct, frozen=True, kw_only=True):
    """What the status page shows. `lost` records could not be written since the daemon was started."""

    days: float
    calls: bool
    lost: int


class AuditPage(Struct, frozen=True, kw_only=True):
    """Some records, the newest first. `next`: the id to go on before, None if there are no more.

    `dropped`: how many of each action were removed as they were too many, not as they were too old.
    """

    records: list[AuditRecord]
    next: int | None
    dropped: dict[str, int]


class AuditTrail:
    """Implements `supervisor.identity.audit.Audit` over the store. `run` has to run; at the end `close` is called."""

    def __init__(self, store: Store, settings: Callable[[], Settings], clock: Callable[[], float]) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._tallies = Tallies()
        self._lost = 0
        self._gap = 0
        self._expired_at = -math.inf
        self.tell: Callable[[AuditRecord], None] = lambda record: None
        """Told of each record."""

    @property
    def _is_on(self) -> bool:
        return self._settings().audit_days > 0

    def note(
        self,
        action: str,
        target: str = "",
        *,
        outcome: Outcome = "done",
        detail: str = "",
        origin: RequestOrigin | None = None,
    ) -> None:
        if self._is_on:
            self._append(record_of(origin or ORIGIN.get(), self._clock(), action, target, outcome, detail))

    def tally(
        self, action: str, target: str = "", *, outcome: Outcome, detail: str = "", origin: RequestOrigin | None = None
    ) -> None:
        if self._is_on:
            record = record_of(origin or ORIGIN.get(), self._clock(), action, target, outcome, detail)
            for over in self._tallies.add(record):
                self._append(over)

    def note_token(self, change: Literal["create", "revoke", "expire"], token: SavedToken) -> None:
        """See `supervisor.identity.tokens.Noted`."""
        whose = f"{token.role} {token.user}" + (f" of {token.team}" if token.team else "")
        whose += f" at {token.server}" if token.server else ""
        self.note(f"token.{change}", id_of(token.digest), detail=whose)

    def note_call(self, server: str, tool: str, definition: bytes, outcome: str, milliseconds: float) -> None:
        """Record a call of a tool, if that is wanted; `outcome` is that of a `CallRecord`."""
        if self._settings().audit_calls:
            known = f", definition sha256 {definition.hex()[:DIGEST_CHARS]}" if definition else ""
            unsent = "not sent" if outcome in ("rejected", "unreached") else ""
            detail = (unsent or f"{milliseconds:.0f} ms") + known
            self.note("tool.call", f"{server}:{tool}", outcome=_RECORDED.get(outcome, "failed"), detail=detail)

    def status(self) -> AuditStatus:
        settings = self._settings()
        return AuditStatus(days=settings.audit_days, calls=settings.audit_calls, lost=self._lost)

    async def page(self, query: AuditQuery, limit: int) -> AuditPage:
        """Return so many records. Raises `NotKept` if they cannot be read."""
        kept = replace(query, since=max(query.since, self._kept_since()))
        rows = await self._store.audit.find(kept, limit + 1)
        if rows is None:
            raise NotKept("the audit cannot be read: /api/status says what is wrong with the database")
        records = rows[:limit]
        return AuditPage(
            records=records,
            next=records[-1].id if len(rows) > limit else None,
            dropped={row.action: row.rows for row in await self._store.dropped.load()},
        )

    async def run(self) -> None:
        """Write what minutes had that are over, and remove what is too old, for ever."""
        while True:
            self.tick()
            await trio.sleep(TICK_S)

    def tick(self) -> None:
        """Do that once."""
        now = self._clock()
        for record in self._tallies.over(now):
            self._append(record)
        if not 0 <= now - self._expired_at < EXPIRE_S:
            self._expired_at = now
            self._store.audit.remove_before(self._kept_since())

    def close(self) -> None:
        """Write what there is: the store is about to be closed."""
        for record in self._tallies.take():
            self._append(record)

    def _kept_since(self) -> float:
        return self._clock() - self._settings().audit_days * DAY_S

    def _append(self, record: AuditRecord) -> None:
        self.tell(record)
        if self._gap and self._store.audit.append(AuditRecord(time=record.time, action="audit.lose", count=self._gap)):
            self._gap = 0
        if not self._store.audit.append(record):
            self._gap += 1
            self._lost += 1
