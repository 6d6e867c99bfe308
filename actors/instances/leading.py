"""Which instance of a launch leads: what it lists is what the launch offers, and it tells of resources. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from actors.errors import SupervisorError
from actors.instances.instance import Instance
from actors.life.states import State
from actors.server.inbox import Lead

_DOWN: Final = frozenset({State.RESPAWNING, State.FAILED, State.STOPPED})


class Leading:
    """`leader` is the one that leads. It leads until it is down while another one is up, or until it leaves."""

    def __init__(self, instances: Mapping[int, Instance], first: Instance) -> None:
        self.leader = first
        self._instances = instances

    def follow(self) -> None:
        """Look whether another one has to lead, and tell each whether others can take what it could not send."""
        leaves = self.leader.leaving
        if leaves or self.leader.actor.life.state in _DOWN:
            staying = [each for each in self._of_all() if not each.leaving]
            following = next((each for each in staying if each.up), staying[0] if leaves and staying else None)
            if following is not None:
                self.lead(following)
        able = {each.number for each in self._of_all() if each.up or each.coming}
        for each in self._instances.values():
            each.seat.replaceable = each.client is None and bool(able - {each.number})

    def lead(self, instance: Instance, *, reads: bool = True) -> None:
        """Have an instance lead. `reads`: what it lists is not known yet."""
        self.leader.seat.leads = False
        self.leader, instance.seat.leads = instance, True
        with suppress(SupervisorError):  # gone: then another one leads soon
            instance.post.tell_nowait(Lead(reads=reads))

    def _of_all(self) -> Iterator[Instance]:
        return (each for each in self._instances.values() if each.client is None)
