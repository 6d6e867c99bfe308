"""Asks for sentences for tools that have none of a file or the book: a model of the operator's, in the background, or
whoever is there to be asked (`ask_by`).

- Each definition is asked for once, also over restarts: what was said of it is kept by its digest. Where nothing usable
  was said, that is kept, too, for a week or until another model is configured.
- A definition that is suspicious by its own words is not shown to the model.
- Within 24 hours so many definitions are asked for, and no more: what is kept says how many were. For one server these
  are at most twice as many as it has tools, so that one that changes its definitions takes little from others.
- A model that does not answer, or says nothing usable, is left alone for a while, each time longer, and others wait in
  its place meanwhile. A definition of which nothing usable was said three times is not asked for again so soon.
- A server is indexed again when all its tools were asked for, or `ask_by` has asked for some.
- One is asked at a time. Nothing waits for any of this but who calls `ask_by`.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import trio

from actors.catalogue.documents import Source, digest_of
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.kit import Conditions, Latest
from actors.registry_inbox import PhrasesChanged
from supervisor.config.sections import DescribeSettings
from supervisor.host.workbench import beside
from supervisor.phrases.asking import DescribingStatus, Model, NoAnswer, messages_of, sentences_of
from supervisor.phrases.sources import Kept, Sources
from supervisor.store import Rows
from supervisor.store.records import SavedPhrases

log = logging.getLogger(__name__)

_WHAT: Final = "model of `describe`"
DAY_S: Final = 86_400.0
ASKED_AGAIN_S: Final = 7 * DAY_S
"""After this time a definition is asked for again of which nothing usable was said."""
_SHORTEST_PAUSE_S: Final = 1.0
_FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 3600.0
_READ_AGAIN_S: Final = 10.0
MAX_USELESS: Final = 3
"""So often a definition is asked for of which nothing usable is said: it may be the model, or what stands beside it."""
CHANGES_A_DAY: Final = 2
"""So often a server's tools are asked for within 24 hours, on average."""
FEW_TOOLS: Final = 10
"""A server with fewer is asked for as one with so many."""
MAX_WAITED_FOR: Final = 5
"""So many definitions `ask_by` asks for at once, at most: somebody waits for the answer."""
_USELESS: Final = "nothing that it answers is of use"
_CLOSE_S: Final = 1.0
Waiting = dict[bytes, Tool]
"""Tools as their server declares them, by the digests of their definitions."""


