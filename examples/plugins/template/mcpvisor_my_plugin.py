"""A plugin with every hook. Copy the folder, rename it, and remove the hooks that you do not need: each costs time."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from supervisor.plugins.contract import (
    DiscoveryFacts,
    Plugin,
    PluginOptions,
    Rejection,
    ServerFacts,
    ToolCall,
    ToolDefinition,
    Viewer,
    decode_result,
)


class MyOptions(PluginOptions, frozen=True, kw_only=True):
    """The keys of the plugin in the configuration, with their types and defaults."""

    commands: tuple[str, ...] = ()
    """Programs that servers may be started with; none: any."""
    prefix: Annotated[str, Meta(max_length=100)] = ""
    """What descriptions of tools begin with."""
    tags: tuple[str, ...] = ()
    """What tools are found by besides: `mcpvisor tools --tag` and `/api/tools`."""
    hide: tuple[str, ...] = ()
    """Names of tools that nobody sees."""
    dangerous_for: tuple[str, ...] = ()
    """Users who see tools that look dangerous; none: everybody."""
    max_items: Annotated[int, Meta(ge=1, le=1000)] = 100
    """The most that an argument `limit` may ask for."""


class MyPlugin(Plugin[MyOptions]):
    """Each hook is a plain function, which runs in a thread, or `async def`, which must not block."""

    options_type = MyOptions
    guards = True  # what a hook cannot answer is refused; without `hide_tool` it may be False

    def before_discovery(self, server: ServerFacts) -> Rejection | None:
        """Say whether a server may be started and read."""
        if self.options.commands and server.kind == "stdio" and server.command not in self.options.commands:
            return Rejection("its program is not one of those that are allowed")
        return None

    def transform_tool(self, tool: ToolDefinition) -> ToolDefinition | Rejection | None:
        """Change what clients see of a tool, or hide it. Its name stays."""
        if tool.name in self.options.hide:
            return Rejection("it is not for clients")
        if self.options.tags:
            tool = tool.with_meta(tags=[*self.options.tags])
        if not self.options.prefix:
            return tool
        description = tool.decode().get("description", "")
        return tool.with_members(description=f"{self.options.prefix}{description}")

    async def after_discovery(self, discovery: DiscoveryFacts) -> None:
        """Hear what came out of it."""
        self.tools_of = {**getattr(self, "tools_of", {}), discovery.server: len(discovery.tools)}

    async def hide_tool(self, tool: ToolDefinition, viewer: Viewer) -> Rejection | None:
        """Hide a tool from somebody."""
        if self.options.dangerous_for and tool.safety == "dangerous" and viewer.user not in self.options.dangerous_for:
            return Rejection("it is dangerous")
        return None

    async def before_call(self, call: ToolCall) -> Rejection | dict[str, object] | None:
        """Refuse a call, or change its arguments."""
        arguments = call.decode_arguments()
        limit = arguments.get("limit")
        if isinstance(limit, int) and limit > self.options.max_items:
            return {**arguments, "limit": self.options.max_items}
        return None

    def after_call(self, call: ToolCall, result: bytes) -> dict[str, object] | None:
        """Change the result of a call."""
        del call
        value = decode_result(result)
        if value.get("isError"):
            return None
        return {**value, "_meta": {**value.get("_meta", {}), "example.com/seen": True}}
