"""What the store keeps: the rows of its tables as plain values, and which tables there are.

Payloads are opaque here: whoever saves one encodes it and must be able to reject what it no longer understands.
Times are unix seconds of the wall clock, durations are milliseconds.

A table is a row, a `Table` in `TABLES`, and the next `SCHEMA_VERSION` (`supervisor/store/file.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from actors.principal import Principal
from actors.protocol.agreement.versions import Era
from actors.transport.redaction import Confidential
from supervisor.identity.audit import AuditRecord
from supervisor.identity.people import Tier
from supervisor.identity.tokens import SavedToken
from supervisor.store.table import Table

if TYPE_CHECKING:
    Payload = Any
else:
    Payload = bytes  # what is read; what is put may be made by the thread that writes, see `Statement`
DAY_S = 86_400.0

# A stale legacy verdict keeps succeeding silently, so it must be asked again; a stale modern one fails loudly at the
# first request. The second bound only keeps verdicts of launches that no longer exist from piling up.
ERA_TTL_S: dict[Era, float] = {"legacy": 7 * DAY_S, "modern": 90 * DAY_S}
ALL_UNTIL = "*"
"""In the place of a session's digest: all sessions that expire by then are ended."""
LAUNCH_KEPT_S = 30 * DAY_S
"""What is known of a launch that not all share is kept for so long after it was read last."""
MAX_VECTORS = 50_000
"""Of texts of the search that are kept, 0.5 kB each; those not used for the longest time are dropped."""
MAX_PHRASES = 20_000
"""Definitions of which is kept what a model said, 0.4 kB each; those not used for the longest time are dropped."""
MAX_REPLACED = 10
"""Earlier definitions that are kept of each tool; the oldest go first."""
MAX_DEFINITION_BYTES = 65_536
"""Of a longer one it is only kept that it was replaced."""
MAX_REPLACED_BYTES = 4_194_304
"""Of all that is kept so of one server."""


class SavedServer(msgspec.Struct, frozen=True, array_like=True):
    """What a server, or a launch of it that not all share, offered when it was started so that its digest is this."""

    name: str
    digest: str
    payload: Payload


class SavedEra(msgspec.Struct, frozen=True, array_like=True):
    """What the launch of a digest speaks; it decides when that is asked again (`ERA_TTL_S`)."""

    digest: str
    era: Era


class EndedSession(msgspec.Struct, frozen=True, array_like=True):
    """A session that is over, by the digest of its token or `ALL_UNTIL`, until that token is good no more."""

    id: str
    expires_at: float


