"""All plugins of a daemon, in the order of the configuration: what their hooks lead to, and what a failure means.

- A server, a tool, a call or a result passes through the plugins one after the other. The first that says no decides.
- Where a plugin gives no answer, it is as if there were no such plugin. If it guards, the answer is no: the server does
  not start, the tool is not seen, the call is not made, the result is not passed on. What hides tools has to guard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from msgspec.structs import replace

from actors.catalogue.metadata import traits
from actors.catalogue.offer import Offer, Tool
from actors.catalogue.tool_rules import NO_CHANGES, ToolChanges
from actors.catalogue.views import Hidden
from actors.errors import CallRefused, ConfigError
from actors.facts import FactLog
from actors.kit import Conditions
from actors.kit.decoding import decode_in_thread
from supervisor.events.kinds import MAX_TEXT, PluginDisabled, PluginRecovered
from supervisor.plugins.answers import (
    PluginQuestion,
    read_arguments,
    read_nothing,
    read_result,
    read_tool,
    read_verdict,
)
from supervisor.plugins.contract import DiscoveryFacts, Rejection, ServerFacts, ToolCall, ToolDefinition, Viewer
from supervisor.plugins.loading import find, make
from supervisor.plugins.questions import GivenAnswer
from supervisor.plugins.running import PluginFailed, PluginStatus, RunningPlugin

T = TypeVar("T")
_GUARD: Final = "it guards this, and failed"
TELL_USER: Final = "tell the user: `mcpvisor status` says more"


class PluginLimits(Protocol):
    """The settings of the daemon that are about plugins."""

    @property
    def plugin_call_timeout_s(self) -> float:
        """Deadline of a hook of a call."""

    @property
    def plugin_discovery_timeout_s(self) -> float:
        """Deadline of a hook of a discovery."""


class Asker(Protocol):
    """Asks whoever makes a call what plugins want to know: each plugin so many questions at `most`."""

    @property
    def most(self) -> int: ...

    def answers(self, plugin: str) -> Mapping[str, GivenAnswer]:
        """Return what a plugin knows already, by the keys of its questions."""

    async def ask(self, plugin: str, question: PluginQuestion) -> None:
        """Have `answers` have the answer to a question, whatever it is."""


class Nobody:
    """Implements `Asker` for one call of which nobody can be asked anything."""

    most = 32

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, GivenAnswer]] = {}

    def answers(self, plugin: str) -> Mapping[str, GivenAnswer]:
        return self._answers.get(plugin, {})

    async def ask(self, plugin: str, question: PluginQuestion) -> None:
        """Say that there is no answer."""
        self._answers[plugin] = {**self.answers(plugin), question.key: GivenAnswer()}


class _NoLimits:
    plugin_call_timeout_s = plugin_discovery_timeout_s = 0.0


class PluginTable:
    """The plugins that are in force; see `use`. `facts` has which are off, and on again.

    `on_calls` and `on_results`: any plugin looks at calls, or at their results. `hiding` are those that hide tools.
    """

    def __init__(self, facts: FactLog | None = None, conditions: Conditions | None = None) -> None:
        self._facts = facts or FactLog(time.time)
        self._conditions = conditions or Conditions(time.time)
        self._settings: PluginLimits = _NoLimits()
        self._plugins: tuple[RunningPlugin, ...] = ()
        self._before_call: tuple[RunningPlugin, ...] = ()
        self._after_call: tuple[RunningPlugin, ...] = ()
        self._on_tools: tuple[RunningPlugin, ...] = ()
        self.on_calls = self.on_results = False
        self.hiding: tuple[RunningPlugin, ...] = ()

    def prepare(
        self, options: Mapping[str, Mapping[str, Any]], places: Mapping[str, tuple[str, int]], threads: int
    ) -> tuple[RunningPlugin, ...]:
        """Return the plugins of a configuration: those in force whose options are the same stay as they are.

        `places` are the file and the line that name each. Nothing is in force yet. Blocks. Raises `ConfigError`.
        """
        present = {plugin.name: plugin for plugin in self._plugins}
        plugins = []
        for name, own in options.items():
            known = present.get(name)
            if known is not None and known.options == own and known.threads == threads:
                plugins.append(known)
                continue
            try:
                package = find(name)
                made = make(package, own)
            except ConfigError as error:
                key, (path, line) = f"supervisor.plugins.{name}", places.get(name, ("", None))
                raise ConfigError(error.message, path=path, key=key, line=line, hint=error.hint) from None
            plugins.append(RunningPlugin(name, package, made, own, self, threads=threads))
        return tuple(plugins)

    def use(self, plugins: Sequence[RunningPlugin], limits: PluginLimits) -> None:
        """Have these be the ones in force, with these deadlines, for all that begins from now on."""
        self._settings = limits
        for gone in set(self._plugins) - set(plugins):
            for hook in gone.hooks:
                self._conditions.end(_condition(gone.name, hook))
        self._plugins = tuple(plugins)
        self._before_call, self._after_call = self._of("before_call"), self._of("after_call")
        self.hiding = self._of("hide_tool")
        self._on_tools = tuple(each for each in plugins if each.hooks & {"transform_tool", "after_discovery"})
        self.on_calls, self.on_results = bool(self._before_call or self._after_call), bool(self._after_call)

    def _of(self, hook: str) -> tuple[RunningPlugin, ...]:
        return tuple(plugin for plugin in self._plugins if hook in plugin.hooks)

    def statuses(self) -> list[PluginStatus]:
        return [plugin.status() for plugin in self._plugins]

    # Discovery ------------------------------------------------------------------------------------------------------

    async def refusals(
        self, servers: Iterable[ServerFacts], plugins: Sequence[RunningPlugin], within_s: float
    ) -> dict[str, str]:
        """Return which servers must not be started and read, and why; `plugins` need not be in force yet.

        A checkpoint if any is asked.
        """
        asked, refused = [each for each in plugins if "before_discovery" in each.hooks], dict[str, str]()
        for server in servers if asked else ():
            for plugin in asked:
                if why := await _verdict(plugin, server, within_s):
                    refused[server.name] = f"plugin {plugin.name} refuses it: {why}"
                    break
        return refused

    @property
    def active(self) -> bool:
        """Whether any plugin looks at what servers list; see `actors.registry.reviews.Reviewer`."""
        return bool(self._on_tools)

    async def review(self, server: str, own: Offer) -> ToolChanges:
        """Return what plugins make of the tools that a server lists. Never raises. A checkpoint if any is asked."""
        if not (plugins := self._of("transform_tool")):
            return NO_CHANGES
        left, tools = {tool.name: tool for tool in own.tools}, {tool.name: tool for tool in own.tools}
        changed: dict[str, Tool] = {}
        rejected: dict[str, str] = {}
        failed = False
        for plugin in plugins:
            within_s = self._settings.plugin_discovery_timeout_s
            asked = await _definitions([(server, name, tool) for name, tool in left.items()])
            answers = await plugin.run_each("transform_tool", within_s, read_tool, asked) if asked else []
            for definition, answer in zip(asked, answers, strict=True):
                name = definition.name
                if isinstance(answer, Tool):
                    changed[name] = answer
                    left[name] = replace(answer, own=tools[name])
                elif isinstance(answer, PluginFailed):
                    failed = True
                if isinstance(answer, Rejection) or (isinstance(answer, PluginFailed) and plugin.guards):
                    why = answer.reason if isinstance(answer, Rejection) else f"{_GUARD} ({answer})"
                    rejected[name] = f"plugin {plugin.name}: {why}"
                    left.pop(name)
        if not (changed or rejected or failed):
            return NO_CHANGES
        kept = {name: tool for name, tool in changed.items() if name not in rejected}
        return ToolChanges(tools=kept, rejected=rejected, failed=failed)

    async def tell(self, server: str, own: Offer, changes: ToolChanges) -> None:
        """Tell plugins what came out of a discovery. Never raises. A checkpoint if any is told."""
        tools = tuple(tool.name for tool in own.tools if tool.name not in changes.rejected)
        facts = DiscoveryFacts(server=server, tools=tools, rejected=dict(changes.rejected))
        for plugin in self._of("after_discovery"):
            await plugin.run_each("after_discovery", self._settings.plugin_discovery_timeout_s, _read_nothing, [facts])

    # Who sees what ---------------------------------------------------------------------------------------------------

    async def hidden(self, viewer: Viewer, tools: Mapping[str, tuple[Tool, ...]]) -> dict[str, Hidden]:
        """Return which tools of servers, as clients see them, plugins hide from somebody.

        Never raises. A checkpoint.
        """
        why: dict[str, dict[str, str]] = {server: {} for server in tools}
        failed = set[str]()
        left = [(server, tool) for server, listed in tools.items() for tool in listed]
        for plugin in self.hiding:
            asked = await _definitions([(server, (tool.own or tool).name, tool) for server, tool in left])
            within_s = self._settings.plugin_discovery_timeout_s
            answers = await plugin.run_each("hide_tool", within_s, _read_verdict, asked, viewer) if asked else []
            for (server, tool), answer in zip(left, answers, strict=True):
                if isinstance(answer, PluginFailed):
                    failed.add(server)
                if answer is not None:
                    reason = answer.reason if isinstance(answer, Rejection) else f"{_GUARD} ({answer})"
                    why[server][tool.name] = f"hidden by plugin {plugin.name}: {reason}"
            left = [(server, tool) for server, tool in left if tool.name not in why[server]]
        return {server: Hidden(listed, why[server], server in failed) for server, listed in tools.items()}

    # Calls ----------------------------------------------------------------------------------------------------------

    async def before_call(self, call: ToolCall, asker: Asker) -> ToolCall:
        """Return a call as it is to be made, after what plugins ask by `asker`.

        Raises `CallRefused`, and what `asker` does. A checkpoint if any plugin is asked.
        """
        for plugin in self._before_call:
            try:
                answer = await self._decide(plugin, "before_call", read_arguments, asker, call)
            except PluginFailed:
                if plugin.guards:
                    text = f"plugin {plugin.name} decides whether {call.path} may be called, and it failed"
                    raise _refusal(call, plugin, f"{text}; nothing was called, {TELL_USER}") from None
                continue
            if isinstance(answer, Rejection):
                text = f"{call.path} was refused by plugin {plugin.name}, nothing was called: {answer.reason}"
                raise _refusal(call, plugin, text)
            if answer is not None:
                call = replace(call, arguments=answer)
        return call

    async def after_call(self, call: ToolCall, result: bytes, asker: Asker) -> bytes:
        """Return a result as it is to be passed on; see `before_call`."""
        for plugin in self._after_call:
            try:
                other = await self._decide(plugin, "after_call", read_result, asker, call, result)
            except PluginFailed:
                if plugin.guards:
                    text = f"{call.path} was called, but its result is held back: plugin {plugin.name}, which looks at"
                    said = f"{text} results, failed on it; {TELL_USER}"
                    raise _refusal(call, plugin, said, outcome="completed") from None
                continue
            result = result if other is None else other
        return result

    async def _decide(
        self,
        plugin: RunningPlugin,
        hook: str,
        read: Callable[..., T | PluginQuestion],
        asker: Asker,
        call: ToolCall,
        *more: Any,
    ) -> T:
        """Return what a hook decides, once it has the answers to all that it asks. The time of people is their own."""
        while True:
            answers = asker.answers(plugin.name)
            asked = replace(call, answers=answers) if answers else call
            check = partial(read, given=asked, most=asker.most)
            said = await plugin.run(hook, self._settings.plugin_call_timeout_s, check, asked, *more)
            if not isinstance(said, PluginQuestion):
                return said
            await asker.ask(plugin.name, said)

    # Implements `supervisor.plugins.running.Watcher` ----------------------------------------------------------------

    def on_off(self, name: str, hook: str, why: str, *, guards: bool) -> None:
        effect = "what it guards is refused" if guards else "it is passed over"
        self._conditions.begin(_condition(name, hook), f"{effect}, as it failed too often: it {why}")
        self._facts.note(PluginDisabled(plugin=name, hook=hook, guards=guards, reason=why[:MAX_TEXT]))

    def on_again(self, name: str, hook: str) -> None:
        self._conditions.end(_condition(name, hook))
        self._facts.note(PluginRecovered(plugin=name, hook=hook))


async def _definitions(tools: Sequence[tuple[str, str, Tool]]) -> list[ToolDefinition]:
    """Return tools as hooks are told of them, by their servers and those own names of them. A checkpoint."""

    def define(server: str, name: str, tool: Tool) -> ToolDefinition:
        category, safety = traits(server, tool)
        return ToolDefinition(server=server, name=name, text=bytes(tool.definition), category=category, safety=safety)

    return await decode_in_thread(lambda: [define(*each) for each in tools])


async def _verdict(plugin: RunningPlugin, server: ServerFacts, within_s: float) -> str:
    """Return why a plugin refuses a server; empty if it does not."""
    try:
        said = await plugin.run("before_discovery", within_s, read_verdict, server)
    except PluginFailed as error:
        return f"{_GUARD} ({error})" if plugin.guards else ""
    return said.reason if said is not None else ""


def _refusal(call: ToolCall, plugin: RunningPlugin, text: str, **more: Any) -> CallRefused:
    return CallRefused(text, server=call.server, details={"plugin": plugin.name}, **more)


def _read_nothing(value: Any, facts: DiscoveryFacts) -> None:
    del facts
    read_nothing(value)


def _read_verdict(value: Any, tool: ToolDefinition) -> Rejection | None:
    del tool
    return read_verdict(value)


def _condition(name: str, hook: str) -> str:
    return f"plugin {name}, {hook}"
