"""The registry: facts in, one catalogue with its index out."""

from __future__ import annotations

import errno
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.catalogue.diff import Change
from actors.catalogue.documents import Said
from actors.catalogue.names import Resolved
from actors.catalogue.offer import Offer, Resource, Tool
from actors.catalogue.snapshot import Catalogue, Entry, segment_of
from actors.catalogue.tool_rules import NO_RULES, ToolRules
from actors.facts import Fact, ListsRead, OfLaunch, StateChange, ToolsChange, ToolsCounted
from actors.kit import Conditions
from actors.life.states import Down, State
from actors.messages import EraLearned, ServerChanged, ServerListed, ServerRemoved, ServerStatus
from actors.protocol.wire.json import quoted
from actors.registry import indexing
from actors.registry.actor import Registry
from actors.registry.counting import UNCOUNTED
from actors.registry.indexing import Embedded, Embedding, Indexer
from actors.registry_inbox import PhrasesChanged, RulesChanged
from actors.search.document import KINDS, TOOLS
from actors.search.index import Index
from actors.search.meanings import Embedder, levels
from actors.search.search import find
from actors.search.words.tables import WORLD
from tests.fakes.embedder import FakeEmbedder, document_levels
from tests.fakes.vectors import KeptVectors
from tests.fakes.want import no_threads


@dataclass
class Kept:
    """What the registry asked to be kept."""

    offers: dict[str, Offer] = field(default_factory=dict)
    eras: dict[str, str] = field(default_factory=dict)
    writes: int = 0

    def save_offer(self, server: str, offer: Offer) -> None:
        self.writes += 1
        self.offers[server] = offer

    def forget(self, server: str) -> None:
        self.offers.pop(server, None)

    def save_era(self, server: str, fact: EraLearned) -> None:
        self.eras[server] = fact.era


@dataclass
class Counting:
    """Counts characters of descriptions; waits while `held`."""

    calls: int = 0
    held: trio.Event | None = None
    failures: list[Exception] = field(default_factory=list)

    async def __call__(self, offer: Offer) -> tuple[dict[str, int], bool]:
        self.calls += 1
        if self.held is not None:
            await self.held.wait()
        await trio.lowlevel.checkpoint()
        if self.failures:
            raise self.failures.pop()
        return {tool.name: len(tool.description) for tool in offer.tools}, True


def offering(*tools: str, description: str = "words", **more: Any) -> Offer:
    made = tuple(
        Tool(
            name=name,
            described=quoted(description),
            definition=msgspec.Raw(msgspec.json.encode({"name": name, "description": description})),
        )
        for name in tools
    )
    return Offer(tools=made, **more)


def changed(server: str, state: State, previous: State = State.DORMANT) -> ServerChanged:
    down: Down | None = "permanently_failed" if state is State.FAILED else None
    status = ServerStatus(server=server, state=state, wanted="up", since=0.0, down=down)
    return ServerChanged(status=status, previous=previous)


def listed(server: str, offer: Offer) -> ServerListed:
    return ServerListed(server=server, incarnation=1, offer=offer)


class Rig:
    def __init__(
        self,
        known: dict[str, tuple[str, Offer]],
        load_embedder: Callable[[], Embedder | None] = lambda: None,
        rules: dict[str, ToolRules] | None = None,
    ) -> None:
        self.rules = rules or {}
        self.said: tuple[str, ...] = ()
        self.now_s = 1.0
        self.kept = Kept()
        self.count = Counting()
        self.conditions = Conditions()
        self.vectors = KeptVectors()
        self.registry = Registry(
            known,
            self.kept,
            self.count,
            lambda: self.now_s,
            embedding=Embedding(load_embedder, self.vectors),
            conditions=self.conditions,
            rules=lambda server: self.rules.get(server, NO_RULES),
            phrases=lambda server, tool: Said(self.said, "model" if self.said else ""),
        )
        self.revisions: list[int] = []
        self.whole = True

    async def tell(self, *facts: Any) -> None:
        for fact in facts:
            await self.registry.address.tell(fact)

    async def until(self, condition: Any) -> Catalogue:
        """Wait for a catalogue for which the condition holds."""
        cell = self.registry.catalogue
        with trio.fail_after(20):
            while not condition(cell.value):
                await cell.wait_newer(cell.version)
        return cell.value

    @property
    def told(self) -> list[tuple[type[Fact], str]]:
        facts = [each.fact for each in self.registry.facts.events()]
        return [(type(fact), fact.launch) for fact in facts if isinstance(fact, OfLaunch)]

    async def watch(self) -> None:
        """Each catalogue that is published is of one piece."""
        cell, seen = self.registry.catalogue, 0
        while True:
            catalogue = cell.value
            self.revisions.append(catalogue.revision)
            hits = find(catalogue.index, "*", limit=1000)
            whole = self.whole and catalogue.searchable(TOOLS)
            assert not whole or hits.total == sum(len(entry.tools) for entry in catalogue.entries.values())
            seen = await cell.wait_newer(seen)


