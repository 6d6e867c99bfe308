"""Who may call which tools: rules by user, team and path of a tool, of which the first that fits decides.

    "plugins": {
      "access": {
        "hide": true,
        "rules": [
          {"users": ["ann"], "tools": ["*"]},
          {"teams": ["support"], "tools": ["tickets:*", "wiki:read_*"]},
          {"tools": ["time:*"]},
          {"tools": ["*"], "effect": "deny"}
        ]
      }
    }

A rule without `users` and `teams` is for everybody. What no rule fits is denied. With `hide` nobody sees a tool that
they may not call; without it tools are found by everybody, and refused with the `reason`.
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import Annotated, Literal

from msgspec import Meta

from supervisor.plugins.contract import Plugin, PluginOptions, Rejection, ToolCall, ToolDefinition, Viewer

Names = Annotated[tuple[str, ...], Meta(max_length=1000)]


class Rule(PluginOptions, frozen=True, kw_only=True):
    """Whom it is about, and which tools: `server:tool`, where `*` stands for anything."""

    tools: Annotated[tuple[str, ...], Meta(min_length=1, max_length=1000)]
    users: Names = ()
    teams: Names = ()
    effect: Literal["allow", "deny"] = "allow"

    def is_about(self, who: ToolCall | Viewer) -> bool:
        """Say whether it is for whoever calls, or looks."""
        if not (self.users or self.teams):
            return True
        return who.user in self.users or not who.teams.isdisjoint(self.teams)


class AccessOptions(PluginOptions, frozen=True, kw_only=True):
    """The rules, whether what they deny is hidden too, and what is said to those who are refused."""

    rules: Annotated[tuple[Rule, ...], Meta(max_length=1000)] = ()
    hide: bool = False
    reason: str = "you are not allowed to call this tool; ask your operator"

    def __post_init__(self) -> None:
        """Refuse a path that fits no tool for certain. The message must not have the path."""
        for number, rule in enumerate(self.rules, 1):
            if any(":" not in tool and tool != "*" for tool in rule.tools):
                raise ValueError(f'rule {number} has a tool without a server: write "server:tool", or "*"')


class Access(Plugin[AccessOptions]):
    """Refuses calls, and hides tools. It guards: if it fails, nobody calls or sees anything."""

    options_type = AccessOptions
    guards = True

    def __init__(self, options: AccessOptions) -> None:
        super().__init__(options)
        self._rules = [(rule, re.compile("|".join(map(translate, rule.tools)))) for rule in options.rules]

    def hide_tool(self, tool: ToolDefinition, viewer: Viewer) -> Rejection | None:
        """Hide what somebody may not call. There may be many tools, so it is done in a thread."""
        return self._verdict(viewer, f"{tool.server}:{tool.name}") if self.options.hide else None

    async def before_call(self, call: ToolCall) -> Rejection | None:
        """Look for the first rule that fits. It waits for nothing, so it needs no thread."""
        return self._verdict(call, call.path)

    def _verdict(self, who: ToolCall | Viewer, path: str) -> Rejection | None:
        for rule, paths in self._rules:
            if rule.is_about(who) and paths.match(path):
                return None if rule.effect == "allow" else Rejection(self.options.reason)
        return Rejection(self.options.reason)
