"""Asking a model in the background: once for each definition, within a budget, and again where it failed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from actors.catalogue.documents import Said
from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.kit import Conditions, Latest
from actors.protocol.wire.json import quoted
from actors.registry_inbox import PhrasesChanged
from actors.search.index import Index
from supervisor.config.sections import DescribeSettings
from supervisor.phrases import sources
from supervisor.phrases.asking import Message, NoAnswer
from supervisor.phrases.describing import (
    ASKED_AGAIN_S,
    CHANGES_A_DAY,
    DAY_S,
    FEW_TOOLS,
    LONGEST_PAUSE_S,
    MAX_USELESS,
    MAX_WAITED_FOR,
    Describing,
)
from supervisor.phrases.phrase_book import KnownTool, Page, PhraseBook
from supervisor.phrases.sources import Sources
from supervisor.store.records import PHRASES, SavedPhrases
from tests.fakes.chat_model import answer_to, defined, definitions_in
from tests.fakes.rows import MemoryRows

NOTE, FIND = defined("add_note", "Keeps a note.", "text"), defined("find_notes", "Looks notes up.", "words")


LETTERS = "abcdefghij"


def say(told: dict[str, Any]) -> list[str]:
    return [f"first wish for {told['name'][:3]} please", f"another wish for {told['name'][:3]} please"]


class Scene:
    """A catalogue, a model that does as `answer` says, and what the registry is told."""

    def __init__(self, store: MemoryRows[SavedPhrases], *, by_clients: bool = False, **settings: Any) -> None:
        self.store = store
        named = {"sampling": True} if by_clients else {"url": "http://127.0.0.1/", "model": "small"}
        self.settings = DescribeSettings(**{**named, **settings})
        self.catalogue = Latest(Catalogue(index=Index.empty()))
        self.sources = Sources()
        self.questions: list[list[str]] = []
        self.answer: Callable[[Sequence[Message]], bytes] = lambda messages: answer_to(messages, say).encode()
        self.told: list[frozenset[str]] = []
        self.conditions = Conditions(lambda: 0.0, trio.current_time)
        self.describing = Describing(
            self.settings,
            None if by_clients else self,
            self.sources,
            store,
            self.catalogue,
            self._tell,
            hide_for=lambda server: lambda text: text.replace("hunter22", "***"),
            clock=lambda: 1_800_000_000 + trio.current_time(),
            conditions=self.conditions,
        )
        self.is_closed = by_clients

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self.catalogue.value.entries

    def offer(self, **servers: Sequence[Tool]) -> None:
        entries = {name: Entry.make(name, "stdio", Offer(tools=tuple(tools))) for name, tools in servers.items()}
        self.catalogue.set(replace(self.catalogue.value, entries=entries))

    async def ask(self, messages: Sequence[Message]) -> bytes:
        self.questions.append([told["name"] for told in definitions_in(messages).values()])
        await trio.lowlevel.checkpoint()
        return self.answer(messages)

    async def close(self) -> None:
        self.is_closed = True

    async def _tell(self, message: PhrasesChanged) -> None:
        self.told.append(message.servers)


class Slow:
    """A model that takes so long that somebody else might be asked meanwhile."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def ask(self, messages: Sequence[Message]) -> bytes:
        assert not await self._scene.describing.ask_by(self._scene, self._scene.entries)
        return await self._scene.ask(messages)

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def running(scene: Scene) -> AsyncIterator[Scene]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.describing.run)
        await trio.sleep(1)
        yield scene
        nursery.cancel_scope.cancel()
    assert scene.is_closed


def failing(messages: Sequence[Message]) -> bytes:
    raise NoAnswer("it answers HTTP 500")