def embedded(catalogue: Catalogue) -> bool:
    return len(catalogue.index) > 0 and all(segment.embedder for segment in catalogue.index.segments)


@asynccontextmanager
async def running(rules: dict[str, ToolRules] | None = None, /, **known: Offer) -> AsyncIterator[Rig]:
    rig = Rig({name: ("stdio", offer) for name, offer in known.items()}, rules=rules)
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.registry.run)
        nursery.start_soon(rig.watch)
        yield rig
        nursery.cancel_scope.cancel()
    assert rig.revisions == sorted(rig.revisions)


async def test_a_listed_server_appears_with_its_index_and_then_with_its_token_counts() -> None:
    async with running() as rig:
        await rig.tell(listed("s", offering("a", "b")))
        catalogue = await rig.until(lambda seen: "s" in seen.entries)
        assert find(catalogue.index, "s:a").hits[0].document.name == "a"
        revision = catalogue.revision
        counted = await rig.until(lambda seen: seen.entries["s"].offer.tokens_exact)
        assert counted.entries["s"].offer.token_counts == {"a": 5, "b": 5}
        assert counted.revision == revision
        assert rig.kept.offers["s"].token_counts == {"a": 5, "b": 5}


async def test_what_was_known_at_the_start_is_published_without_events_of_change() -> None:
    known = offering("a", token_counts={"a": 5}, tokens_exact=True)
    async with running(s=known) as rig:
        catalogue = await rig.until(lambda seen: seen.indexed)
        assert list(catalogue.entries) == ["s"]
        assert rig.told == []
        assert rig.count.calls == 0


async def test_after_a_restart_all_tools_are_found_before_many_resources_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for bound in ("PIECE", "MANY_OTHERS"):
        monkeypatch.setattr(indexing, bound, 100)
    many = tuple(Resource(uri=f"file:///{number}", name=f"report {number}") for number in range(3 * indexing.PIECE))
    known = {name: msgspec.structs.replace(offering(f"tool-of-{name}"), resources=many) for name in ("a", "b", "c")}
    async with running(**known) as rig:
        assert rig.registry.catalogue.value.entries.keys() == known.keys(), "names mean something at once"
        catalogue = await rig.until(lambda seen: len(seen.index))
        assert {hit.document.server for hit in find(catalogue.index, "tool").hits} == known.keys()
        assert (catalogue.searchable(TOOLS), catalogue.searchable(frozenset(KINDS))) == (True, False)
        sizes = [len(catalogue.index)]
        while not catalogue.indexed:
            catalogue = await rig.until(lambda seen: len(seen.index) > sizes[-1] or seen.indexed)
            sizes.append(len(catalogue.index))
        assert sizes[0] == 3
        assert sizes[-1] == 3 * (len(many) + 1)
        assert len(sizes) > 2, "the rest comes in pieces, too"
        assert {event[0] for event in rig.told} <= {ToolsCounted}


async def test_a_server_that_comes_while_much_is_read_is_found_before_that() -> None:
    many = tuple(Resource(uri=f"file:///{number}", name=f"report {number}") for number in range(1000))
    known = {name: msgspec.structs.replace(offering("known"), resources=many) for name in ("a", "b", "c", "d")}
    async with running(**known) as rig:
        await rig.tell(listed("late", offering("fresh")))
        catalogue = await rig.until(lambda seen: "late" in seen.entries)
        assert [hit.document.server for hit in find(catalogue.index, "fresh").hits] == ["late"]
        assert not catalogue.indexed


