"""Finds plugins by the entry points that installed packages have, and makes one of its options.

To load one imports its package, which happens when a configuration that names it is read: not on the loop. What is
imported stays as it is until the process ends, also if the package is upgraded.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from actors.errors import ConfigError
from supervisor.plugins.contract import Plugin, PluginOptions

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP: Final = "mcpvisor.plugins"
HOOKS: Final = {
    hook.__name__: hook
    for hook in (
        Plugin.before_discovery,
        Plugin.transform_tool,
        Plugin.after_discovery,
        Plugin.hide_tool,
        Plugin.before_call,
        Plugin.after_call,
    )
}
_SHOWN: Final = 10
_NEAREST: Final = 3


class PluginPackage(msgspec.Struct, frozen=True):
    """A plugin that is installed: its class, and which version of which distribution has it."""

    type: type[Plugin[Any]]
    distribution: str
    version: str

    @property
    def hooks(self) -> frozenset[str]:
        """The hooks that it defines."""
        return frozenset(name for name, hook in HOOKS.items() if getattr(self.type, name) is not hook)


def names() -> list[str]:
    """Return the names of all plugins that are installed. Reads the file system."""
    return sorted({point.name for point in _points()})


def versions() -> dict[str, str]:
    """Return the distribution and version of each plugin that is installed, by name; nothing is imported."""
    return {point.name: f"{_distribution(point)} {_version(point)}" for point in _points()}


def find(name: str) -> PluginPackage:
    """Import a plugin. Raises `ConfigError` if it is not installed, or is of no use."""
    points = {_distribution(point): point for point in _points(name=name)}
    if not points:
        raise ConfigError("no plugin of this name is installed", hint=_hint(name))
    if len(points) > 1:
        raise ConfigError(
            f"the distributions {' and '.join(sorted(points))} both have a plugin of this name",
            hint="uninstall one of them",
        )
    distribution, point = points.popitem()
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code
        lacks = f": it lacks {error.name}" if isinstance(error, ModuleNotFoundError) and error.name else ""
        text = f"the plugin cannot be imported ({type(error).__name__}{lacks})"
        raise ConfigError(text, hint=f'try: python -c "import {point.module}"') from None
    return PluginPackage(_plugin_of(loaded, point), distribution, _version(point))


def _points(name: str = "") -> EntryPoints:
    from importlib.metadata import entry_points  # where no plugin is named, nobody has to wait for it

    return entry_points(group=GROUP, name=name) if name else entry_points(group=GROUP)


def _plugin_of(loaded: Any, point: EntryPoint) -> type[Plugin[Any]]:
    """Return what was loaded, if it is a plugin. Raises `ConfigError`."""
    if fault := _fault(loaded):
        raise ConfigError(f"{point.value[:100]} {fault}", hint="ask whoever wrote the plugin, or uninstall it")
    plugin: type[Plugin[Any]] = loaded
    return plugin


def _fault(loaded: Any) -> str:
    if not (inspect.isclass(loaded) and issubclass(loaded, Plugin)):
        return "is no class derived from Plugin"
    options: Any = loaded.options_type
    if not (inspect.isclass(options) and issubclass(options, PluginOptions)):
        return "has options_type that is not derived from PluginOptions"
    if loaded.guards not in (True, False):
        return "has guards that is neither True nor False"
    if loaded.hide_tool is not Plugin.hide_tool and not loaded.guards:
        return "hides tools, and does not guard: it needs guards = True"
    wrong = [hook for hook in HOOKS if not inspect.isfunction(getattr(loaded, hook))]
    return f"has {', '.join(wrong)}, which is no function" if wrong else ""


def options_of(name: str) -> type[PluginOptions]:
    """Return the options that a plugin takes. Raises `ConfigError` as `find` does."""
    return find(name).type.options_type


def make(package: PluginPackage, options: Mapping[str, Any]) -> Plugin[Any]:
    """Return a plugin with these options, which were checked. Raises `ConfigError` if it cannot be made."""
    try:
        return package.type(msgspec.convert(dict(options), package.type.options_type))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code
        text = f"the plugin cannot be made of its options ({type(error).__name__})"
        raise ConfigError(text, hint="ask whoever wrote the plugin") from None


def _hint(name: str) -> str:
    installed = names()
    if near := difflib.get_close_matches(name[:100], installed, _NEAREST):
        return f"did you mean {' or '.join(near)}?"
    if installed:
        return f"installed are {', '.join(installed[:_SHOWN])}"
    return "no plugin is installed: install its package with the Python of the daemon"


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"


def _version(point: EntryPoint) -> str:
    return point.dist.version if point.dist is not None else "?"
