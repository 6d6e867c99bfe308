"""Servers that are removed, come back, and what is left of them in the registry: their names, and nothing else."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType

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


def texts_within(root: object, but: object) -> set[str]:
    """All texts that are kept anywhere within an object, except within another one, functions, types and tasks."""
    found, seen, todo = set[str](), {id(but)}, [root]
    while todo:
        each = todo.pop()
        foreign = isinstance(each, type | FunctionType | ModuleType) or type(each).__module__.startswith("trio")
        if id(each) in seen or foreign:
            continue
        seen.add(id(each))
        if isinstance(each, str):
            found.add(each)
        todo += [*gc.get_referents(each), *(each if isinstance(each, dict) else ())]
    return found


async def test_nothing_is_kept_of_servers_that_came_and_went() -> None:
    async with running() as rig:
        for number in range(5):
            name = f"passing{number}"
            await rig.tell(names(name), changed(name, State.READY), listed(name, offering("a")))
            await rig.until(lambda seen, name=name: name in seen.entries)
            assert name in texts_within(rig.registry, rig.registry.facts)
            await rig.tell(names(), ServerRemoved(server=name))
            await rig.registry.address.ask(AwaitShown(server=name))
            await rig.until(lambda seen, name=name: name not in seen.entries)
        assert not [text for text in texts_within(rig.registry, rig.registry.facts) if "passing" in text]
