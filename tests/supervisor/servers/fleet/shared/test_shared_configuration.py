"""What is published at one node is kept and read at those that take it; what cannot be used costs nothing."""

from __future__ import annotations

import errno
import json
import logging
import os
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from actors.errors import ConfigError
from actors.kit import Latest
from supervisor.config import Settings
from supervisor.config.file import MAX_FILE_BYTES, digest_of
from supervisor.config.sections import FleetSettings
from supervisor.fleet.engine import NOT_YET
from supervisor.fleet.peers import PublishedConfiguration
from supervisor.host.datadir import previous_of
from supervisor.host.files import write_atomically
from supervisor.servers.deployment import Deployment
from supervisor.servers.fleet import configuration
from supervisor.servers.fleet.configuration import (
    KIND,
    NAME,
    PackedConfiguration,
    SharedConfiguration,
    decode,
    encode,
    pack,
)
from supervisor.servers.fleet.records import MAX_BYTES
from supervisor.servers.reloading.difference import Difference
from supervisor.servers.reloading.port import Reloaded
from supervisor.servers.reloading.reload import Reload
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.sharing import Sharing, running

ONE, TWO = (json.dumps({"mcpServers": {name: {"command": "x"}}}) for name in ("one", "two"))
TEST_S = 30.0


class ConfiguredNode:
    """One node, its own file, and how often it was told to read it. `refuses`: it can use nothing more."""

    def __init__(self, engine: MemoryEngine, directory: Path, name: str, *, takes: bool) -> None:
        fleet = FleetSettings(configuration="published" if takes else "own")
        self.sharing = Sharing(engine)
        self.path = directory / f"{name}.json"
        self.deployment = Latest(
            Deployment(path=self.path, environ={"HERE": "x"}, settings=Settings(fleet=fleet), key=b"k" * 32)
        )
        self.told = 0
        self.configuration = SharedConfiguration(self.sharing.records, self.deployment, name, self._tell, lambda: 5.0)
        self.kept = directory / f"{name}-published.json"
        self.reads: list[str] = []
        self.refuses = False
        self._stirred = trio.Event()

    def _tell(self) -> None:
        self.told += 1
        self._stir()

    def _stir(self) -> None:
        self._stirred.set()
        self._stirred = trio.Event()

    async def reload(self, by: str) -> Reloaded:
        await trio.lowlevel.checkpoint()
        self.reads.append(by)
        self._stir()
        if self.refuses:
            raise ConfigError("not here")
        digest = digest_of(self.kept.read_text())
        self.deployment.set(replace(self.deployment.value, published=digest))
        return Reloaded(outcome="applied", message="", changes=Difference())

    async def until_read(self, times: int) -> None:
        await self._until(lambda: len(self.reads) == times)

    async def until_told(self) -> None:
        await self._until(lambda: self.told > 0)

    async def _until(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(TEST_S):
            while not condition():
                await self._stirred.wait()
        await wait_all_tasks_blocked()


@asynccontextmanager
async def two_nodes(directory: Path) -> AsyncIterator[tuple[ConfiguredNode, ConfiguredNode]]:
    """Node a reads its own file, b takes what is published."""
    engine = MemoryEngine(60.0, trio.current_time)
    a, b = (ConfiguredNode(engine, directory, name, takes=name == "b") for name in "ab")
    a.path.write_text(ONE)
    async with running(a.sharing, b.sharing), trio.open_nursery() as nursery:
        nursery.start_soon(b.configuration.run, cast("Reload", b), b.kept)
        yield a, b
        nursery.cancel_scope.cancel()


@given(st.text(st.characters(codec="utf-8")), st.floats(0, 1e10), st.text(st.characters(codec="utf-8"), max_size=200))
def test_a_text_is_read_as_it_was_packed(text: str, at: float, by: str) -> None:
    packed = decode(encode(pack(text, at=at, by=by, node="a")))
    assert packed.text() == text
    assert packed.about == PublishedConfiguration(digest=digest_of(text), at=at, by=by, node="a")


@given(st.binary())
def test_other_bytes_are_refused(payload: bytes) -> None:
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        decode(payload).text()


@pytest.mark.parametrize(
    "packed",
    [
        b"no zlib",
        zlib.compress(ONE.encode())[:-5],
        zlib.compress(TWO.encode()),
        zlib.compress(b"\xff\xfe"),
        zlib.compress(bytes(MAX_FILE_BYTES + 1)),
    ],
)
def test_what_is_not_the_text_that_it_is_said_to_be_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of zlib, of a codec, or ours
        PackedConfiguration(pack(ONE, at=1.0, by="ana", node="a").about, packed).text()


async def test_what_is_published_at_one_node_is_kept_at_another_one_and_read_there(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (a, b):
        assert (a.configuration.in_use, b.configuration.in_use, a.configuration.newest) == ("", NOT_YET, None)
        published = await a.configuration.publish(None, "ana")
        assert (published.outcome, published.servers, published.shared) == ("published", 1, True)
        assert published.changes.added == ("one",)
        await b.until_read(1)
        assert b.kept.read_text() == ONE
        assert b.kept.stat().st_mode & 0o777 == 0o600
        assert b.reads == [f"{digest_of(ONE)}, which ana published at a"]
        assert b.configuration.in_use == digest_of(ONE)
        about = PublishedConfiguration(digest=digest_of(ONE), at=5.0, by="ana", node="a")
        assert a.configuration.newest == b.configuration.newest == about
        again = await b.configuration.publish(TWO, "ben", name="sent")  # at a node that takes it itself
        assert again.changes.added == ("two",)
        assert again.changes.removed == ("one",)
        await b.until_read(2)
        assert (b.kept.read_text(), previous_of(b.kept).read_text()) == (TWO, ONE)
        assert not a.kept.exists()
        assert (await a.configuration.publish(TWO, "ana", name="sent")).outcome == "unchanged"


async def test_what_would_change_is_said_and_nothing_is_published(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (a, b):
        planned = await a.configuration.publish(None, "ana", plan=True)
        assert (planned.outcome, planned.changes.added) == ("planned", ("one",))
        await wait_all_tasks_blocked()
        assert (a.configuration.newest, b.reads) == (None, [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "sent:1: the file ends before"),
        ('{"mcpServers": {"a": {"comand": "x"}}}', "sent:1: mcpServers.a.comand: unknown key"),
        ('{"mcpServers": {"a": {"command": "${NOWHERE}"}}}', "NOWHERE is not set"),
        (json.dumps({"_": os.urandom(2 * MAX_BYTES).hex()}), f"nodes share {MAX_BYTES}"),
    ],
)
async def test_a_configuration_with_faults_is_refused_and_nothing_changes(tmp_path: Path, text: str, says: str) -> None:
    async with two_nodes(tmp_path) as (a, b):
        with pytest.raises(ConfigError) as error:
            await a.configuration.publish(text, "ana", name="sent")
        assert says in str(error.value)
        await wait_all_tasks_blocked()
        assert (a.configuration.newest, b.reads, b.kept.exists()) == (None, [], False)


async def test_what_is_of_one_machine_and_of_no_use_is_no_fault(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (a, _):
        text = (
            '{"mcpServers": {"a": {"command": "${HERE}"}}, "supervisor": {"listen": 1, "fleet": {"keys": ["${NO}"]}}}'
        )
        assert (await a.configuration.publish(text, "ana", name="sent")).servers == 1


async def test_a_node_that_takes_what_is_published_does_not_publish_its_own_file(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (_, b):
        b.path.write_text(TWO)
        with pytest.raises(ConfigError, match=r"b itself takes what is published.*--file FILE"):
            await b.configuration.publish(None, "ana")


async def test_a_node_that_cannot_use_it_says_so_until_it_can(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (a, b):
        await a.configuration.publish(ONE, "ana", name="sent")
        await b.until_read(1)
        b.refuses = True
        await a.configuration.publish(TWO, "ana", name="sent")
        await b.until_read(2)
        assert (b.configuration.in_use, b.configuration.refusal, b.told) == (digest_of(ONE), digest_of(TWO), 1)
        assert previous_of(b.kept).read_text() == ONE  # which a start falls back on
        await a.configuration.publish('{"mcpServers": {}}', "ana", name="sent")
        await b.until_read(3)
        assert previous_of(b.kept).read_text() == ONE
        b.refuses = False
        await b.reload("the change of another file")
        assert (b.configuration.refusal, b.configuration.in_use) == ("", digest_of(b.kept.read_text()))


async def test_what_could_not_be_used_at_the_start_is_tried_at_once(tmp_path: Path) -> None:
    engine = MemoryEngine(60.0, trio.current_time)
    b = ConfiguredNode(engine, tmp_path, "b", takes=True)
    b.kept.write_text(TWO)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(b.configuration.run, cast("Reload", b), b.kept)
        await b.until_read(1)
        assert b.configuration.in_use == digest_of(TWO)
        nursery.cancel_scope.cancel()


async def test_a_record_that_is_none_is_logged_and_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with two_nodes(tmp_path) as (a, b):
        caplog.set_level(logging.WARNING)
        a.sharing.records.put(KIND, NAME, b"\xc1")
        await wait_all_tasks_blocked()
        assert "configuration that another node has put is not understood" in caplog.text
        bad = PackedConfiguration(pack(ONE, at=1.0, by="ana", node="a").about, zlib.compress(TWO.encode()))
        a.sharing.records.put(KIND, NAME, encode(bad))
        await b.until_told()
        assert "published at a cannot be used" in caplog.text
        assert (b.configuration.refusal, b.kept.exists(), b.reads) == (digest_of(ONE), False, [])
        await a.configuration.publish(TWO, "ana", name="sent")
        await b.until_read(1)
        assert b.configuration.in_use == digest_of(TWO)


async def test_a_disk_that_takes_nothing_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = list[Path]()

    def write(path: Path, content: bytes) -> None:
        writes.append(path)
        if len(writes) == 1:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        write_atomically(path, content)

    monkeypatch.setattr(configuration, "write_atomically", write)
    async with two_nodes(tmp_path) as (a, b):
        caplog.set_level(logging.WARNING)
        await a.configuration.publish(None, "ana")
        await b.until_read(1)
        assert b.kept.read_text() == ONE
        assert "what was published at a cannot be kept: Read-only file system" in caplog.text
