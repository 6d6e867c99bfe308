"""What was approved is known again after a restart, or everything is held."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import trio

from actors.catalogue.marks import digest
from actors.catalogue.offer import Offer
from actors.registry.actor import Registry
from supervisor.identity.tokens import NotKept
from supervisor.servers.approvals import Approvals, NotAsSeen
from supervisor.store import open_store
from tests.actors.registry.test_pinning import NEW, OLD
from tests.fakes.published import Nothing, uncounted

OFFER = Offer(tools=(OLD,))


async def test_what_was_approved_is_known_after_a_restart_and_goes_with_its_server(path: Path) -> None:
    for configured, held in ((["s", "t"], {}), (["s"], {"a": "changed"}), (["s", "t"], {})):
        async with open_store(path) as store:
            approvals = Approvals(store, lambda server: "strict")
            await approvals.read(configured)
            assert approvals.pinning.judge("s", Offer(tools=(NEW if held else OLD,))).hold == held
            assert approvals.pinning.judge("t", OFFER).hold == {}


async def test_pins_that_nobody_can_read_hold_what_is_of_that_server(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_store(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("INSERT INTO pins VALUES (?, ?, 0)", [("s", b'{"tools":7}'), ("t", "text")])
        connection.commit()
    async with open_store(path) as store:
        approvals = Approvals(store, lambda server: "strict")
        await approvals.read(["s", "t", "u"])
        for server, held in (("s", {"a": "unread"}), ("t", {"a": "unread"}), ("u", {})):
            assert approvals.pinning.judge(server, OFFER).hold == held
    assert "what is approved of s, t cannot be read: approve its tools again" in caplog.text


async def test_what_cannot_be_read_at_the_start_is_read_as_soon_as_it_can(path: Path) -> None:
    async with open_store(path) as store:
        approvals = Approvals(store, lambda server: "strict")
        await approvals.read(["s"])
        approvals.pinning.judge("s", OFFER)
    hide(path)
    async with open_store(path) as store, trio.open_nursery() as nursery:
        approvals = Approvals(store, lambda server: "strict")
        await approvals.read(["s"])
        assert not approvals.pinning.is_read
        registry = Registry({"s": ("stdio", OFFER)}, Nothing(), uncounted, lambda: 0.0, pinning=approvals.pinning)
        await nursery.start(registry.run)
        nursery.start_soon(approvals.read_later, registry.address)
        await until(registry, seen=False)
        assert registry.catalogue.value.entries["s"].held == {"a": "unread"}
        with pytest.raises(NotKept, match="nothing was approved"):
            await approvals.approve("s", {"a": digest(OLD)})
        show(path)
        await until(registry, seen=True)
        assert registry.catalogue.value.entries["s"].held == {}
        nursery.cancel_scope.cancel()


def hide(path: Path) -> None:
    """Put a directory in the place of the database."""
    path.rename(path.with_name("aside"))
    path.mkdir()


def show(path: Path) -> None:
    path.rmdir()
    path.with_name("aside").rename(path)


async def until(registry: Registry, *, seen: bool) -> None:
    """Wait until the one tool is seen, or is not."""
    catalogue = registry.catalogue
    with trio.fail_after(30):
        while bool(catalogue.value.entries["s"].tools) != seen or not catalogue.value.indexed:
            await catalogue.wait_newer(catalogue.version)


async def test_an_approval_is_of_what_was_shown_and_says_if_it_is_not_kept(path: Path) -> None:
    async with open_store(path) as store, trio.open_nursery() as nursery:
        approvals = Approvals(store, lambda server: "strict")
        await approvals.read(["s"])
        approvals.pinning.judge("s", OFFER)
        changed = Offer(tools=(NEW,))
        registry = Registry({"s": ("stdio", changed)}, Nothing(), uncounted, lambda: 0.0, pinning=approvals.pinning)
        await nursery.start(registry.run)
        nursery.start_soon(approvals.read_later, registry.address)
        await until(registry, seen=False)
        for server, pinned in (("s", digest(OLD)), ("t", digest(NEW))):
            with pytest.raises(NotAsSeen, match="look again"):
                await approvals.approve(server, {"a": pinned})
        await approvals.approve("s", {"a": digest(NEW)})
        assert [*registry.catalogue.value.entries["s"].tools] == ["a"]
        hide(path)
        with pytest.raises(NotKept, match="may have to be again"):
            await approvals.approve("s", {"a": digest(NEW)})
        nursery.cancel_scope.cancel()


async def test_the_newest_definition_that_was_approved_is_shown_beside_the_present_one(path: Path) -> None:
    async with open_store(path) as store:
        approvals = Approvals(store, lambda server: "strict")
        await approvals.read(["s"])
        approvals.pinning.judge("s", OFFER)
        for turn, earlier in enumerate((OLD, NEW)):
            store.definitions.replace("s", partial(iter, [("a", bytes(earlier.definition))]), 0, turn)
        assert await approvals.find_base("s", NEW) == bytes(OLD.definition)
        assert await approvals.find_base("t", NEW) is None
