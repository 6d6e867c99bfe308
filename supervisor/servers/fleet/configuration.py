"""The configuration that was published for all nodes of a fleet: it is put by one, and kept by those that take it.

- A node keeps it as it came and reads it beside its own file (`lay_below`). What was in force before stays beside it.
- What it cannot use is refused as any reload is: what runs goes on.
- Variables are in it as they are written: each node fills them in from its own environment.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from actors.errors import ConfigError, SupervisorError
from actors.kit import Latest, Pauses
from supervisor.config.file import MAX_FILE_BYTES, digest_of, read_text
from supervisor.config.jsonc import read_document
from supervisor.config.load import lay_below, parse
from supervisor.config.values import raise_together
from supervisor.fleet.engine import NOT_YET
from supervisor.fleet.peers import PublishedConfiguration
from supervisor.host.datadir import PUBLISHED, previous_of
from supervisor.host.files import read_if_there, write_atomically
from supervisor.host.workbench import beside
from supervisor.servers.deployment import Deployment, deploy
from supervisor.servers.fleet.records import MAX_BYTES, SharedRecords
from supervisor.servers.reloading.difference import diff
from supervisor.servers.reloading.port import Published
from supervisor.servers.reloading.reload import Reload


class PackedConfiguration(msgspec.Struct, frozen=True, array_like=True):
    """`packed` is the text as UTF-8, compressed by zlib."""

    about: PublishedConfiguration
    packed: bytes

    def text(self) -> str:
        """Return the text. Raises `ValueError` for what is none, is too large, or is not what it is said to be."""
        unpacking = zlib.decompressobj()
        try:
            text = unpacking.decompress(self.packed, MAX_FILE_BYTES).decode()
        except zlib.error as error:
            raise ValueError(str(error)) from None
        if not unpacking.eof or digest_of(text) != self.about.digest:
            raise ValueError("it is too large, or has been cut off")
        return text


_PACKED: Final = msgspec.msgpack.Decoder(PackedConfiguration)


def pack(text: str, *, at: float, by: str, node: str) -> PackedConfiguration:
    """Return a text as it is published, at a moment in unix seconds."""
    about = PublishedConfiguration(digest=digest_of(text), at=at, by=by, node=node)
    return PackedConfiguration(about, zlib.compress(text.encode(), 9))


def encode(packed: PackedConfiguration) -> bytes:
    return msgspec.msgpack.encode(packed)


def decode(payload: bytes) -> PackedConfiguration:
    """Raises `MsgspecError` for what is none. Its text is looked at where it is used."""
    return _PACKED.decode(payload)


log = logging.getLogger(__name__)

KIND: Final = "configuration"
NAME: Final = "published"
EMPTY: Final = "{}"
COMPLETE_S: Final = 2.0
"""For so long the engine is waited for, which may have a newer one than this node knows."""


class SharedConfiguration:
    """What was published, as the node of this name knows it.

    `tell` lets the other nodes know of what this one says of itself; `now` gives unix seconds. At a node that takes
    what is published, `run` has to run.
    """

    def __init__(
        self,
        records: SharedRecords,
        deployment: Latest[Deployment],
        node: str,
        tell: Callable[[], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._records = records
        self._deployment = deployment
        self._node = node
        self._tell = tell
        self._now = now
        self._newest: PackedConfiguration | None = None
        self._bell = trio.lowlevel.ParkingLot()
        self._tried = ""
        self._failed = ""
        records.follow(KIND, self._hear)

    @property
    def newest(self) -> PublishedConfiguration | None:
        return None if self._newest is None else self._newest.about

    @property
    def in_use(self) -> str:
        """What `Node.published` says."""
        return (self._deployment.value.published or NOT_YET) if self._takes else ""

    @property
    def refusal(self) -> str:
        """What `Node.refused` says: it may have been taken later, as something else was mended."""
        return self._failed if self._failed != self._deployment.value.published else ""

    @property
    def _takes(self) -> bool:
        return self._deployment.value.settings.fleet.configuration == "published"

    def _hear(self, name: str, payload: bytes | None) -> None:
        if name == NAME and payload is not None:  # nobody takes it back
            self._newest = decode(payload)
            self._bell.unpark_all()

    # Publishing -------------------------------------------------------------------------------------------------------

    async def publish(self, text: str | None, by: str, *, name: str = "", plan: bool = False) -> Published:
        """Publish a text, which faults call by `name`; None: that of the node's own file. `plan`: only say what that
        would change. Raises `ConfigError`, with nothing changed, for one that cannot be used.
        """
        if text is None and self._takes:
            hint = "publish the file of a node that reads its own, or name one: --file FILE"
            raise ConfigError(f"{self._node} itself takes what is published, so its own file is not all", hint=hint)
        with trio.move_on_after(COMPLETE_S):
            await self._records.complete.wait()
        newest = self._newest
        if text is None:
            path = self._deployment.value.path
            name, text = str(path), await beside(partial(read_text, path))
        new = await beside(partial(self._read, text, name))
        old = await beside(partial(self._read_before, newest))
        packed = await beside(partial(pack, text, at=self._now(), by=by, node=self._node))
        payload = encode(packed)
        if len(payload) > MAX_BYTES or len(text.encode()) > MAX_FILE_BYTES:
            fault = f"it has {len(payload)} bytes compressed, and nodes share {MAX_BYTES}"
            raise ConfigError(fault, path=name, hint="leave some of it to the own files of nodes")
        same = newest is not None and newest.about.digest == packed.about.digest
        if not plan and not same:
            self._records.put(KIND, NAME, payload)
            self._hear(NAME, payload)
        changes = diff(old, new)
        return Published(
            outcome="unchanged" if same else "planned" if plan else "published",
            digest=packed.about.digest,
            servers=len(new.server_names),
            shared=plan or await self._records.flush(),
            message=changes.sentence(),
            changes=changes,
        )

    def _read(self, text: str, path: str) -> Deployment:
        """Return what it means beside an empty file. Blocks. Raises `ConfigError` for all that is wrong with it."""
        own = self._deployment.value
        document = lay_below(read_document(EMPTY, ""), read_document(text, path), path)
        configuration = parse(document, own.path.with_name(PUBLISHED), own.environ)
        raise_together([*configuration.problems])
        return deploy(configuration, key=own.key)

    def _read_before(self, packed: PackedConfiguration | None) -> Deployment:
        """Return what was published before; nothing if it would be refused here."""
        with suppress(ConfigError, ValueError):
            if packed is not None:
                return self._read(packed.text(), PUBLISHED)
        return Deployment()

    # Taking what was published ----------------------------------------------------------------------------------------

    async def run(self, reload: Reload, kept: Path) -> None:
        """Keep what is published in a file, and have it read, for ever."""
        before = await beside(partial(_read_kept, kept))
        self._tried = digest_of(before) if before else ""
        if self._tried != self._deployment.value.published:  # it could not be used at the start
            await self._reload(reload, "what was published before the start")
        pauses = Pauses()
        while True:
            while self._newest is None or self._newest.about.digest == self._tried:
                await self._bell.park()
            about = self._newest.about
            try:
                await beside(partial(_keep, kept, self._newest, self._deployment.value.published))
            except ValueError as error:
                log.warning("what was published at %s cannot be used: %s", about.node, error)
                self._tried = self._failed = about.digest
                self._tell()
            except OSError as error:
                log.warning("what was published at %s cannot be kept: %s", about.node, error.strerror)
                await trio.sleep(pauses.next())
            else:
                pauses.reset()
                self._tried = about.digest
                await self._reload(reload, f"{about.digest}, which {about.by} published at {about.node}")

    async def _reload(self, reload: Reload, by: str) -> None:
        digest = self._tried
        try:
            await reload.reload(by)
        except SupervisorError:  # which its status says
            self._failed = digest
            self._tell()
        else:
            self._failed = ""


def _read_kept(kept: Path) -> str:
    """Return what is kept, empty for nothing that can be read. Blocks."""
    with suppress(ConfigError):
        return read_if_there(kept) or ""
    return ""


def _keep(kept: Path, packed: PackedConfiguration, in_force: str) -> None:
    """Keep what was published; what is in force, by its digest, stays beside it. Blocks.

    Raises `OSError`, and `ValueError` for what is of no use.
    """
    after, before = packed.text(), _read_kept(kept)
    if before and digest_of(before) == in_force:
        write_atomically(previous_of(kept), before.encode())
    write_atomically(kept, after.encode())