@pytest.mark.case("L08")
async def test_only_visible_changes_move_the_revision() -> None:
    async with running() as rig:
        await rig.tell(listed("s", offering("a")))
        first = await rig.until(lambda seen: "s" in seen.entries and seen.entries["s"].offer.tokens_exact)
        await rig.tell(listed("s", offering("a", problems=("something",))))
        second = await rig.until(lambda seen: seen.entries["s"].offer.problems)
        assert second.revision == first.revision
        assert second.entries["s"].offer.token_counts == {"a": 5}
        await rig.tell(listed("s", offering("a", description="other words")))
        third = await rig.until(lambda seen: seen.revision > first.revision)
        assert (third.revisions.tools, third.revisions.resources) == (first.revisions.tools + 1, 0)
        await rig.tell(listed("s", offering("a", description="other words", resources=(Resource(uri="x:1"),))))
        fourth = await rig.until(lambda seen: seen.revision > third.revision)
        assert (fourth.revisions.tools, fourth.revisions.resources) == (third.revisions.tools, 1)


async def test_a_failed_server_is_hidden_and_comes_back_when_ready() -> None:
    async with running() as rig:
        await rig.tell(changed("s", State.READY), listed("s", offering("a")), listed("t", offering("b")))
        first = await rig.until(lambda seen: seen.visible == {"s", "t"})
        await rig.tell(changed("s", State.FAILED))
        hidden = await rig.until(lambda seen: seen.visible == {"t"})
        assert hidden.revision > first.revision
        assert hidden.tool("s:a") == Resolved("s", "a")
        trying = msgspec.structs.replace(changed("s", State.FAILED).status, state=State.SPAWNING)
        probed = ServerChanged(status=trying, previous=State.FAILED)
        await rig.tell(probed, changed("s", State.FAILED), probed, changed("s", State.READY))
        back = await rig.until(lambda seen: seen.visible == {"s", "t"})
        assert back.revision == hidden.revision + 1


async def test_a_server_that_is_switched_off_is_hidden_until_it_is_switched_on() -> None:
    off = ServerStatus(server="s", state=State.STOPPED, wanted="stopped", since=0.0, disabled=True)
    async with running() as rig:
        await rig.tell(changed("s", State.READY), listed("s", offering("a")), listed("t", offering("b")))
        await rig.until(lambda seen: seen.visible == {"s", "t"})
        await rig.tell(ServerChanged(status=off, previous=State.STOPPED))
        hidden = await rig.until(lambda seen: seen.visible == {"t"})
        assert rig.registry.offer("s") is not None
        assert rig.registry.offer("nobody") is None
        assert hidden.tool("s:a") == Resolved("s", "a")
        # What it listed before, as another node of a fleet tells it later: it does not come back by that.
        await rig.tell(listed("s", offering("a", "c")), listed("t", offering("d")))
        hidden = await rig.until(lambda seen: seen.tool("t:d") == Resolved("t", "d"))
        assert hidden.visible == {"t"}
        await rig.tell(changed("s", State.DORMANT))
        back = await rig.until(lambda seen: seen.visible == {"s", "t"})
        assert back.tool("s:c") == Resolved("s", "c")


async def test_events_tell_states_discoveries_and_what_changed() -> None:
    async with running() as rig:
        await rig.tell(changed("s", State.READY), listed("s", offering("a")))
        await rig.until(lambda seen: "s" in seen.entries)
        await rig.tell(listed("s", offering("b")))
        await rig.until(lambda seen: "b" in seen.entries["s"].tools)
        words = [(each.state, each.status) for _, each in rig.registry.facts.states.of("s")]
        assert words == [(State.READY, "syncing_tools"), (State.READY, "online")]
        assert rig.told == [
            (StateChange, "s"),
            (ListsRead, "s"),
            (StateChange, "s"),
            (ToolsChange, "s"),
            (ListsRead, "s"),
            (ToolsChange, "s"),
        ]
        newest = rig.registry.facts.events()[-1].fact
        assert isinstance(newest, ToolsChange)
        assert newest.change == Change(added=("b",), removed=("a",), renamed={"a": "b"})


