"""What the store keeps, as plain values. Pure.

Payloads are opaque here: whoever saves one encodes it and must be able to reject what it no longer understands.
Times are unix seconds of the wall clock, durations are milliseconds. What is `array_like` has the columns of its table.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from actors.principal import Principal
from actors.protocol.agreement.versions import Era
from actors.transport.redaction import Confidential
from supervisor.identity.people import Tier

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


class ReplacedDefinition(msgspec.Struct, frozen=True, array_like=True):
    """What a tool was defined as until `replaced_at`, the `number`-th; empty if that was too long to be kept."""

    number: int
    replaced_at: float
    definition: bytes


class SavedGrant(Confidential, msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A login at one server, sealed; what stands beside `sealed` is sealed with it."""

    principal: Principal
    server: str
    issuer: str
    resource: str
    sealed: bytes


class SavedValue(Confidential, msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A value that a team or a user gave for a server, sealed; what stands beside `sealed` is sealed with it."""

    tier: Tier
    owner: str
    server: str
    name: str
    sealed: bytes


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
