"""Servers added, changed and removed by programs: in the file, which is then read again, or until the daemon ends.

One at a time. What the daemon would refuse is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import trio
from msgspec.structs import replace

from actors.errors import ConfigError, UnknownServer
from actors.kit import Latest
from supervisor.config.entries.edits import EMPTY, Change, add_entry, change_entry, remove_entry
from supervisor.host.files import read_if_there, replace_text
from supervisor.host.loop.workbench import beside
from supervisor.servers.deployment import Deployment
from supervisor.servers.reloading.port import Reloaded
from supervisor.servers.reloading.reload import Reload

MAX_EPHEMERAL: Final = 100


class ServerEdits:
    """Implements `supervisor.servers.reloading.port.Editor`."""

    def __init__(self, reload: Reload, deployment: Latest[Deployment]) -> None:
        self._reload = reload
        self._deployment = deployment
        self._turn = trio.Lock()

    async def add(self, name: str, entry: Mapping[str, Any], *, ephemeral: bool = False) -> Reloaded:
        """Raises `ConfigError` for a name that is taken, and for an entry of no use.

        To the file one may be added that was there until the daemon ends.
        """
        async with self._turn:
            others = self._reload.ephemeral
            if not ephemeral:
                known = name in others
                reloaded = await self._edit(partial(add_entry, name=name, entry=entry, path=self._path))
                kept = known and reloaded.outcome == "unchanged"
                return replace(reloaded, message=f"{name} runs on, and is in the file now") if kept else reloaded
            if len(others) >= MAX_EPHEMERAL:
                hint = "remove one, or add it without that"
                raise ConfigError(f"there are {MAX_EPHEMERAL} servers already until the daemon ends", hint=hint)
            whole = self._reload.with_ephemeral
            await self._reload.plan(change=lambda text: add_entry(whole(text, self._path)[0], name, entry, self._path))
            others[name] = dict(entry)
            try:
                return await self._reload.reload()
            except ConfigError:  # the file has changed since
                others.pop(name, None)
                raise

    async def change(self, name: str, patch: Mapping[str, Any]) -> Reloaded:
        """Change an entry by a merge patch. Raises `UnknownServer`, `ConfigError`."""
        async with self._turn:
            key = self._key(name)
            if key in self._reload.ephemeral:
                hint = "remove it, and add it as it shall be"
                raise ConfigError(f"{name} is not in the file, it was added until the daemon ends", hint=hint)
            return await self._edit(partial(change_entry, name=key, patch=patch, path=self._path))

    async def remove(self, name: str) -> Reloaded:
        """Raises `UnknownServer`, and `ConfigError` if the file cannot be written."""
        async with self._turn:
            key = self._key(name)
            if key not in self._reload.ephemeral:
                return await self._edit(partial(remove_entry, name=key, path=self._path))
            entry = self._reload.ephemeral.pop(key)
            try:
                return await self._reload.reload()
            except ConfigError:  # then it runs on
                self._reload.ephemeral[key] = entry
                raise

    @property
    def _path(self) -> str:
        return str(self._deployment.value.path)

    def _key(self, name: str) -> str:
        """Return the key in the file of a server that is shown under this name."""
        deployment = self._deployment.value
        if name not in deployment.server_names:
            raise UnknownServer(f"there is no server {name[:100]!r}; mcpvisor status lists them")
        entry = deployment.entries.get(name)
        return name if entry is None else entry.name

    async def _edit(self, change: Change) -> Reloaded:
        planned = await self._reload.plan(change=change)
        await beside(partial(self._write, change))
        reloaded = await self._reload.reload()
        if (planned.outcome, reloaded.outcome) == ("planned", "unchanged"):  # it was read already, as the file changed
            return replace(planned, outcome="applied")
        return reloaded

    def _write(self, change: Change) -> None:
        path = self._deployment.value.path
        before = read_if_there(path)
        replace_text(path, before, change(EMPTY if before is None else before))