async def test_each_definition_is_asked_for_once_in_batches_of_one_server(autojump_clock: object) -> None:
    scene = Scene(MemoryRows(PHRASES), batch=2)
    scene.offer(notes=[NOTE, FIND, defined("drop_note", "x")], other=[defined("zoom", "y")])
    async with running(scene):
        assert scene.questions == [["add_note", "find_notes"], ["drop_note"], ["zoom"]]
        assert scene.told == [frozenset({"notes"}), frozenset({"other"})]
        assert scene.sources.said("notes", NOTE) == Said(
            ("first wish for add please", "another wish for add please"), "model"
        )
        scene.offer(notes=[NOTE, FIND, defined("drop_note", "x")], third=[NOTE])
        await trio.sleep(1)
        assert len(scene.questions) == 3
        status = scene.describing.status()
        assert (status.model, status.waiting, status.asked, status.failures) == ("small", 0, 4, 0)


async def test_a_restart_asks_nothing_again_and_a_changed_definition_is_asked_for(autojump_clock: object) -> None:
    store = MemoryRows(PHRASES)
    first = Scene(store)
    first.offer(notes=[NOTE, FIND])
    async with running(first):
        assert first.questions == [["add_note", "find_notes"]]
    second = Scene(store)
    second.offer(notes=[NOTE, FIND])
    async with running(second):
        assert second.questions == []
        assert second.told == [frozenset({"notes"})]  # what was kept was read after the index was made
        assert sorted(store.used) == sorted(store.kept)
        second.offer(notes=[NOTE, replace(FIND, described=quoted("Looks notes up by words."))])
        await trio.sleep(1)
        assert second.questions == [["find_notes"]]


async def test_what_has_sentences_is_suspicious_or_secret_is_not_shown_to_the_model(
    autojump_clock: object,
) -> None:
    scene = Scene(MemoryRows(PHRASES))
    page = Page(server="notes", package="", made="by hand", tools=(KnownTool.of(FIND, ("where was that note",)),))
    scene.sources = scene.describing._sources = Sources([PhraseBook([page])])
    seen: list[str] = []

    def answer(messages: Sequence[Message]) -> bytes:
        seen.append(messages[-1]["content"])
        return b"{}"

    scene.answer = answer
    secret = defined("pay", "Pays with hunter22.")
    scene.offer(notes=[FIND, replace(NOTE, alarms=("text-instructs",)), secret])
    async with running(scene):
        assert scene.questions == [["pay"]]
        assert "hunter22" not in seen[0]
        assert scene.sources.said("notes", FIND).source == "book"


async def test_within_a_day_so_many_are_asked_for_and_no_more_also_over_a_restart(autojump_clock: object) -> None:
    store = MemoryRows(PHRASES)
    tools = [defined(f"tool{number}x", "x") for number in range(7)]
    first = Scene(store, tools_per_day=3, batch=2)
    first.offer(many=tools)
    async with running(first):
        assert [len(each) for each in first.questions] == [2, 1]
        assert first.told == [frozenset({"many"})]  # what is there is found meanwhile
        assert first.describing.status().waiting == 4
    second = Scene(store, tools_per_day=3, batch=2)
    second.offer(many=tools)
    async with running(second):
        assert second.questions == []
        await trio.sleep(DAY_S - 100)
        assert second.questions == []
        await trio.sleep(3700)
        assert [len(each) for each in second.questions] == [2, 1]
        await trio.sleep(DAY_S)
        assert sum(map(len, second.questions)) == 4


async def test_a_model_that_fails_is_left_alone_for_longer_each_time_and_asked_in_turns(
    autojump_clock: object,
) -> None:
    scene = Scene(MemoryRows(PHRASES), batch=1)
    scene.offer(notes=[NOTE, FIND], other=[defined("zoom", "y")])
    scene.answer = failing
    async with running(scene):
        await trio.sleep(5 + 10 + 20)
        assert scene.questions == [["add_note"], ["zoom"], ["find_notes"], ["zoom"]]
        assert [each.why for each in scene.conditions.now()] == ["it answers HTTP 500"]
        await trio.sleep(24 * 3600)
        assert len(scene.questions) < 45
        scene.answer = lambda messages: answer_to(messages, say).encode()
        await trio.sleep(LONGEST_PAUSE_S)
        assert scene.conditions.now() == []
        status = scene.describing.status()
        assert (status.waiting, status.last_failure) == (0, "it answers HTTP 500")
        assert status.failures == len(scene.questions) - 3