async def test_the_old_name_of_a_tool_is_remembered_also_while_its_server_is_away() -> None:
    async with running() as rig:
        await rig.tell(changed("s", State.READY), listed("s", offering("a")))
        await rig.until(lambda seen: "s" in seen.entries)
        await rig.tell(listed("s", offering("b")))
        await rig.until(lambda seen: "b" in seen.entries["s"].tools)
        assert rig.registry.catalogue.value.entries["s"].renamed == {"a": "b"}
        await rig.tell(changed("s", State.FAILED, State.READY), changed("s", State.READY, State.SPAWNING))
        await rig.tell(listed("s", offering("c")))
        await rig.until(lambda seen: "c" in seen.entries["s"].tools)
        assert rig.registry.catalogue.value.entries["s"].renamed == {"a": "c", "b": "c"}


async def test_what_more_there_is_to_say_of_a_server_is_shown_but_no_event() -> None:
    async with running() as rig:
        moved = changed("a", State.RESPAWNING)
        more = ServerChanged(status=msgspec.structs.replace(moved.status, next_start=7.0), previous=State.RESPAWNING)
        await rig.tell(moved, more)
        await wait_all_tasks_blocked()
        assert rig.registry.statuses.value["a"].next_start == 7.0
        assert rig.told == [(StateChange, "a")]


async def test_a_partial_offer_is_shown_and_kept_only_if_there_is_something_in_it() -> None:
    async with running() as rig:
        await rig.tell(listed("s", offering(partial=True)), listed("t", offering("a", partial=True)))
        await rig.until(lambda seen: {"s", "t"} <= seen.entries.keys())
        assert rig.kept.offers.keys() == {"t"}


@pytest.mark.case("Q04")
async def test_a_reading_that_changed_nothing_is_neither_written_nor_indexed_again() -> None:
    async with running() as rig:
        await rig.tell(listed("s", offering("a", read_at=1.0)))
        counted = await rig.until(lambda seen: "s" in seen.entries and seen.entries["s"].offer.tokens_exact)
        writes = rig.kept.writes
        for turn in range(10):
            await rig.tell(listed("s", offering("a", read_at=2.0 + turn)))
        await rig.tell(listed("t", offering("b")))
        seen = await rig.until(lambda seen: "t" in seen.entries and seen.entries["t"].offer.tokens_exact)
        assert rig.kept.writes - writes == 2
        assert seen.entries["s"] is counted.entries["s"]
        assert rig.count.calls == 2


async def test_the_time_of_the_last_reading_is_written_again_after_an_hour() -> None:
    async with running() as rig:
        await rig.tell(listed("s", offering("a", read_at=1.0)))
        await rig.until(lambda seen: "s" in seen.entries and seen.entries["s"].offer.tokens_exact)
        rig.now_s += 3601
        await rig.tell(listed("s", offering("a", read_at=3602.0)), listed("t", offering("b")))
        await rig.until(lambda seen: "t" in seen.entries)
        assert rig.kept.offers["s"].read_at == 3602.0
        assert rig.kept.offers["s"].token_counts == {"a": 5}


async def test_an_era_is_kept() -> None:
    async with running() as rig:
        await rig.tell(EraLearned(server="s", era="modern"), listed("s", offering("a")))
        await rig.until(lambda seen: "s" in seen.entries)
        assert rig.kept.eras == {"s": "modern"}


async def test_slow_counting_keeps_no_other_server_from_being_found() -> None:
    async with running() as rig:
        rig.count.held = trio.Event()
        await rig.tell(listed("s", offering("a")))
        await rig.until(lambda seen: "s" in seen.entries)
        await rig.tell(listed("t", offering("b")), changed("s", State.FAILED))
        await rig.until(lambda seen: seen.visible == {"t"})
        rig.count.held.set()
        catalogue = await rig.until(lambda seen: all(entry.offer.tokens_exact for entry in seen.entries.values()))
        assert set(catalogue.entries) == {"s", "t"}


async def test_counts_of_an_older_offer_are_dropped() -> None:
    async with running() as rig:
        rig.count.held = trio.Event()
        await rig.tell(listed("s", offering("a")))
        await rig.until(lambda seen: "s" in seen.entries)
        await rig.tell(listed("s", offering("a", description="other words")))
        await rig.until(lambda seen: seen.entries["s"].tools["a"].description == "other words")
        rig.count.held.set()
        catalogue = await rig.until(lambda seen: seen.entries["s"].offer.tokens_exact)
        assert catalogue.entries["s"].offer.token_counts == {"a": 11}


