"""What somebody hears of an event. Pure.

- Auditors and admins hear of everything. A member hears of servers that are theirs alone: of one that is started for
  them, all that can be said; of one that others have, too, no more than that it came, went, changed, or is away.
- How others use a shared server is none of that: when it starts, sleeps or crashes depends on their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from actors.principal import Principal
from supervisor.events.event import DaemonEvent
from supervisor.events.kinds import EventData, OfServer, ServerUnregistered

SHARED = ("server_id", "server_slug", "transport")
"""What a member is told of a server that others have, too."""


class EventReader(Struct, frozen=True, kw_only=True):
    """A member: the servers that they have, and the launches of those that are not started for all alike, by server.

    `gone` are servers that they had and that are not there any more. `is_alone` says of a launch whether it is that of
    this user alone.
    """

    principal: Principal
    user: str
    servers: frozenset[str]
    launches: Mapping[str, str]
    is_alone: Callable[[str], bool]
    gone: frozenset[str] = frozenset()

    def hears(self, event: DaemonEvent) -> EventData | None:
        """Return what the member hears of an event; None for nothing."""
        data = event.data
        if data.audience == "caller":
            return data if event.principal == self.principal else None
        if not isinstance(data, OfServer) or data.audience == "auditors" or not self._has(data):
            return None
        slug = data.server_slug
        if data.installation_id != slug and self.is_alone(data.installation_id):
            return replace(data, installation_id=slug, team_id=None, user_id=self.user)
        if data.audience == "launch":
            return None
        return type(data)(installation_id=slug, **{name: getattr(data, name) for name in SHARED})

    def _has(self, data: OfServer) -> bool:
        slug = data.server_slug
        if isinstance(data, ServerUnregistered):
            return slug in self.gone
        return slug in self.servers and (
            data.audience == "entry" or data.installation_id == self.launches.get(slug, slug)
        )
