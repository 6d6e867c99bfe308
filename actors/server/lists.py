"""What is known of a server's lists, and when they are read again. No I/O, no trio.

- A list that could not be read to its end takes nothing away from what was known of it.
- One empty list of tools may be a hiccup: it counts only if it is still empty a probe interval later.
- Changes are debounced, readings have a least interval; at most one is under way and one is owed.
- Lists grow old: after `catalogue_max_age_s`, give or take a tenth so that servers do not all come at once, they are
  read again; while the server is awake sooner, if it says so itself (`ttlMs`). One that sleeps is woken for that only
  if it may be (`refresh_asleep`): otherwise its lists are read when it is woken for something else, as always.
- What is doubtful (empty, or not read to its end) is read again at the start of the daemon, and every probe interval
  while the server is awake.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from actors.catalogue.diff import Compared
from actors.catalogue.lists import MAX_PROBLEMS, Draft, Drafted
from actors.catalogue.offer import LONG_LIST, Offer, Tool
from actors.facts import FactLog, ReadingEnded
from actors.protocol.agreement.era import Agreement
from actors.protocol.listing import Listed, Readings, capability_names
from actors.protocol.wire.mirrors import Mirror
from actors.server.settings import LIST_LIMITS, RELIST_DEBOUNCE_S, RELIST_INTERVAL_S, ServerSettings

SETTLE_S = 10.0
"""Old lists are read again about this long after the start: servers that are not known at all come first."""


class Lists:
    """`known` is what the catalogue has of the server; `owed`: a reading must follow the one that is under way.

    `current`: its tools were read from its present process, and nothing was told of a change since that began.

    `over_http` says whether it is reached by Streamable HTTP, where tools that ask for headers in a wrong way are not
    to be used (MCP 2026-07-28, server/tools "x-mcp-header").
    All times are seconds of one steady clock, but `read_at` of an offer, which is unix time.
    """

    def __init__(
        self, server: str, settings: ServerSettings, known: Offer | None, over_http: Callable[[], bool]
    ) -> None:
        self._over_http = over_http
        self._know(known)
        self.owed = self.current = False
        self._read: frozenset[str] = frozenset()
        self._settings = settings
        self._spread = zlib.crc32(server.encode()) / 2**32  # of servers over an interval; the same at each start
        self._begun_at: float | None = None
        self._looked_at = 0.0
        self._due_at = self._stale_at = math.inf
        self._failed_looks = 0
        self._urgent = False
        self._empty_since: float | None = None

    def restore(self, now: float, unix_now: float) -> None:
        if self.known is None or self._settings.catalogue_max_age_s <= 0:
            return  # who is not known at all is discovered anyway
        settled = min(SETTLE_S, self._settings.catalogue_max_age_s) * (0.5 + self._spread)
        read_at = self.known.read_at
        fresh = not self.doubtful and 0 < read_at <= unix_now
        self._due_at = now + (max(settled, self._max_age_s - (unix_now - read_at)) if fresh else settled)
        self._urgent = not fresh

    @property
    def _max_age_s(self) -> float:
        return (self._settings.catalogue_max_age_s or math.inf) * self._jitter

    @property
    def _jitter(self) -> float:
        return 0.9 + 0.2 * self._spread

    @property
    def doubtful(self) -> bool:
        if self.known is None or self._empty_since is not None or self.known.partial:
            return True
        return not self.known.tools and "tools" in capability_names(self.known.capabilities)

    def begin(self, now: float) -> Draft:
        self._begun_at = now
        self.owed = self.current = False
        return Draft(LIST_LIMITS, self.known)

    def next_reading(self, now: float, interval_s: float = RELIST_INTERVAL_S) -> float:
        """Return the moment at which a change that was told of now is read."""
        earliest = self._begun_at + interval_s if self._begun_at is not None else now
        return max(now + RELIST_DEBOUNCE_S, earliest)

    def next_look(self, *, awake: bool) -> float:
        """Return the moment at which the lists are read again though nobody told of a change; infinite if never."""
        if not awake:
            return self._due_at if self._urgent or self._settings.refresh_asleep else math.inf
        probe = self._looked_at + self._settings.probe_interval_s
        return min(self._due_at, self._stale_at, probe if self.doubtful else math.inf)

    def put_off(self, now: float) -> None:
        """The server could not be woken to be looked at: try again later, and later each time."""
        self._failed_looks += 1
        pause = self._settings.probe_interval_s * 2.0 ** min(self._failed_looks, 20)
        self._due_at = now + min(pause, self._max_age_s)

    def doubt(self) -> None:
        """There is another process, or a change was told of: what was read may not be so any more."""
        self.current = False

    def drafted(self, agreement: Agreement, draft: Draft, listed: Listed) -> Drafted:
        """Return what a walk over the lists has brought, for `take`. Changes nothing, may run in a thread."""
        offer = draft.offer(agreement, listed)
        if offer.era == "modern" and self._over_http():
            offer = _without(offer, {tool.name: tool.misplaced for tool in offer.tools if tool.misplaced})
        before = self.known.tools if self.known is not None else ()
        return Drafted(offer, draft.names("tools"), Compared(before, offer.tools))

    def is_long(self, draft: Draft) -> bool:
        """Say whether what a walk has brought, or was known before, is too long to be compared on the loop."""
        known = len(self.known.tools) if self.known is not None else 0
        return max(known, draft.count("tools")) > LONG_LIST

    def take(self, now: float, unix_now: float, drafted: Drafted) -> Offer:
        offer = drafted.offer
        self._read, self.current = drafted.read, not self.owed
        self._looked_at = now
        self._due_at = now + self._max_age_s
        self._stale_at = self._stale_from(now, offer.good_for_s)
        self._failed_looks = 0
        self._urgent = False
        emptied = self.known is not None and bool(self.known.tools) and not offer.tools
        if not emptied:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = now
        patience_s = self._settings.probe_interval_s
        if self.known is not None and self._empty_since is not None and now - self._empty_since < patience_s:
            kept = f"its list of tools was empty; those known before stay until it was empty for {patience_s:g} s"
            offer = replace(offer, tools=self.known.tools, problems=(*offer.problems, kept))
        else:
            self._empty_since = None
            before = self.known.read_at if self.known is not None else 0.0
            offer = replace(offer, read_at=before if offer.partial else unix_now)
        self._know(offer)
        return offer

    def _know(self, offer: Offer | None) -> None:
        tools = offer.tools if offer is not None else ()
        self.known = offer
        self._tools = {tool.name: tool for tool in tools}
        self._mirrors = {tool.name: tool.mirrors for tool in tools if tool.mirrors}
        self._task_only = frozenset(tool.name for tool in tools if tool.needs_task)

    def read_tool(self, name: str) -> Tool | None:
        """Return a tool that was in the last reading: neither one that is only remembered, nor one that is barred."""
        return self._tools.get(name) if name in self._read else None

    def mirrors_of(self, tool: str) -> tuple[Mirror, ...]:
        return self._mirrors.get(tool, ())

    def needs_task(self, tool: str) -> bool:
        return tool in self._task_only

    def _stale_from(self, now: float, good_for_s: float) -> float:
        """Return when lists grow stale by their server's word; infinite if that is never, or age does not matter."""
        if not good_for_s or not self._settings.catalogue_max_age_s:
            return math.inf
        return now + max(good_for_s, self._settings.catalogue_min_age_s) * self._jitter