async def test_servers_are_found_by_words_at_once_and_by_meaning_once_they_are_embedded_off_the_loop() -> None:
    loads: list[bool] = []
    embedder = FakeEmbedder({"beasts": "animals"})
    released = threading.Event()

    def load() -> FakeEmbedder:
        loads.append(threading.current_thread() is threading.main_thread())
        released.wait(20)
        return embedder

    rig = Rig({"farm": ("stdio", offering("a", description="Feed the tractors"))}, load)
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.registry.run)
        await rig.tell(listed("zoo", offering("b", description="Feed the animals")))
        catalogue = await rig.until(lambda catalogue: {"farm", "zoo"} <= catalogue.entries.keys())
        assert catalogue.index.embedder is None
        assert find(catalogue.index, "feed the beasts").hits[0].document.server == "farm"
        revision = catalogue.revision
        released.set()
        catalogue = await rig.until(embedded)
        assert find(catalogue.index, "feed the beasts").hits[0].document.server == "zoo"
        assert catalogue.revision == revision
        await rig.tell(listed("zoo", offering("b", "c", description="Feed the animals")))
        catalogue = await rig.until(lambda catalogue: len(catalogue.index) == 3 and embedded(catalogue))
        assert loads == [False]
        assert catalogue.index.embedder is embedder
        await rig.until(lambda catalogue: bool(len(catalogue.index.world.elsewhere)))
        assert len(embedder.texts) == len(set(embedder.texts)) == 3 + len(WORLD), "what is kept is not embedded again"
        nursery.cancel_scope.cancel()


async def test_vectors_of_documents_that_are_gone_meanwhile_are_not_shown() -> None:
    embedder = FakeEmbedder()
    held = Indexer({})
    made = await held.take(held.piece({"s": Entry.make("s", "stdio", offering("a"))}))
    old = made.index.segments[0].documents
    held.put(Embedded(embedder, {"s": (old, document_levels(embedder, old)), "gone": ((), np.zeros((0, 64), np.int8))}))
    made = await held.take(held.piece({"s": Entry.make("s", "stdio", offering("a", "b"))}))
    assert made.index.embedder is embedder
    assert not made.index.meanings.present.any()
    held.put(Embedded(embedder, {"s": (old, document_levels(embedder, old))}, levels(embedder.embed(WORLD))))
    new = made.index.segments[0].documents
    held.put(Embedded(embedder, {"s": (new, document_levels(embedder, new))}))
    made = await held.take(held.piece({}))
    assert made.index.meanings.present.all(), "the newer vectors of a server count"
    assert len(made.index.world.elsewhere) == len(WORLD), "and what came before stays"
    assert made.changes == {}
    again = await held.take(held.piece({}))
    assert again.index is made.index


async def test_a_system_without_threads_keeps_the_old_index_and_catches_up_by_itself() -> None:
    async with running(s=offering("a")) as rig:
        before = await rig.until(lambda seen: seen.indexed and seen.entries["s"].offer.tokens_exact)
        with no_threads():
            await rig.tell(listed("s", offering("a", "b")), listed("t", offering("c")))
            await wait_all_tasks_blocked()
            assert [condition.what for condition in rig.conditions.now()] == ["search index"]
            assert rig.registry.catalogue.value is before
            assert find(before.index, "s:a").hits[0].document.name == "a"
        after = await rig.until(lambda seen: "t" in seen.entries and seen.entries["t"].offer.tokens_exact)
        assert {hit.document.name for hit in find(after.index, "*").hits} == {"a", "b", "c"}
        assert rig.conditions.now() == []


async def test_counting_that_lacks_memory_is_taken_up_again() -> None:
    async with running() as rig:
        rig.count.failures = [MemoryError(), OSError(errno.EMFILE, "Too many open files")]
        await rig.tell(listed("s", offering("a")))
        seen = await rig.until(lambda seen: "s" in seen.entries and seen.entries["s"].offer.tokens_exact)
        assert seen.entries["s"].offer.token_counts == {"a": 5}
        assert rig.count.calls == 3