class ToolUsage(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Calls of one tool by one principal: how many, how many of them failed, and their summed milliseconds.

    `waited_ms` is the time before that, in which they waited for their server; earlier versions counted it with them.
    """

    principal: Principal
    server: str
    tool: str
    calls: Annotated[int, msgspec.Meta(ge=0)]
    failures: Annotated[int, msgspec.Meta(ge=0)]
    total_ms: Annotated[float, msgspec.Meta(ge=0)]
    waited_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0

    def plus(self, other: ToolUsage) -> ToolUsage:
        return msgspec.structs.replace(
            self,
            calls=self.calls + other.calls,
            failures=self.failures + other.failures,
            total_ms=self.total_ms + other.total_ms,
            waited_ms=self.waited_ms + other.waited_ms,
        )


class SwitchedOff(msgspec.Struct, frozen=True, array_like=True):
    """A server that an operator has switched off."""

    name: str


class SavedGrant(Confidential, msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A login at one server, sealed; what stands beside `sealed` is sealed with it."""

    principal: Principal
    server: str
    issuer: str
    resource: str
    sealed: bytes


class ReplacedDefinition(msgspec.Struct, frozen=True, array_like=True):
    """What a tool was defined as until `replaced_at`, the `number`-th; empty if that was too long to be kept."""

    server: str
    tool: str
    number: int
    replaced_at: float
    definition: bytes


class SavedPins(msgspec.Struct, frozen=True, array_like=True):
    """Which definitions of a server's tools are approved. One that cannot be read is not one that is not there: it may
    be of any type."""

    server: str
    payload: Any


class SavedVector(msgspec.Struct, frozen=True, array_like=True):
    """The vector of a text, by its digest."""

    digest: bytes
    levels: bytes


class SavedPhrases(msgspec.Struct, frozen=True, array_like=True):
    """What a model said of a definition, by its digest."""

    digest: bytes
    payload: bytes


class SavedValue(Confidential, msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A value that a team or a user gave for a server, sealed; what stands beside `sealed` is sealed with it."""

    tier: Tier
    owner: str
    server: str
    name: str
    sealed: bytes


class FleetRecord(msgspec.Struct, frozen=True, array_like=True):
    """What this node has seen of a record of its fleet."""

    key: str
    sealed: bytes


class DroppedRecords(msgspec.Struct, frozen=True, array_like=True):
    """How many records of an action were removed from the audit as they were too many."""

    action: str
    rows: int


class SavedPeriod(msgspec.Struct, frozen=True, array_like=True):
    """The sums of the period of a level that begins then."""

    level: str
    start: int
    payload: bytes


class SavedConsent(msgspec.Struct, frozen=True, array_like=True):
    """A yes for good to a tool, of which `pinned` is a digest."""

    principal: Principal
    server: str
    tool: str
    pinned: bytes
    given_at: float


class SavedCalls(msgspec.Struct, frozen=True, array_like=True):
    """Calls, of which the first is the `number`-th of all."""

    number: int
    payload: bytes


class SavedEvent(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An event that a sink of the type `store` keeps, the `number`-th; None before it is kept."""

    number: int | None = None
    id: str
    time: float
    type: str
    server: str
    payload: bytes


class SavedOccurrence(msgspec.Struct, frozen=True, array_like=True):
    """One event of a server that is kept, or a gap in its topic, which has neither id nor body. `time`: it happened."""

    number: int
    topic: str
    event_id: str
    time: float
    body: bytes


class SavedTopic(msgspec.Struct, frozen=True, array_like=True):
    """How far a topic was followed: by the `cursor` of its source; nothing up to `since` is kept."""

    topic: str
    since: int
    cursor: str | None


class SavedJournal(msgspec.Struct, frozen=True, array_like=True):
    """The name of the journal of what servers say, and a number that none of it reaches."""

    life: str
    reserved: int


class SavedWebhook(Confidential, msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A subscription whose events are posted to an address, until `expires_at`. `cursor`: behind which it goes on. The
    rest of it is `sealed`, with its id."""

    id: str
    expires_at: float
    cursor: str
    sealed: bytes


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the status page shows.

    `lost_writes` counts writes that did not reach the disk when their turn came, each once; those that may still
    be saved by a later attempt are among `pending_writes`. `last_error` is empty while the state is "ok". `damaged` is
    what a damaged file is called now that was replaced since the start, if there was one.
    """

    state: Literal["ok", "degraded"]
    lost_writes: int
    pending_writes: int
    last_error: str
    damaged: str = ""


SERVERS: Final = Table("servers", SavedServer, stamp="updated_at")
ERAS: Final = Table("eras", SavedEra, stamp="updated_at")
SESSIONS: Final = Table("ended_sessions", EndedSession, expires="expires_at", indexes={"expiry": "expires_at"})
USAGE: Final = Table("tool_usage", ToolUsage, 3)
SWITCHED_OFF: Final = Table("disabled_servers", SwitchedOff, stamp="updated_at", replicated=True)
GRANTS: Final = Table("grants", SavedGrant, 2, stamp="updated_at", replicated=True)
DEFINITIONS: Final = Table("definitions", ReplacedDefinition, 3)
PINS: Final = Table("pins", SavedPins, stamp="updated_at", replicated=True)
VECTORS: Final = Table(
    "vectors", SavedVector, stamp="used_at", order="used_at", most=MAX_VECTORS, indexes={"use": "used_at"}
)
PHRASES: Final = Table(
    "phrases", SavedPhrases, stamp="used_at", order="used_at", most=MAX_PHRASES, indexes={"use": "used_at"}
)
TOKENS: Final = Table("tokens", SavedToken, replicated=True)
VALUES: Final = Table("given_values", SavedValue, 4, stamp="updated_at", replicated=True)
RECORDS: Final = Table("fleet_records", FleetRecord, replicated=True)
AUDIT: Final = Table("audit", AuditRecord, indexes={"actions": "action, id", "times": "time"})
DROPPED: Final = Table("audit_dropped", DroppedRecords)
PERIODS: Final = Table("call_periods", SavedPeriod, 2)
CONSENTS: Final = Table("consents", SavedConsent, 4, order="given_at")
CALLS: Final = Table("calls", SavedCalls)
EVENTS: Final = Table("events", SavedEvent, unique="id", indexes={"times": "time", "types": "type, server"})
OCCURRENCES: Final = Table(
    "occurrences", SavedOccurrence, stamp="saved_at", indexes={"topics": "topic, number", "times": "saved_at"}
)
TOPICS: Final = Table("event_topics", SavedTopic, stamp="saved_at")
JOURNAL: Final = Table("event_journal", SavedJournal)
WEBHOOKS: Final = Table("webhooks", SavedWebhook, expires="expires_at")

TABLES: Final[tuple[Table[Any], ...]] = (
    *(SERVERS, ERAS, SESSIONS, USAGE, SWITCHED_OFF, GRANTS, DEFINITIONS, PINS, VECTORS, PHRASES, TOKENS, VALUES),
    *(RECORDS, AUDIT, DROPPED, PERIODS, CONSENTS, CALLS, EVENTS, OCCURRENCES, TOPICS, JOURNAL, WEBHOOKS),
)