def _without(offer: Offer, left_out: Mapping[str, str]) -> Offer:
    """Return an offer without some tools; `left_out` says why by name."""
    if not left_out:
        return offer
    problems = [f"tool {name[:80]!r} left out: {why}" for name, why in left_out.items()]
    tools = tuple(tool for tool in offer.tools if tool.name not in left_out)
    return replace(offer, tools=tools, barred=tuple(left_out), problems=(*offer.problems, *problems)[:MAX_PROBLEMS])


class ReadingCount:
    """Counts how readings of the lists end; `readings` are those so far.

    Moments are seconds of one clock.
    """

    def __init__(self, launch: str, facts: FactLog) -> None:
        self._launch = launch
        self._facts = facts
        self.readings = Readings()
        self._begun_at: float | None = None

    def begin(self, now: float) -> None:
        self.fail(now)
        self._begun_at = now

    def end(self, now: float) -> None:
        """Note that what was begun came to its end; nothing, if it failed before."""
        if self._begun_at is not None:
            took = round(now - self._begun_at, 3)
            self.readings = replace(self.readings, count=self.readings.count + 1, last_at=now, last_s=took)
            self._begun_at = None
            self._facts.note(ReadingEnded(launch=self._launch, seconds=took, good=True))

    def fail(self, now: float) -> None:
        """Note that what was begun did not come to its end, if anything was."""
        if self._begun_at is not None:
            self.readings = replace(self.readings, failures=self.readings.failures + 1)
            self._facts.note(ReadingEnded(launch=self._launch, seconds=now - self._begun_at, good=False))
            self._begun_at = None