async def test_an_answer_without_use_is_asked_for_thrice_and_again_after_a_week_or_of_another_model(
    autojump_clock: object,
) -> None:
    store = MemoryRows(PHRASES)
    scene = Scene(store)
    scene.answer = lambda messages: b"I would rather not."
    scene.offer(notes=[NOTE])
    async with running(scene):
        assert [each.why for each in scene.conditions.now()] == ["nothing that it answers is of use"]
        await trio.sleep(30)
        assert scene.questions == MAX_USELESS * [["add_note"]]
        assert scene.sources.said("notes", NOTE) == Said()
        assert scene.told == []
        assert scene.conditions.now() == []
        scene.offer(notes=[NOTE])
        await trio.sleep(3600)
        assert len(scene.questions) == MAX_USELESS
        await trio.sleep(ASKED_AGAIN_S)
        scene.offer(notes=[replace(NOTE)])
        await trio.sleep(300)  # nothing of use has come since: it is left alone for longer
        assert len(scene.questions) == 2 * MAX_USELESS
    other = Scene(store)
    other.settings = other.describing._settings = replace(other.settings, model="large")
    other.offer(notes=[NOTE])
    async with running(other):
        assert other.questions[0] == ["add_note"]


async def test_a_definition_that_spoils_an_answer_costs_few_of_those_beside_it_theirs(autojump_clock: object) -> None:
    scene = Scene(MemoryRows(PHRASES), batch=8)
    names = [f"{a}zzz" for a in LETTERS[:8]]

    def spoilt(messages: Sequence[Message]) -> bytes:
        is_spoilt = names[0] in (told["name"] for told in definitions_in(messages).values())
        return b"" if is_spoilt else answer_to(messages, say).encode()

    scene.answer = spoilt
    scene.offer(notes=[defined(name, "y") for name in names])
    async with running(scene):
        await trio.sleep(600)
        known = [bool(scene.sources.said("notes", defined(name, "y")).sentences) for name in names]
        assert known == [False, False, *6 * [True]]
        assert scene.describing._useless.total() == 0
        assert scene.conditions.now() == []