async def test_an_embedder_that_lacks_descriptors_is_loaded_once_there_are_some() -> None:
    embedder = FakeEmbedder({"beasts": "animals"})
    wants: list[Exception] = [OSError(errno.EMFILE, "Too many open files")]

    def load() -> FakeEmbedder:
        if wants:
            raise wants.pop()
        return embedder

    rig = Rig({"farm": ("stdio", offering("a"))}, load)
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.registry.run)
        catalogue = await rig.until(embedded)
        assert catalogue.index.embedder is embedder
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("place", ["segment_of", "Index.replace"])
async def test_a_bug_with_the_texts_of_one_server_costs_that_server_its_place_in_the_search_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    real: Any = Index.replace if place == "Index.replace" else segment_of

    def buggy(first: Any, second: Any, *more: Any) -> Any:
        if "poison" in (first, getattr(second, "server", None)):
            raise ZeroDivisionError("a bug")
        return real(first, second, *more)

    monkeypatch.setattr(f"actors.registry.indexing.{place}", buggy)
    async with running(before=offering("x")) as rig:
        await rig.until(lambda seen: seen.indexed)
        rig.whole = False  # the index lacks a server from now on
        await rig.tell(listed("good", offering("a")), listed("poison", offering("b")), listed("other", offering("c")))
        seen = await rig.until(lambda seen: {"good", "poison", "other"} <= seen.entries.keys())
        assert {hit.document.server for hit in find(seen.index, "*").hits} == {"before", "good", "other"}
        assert seen.tool("poison:b") == Resolved("poison", "b")
        assert seen.entries["poison"].offer.problems == (indexing.UNSEARCHABLE,)
        assert rig.kept.offers["poison"].problems == ()
        assert "a bug while indexing poison" in caplog.text


