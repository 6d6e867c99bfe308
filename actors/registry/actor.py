"""The registry: facts of all servers in, one immutable catalogue out. It asks nobody.

The costly parts, analysing texts for the index and counting tokens, run in worker threads of two child tasks; what they
made comes back as messages, so the catalogue and its index are always published together. Want of resources makes them
wait, with what was published before still there; a bug with one server's texts costs it its place, or its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol

from msgspec.structs import replace

from actors import facts
from actors.catalogue.documents import Phrases, no_phrases
from actors.catalogue.names import ServerNames
from actors.catalogue.offer import Offer, unchanged
from actors.catalogue.snapshot import Catalogue, Entry, compare_entries
from actors.catalogue.tool_rules import NO_CHANGES, NO_RULES, ToolChanges, ToolRules
from actors.catalogue.trust import Foreseen, Standing
from actors.facts import Fact, FactLog, InstanceChanged, StateChange
from actors.installation import DISABLED, installation_status, is_available
from actors.kit import Actor, Conditions, Latest, Reply
from actors.launch import is_own, launches_of, server_of
from actors.life.states import State
from actors.messages import EraLearned, ServerChanged, ServerListed, ServerRemoved, ServerStatus
from actors.registry.counting import UNCOUNTED, Counted, Counter, Counting, Uncountable, has_same_tools
from actors.registry.indexing import Embedding, Indexing
from actors.registry.indexing import Indexed as Indexed
from actors.registry.pinning import ApproveTools, Pinning, PinsRead
from actors.registry.reviews import NO_REVIEWER, LaunchesReviewed, OfferReviewed, ReviewAgain, Reviewer, Reviews
from actors.registry.sharing import Variants, with_newest_counts
from actors.registry_inbox import AwaitShown, LaunchesRecalled, NamesChanged, PhrasesChanged, RulesChanged
from actors.search.index import Index

SAVE_AGAIN_S: Final = 3600.0
"""By how much the time of the last reading may be wrong in the store."""
MAX_WAITING: Final = 500
"""So many tools that wait for approval are named in one fact."""
Report = ServerListed | ServerChanged | InstanceChanged | ServerRemoved | NamesChanged | RulesChanged | EraLearned
Work = Indexed | Counted | Uncountable | OfferReviewed | LaunchesReviewed | ReviewAgain
Message = Report | Work | PhrasesChanged | LaunchesRecalled | PinsRead | AwaitShown | ApproveTools


class Memory(Protocol):
    """What outlives the daemon. Saving never waits and never fails."""

    def save_offer(self, server: str, offer: Offer) -> None:
        """Keep what a server offers."""

    def forget(self, server: str) -> None:
        """Drop what is kept of a server."""

    def save_era(self, server: str, fact: EraLearned) -> None:
        """Keep which era a server speaks."""


class OfferSaver:
    """What the registry has kept of servers beyond the life of the daemon, and when what they offer is saved.

    Saves offers in the `memory`, by launch. `clock` gives unix time.
    """

    def __init__(self, memory: Memory, clock: Callable[[], float]) -> None:
        self._memory = memory
        self._clock = clock
        self._saved_at: dict[str, float] = {}

    def save(self, server: str, offer: Offer) -> None:
        if offer.tools or not offer.partial:
            self._saved_at[server] = self._clock()
            self._memory.save_offer(server, offer)

    def save_again(self, server: str, offer: Offer) -> None:
        """Save what is saved already, as only the time of its reading is new, now and then."""
        if not 0 <= self._clock() - self._saved_at.get(server, 0.0) < SAVE_AGAIN_S:  # or the clock was set back
            self.save(server, offer)

    def forget(self, server: str) -> None:
        self._saved_at.pop(server, None)
        self._memory.forget(server)


class Registry(Actor[Message]):
    """One per daemon. `catalogue`, `statuses` and `facts` may be read by anybody."""

    def __init__(
        self,
        known: Mapping[str, tuple[str, Offer]],
        memory: Memory,
        counter: Counter,
        clock: Callable[[], float],
        *,
        facts: FactLog | None = None,
        embedding: Embedding | None = None,
        conditions: Conditions | None = None,
        names: ServerNames | None = None,
        rules: Callable[[str], ToolRules] = lambda server: NO_RULES,
        described: Callable[[str], str] = lambda server: "",
        phrases: Phrases = no_phrases,
        pinning: Pinning | None = None,
        reviewer: Reviewer = NO_REVIEWER,
        reviewed: Mapping[str, ToolChanges] | None = None,
    ) -> None:
        """`names` are those of all configured servers, also of those that cannot run.

        `embedding` makes vectors for the index. `conditions` is told when something waits for resources. `rules` gives
        what clients see of a server's tools now, `described` what it is said to be for, and `pinning` which of them
        wait for approval; `RulesChanged` tells that one of them gives something else. `phrases` knows by which
        sentences people ask for tools, and is asked in worker threads. `reviewed` is what the `reviewer` made of what
        is known.
        """
        super().__init__(4096)
        self._rules = rules
        self._described = described
        self._phrases = phrases
        self._pinning = pinning or Pinning()
        self._entries: dict[str, Entry] = {}
        self._variants = Variants(self._entries)
        self._names = names or ServerNames({})
        self._clock = clock
        first = Catalogue(index=Index.empty(), indexed=not known, names=self._names)
        self.catalogue: Latest[Catalogue] = Latest(first)
        self.statuses: Latest[Mapping[str, ServerStatus]] = Latest({})
        self.facts = facts or FactLog(clock)
        self._told: dict[str, str] = {}
        self._entries |= {
            name: self._make(name, kind, own, (reviewed or {}).get(name, NO_CHANGES))
            for name, (kind, own) in known.items()
        }
        changes = compare_entries({}, self._entries)
        self.catalogue.set(first.with_entries(self._entries, first.index, changes)[0])
        self._memory = memory
        self._saver = OfferSaver(memory, clock)
        self._reviews = Reviews(reviewer, self._pinning.foresee, self.address, self.start_soon)
        self._unsearched: set[str] = set(self._entries)
        self._embedding = embedding
        conditions = conditions or Conditions(clock)
        self._indexing = Indexing(self._entries, self.catalogue, conditions)
        self._counting = Counting(counter, conditions)

    def on_start(self) -> None:
        self.nursery.start_soon(self._indexing.index, self.address.tell)
        if self._embedding is not None:
            self.nursery.start_soon(self._indexing.embed, self._embedding)
        self.nursery.start_soon(self._counting.run, self.address.tell)

    def offer(self, server: str) -> Offer | None:
        """Return what a server itself offers, whatever of it is shown."""
        return entry.own if (entry := self._entries.get(server)) is not None else None

    def handle(self, message: Message, reply: Reply[Any] | None) -> None:
        if isinstance(message, ServerListed):
            self.note(_reading(message))
        match message:
            case ServerChanged():
                self._on_changed(message)
            case InstanceChanged():
                self.note(message)
            case ServerListed() | LaunchesRecalled() | AwaitShown() if self._reviews.take(message, reply):
                pass  # it comes back when what it is about was looked at
            case ServerListed(server=server, offer=own):
                self._on_listed(server, own)
            case OfferReviewed():
                self._on_reviewed(message)
            case ReviewAgain():
                self._reviews.want_again(message, self._entries)
            case LaunchesRecalled(offers=offers) if reply is not None:
                self._on_recalled(offers, {})
                reply.answer(None)
            case LaunchesReviewed(offers=offers, changes=changes) if reply is not None:
                self._on_recalled(offers, changes)
                reply.answer(None)
            case RulesChanged(server=server):
                self._judge_again(launches_of(server, self._entries))
            case PhrasesChanged(servers=servers):
                self._index_again(servers)
            case PinsRead():
                self._judge_again([*self._entries])
            case ApproveTools() if reply is not None:
                reply.answer(self._approve(message))
            case ServerRemoved(server=server):
                self._entries.pop(server, None)
                self._variants.forget(server)
                self._pinning.forget(server)
                self._saver.forget(server)
                self._reviews.forget(server)
                self.facts.states.forget(server)
                self._told.pop(server, None)
                self.statuses.set({name: s for name, s in self.statuses.value.items() if name != server})
                self._mark(server)
            case NamesChanged(names=names):
                self._names = names
                self.catalogue.set(replace(self.catalogue.value, names=names))
            case EraLearned(server=server):
                self._memory.save_era(server, message)
            case AwaitShown(server=server) if reply is not None:
                self._indexing.wait(server, reply)
            case Indexed():
                self._on_indexed(message)
            case Counted():
                self._on_counted(message)
            case Uncountable(server=server):
                self.catalogue.set(self.catalogue.value.with_problem(server, UNCOUNTED))

    def _on_changed(self, message: ServerChanged) -> None:
        status = message.status
        before = self.statuses.value.get(status.server)
        self.statuses.set({**self.statuses.value, status.server: status})
        for fact in breaker_changes(before, status):
            self.note(fact)
        moved = before is None or message.previous is not status.state or before.disabled != status.disabled
        self._tell(message, moved=moved)
        available, entry = _is_usable(status), self._entries.get(status.server)
        if entry is not None and entry.available != available:
            self._put(status.server, replace(entry, available=available), status.reason)

    def _tell(self, message: ServerChanged, *, moved: bool) -> None:
        """Tell that a server is in another state, or that its users may expect something else of it."""
        launch = message.status.server
        word = self._word_of(message.status)
        before = self._told.get(launch, word)
        if moved or word != before:
            self._told[launch] = word
            self.note(state_change(message, word, before))

    def _word_of(self, status: ServerStatus) -> str:
        entry = self.catalogue.value.of_launch(status.server)
        return installation_status(status, listed=entry is not None and entry.available) or DISABLED

    def _tell_listed(self, launches: Iterable[str]) -> None:
        """Tell of which servers users may expect something else since the catalogue is another."""
        for launch in launches:
            if (status := self.statuses.value.get(launch)) is not None:
                self._tell(ServerChanged(status=status, previous=status.state), moved=False)

    def _put(self, launch: str, entry: Entry, reason: str = "") -> None:
        """Have a launch offer something else, or be available or not, for a `reason`."""
        before = self._entries.get(launch)
        self._entries[launch] = self._variants.share(launch, entry)
        if before is not None and before.available != entry.available:
            kind = facts.Available if entry.available else facts.Unavailable
            self.note(kind(launch=launch, tools=len(entry.tools), reason=reason))
        self._mark(launch)

    def _on_reviewed(self, message: OfferReviewed) -> None:
        server, before = message.server, self._entries.get(message.server)
        listed = self._reviews.settle(message)
        if listed:
            self._on_listed(server, message.own, message.changes, message.foreseen)
        elif (
            listed is False
            and before is not None
            and before.own.tools is message.own.tools
            and before.changes != message.changes
        ):
            entry = replace(before, changes=message.changes).with_rules(before.rules)
            self._entries[server] = self._variants.share(server, entry)
            self._mark(server)

    def _on_listed(
        self, server: str, own: Offer, changes: ToolChanges = NO_CHANGES, foreseen: Foreseen | None = None
    ) -> None:
        status = self.statuses.value.get(server)
        before = self._entries.get(server)
        if before is not None and has_same_tools(before.own, own):
            own = replace(own, token_counts=before.own.token_counts, tokens_exact=before.own.tokens_exact)
        kind = status.transport if status is not None else "stdio"
        available = status is None or _is_usable(status)
        same = before is not None and (before.available, before.changes) == (available, changes)
        if same and before is not None and unchanged(before.own, own):
            self._judge_again([server], foreseen)
            self._saver.save_again(server, own)
            return
        entry = self._make(server, kind, own, changes, available=available, foreseen=foreseen)
        self._put(server, entry.after(before if is_own(server) else None))
        self._saver.save(server, own)

    def _on_recalled(self, offers: Mapping[str, tuple[str, Offer]], changes: Mapping[str, ToolChanges]) -> None:
        for launch, (kind, own) in offers.items():
            said = changes.get(launch, NO_CHANGES)
            alike = self._variants.usable(launch, kind, own, said)
            self._entries[launch] = alike or self._variants.share(launch, self._make(launch, kind, own, said))
        self._mark(*offers)

    def _make(
        self,
        launch: str,
        kind: str,
        own: Offer,
        changes: ToolChanges,
        *,
        available: bool = True,
        foreseen: Foreseen | None = None,
    ) -> Entry:
        """Return the entry of what a server lists: here it is decided what of it is seen, and nowhere else."""
        server, standing = server_of(launch), self._judge(launch, own, foreseen)
        make = partial(Entry.make, server, kind, own, available=available, standing=standing, changes=changes)
        return make(rules=self._rules(server), described=self._described(server), phrases=self._phrases)

    def _judge(self, server: str, own: Offer, foreseen: Foreseen | None = None) -> Standing:
        before = self._entries.get(server)
        standing = self._pinning.judge(server, own, foreseen)
        if standing.waiting != (before.standing.waiting if before is not None else {}):
            waiting, tools = len(standing.waiting), dict([*standing.waiting.items()][:MAX_WAITING])
            self.note(facts.ApprovalsWanted(launch=server, waiting=waiting, held=standing.holds, tools=tools))
        return standing

    def _judge_again(self, launches: Iterable[str], foreseen: Foreseen | None = None) -> None:
        """Decide again what is seen of launches; those that had the same have the same."""
        before = {launch: self._entries[launch] for launch in launches}
        judged: dict[int, Entry] = {}
        for launch, entry in before.items():
            rules, standing = self._rules(entry.server), self._judge(launch, entry.own, foreseen)
            described = self._described(entry.server)
            if (entry.rules, entry.standing, entry.described) != (rules, standing, described):
                fresh = judged.get(id(entry)) or entry.with_rules(rules, standing, described)
                self._entries[launch] = judged[id(entry)] = fresh
        self._mark(*(launch for launch, entry in before.items() if self._entries[launch] is not entry))

    def _index_again(self, servers: Iterable[str]) -> None:
        """Have what all share of these servers indexed again, though nothing that anybody sees of it has changed."""
        there = [server for server in servers if server in self._entries]
        for server in there:
            entry = self._entries[server]
            self._entries[server] = replace(entry, offer=replace(entry.offer))  # the indexer goes by the object
        self._mark(*there)

    def _approve(self, message: ApproveTools) -> bool:
        own = self.offer(message.server)
        if own is None or not self._pinning.approve(message.server, own, message.digests):
            return False
        self._judge_again(launches_of(server_of(message.server), self._entries))
        return True

    def _mark(self, *launches: str) -> None:
        """Publish what is new of launches: of those that not all share at once, as they are in no common index."""
        own = {launch: self._entries.get(launch) for launch in launches if is_own(launch)}
        if own:
            self.catalogue.set(self.catalogue.value.with_own(own))
            self._counting.want({launch: entry for launch, entry in own.items() if entry is not None})
            self._tell_listed(own)
        for server in {*launches} - own.keys():
            self._indexing.mark(server)

    def _on_indexed(self, message: Indexed) -> None:
        catalogue = self.catalogue.value
        entries = {name: with_newest_counts(entry, self._entries.get(name)) for name, entry in message.entries.items()}
        following, changes = catalogue.with_entries(entries, message.index, message.changes)
        for server in message.removed:
            following, changes[server] = following.without(server, message.index)
        if message.removed:  # one that was removed and is back has no entry yet, but a name
            following = replace(following, names=self._names)
        self._unsearched -= (message.entries.keys() - message.tools_only) | message.removed
        self.catalogue.set(replace(following, indexed=not self._unsearched))
        self._indexing.on_published(message)
        self._tell_listed(entries)
        for server, change in changes.items():
            for kind, part in (
                (facts.ToolsChange, change.tools),
                (facts.ResourcesChange, change.resources),
                (facts.PromptsChange, change.prompts),
            ):
                if part:
                    self.note(kind(launch=server, change=part))
        self._counting.want(entries)

    def _on_counted(self, message: Counted) -> None:
        entry = self._entries.get(message.server)
        if entry is None or not has_same_tools(entry.offer, message.offer):
            return
        counted = entry.with_counts(message.counts, exact=message.exact)
        alike = [launch for launch, each in self._entries.items() if each is entry]
        self._entries.update(dict.fromkeys(alike, counted))
        self._mark(*filter(is_own, alike))
        self._saver.save(message.server, counted.own)
        shown = self.catalogue.value.entries.get(message.server)
        if shown is not None and has_same_tools(shown.offer, message.offer):
            self.catalogue.set(self.catalogue.value.with_counts(message.server, message.counts, exact=message.exact))
        for launch in alike if counted.offer != entry.offer else ():
            self.note(facts.ToolsCounted(launch=launch))

    def note(self, fact: Fact) -> None:
        """Note what happened at this revision of the catalogue."""
        self.facts.note(fact, revision=self.catalogue.value.revision)


def state_change(message: ServerChanged, word: str, before: str) -> StateChange:
    """Return what is told of a server whose users may expect a `word` of it, where they could expect another one."""
    status, reason = message.status, message.reason
    if not reason and (status.state in (State.FAILED, State.RESPAWNING) or status.down):
        reason = status.reason
    return StateChange(
        launch=status.server,
        state=status.state,
        previous=message.previous,
        status=word,
        previous_status=before,
        disabled=status.disabled,
        pid=status.pid,
        reason=reason,
        exit_code=status.exit_code,
        signal=status.signal,
    )


def breaker_changes(
    before: ServerStatus | None, after: ServerStatus
) -> Iterator[facts.BreakerTripped | facts.BreakerReset]:
    """Yield a fact for each breaker that opened, for the first time or again, or has closed."""
    old = {(each.breaker, each.tool): each for each in (before.breakers if before is not None else ())}
    new = {(each.breaker, each.tool): each for each in after.breakers}
    for key, each in new.items():
        if key not in old or old[key].until != each.until:
            yield facts.BreakerTripped(launch=after.server, breaker=each, reason=each.reason)
    yield from (facts.BreakerReset(launch=after.server, breaker=each) for key, each in old.items() if key not in new)


def _reading(message: ServerListed) -> Fact:
    launch, offer, seconds = message.server, message.offer, message.seconds
    if message.failure:
        return facts.ListsUnread(launch=launch, reason=message.failure)
    return facts.ListsRead(launch=launch, tools=len(offer.tools), problems=tuple(offer.problems), seconds=seconds)


def _is_usable(status: ServerStatus) -> bool:
    """Say whether the tools of a server can be used. That it lists them proves it, before it says that it is up."""
    return is_available(status) or (status.down is not None and status.state in (State.DISCOVERING, State.READY))