async def test_a_server_that_changes_all_the_time_takes_little_from_the_others(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(MemoryRows(PHRASES), tools_per_day=100, batch=5)
    async with running(scene):
        for turn in range(60):
            scene.offer(restless=[defined("a", f"It does {turn}."), defined("b", f"It is {turn}.")])
            await trio.sleep(1)
        assert sum(map(len, scene.questions)) == CHANGES_A_DAY * FEW_TOOLS
        assert "restless: its tools have changed too often" in caplog.text
        scene.offer(restless=[defined("a", "x")], notes=[defined(f"{a}{b}zz", "y") for a in "abcdefg" for b in LETTERS])
        await trio.sleep(1)
        assert sum(map(len, scene.questions)) == CHANGES_A_DAY * FEW_TOOLS + 70


async def test_a_model_that_was_asked_for_all_of_a_day_is_told_of_once_and_what_waits_is_looked_at(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(MemoryRows(PHRASES), tools_per_day=2)
    scene.offer(notes=[NOTE, FIND, defined("drop_note", "x")])
    async with running(scene):
        await trio.sleep(7200)
        assert caplog.text.count("as many as it may be") == 1
        assert scene.describing.status().waiting == 1
        scene.offer(notes=[NOTE])
        await trio.sleep(1)
        assert scene.describing.status().waiting == 0


async def test_without_a_model_whoever_is_there_is_asked_for_what_it_sees_one_at_a_time(autojump_clock: object) -> None:
    scene = Scene(MemoryRows(PHRASES), by_clients=True, batch=2)
    zoom, own = defined("zoom", "y"), defined("drop_note", "x")
    shown = replace(own, name="remove_note", described=quoted("As the operator calls it."), own=own)
    scene.offer(other=[zoom], notes=[NOTE, FIND, own])
    seen = {"notes": Entry.make("notes", "stdio", Offer(tools=(shown, replace(FIND, described=quoted("Mine.")), NOTE)))}
    async with running(scene):
        assert scene.questions == []
        assert await scene.describing.ask_by(scene, {}) is False
        assert await scene.describing.ask_by(Slow(scene), seen)
        assert scene.questions == [["add_note", "drop_note"]]
        await trio.sleep(1)
        assert scene.told == [frozenset({"notes"})]  # at once: the next one may be far
        assert await scene.describing.ask_by(scene, seen) is False
        assert scene.sources.said("notes", own).source == "sampling"
        scene.answer = failing
        for name in ("find_notes", "zoom"):
            with pytest.raises(NoAnswer):
                await scene.describing.ask_by(scene, scene.entries)
            assert scene.questions[-1] == [name]
        assert scene.conditions.now() == []
        scene.answer = lambda messages: answer_to(messages, say).encode()
        assert await scene.describing.ask_by(scene, scene.entries)
        status = scene.describing.status()
        assert (status.model, status.waiting, status.asked, status.failures) == ("the model of a client", 1, 5, 2)


async def test_whoever_is_there_is_asked_within_the_budgets_of_a_day_and_of_a_server(autojump_clock: object) -> None:
    scene = Scene(MemoryRows(PHRASES), by_clients=True, batch=50, tools_per_day=25)
    async with running(scene):
        for turn in range(12):
            scene.offer(restless=[defined("a", f"It does {turn}."), defined("b", f"It is {turn}.")])
            await trio.sleep(1)
            await scene.describing.ask_by(scene, scene.entries)
        assert sum(map(len, scene.questions)) == CHANGES_A_DAY * FEW_TOOLS
        scene.offer(notes=[defined(f"{each}zzz", "y") for each in LETTERS])
        await trio.sleep(1)
        assert await scene.describing.ask_by(scene, scene.entries)
        assert not await scene.describing.ask_by(scene, scene.entries)
        assert sum(map(len, scene.questions)) == 25
        assert len(scene.questions[-1]) == MAX_WAITED_FOR


async def test_a_question_that_is_given_up_leaves_its_tools_to_the_next_one(autojump_clock: object) -> None:
    scene = Scene(MemoryRows(PHRASES), by_clients=True)
    scene.offer(notes=[NOTE])
    async with running(scene):
        with trio.CancelScope() as scope:
            scope.cancel()
            await scene.describing.ask_by(scene, scene.entries)
        assert await scene.describing.ask_by(scene, scene.entries)
        assert scene.sources.said("notes", NOTE).source == "sampling"


async def test_without_a_database_it_waits_until_it_knows_what_was_asked_for(autojump_clock: object) -> None:
    store = MemoryRows(PHRASES)
    store.ready = trio.Event()
    scene = Scene(store)
    scene.offer(notes=[NOTE])
    async with running(scene):
        assert scene.questions == []
        store.ready.set()
        await wait_all_tasks_blocked()
        await trio.sleep(1)
        assert scene.questions == [["add_note"]]


async def test_a_server_that_is_gone_is_not_asked_for_any_more(autojump_clock: object) -> None:
    scene = Scene(MemoryRows(PHRASES))
    scene.answer = failing
    scene.offer(notes=[NOTE])
    async with running(scene):
        scene.offer()
        await trio.sleep(3600)
        assert scene.questions == [["add_note"]]
        assert scene.describing.status().waiting == 0


def test_of_too_many_definitions_those_go_first_of_which_nothing_usable_was_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "MAX_PHRASES", 2)
    known = Sources()
    for number, said in enumerate((("a wish", "a need"), (), ("another wish", "another need"))):
        known.keep({bytes([number]): sources.Kept(said, "small", 0.0)})
    assert [known.kept(bytes([number])) is not None for number in range(3)] == [True, False, True]
