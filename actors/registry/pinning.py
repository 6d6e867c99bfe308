"""The pins of all servers: loaded before anything is judged, changed by readings and approvals, kept across runs.

It is a plain object of the loop: the registry judges each reading by it, and the actor of a server each call, so what
is seen and what may be called follow from the same pins in the same moment. Nothing in it waits. What takes long of a
judgement is worked out beside the loop before (`foresee`), and counts only if nothing is otherwise in that moment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from actors.catalogue.lookalikes import Lookalikes
from actors.catalogue.marks import digest
from actors.catalogue.offer import Offer, Tool
from actors.catalogue.trust import Foreseen, Pins, Standing, Trust, judge, judge_blindly, key_of, refusal, to_tell
from actors.command_line import command
from actors.errors import ToolHeld
from actors.kit import Ask
from actors.launch import is_own

log = logging.getLogger(__name__)

MAX_TOLD: Final = 5
NO_PINS: Final[Mapping[str, Pins]] = {}


class ApproveTools(Ask[bool], frozen=True, kw_only=True):
    """Approve definitions of a server's tools, each by its name there and its digest, as somebody has seen them.

    Answered with False if any is another one now: then none is approved.
    """

    server: str
    digests: dict[str, bytes]


class PinsRead(msgspec.Struct, frozen=True):
    """What was approved in earlier runs is known now, though it was not before."""


class Pinning:
    """Implements `PinKeeper`. `trust` gives the setting of a server now, `save` keeps pins, None to forget them.

    `known` are the pins of earlier runs, None while they could not be read: then nothing is pinned or saved, and where
    trust is strict everything is held. `unreadable` are servers of which that is so for good.
    """

    def __init__(
        self,
        trust: Callable[[str], Trust] = lambda server: "open",
        save: Callable[[str, Pins | None], None] = lambda server, pins: None,
        known: Mapping[str, Pins] | None = NO_PINS,
        unreadable: Collection[str] = (),
    ) -> None:
        self._trust = trust
        self._save = save
        self._pins: dict[str, Pins] | None = None if known is None else dict(known)
        self._unreadable = frozenset(unreadable)
        self._lookalikes = Lookalikes()
        self._told: dict[str, Standing] = {}

    def take(self, known: Mapping[str, Pins], unreadable: Collection[str]) -> None:
        """Know the pins of earlier runs, which could not be read before."""
        if self._pins is None:
            self._pins, self._unreadable = dict(known), frozenset(unreadable)

    @property
    def is_read(self) -> bool:
        return self._pins is not None

    def foresee(self, server: str, own: Offer) -> Callable[[], Foreseen]:
        """Return what works out, in any thread, what a server's list comes to as of now. Nothing is pinned by that."""
        key = key_of(server)
        lookalikes = frozenset(self._lookalikes.find(key, own.tools))
        return partial(Foreseen.of, (self._pins or {}).get(key), own.tools, self._trust(key), lookalikes)

    def judge(self, server: str, own: Offer, foreseen: Foreseen | None = None) -> Standing:
        """Return how the tools of a server stand, and pin what is to be pinned; `own` is what it lists now.

        An empty list that was not read to its end is no first sight of anything.
        """
        key = key_of(server)
        lookalikes, trust = self._lookalikes.read(key, own.tools), self._trust(key)
        if self._pins is None or key in self._unreadable:
            judged = judge_blindly(own.tools)
        else:
            before = self._pins.get(key)
            if foreseen is not None and foreseen.holds(before, own.tools, trust, lookalikes):
                judged = foreseen.judged
            else:
                judged = judge(before, own.tools, trust, lookalikes)
            if judged.pins is not None and judged.pins is not before and (own.tools or not own.partial):
                self._keep(key, judged.pins)
        standing = Standing(trust, to_tell(judged, trust), lookalikes, frozenset(judged.waiting))
        self._tell(server, standing)
        return standing

    def approve(self, server: str, own: Offer, approved: Mapping[str, bytes]) -> bool:
        """Pin definitions by name and digest, as they were seen. False, and nothing is, if any is another one now."""
        listed = {tool.name: tool for tool in own.tools}
        if any(name not in listed or digest(listed[name]) != pinned for name, pinned in approved.items()):
            return False
        key = key_of(server)
        if self._pins is not None:
            self._unreadable -= {key}
            self._keep(key, self._pins.get(key, Pins()).plus(approved, listed))
        return self._pins is not None

    def of(self, server: str) -> Pins | None:
        """Return the pins of a server; None if there are none yet, or they are not read."""
        return (self._pins or {}).get(key_of(server))

    def hear(self, server: str, pins: Pins) -> None:
        """Take what was approved elsewhere in the place of what there is; the next look at the server goes by it."""
        if self._pins is not None:
            self._unreadable -= {server}
            self._pins[server] = pins

    def has(self, server: str, tool: str, pinned: bytes) -> bool:
        """Say whether a definition of a tool is approved, by its digest."""
        pins = self.of(server)
        return pins is not None and pins.has(tool, pinned)

    def forget(self, server: str) -> None:
        self._told.pop(server, None)
        if is_own(server):  # its server stays
            return
        self._lookalikes.forget(server)
        self._unreadable -= {key_of(server)}
        if self._pins is not None:
            self._pins.pop(key_of(server), None)
            self._save(key_of(server), None)

    def holds(self, server: str) -> bool:
        return self._trust(key_of(server)) == "strict"

    def refusal(self, server: str, tool: Tool) -> ToolHeld | None:
        key = key_of(server)
        if self._pins is None or key in self._unreadable:
            return refusal(key, None, tool, self._trust(key))
        return refusal(key, self._pins.get(key) or Pins(), tool, self._trust(key))

    def _keep(self, key: str, pins: Pins) -> None:
        assert self._pins is not None
        self._pins[key] = pins
        self._save(key, pins)

    def _tell(self, server: str, standing: Standing) -> None:
        """Log what waits now and did not before."""
        before, self._told[server] = self._told.get(server), standing
        known = before.waiting if before is not None else {}
        fresh = {name: why for name, why in standing.waiting.items() if known.get(name) != why}
        if fresh:
            more = f" and {len(fresh) - MAX_TOLD} more" if len(fresh) > MAX_TOLD else ""
            held = "are held" if standing.holds else "are usable all the same"
            named = (f"{name[:100]!a} ({why})" for name, why in islice(fresh.items(), MAX_TOLD))
            told, see = f"{', '.join(named)}{more}", command("approve", server)
            log.warning("%s: tools wait for approval and %s: %s; see: %s", server, held, told, see)