async def test_a_bug_in_counting_one_server_is_a_problem_of_that_server_only(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as rig:
        rig.count.failures = [ZeroDivisionError("a bug")]
        await rig.tell(listed("poison", offering("a")))
        seen = await rig.until(lambda seen: "poison" in seen.entries and seen.entries["poison"].offer.problems)
        assert seen.entries["poison"].offer.problems == (UNCOUNTED,)
        await rig.tell(listed("good", offering("b")))
        seen = await rig.until(lambda seen: "good" in seen.entries and seen.entries["good"].offer.tokens_exact)
        assert seen.entries["good"].offer.token_counts == {"b": 5}
        assert "a bug while counting the tokens of poison" in caplog.text


# Rules ----------------------------------------------------------------------------------------------------------------

RULES = {"s": ToolRules(deny=("b",), rename={"a": "x"})}


def shown(catalogue: Catalogue) -> set[str]:
    return {hit.document.name for hit in find(catalogue.index, "*", limit=100).hits}


@pytest.mark.parametrize("known", [True, False])
async def test_what_is_shown_follows_the_rules_and_what_is_kept_is_the_servers_own(known: bool) -> None:
    own = offering("a", "b", "c")
    async with running(RULES, **({"s": own} if known else {})) as rig:
        if not known:
            await rig.tell(listed("s", own))
        catalogue = await rig.until(lambda seen: seen.entries and seen.entries["s"].offer.tokens_exact)
        assert set(catalogue.entries["s"].tools) == shown(catalogue) == {"x", "c"}
        assert catalogue.entries["s"].offer.token_counts == {"x": 5, "c": 5}
        kept = rig.kept.offers["s"]
        assert (kept.tools, kept.token_counts) == (own.tools, {"c": 5})
        assert rig.registry.offer("s") == kept
        counted = rig.count.calls
        await rig.tell(listed("s", offering("a", "b", "c")))
        await wait_all_tasks_blocked()
        assert rig.count.calls == counted, "nothing is new, so nothing is counted again"


async def test_other_rules_show_the_same_offer_otherwise_and_count_what_is_new() -> None:
    known = offering("a", "b", token_counts={"a": 5, "b": 5}, tokens_exact=True)
    async with running(s=known) as rig:
        await rig.until(lambda seen: seen.indexed)
        rig.rules = RULES
        await rig.tell(RulesChanged(server="s"), RulesChanged(server="unknown"))
        catalogue = await rig.until(lambda seen: "x" in seen.entries["s"].tools)
        assert shown(catalogue) == {"x"}
        await rig.until(lambda seen: seen.entries["s"].offer.token_counts == {"x": 5})
        assert (ToolsChange, "s") in rig.told
        writes, revision = rig.kept.writes, rig.registry.catalogue.value.revision
        await rig.tell(RulesChanged(server="s"))
        await wait_all_tasks_blocked()
        assert (rig.kept.writes, rig.registry.catalogue.value.revision) == (writes, revision)
        rig.rules = {}
        await rig.tell(RulesChanged(server="s"))
        catalogue = await rig.until(lambda seen: "a" in seen.entries["s"].tools)
        assert shown(catalogue) == {"a", "b"}


async def test_other_sentences_have_a_server_indexed_again_and_nobody_sees_another_one() -> None:
    async with running(s=offering("a"), t=offering("b")) as rig:
        before = await rig.until(lambda seen: seen.indexed and seen.entries["s"].offer.tokens_exact)
        others = {segment.server: segment for segment in before.index.segments}
        events, writes, counted = [*rig.told], rig.kept.writes, rig.count.calls
        rig.said = ("who feeds the cat",)
        await rig.tell(PhrasesChanged(servers=frozenset({"s", "unknown"})))
        after = await rig.until(lambda seen: seen.index is not before.index)
        assert [hit.document.server for hit in find(after.index, "who feeds the cat").hits] == ["s"]
        assert {segment.server: segment for segment in after.index.segments}["t"] is others["t"]
        assert after.revision == before.revision
        await wait_all_tasks_blocked()
        assert ([*rig.told], rig.kept.writes, rig.count.calls) == (events, writes, counted)


async def test_a_server_that_is_not_available_stays_so_under_other_rules() -> None:
    async with running(s=offering("a", "b")) as rig:
        await rig.tell(changed("s", State.FAILED))
        await rig.until(lambda seen: not seen.visible)
        rig.rules = RULES
        await rig.tell(RulesChanged(server="s"))
        await rig.until(lambda seen: "x" in seen.entries["s"].tools)
        assert not rig.registry.catalogue.value.visible


OWN, OTHER = "files~0123456789abcdef", "files~fedcba9876543210"


async def test_launches_that_offer_the_same_share_one_entry_that_nobody_else_sees() -> None:
    async with running(files=offering("read")) as rig:
        await rig.until(lambda catalogue: catalogue.indexed)
        revision = rig.registry.catalogue.value.revision
        for launch in (OWN, OTHER):
            await rig.tell(changed(launch, State.READY), listed(launch, offering("read")))
        own = (await rig.until(lambda catalogue: len(catalogue.own) == 2)).own
        assert own[OWN] is own[OTHER]
        assert (own[OWN].server, [*own[OWN].tools]) == ("files", ["read"])
        await rig.tell(listed(OTHER, offering("read", "write")))
        own = (await rig.until(lambda catalogue: len(catalogue.own[OTHER].tools) == 2)).own
        assert [*own[OWN].tools] == ["read"]
        await rig.tell(changed(OWN, State.FAILED, State.READY))
        now = await rig.until(lambda catalogue: not catalogue.own[OWN].available)
        assert now.entries["files"].available
        assert (now.revision, [*now.entries], len(now.index)) == (revision, ["files"], 1)
        await rig.tell(ServerRemoved(server=OTHER))
        await rig.until(lambda catalogue: [*catalogue.own] == [OWN])
        assert OTHER not in rig.kept.offers


async def test_launches_share_their_entry_under_other_rules_too_and_are_published_at_once() -> None:
    rules = {"mail": NO_RULES}
    async with running(rules, files=offering("read")) as rig:
        for launch in (OWN, OTHER):
            await rig.tell(listed(launch, offering("read", "write")))
        await rig.until(lambda catalogue: len(catalogue.own) == 2 and catalogue.own[OTHER].offer.tokens_exact)
        rules["files"] = ToolRules(deny=("write",))
        await rig.tell(RulesChanged(server="files"))
        own = (await rig.until(lambda catalogue: "write" not in catalogue.own[OWN].tools)).own
        assert own[OWN] is own[OTHER]
