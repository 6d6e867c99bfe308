"""Servers that are removed, come back, and what is left of them in the registry: their names, and nothing else."""

from __future__ import annotations

from collections.abc import Sized

import pytest
from trio.testing import wait_all_tasks_blocked

from actors.catalogue.names import ServerNames
from actors.facts import ToolsChange
from actors.life.states import State
from actors.messages import ServerRemoved
from actors.registry_inbox import AwaitShown, NamesChanged
from tests.actors.registry.test_registry import changed, listed, offering, running


def names(*servers: str) -> NamesChanged:
    return NamesChanged(names=ServerNames({name: name for name in servers}))


async def test_other_names_are_known_at_once_and_change_nothing_else() -> None:
    async with running() as rig:
        await rig.tell(names("s"), listed("s", offering("a")))
        before = await rig.until(lambda seen: "s" in seen.entries and seen.entries["s"].offer.tokens_exact)
        await rig.tell(names("s", "t"))
        after = await rig.until(lambda seen: "t" in seen.names)
        assert (after.entries, after.index) == (before.entries, before.index)


async def test_a_removed_server_is_gone_from_names_entries_states_and_memory() -> None:
    async with running() as rig:
        await rig.tell(names("s", "t"), changed("s", State.READY), listed("s", offering("a")))
        await rig.until(lambda seen: "s" in seen.entries)
        await rig.tell(names("t"), ServerRemoved(server="s"))
        seen = await rig.until(lambda seen: "s" not in seen.entries)
        assert set(seen.names.servers) == {"t"}
        assert len(seen.index) == 0
        assert "s" not in rig.registry.statuses.value
        assert not rig.registry.facts.states.of("s")
        assert rig.kept.offers == {}
        assert (ToolsChange, "s") in rig.told


async def test_one_that_is_back_before_its_removal_is_in_the_index_keeps_its_name() -> None:
    async with running() as rig:
        await rig.tell(names("s"), listed("s", offering("a")))
        await rig.until(lambda seen: "s" in seen.entries)
        await rig.tell(names(), ServerRemoved(server="s"), names("s"))
        seen = await rig.until(lambda seen: "s" not in seen.entries)
        assert "s" in seen.names
        await rig.tell(listed("s", offering("b")))
        seen = await rig.until(lambda seen: "s" in seen.entries)
        assert list(seen.entries["s"].tools) == ["b"]


async def test_one_that_is_listed_again_before_its_removal_is_in_the_index_was_never_away() -> None:
    async with running() as rig:
        await rig.tell(names("s"), listed("s", offering("a")))
        await rig.until(lambda seen: "s" in seen.entries)
        await rig.tell(names(), ServerRemoved(server="s"), names("s"), listed("s", offering("b")))
        seen = await rig.until(lambda seen: "s" in seen.entries and list(seen.entries["s"].tools) == ["b"])
        assert "s" in seen.names
        assert rig.kept.offers["s"].tools[0].name == "b"


async def test_one_that_was_never_listed_can_be_removed() -> None:
    async with running(t=offering("a")) as rig:
        await rig.tell(names("t"), changed("s", State.FAILED), ServerRemoved(server="s"), ServerRemoved(server="x"))
        await wait_all_tasks_blocked()
        await rig.until(lambda seen: seen.indexed and list(seen.entries) == ["t"])
        assert dict(rig.registry.statuses.value) == {}


@pytest.mark.parametrize("rounds", [20])
async def test_nothing_grows_with_servers_that_come_and_go(rounds: int) -> None:
    async with running() as rig:
        for number in range(rounds):
            name = f"s{number}"
            await rig.tell(names(name), changed(name, State.READY), listed(name, offering("a")))
            await rig.until(lambda seen, name=name: name in seen.entries)
            await rig.tell(names(), ServerRemoved(server=name))
            await rig.registry.address.ask(AwaitShown(server=name))
            await rig.until(lambda seen, name=name: name not in seen.entries)
        registry = rig.registry
        publication = registry._indexing._publication
        kept: list[Sized] = [
            registry._entries,
            registry._saver._saved_at,
            registry._indexing._dirty,
            registry._unsearched,
            registry._counting._uncounted,
            registry._variants._newest,
        ]
        kept += [
            publication._told,
            publication._published,
            publication._waiting,
            registry._indexing._indexer._published,
        ]
        kept += [
            registry._indexing._indexer._searched,
            registry._indexing._indexer._with_tools,
            registry.statuses.value,
        ]
        assert [len(each) for each in kept] == [0] * len(kept)
