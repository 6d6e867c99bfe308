"""What events say of servers beside what happens to them: whose they are, and what they offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest
from actors.launch import is_own, server_of
from actors.messages import ServerStatus
from supervisor.events.lives import Base
from supervisor.servers.deployment import Deployment


class KnownServers:
    """Implements `supervisor.events.translation.EventFacts`. `people_of` gives the users who have a launch."""

    def __init__(
        self,
        deployment: Latest[Deployment],
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        people_of: Callable[[str], Sequence[str]],
    ) -> None:
        self._deployment = deployment
        self._catalogue = catalogue
        self._statuses = statuses
        self._people_of = people_of

    def base_of(self, launch: str) -> Base:
        deployment, server, status = self._deployment.value, server_of(launch), self._statuses.value.get(launch)
        config = deployment.entries.get(server)
        teams = [name for name, team in deployment.settings.identity.teams.items() if server in team.servers]
        users = self._people_of(launch) if is_own(launch) else deployment.users.get(server, ())
        kind = config.kind if config is not None else None
        return {
            "server_id": config.name if config is not None else server,
            "server_slug": server,
            "installation_id": launch,
            "team_id": teams[0] if len(teams) == 1 else None,
            "user_id": users[0] if len(users) == 1 else None,
            "transport": status.transport if status is not None else kind,
        }

    def offer_of(self, launch: str) -> Offer | None:
        catalogue = self._catalogue.value
        entry = (catalogue.own if is_own(launch) else catalogue.entries).get(launch)
        return None if entry is None else entry.offer

    def configuration(self) -> tuple[str, int, int]:
        deployment = self._deployment.value
        return deployment.digest, len(deployment.server_names), len(deployment.settings.identity.teams)
