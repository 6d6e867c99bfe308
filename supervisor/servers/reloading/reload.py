"""Reads the configuration again while the daemon runs, and applies what has changed: whole, or not at all.

- Read, checked and compared in a thread; nothing has changed yet when any of it fails, and nothing after that can.
- A fault that is not in force already refuses the whole file, also one of a single entry: what runs is what one file
  said at one time. Entries that were left out at the start stay left out, and hold up no other change.
- One reading at a time. Who asks gets one that began after that; whoever asks meanwhile shares the next.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import trio
from msgspec.structs import replace

from actors.errors import ActorStopped, ConfigError, ShuttingDown, UnknownServer
from actors.facts import ConfigurationLoaded
from actors.kit import Latest, Reply
from actors.kit.directory import Directory
from actors.kit.paths import absolute
from actors.life.states import ALIVE
from actors.registry.actor import Registry
from actors.registry.reviews import ReviewAgain
from actors.registry_inbox import NamesChanged, RulesChanged
from actors.server import ServerMessage
from supervisor.config import Configuration, Settings
from supervisor.config.edits import EMPTY, Change, add_entry, change_entry, names_in, remove_entry, supplement
from supervisor.config.given import RestingServer
from supervisor.config.sections import PLUGINS
from supervisor.config.values import SeveralErrors, raise_new
from supervisor.events.kinds import MAX_TEXT, ConfigRefused
from supervisor.host.files import read_if_there, replace_text
from supervisor.host.logs import set_level
from supervisor.host.program import Systemd
from supervisor.host.watching import FileWatch
from supervisor.host.workbench import beside
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.audit import Outcome as Recorded
from supervisor.identity.requester import ORIGIN, RequestOrigin
from supervisor.plugins.contract import ServerFacts
from supervisor.plugins.hooks import PluginTable
from supervisor.plugins.running import RunningPlugin
from supervisor.servers.children import Servers
from supervisor.servers.deployment import Deployment, deploy
from supervisor.servers.reach import close_breakers, discover
from supervisor.servers.reloading.difference import Difference, diff, in_force
from supervisor.servers.reloading.port import ConfigurationFile, Outcome, Reloaded
from supervisor.store import Store

# The plugins that a configuration names, and the servers that they refuse: those rest, and say why.


class DeployedPlugins:
    """Has the plugins of a configuration be those of the `table`, before or together with its deployment."""

    def __init__(self, table: PluginTable) -> None:
        self._table = table
        self._refused: Mapping[str, str] = {}

    async def deploy(self, configuration: Configuration, key: bytes) -> Deployment:
        """Return the deployment to begin with, whose plugins are in force; `key` is that of launch digests.

        Raises `ConfigError`.
        """
        made = await beside(partial(self.prepare, configuration))
        deployed = await self.refuse(deploy(configuration, key=key), made)
        self.use(made, deployed)
        return deployed

    def prepare(self, configuration: Configuration) -> tuple[RunningPlugin, ...]:
        """Return the plugins of a configuration. Blocks. Raises `ConfigError`; nothing is in force yet."""
        settings, origins = configuration.settings, configuration.origins
        options = {name: entry.options for name, entry in settings.plugins.items()}
        known = {name: origins["", (PLUGINS, name)] for name in options if ("", (PLUGINS, name)) in origins}
        places = {name: (origin.path or str(configuration.path), origin.line) for name, origin in known.items()}
        return self._table.prepare(options, places, settings.plugin_threads)

    async def refuse(self, deployment: Deployment, plugins: tuple[RunningPlugin, ...]) -> Deployment:
        """Return the deployment without the servers that plugins refuse. A checkpoint if any is asked."""
        within_s = deployment.settings.plugin_discovery_timeout_s
        self._refused = await self._table.refusals(facts_of(deployment), plugins, within_s)
        return without(deployment, self._refused)

    def refuse_as_before(self, deployment: Deployment) -> Deployment:
        """Return the deployment without the servers that were refused last; nobody is asked."""
        return without(deployment, self._refused)

    def use(self, plugins: tuple[RunningPlugin, ...], deployment: Deployment) -> None:
        """Have these plugins be in force. Never waits."""
        self._table.use(plugins, deployment.settings)


def facts_of(deployment: Deployment) -> Iterator[ServerFacts]:
    """Yield what plugins are told of the servers that are not switched off."""
    for name, config in deployment.entries.items():
        if not config.disabled:
            host = (urlsplit(config.url).hostname or "") if config.url else ""
            yield ServerFacts(name=name, kind=config.kind, command=config.command, args=config.args, host=host)


def without(deployment: Deployment, refused: Mapping[str, str]) -> Deployment:
    """Return the deployment in which servers rest, by name with the reason."""
    known = {name: why for name, why in refused.items() if name in deployment.entries}
    if not known:
        return deployment
    off = {name: replace(deployment.entries[name], disabled=True) for name in known}
    resting = [each for each in deployment.resting if each.name not in known]
    resting += [RestingServer(name=name, kind=off[name].kind, reason=why, disabled=True) for name, why in known.items()]
    return replace(
        deployment,
        entries={**deployment.entries, **off},
        servers={name: server for name, server in deployment.servers.items() if name not in known},
        digests={name: digest for name, digest in deployment.digests.items() if name not in known},
        resting=tuple(resting),
    )


log = logging.getLogger(__name__)

REMOVED = "it is not in the configuration any more"
ENDING = "the daemon is shutting down"
BUG = "a bug of the daemon ended the reading of its configuration; its log has the place"
OFF = "it was switched off in the configuration"
Read = Callable[[str, Change], Configuration]
"""Reads the file, or that at another path if one is named. Raises `ConfigError`."""


class Reload:
    """Applies the file to the servers of one daemon. `read` reads it as it is or at another path, and blocks; its text
    may be changed before it is understood. `ephemeral` has entries by name that are there until the daemon ends, or the
    file has one of that name.

    `source` says how the file does. `directory` has all launches, also those of other nodes. `prepare` gets what a
    deployment needs that was not needed before.
    """

    def __init__(
        self,
        read: Read,
        deployment: Latest[Deployment],
        servers: Servers,
        registry: Registry,
        store: Store,
        directory: Directory[ServerMessage],
        *,
        key: bytes,
        clock: Callable[[], float],
        prepare: Callable[[Deployment], Awaitable[None]],
        systemd: Systemd,
        audit: Audit = NO_AUDIT,
        plugins: DeployedPlugins | None = None,
    ) -> None:
        self._read = read
        self.ephemeral: dict[str, dict[str, Any]] = {}
        self._deployment = deployment
        self._servers = servers
        self._directory = directory
        self._registry = registry
        self._store = store
        self._key = key
        self._clock = clock
        self._prepare = prepare
        self._systemd = systemd
        self._audit = audit
        self._plugins = plugins or DeployedPlugins(PluginTable())
        self._wanted_by: dict[str, RequestOrigin | None] = {}
        self._wanted = trio.Event()
        self._waiting: list[Reply[Reloaded]] = []
        self._over = False
        self._path = absolute(str(deployment.value.path))
        self._files = deployment.value.stamps.keys()
        self.source = Latest(ConfigurationFile(path=self._path, loaded_at=clock()))

    def _on_changed(self) -> None:
        if self._settings.reload_on_change:
            self.begin("its change")

    @property
    def _settings(self) -> Settings:
        return self._deployment.value.settings

    def begin(self, by: str) -> None:
        """Have the file read again, soon. `by` says for the audit what wanted that."""
        self._wanted_by[by] = self._wanted_by.get(by) or ORIGIN.get()
        self._wanted.set()

    async def reload(self, by: str = "an order") -> Reloaded:
        """Read the file again and apply it. Raises `ConfigError` if it is refused; then nothing has changed.

        Raises `ShuttingDown` if the daemon ends before that. `by`: see `begin`.
        """
        if self._over:
            raise ShuttingDown(ENDING)
        reply: Reply[Reloaded] = Reply()
        self._waiting.append(reply)
        self.begin(by)
        return await reply.wait()

    async def plan(self, path: str = "", change: Change = lambda text: text) -> Reloaded:
        """Return what a reload would do, of another file if one is named, or of this one after a change.

        Raises `ConfigError` as `reload` does.
        """
        old = self._deployment.value
        read, _, _ = await beside(lambda: self._read_new(old, path, change))
        changes = diff(old, self._plugins.refuse_as_before(read))
        outcome: Outcome = "planned" if changes.applicable or changes.restart else "unchanged"
        return Reloaded(outcome=outcome, message=changes.sentence(), changes=changes)

    async def run(self, closing: trio.Event) -> None:
        """Read the file whenever that is wanted, until the daemon ends: a reading under way is given up then."""
        first = self._deployment.value
        poll_s = self._settings.reload_poll_s
        watch = FileWatch(lambda: self._files, self._on_changed, poll_s, first.stamps)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch.run)
                nursery.start_soon(self._read_for_ever, nursery)
                await closing.wait()
                nursery.cancel_scope.cancel()
        finally:
            self._over = True
            for reply in self._waiting:
                _end(reply)

    async def _read_for_ever(self, nursery: trio.Nursery) -> None:
        while True:
            await self._wanted.wait()
            self._wanted, waiting, self._waiting = trio.Event(), self._waiting, []
            wanted_by, self._wanted_by = self._wanted_by, {}
            self._systemd.begin_reload()
            settle: Callable[[Reply[Reloaded]], None] = _end
            try:
                settle = partial(Reply.answer, value=await self._reload(nursery, wanted_by))
            except Exception as error:
                settle = partial(Reply.fail, error=error if isinstance(error, ConfigError) else ActorStopped(BUG))
                if not isinstance(error, ConfigError):
                    raise
                self._refuse(error, wanted_by)
            finally:
                for reply in waiting:
                    settle(reply)
            self._systemd.ready(self.source.value.state)

    async def _reload(self, nursery: trio.Nursery, by: Mapping[str, RequestOrigin | None]) -> Reloaded:
        old = self._deployment.value
        read, plugins, shadowed = await beside(lambda: self._read_new(old))
        read = await self._plugins.refuse(read, plugins)
        changes, new = diff(old, read), in_force(old, read)
        for name in shadowed:
            self.ephemeral.pop(name, None)
        before = self.source.value
        idle = not changes.applicable and changes.restart == before.restart
        if idle:
            self._set(new, plugins)  # other lines, other remarks
        else:
            await self._prepare(new)
            nursery.start_soon(discover, self._directory, await self._apply(old, new, changes, plugins))
        self.source.set(ConfigurationFile(path=self._path, loaded_at=self._clock(), restart=changes.restart))
        message = changes.sentence()
        if not idle or before.refused:
            log.info("configuration read again: %s", message)
            self._note(by, "done", f"sha256 {new.digest}: {message}")
            self._registry.note(msgspec.convert(changes, ConfigurationLoaded, from_attributes=True))
        return Reloaded(outcome="unchanged" if idle else "applied", message=message, changes=changes)

    def _set(self, new: Deployment, plugins: tuple[RunningPlugin, ...]) -> None:
        """Have a deployment be the newest one, with the values that are given now: any may have come meanwhile."""
        self._deployment.set(replace(new, given=self._deployment.value.given))
        self._plugins.use(plugins, new)

    def _read_new(
        self, old: Deployment, path: str = "", change: Change = lambda text: text
    ) -> tuple[Deployment, tuple[RunningPlugin, ...], frozenset[str]]:
        """Return what a file means, its plugins, and which ephemeral servers it has in its own words.

        Raises `ConfigError` for a file of no use, and for one with a fault that is not in force already.
        """
        shadowed = frozenset[str]()

        def whole(text: str) -> str:
            nonlocal shadowed
            text, shadowed = self.with_ephemeral(change(text), path or self._path)
            return text

        configuration = self._read(path, whole)
        if not path:
            self._files = configuration.stamps.keys()  # also of what is refused: it may be one of these that is mended
        raise_new(configuration.problems, old.problems)
        plugins = self._plugins.prepare(configuration)
        return deploy(configuration, key=self._key, given=old.given), plugins, shadowed

    def with_ephemeral(self, text: str, path: str) -> tuple[str, frozenset[str]]:
        """Return the text with the ephemeral servers, and which of them it has itself. Raises `ConfigError`."""
        ephemeral = dict(self.ephemeral)
        shadowed = names_in(text, ephemeral, path)
        return supplement(text, {name: ephemeral[name] for name in ephemeral if name not in shadowed}, path), shadowed

    def _refuse(self, error: ConfigError, by: Mapping[str, RequestOrigin | None]) -> None:
        faults = tuple(str(each) for each in (error.errors if isinstance(error, SeveralErrors) else (error,)))
        before = self.source.value
        self.source.set(replace(before, refused=faults, refused_at=self._clock()))
        if faults != before.refused:
            log.warning("the configuration was not taken over, everything runs as before: %s", error)
            self._note(by, "refused", f"{len(faults)} fault{'s' if len(faults) != 1 else ''}")
            text = "\n".join(fault[:MAX_TEXT] for fault in faults[:_MAX_TOLD_FAULTS])
            self._registry.note(ConfigRefused(error_type="config", error_message=text))

    def _note(self, by: Mapping[str, RequestOrigin | None], outcome: Recorded, detail: str) -> None:
        """Record a reading, of whoever ordered it."""
        origin = next((each for each in by.values() if each is not None), None)
        detail = f"for {' and '.join(by)}; {detail}"
        self._audit.note("configuration.load", self._path, outcome=outcome, detail=detail, origin=origin)

    # Applying -------------------------------------------------------------------------------------------------------

    async def _apply(
        self, old: Deployment, new: Deployment, changes: Difference, plugins: tuple[RunningPlugin, ...]
    ) -> list[str]:
        """Do what a difference says; return the servers that are to be discovered."""
        off = await self._switched_off()
        self._set(new, plugins)
        if "plugins" in changes.settings:
            await self._registry.address.tell(ReviewAgain())
        if "log_level" in changes.settings:
            set_level(new.settings.log_level)
        await self._registry.address.tell(NamesChanged(names=new.names))
        for name in new.entries:
            if _seen_of(old, name) != _seen_of(new, name):
                await self._registry.address.tell(RulesChanged(server=name))
        for name in changes.removed:
            await self._servers.remove(name, REMOVED, new.settings.reload_drain_s)
            await self._servers.forget(name)
            self._store.switched_off.forget(name)
        wanted = []
        for name in new.entries:
            if name in changes.replaced:
                wanted += await self._replace(name, new, launched=name in changes.relaunched)
            elif name in changes.resized:
                await self._servers.resize(new.servers[name], new.settings.reload_drain_s)
            elif name in new.servers and name not in old.servers:
                await self._servers.add(new.servers[name], None, None, disabled=name in off)
                wanted += [name] if name not in off else []
        await close_breakers(self._servers.directory, changes.adjusted)
        for resting in new.resting:
            if resting.name in changes.changed or resting.name in changes.added:
                await self._servers.remove(resting.name, OFF, new.settings.reload_drain_s)
                await self._servers.absences.report(resting)
        return wanted

    async def _replace(self, name: str, new: Deployment, *, launched: bool) -> list[str]:
        """Put a server into the place of the one of this name; return it if it is to be discovered."""
        known = None if launched else self._registry.offer(name)
        status = self._servers.statuses.of(name, self._registry.statuses.value)
        disabled = self._servers.is_off(name)
        drain_s = new.settings.reload_drain_s
        era = None if launched or status is None else status.era
        await self._servers.add(new.servers[name], known, era, disabled=disabled, drain_s=drain_s)
        up = status is not None and status.state in ALIVE
        return [name] if not disabled and (known is None or up or new.runs_always(name)) else []

    async def _switched_off(self) -> frozenset[str]:
        await self._store.keep()
        return frozenset(row.name for row in await self._store.switched_off.load())


def _end(reply: Reply[Reloaded]) -> None:
    reply.fail(ShuttingDown(ENDING))


def _seen_of(deployment: Deployment, server: str) -> tuple[object, ...]:
    """Return what a configuration says of what is seen, and found, of a server."""
    return deployment.tool_rules_of(server), deployment.trust_of(server), deployment.described.get(server)


# Servers added, changed and removed by programs: in the file, which is then read again, or until the daemon ends.
#
# One at a time. What the daemon would refuse is not written.

MAX_EPHEMERAL: Final = 100
_MAX_TOLD_FAULTS: Final = 20


class ServerEdits:
    """Changes the servers. Nothing has changed where an order raises `ConfigError`, for what would be refused."""

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
            planned = await self._reload.plan(
                change=lambda text: add_entry(whole(text, self._path)[0], name, entry, self._path)
            )
            others[name] = dict(entry)
            try:
                return _of_one(planned, await self._reload.reload())
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
                return _of_one(await self._reload.plan(), await self._reload.reload())
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
        return _of_one(planned, await self._reload.reload())

    def _write(self, change: Change) -> None:
        path = self._deployment.value.path
        before = read_if_there(path)
        replace_text(path, before, change(EMPTY if before is None else before))


def _of_one(planned: Reloaded, reloaded: Reloaded) -> Reloaded:
    """Return what became of an edit; a reading for another reason may have taken it over before its own."""
    was_read = (planned.outcome, reloaded.outcome) == ("planned", "unchanged")
    return replace(planned, outcome="applied") if was_read else reloaded
