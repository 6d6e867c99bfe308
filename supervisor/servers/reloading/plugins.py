"""The plugins that a configuration names, and the servers that they refuse: those rest, and say why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from urllib.parse import urlsplit

from msgspec.structs import replace

from supervisor.config import Configuration
from supervisor.config.effective import RestingServer
from supervisor.config.sections.options import PLUGINS
from supervisor.host.loop.workbench import beside
from supervisor.plugins.contract import ServerFacts
from supervisor.plugins.hooks import PluginTable
from supervisor.plugins.running import RunningPlugin
from supervisor.servers.deployment import Deployment, deploy


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