class Describing:
    """`run` is for one task. `tell` reaches the registry, `hide_for` gives what takes the secrets of a server out of a
    text. `clock` gives unix seconds. Without a `model` nobody is asked but by `ask_by`.
    """

    def __init__(
        self,
        settings: DescribeSettings,
        model: Model | None,
        sources: Sources,
        store: Rows[SavedPhrases],
        catalogue: Latest[Catalogue],
        tell: Callable[[PhrasesChanged], Awaitable[None]],
        *,
        hide_for: Callable[[str], Callable[[str], str]],
        clock: Callable[[], float],
        conditions: Conditions,
    ) -> None:
        self._settings = settings
        self._model = model
        self._sources = sources
        self._store = store
        self._catalogue = catalogue
        self._tell = tell
        self._hide_for = hide_for
        self._clock = clock
        self._conditions = conditions
        self._looked: dict[str, Sequence[Tool]] = {}
        self._waiting: dict[str, Waiting] = {}
        self._fresh: set[str] = set()
        self._turn = trio.Lock()
        self._nap = trio.CancelScope()
        self._asked: deque[float] = deque(maxlen=settings.tools_per_day)
        self._asked_of: dict[str, deque[float]] = {}
        self._useless: Counter[bytes] = Counter()
        self._is_told = False
        self._failures = self._in_a_row = 0
        self._last_failure = ""
        self._not_before = 0.0

    def status(self) -> DescribingStatus:
        return DescribingStatus(
            model=self._settings.called,
            waiting=sum(map(len, self._waiting.values())),
            asked=sum(1 for _ in self._asked_today()),
            tools_per_day=self._settings.tools_per_day,
            failures=self._failures,
            last_failure=self._last_failure,
        )

    async def run(self) -> None:
        """Ask whenever there is something to ask for, for ever."""
        was_late = not self._sources.is_recalled
        await self._recall()
        self._asked.extend(sorted(self._sources.asked())[-self._settings.tools_per_day :])
        try:
            while True:
                version = self._catalogue.version
                async with self._turn:
                    await self._look(self._catalogue.value, tells=was_late)
                was_late = False
                if self._model is None:
                    while self._catalogue.version == version:
                        await self._publish()
                        if not self._fresh:
                            with trio.CancelScope() as self._nap:
                                await self._catalogue.wait_newer(version)
                elif not self._waiting:
                    self._conditions.end(_WHAT)
                    await self._publish()
                    await self._catalogue.wait_newer(version)
                elif (pause := self._pause_s()) > 0:
                    await self._publish()
                    with trio.move_on_after(pause):
                        await self._catalogue.wait_newer(version)
                else:
                    await self._ask_model(self._model, next(iter(self._waiting)))
        finally:
            if self._model is not None:
                with trio.move_on_after(_CLOSE_S, shield=True):
                    await self._model.close()

    async def ask_by(self, model: Model, seen: Mapping[str, Entry]) -> bool:
        """Ask this one for the next tools of a server, of those in these entries; return whether it was asked.

        It is not if none of them waits, somebody is asked already, or as many were today as may be. Raises `NoAnswer`
        for no answer, or one without use. A checkpoint if it asks.
        """
        if self._turn.locked() or not self._room():
            return False
        async with self._turn:
            for server, waiting in self._waiting.items():
                shown = seen[server].offer.tools if server in seen else ()
                own = {each.name: each for each in (tool.own or tool for tool in shown)}
                if among := {digest for digest, tool in waiting.items() if own.get(tool.name) == tool}:
                    try:
                        return await self._ask(model, server, among)
                    finally:
                        self._nap.cancel()
        return False

    async def _ask_model(self, model: Model, server: str) -> None:
        """Ask the model for the next tools of a server, and leave it alone for a while if that is of no use."""
        try:
            if not await self._ask(model, server, self._waiting[server].keys()):
                return
            self._in_a_row = 0
            self._conditions.end(_WHAT)
        except NoAnswer as error:
            self._in_a_row += 1
            pause = min(_FIRST_PAUSE_S * 2.0 ** min(self._in_a_row - 1, 20), LONGEST_PAUSE_S)
            self._not_before = trio.current_time() + pause
            self._conditions.begin(_WHAT, str(error))

    async def _recall(self) -> None:
        while not self._sources.is_recalled:
            await self._store.ready.wait()
            saved = await self._store.read()
            if saved is None:
                await trio.sleep(_READ_AGAIN_S)
            else:
                await beside(partial(self._sources.recall, saved))

    async def _look(self, catalogue: Catalogue, *, tells: bool) -> None:
        """See which tools are to be asked for, of servers that offer others than before."""
        for server in self._looked.keys() - catalogue.entries.keys():
            del self._looked[server]
            self._waiting.pop(server, None)
            self._asked_of.pop(server, None)
        for server, entry in catalogue.entries.items():
            tools = entry.offer.tools
            if self._looked.get(server) is tools:
                continue
            waiting, used = await beside(partial(self._divide, server, tools, self._clock()))
            self._looked[server] = tools
            self._waiting.pop(server, None)
            if waiting:
                self._waiting[server] = waiting
            if used:
                self._store.touch(*used)
            if used and tells:
                self._fresh.add(server)
            if self._useless:
                still = {digest for each in self._waiting.values() for digest in each}
                self._useless = Counter({digest: n for digest, n in self._useless.items() if digest in still})

    def _divide(self, server: str, tools: Sequence[Tool], now: float) -> tuple[Waiting, list[bytes]]:
        """Return the tools that are to be asked for, and the digests of those that were. Runs in a worker thread."""
        waiting: Waiting = {}
        used: list[bytes] = []
        for tool in tools:
            own = tool.own or tool
            if own.alarms or self._sources.said_in_books(server, own).sentences:
                continue
            digest = digest_of(own)
            if self._is_wanted(digest, now):
                waiting[digest] = own
            else:
                used.append(digest)
        return waiting, used

    def _is_wanted(self, digest: bytes, now: float) -> bool:
        kept = self._sources.kept(digest)
        if kept is None:
            return True
        is_old = abs(now - kept.asked_at) >= ASKED_AGAIN_S
        return not kept.sentences and (is_old or kept.model != self._settings.called)

    def _asked_today(self) -> Iterator[float]:
        """Yield when definitions were asked for, the first one first; a date in the future is of a wrong clock."""
        now = self._clock()
        return (at for at in self._asked if abs(now - at) < DAY_S)

    def _room(self) -> int:
        """Return for how many definitions it may be asked today."""
        return self._settings.tools_per_day - sum(1 for _ in self._asked_today())

    def _pause_s(self) -> float:
        """Return for how long nobody is to be asked; 0 if somebody may be now."""
        pause = self._not_before - trio.current_time()
        is_full = self._room() <= 0
        if is_full and not self._is_told:
            most, waiting = self._settings.tools_per_day, sum(map(len, self._waiting.values()))
            log.warning("a model was asked for %d tools within a day, as many as it may be; %d wait", most, waiting)
        self._is_told = is_full
        if is_full:
            pause = max(pause, next(self._asked_today()) + DAY_S - self._clock(), _SHORTEST_PAUSE_S)
        return min(max(pause, _SHORTEST_PAUSE_S), LONGEST_PAUSE_S) if pause > 0 else 0.0

    async def _ask(self, model: Model, server: str, among: Collection[bytes]) -> bool:
        """Ask for the next tools of a server, of those with these digests; return whether anybody was asked.

        Raises `NoAnswer`; other tools are asked for first then.
        """
        now = self._clock()
        waiting = {digest: tool for digest, tool in self._waiting[server].items() if self._is_wanted(digest, now)}
        if len(waiting) < len(self._waiting[server]):  # another server has the same ones
            self._fresh.add(server)
        room = self._room_of(server)
        if waiting and not room:  # it changes its tools faster than anybody needs sentences for them
            log.warning("%s: its tools have changed too often today to ask for sentences for them", server)
            del self._waiting[server]
            return False
        # Half as many each time that nothing was usable: one may spoil it for those beside it.
        able = [(digest, tool) for digest, tool in waiting.items() if digest in among]
        most = self._settings.batch if self._model is not None else min(self._settings.batch, MAX_WAITED_FOR)
        size = max(1, most >> self._useless[able[0][0]]) if able else 0
        batch = dict(able[: min(size, self._room(), room)])
        tools = [*batch.values()]
        if tools:
            self._asked.extend([now] * len(tools))
            question = messages_of(tools, secrets.token_hex(8), self._hide_for(server))
            try:
                answer = await model.ask(question)
            except NoAnswer as error:
                self._fail(server, waiting, batch, str(error))
                raise
            self._asked_of[server].extend([now] * len(tools))
            said = await beside(partial(sentences_of, answer, tools))
            if not said:
                self._useless.update(batch.keys())
                hopeless = {digest: each for digest, each in batch.items() if self._useless[digest] >= MAX_USELESS}
                self._keep(server, hopeless, {})
                again = {digest: each for digest, each in waiting.items() if digest not in hopeless}
                self._fail(server, again, {each: again[each] for each in batch if each in again}, _USELESS)
                raise NoAnswer(_USELESS)
            self._keep(server, batch, said)
        left = {digest: tool for digest, tool in waiting.items() if digest not in batch}
        del self._waiting[server]
        if left:
            self._waiting = {server: left, **self._waiting}
        elif self._model is not None:
            await self._publish()
        return bool(tools)

    def _room_of(self, server: str) -> int:
        """Return for how many definitions of a server it may be asked today."""
        now, most = self._clock(), CHANGES_A_DAY * max(FEW_TOOLS, len(self._looked[server]))
        asked = self._asked_of.setdefault(server, deque())
        while asked and abs(now - asked[0]) >= DAY_S:
            asked.popleft()
        return max(0, most - len(asked))

    def _keep(self, server: str, batch: Waiting, said: Mapping[int, tuple[str, ...]]) -> None:
        now, called = self._clock(), self._settings.called
        source: Source = "model" if self._model is not None else "sampling"
        kept = {digest: Kept(said.get(at, ()), called, now, source) for at, digest in enumerate(batch)}
        if not kept:
            return
        self._store.put(*self._sources.keep(kept))
        for digest in batch:
            del self._useless[digest]
        if said:
            self._fresh.add(server)

    def _fail(self, server: str, waiting: Waiting, batch: Waiting, why: str) -> None:
        """Note that tools were asked for in vain, and ask for others first from now on."""
        self._failures += 1
        self._last_failure = why
        del self._waiting[server]
        if waiting:
            others = {digest: tool for digest, tool in waiting.items() if digest not in batch}
            self._waiting[server] = {**others, **batch}

    async def _publish(self) -> None:
        """Have servers indexed again of whose tools there are new sentences."""
        if self._fresh:
            servers, self._fresh = frozenset(self._fresh), set()
            await self._tell(PhrasesChanged(servers=servers))
