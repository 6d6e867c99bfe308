"""The events of a daemon: what happens becomes one, is kept for a while, and goes to the sinks."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import trio

from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue
from actors.facts import FactLog, Logged
from actors.kit import Latest
from actors.launch import is_own, server_of
from actors.messages import ServerStatus
from actors.principal import Principal
from supervisor.config import Settings
from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Delivery, Sink
from supervisor.delivery.log import MAX_NAME_CHARS, EventLog
from supervisor.events.event import Places
from supervisor.events.kinds import AuthFailed, LimitExceeded
from supervisor.events.translation import Base, EventFacts, Translator
from supervisor.identity.audit import AuditRecord
from supervisor.servers.deployment import Deployment
from supervisor.usage.records import NOT_SENT, CallRecord

log = logging.getLogger(__name__)

CATCH_UP_S: Final = 0.5
_FAILED: Final = {"credential.check": "credential", "page.ask": "role"}
"""Actions of the audit that are failures to come in."""
LaunchOf = Callable[[str, Principal], str]


class DaemonEvents:
    """Hears what happens, and tells it. `clock` gives unix seconds.

    `launch_of` gives the launch that somebody means by a server; it may raise.
    """

    def __init__(
        self,
        settings: Settings,
        world: EventFacts,
        make: Callable[[EventSink], Sink],
        clock: Callable[[], float],
        launch_of: LaunchOf = lambda server, principal: server,
    ) -> None:
        self.log = EventLog(clock, settings.max_kept_events)
        self.places = Places(str(int(clock() * 1000)), secrets.token_bytes(32))
        self.delivery = Delivery(make, self.places.show, clock)
        self.log.told = self.delivery.take
        self.lost = 0
        """So many were not heard of in time."""
        self.settle: Callable[[], None] = lambda: None
        """Called before anything else is told, so that the calls before it come first."""
        self._translator = Translator(world)
        self._launch_of = launch_of
        self._heard = Latest(0)

    # Who tells -------------------------------------------------------------------------------------------------------

    async def run(self, facts: FactLog, deployment: Latest[Deployment]) -> None:
        """Hear what happens, and send it to the sinks of the newest settings, for ever. It may be run again."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.follow, facts)
            await self.delivery.run(lambda: deployment.value.settings, deployment)

    async def follow(self, facts: FactLog) -> None:
        """Tell of all that happens, for ever."""
        while True:
            number, missed, noted = await facts.after(self._heard.value)
            self.settle()
            self.lost += missed
            for each in noted:
                self._tell(each)
            self._heard.set(number)

    async def catch_up(self, facts: FactLog) -> None:
        """Wait a moment until `follow` has told all there is. A checkpoint."""
        self.settle()
        with trio.move_on_after(CATCH_UP_S):
            await trio.lowlevel.checkpoint()
            while self._heard.value < facts.newest:
                await self._heard.wait_newer(self._heard.version)

    async def end(self, facts: FactLog, left_s: Callable[[], float]) -> None:
        """Tell what there is still to tell, and send it for the rest of the time."""
        await self.catch_up(facts)
        await self.delivery.flush(left_s())

    def _tell(self, noted: Logged) -> None:
        try:
            for data in self._translator.events(noted):
                self.log.append(data, principal=noted.principal, time=noted.time, revision=noted.revision)
        except Exception:  # what servers say stands in it, and nobody else waits for this
            self.lost += 1
            log.exception("a bug while telling of %s", type(noted.fact).__name__)

    def take(self, records: Sequence[CallRecord]) -> None:
        """Tell of calls that ended. Implements `supervisor.usage.totals.Take`."""
        self.log.extend(records)
        reached = (record for record in records if record.server and record.outcome not in NOT_SENT)
        newest = {(record.server, record.principal): record.time for record in reached}
        for (server, principal), moment in newest.items():
            with suppress(Exception):  # it was never started for them, so nothing ran
                self._translator.lives.call(self._launch_of(server, principal), moment)

    def note(self, record: AuditRecord) -> None:
        """Tell of a record of the audit, if it says that somebody could not come in."""
        reason = _FAILED.get(record.action)
        if reason is not None:
            self.log.append(
                AuthFailed(
                    reason=reason,
                    target=record.target or record.door or None,
                    user_id=record.user or None,
                    ip_address=record.address or None,
                    count=record.count,
                )
            )

    def lack(self, what: str, why: str) -> None:
        """Tell that something works only in part."""
        self.log.append(LimitExceeded(resource=what, reason=why[:MAX_NAME_CHARS]))

    # Who asks --------------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Return what the status page shows."""
        return {"newest": self.log.newest.value, "lost": self.lost, "sinks": self.delivery.status()}


# What events say of servers beside what happens to them: whose they are, and what they offer.


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
