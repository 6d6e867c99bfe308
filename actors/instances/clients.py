"""Instances of a launch that are one client's alone: made with its first call, gone with its session or its sleep.

They are shared by people first (`actors.kit.fairness.client_quota`): sessions are opened as one likes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from actors.errors import TooManyCalls
from actors.instances.instance import Instance
from actors.kit import ClientQuota
from actors.life.states import State
from actors.principal import ClientKey

BUSY_RETRY_S = 5.0


class ClientInstances:
    """At most `limit` at a time. `make` makes one, `retire` has one end; the instance that leads is nobody's."""

    def __init__(
        self,
        server: str,
        instances: Mapping[int, Instance],
        limit: int,
        make: Callable[[], Instance],
        retire: Callable[[Instance], None],
    ) -> None:
        self._server = server
        self._instances = instances
        self.limit = limit
        self._make = make
        self._retire = retire

    def of(self, client: ClientKey) -> Instance:
        """Return the instance of a client. Raises `TooManyCalls` where others have all of them."""
        known = self.find(client)
        if known is not None:
            return known
        taken = [each for each in self._instances.values() if each.client is not None and not self._is_over(each)]
        shared, own = ClientQuota(self.limit), list[Instance]()
        for each in taken:
            assert each.client is not None
            shared.add(each.client)
            own += [each] if each.client[0] == client[0] else []
        if not shared.has_room(client):
            others = taken if len(taken) >= self.limit else []
            unused = next((each for each in (*own, *others) if not each.leaving and self._is_unused(each)), None)
            if unused is None:
                raise TooManyCalls(self._why_not(len(own)), server=self._server, retry_after_s=BUSY_RETRY_S)
            self._retire(unused)
        made = self._make()
        made.client = client
        return made

    def find(self, client: ClientKey) -> Instance | None:
        """Return the instance that a client has."""
        return next((each for each in self._instances.values() if each.client == client and not each.leaving), None)

    def leave(self, client: ClientKey) -> None:
        """A client is gone, and so is what it had."""
        if (known := self.find(client)) is not None:
            self._retire(known)

    def look(self, instance: Instance) -> None:
        """Have an instance end that fell asleep: its client gets a fresh one."""
        asleep = instance.actor.life.state is State.DORMANT and self._is_unused(instance)
        if asleep and instance.client is not None and not instance.leaving:
            self._retire(instance)

    def _why_not(self, own: int) -> str:
        text = f"server {self._server!r} has an instance for each client, "
        if not own:
            return f"{text}and others have all {self.limit}"
        return f"{text}and of the {self.limit} {own} are of clients of yours: end the session of one of them"

    def _is_over(self, instance: Instance) -> bool:
        return instance.leaving and instance.actor.life.resting

    def _is_unused(self, instance: Instance) -> bool:
        return instance.actor.life.resting and not instance.open and not instance.starting
