"""Paths of tools, `server:tool`, as profiles and the `confirm` of people name them: what can fit no tool. Pure.

Which tools a server has is known to a daemon only. What an entry says of its tools is in the file: a tool that it hides
is nobody's, and of one that it renames profiles have the new name, and `confirm` the server's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from actors.catalogue.tool_rules import ToolRules, fits
from supervisor.config.structs import Settings
from supervisor.identity.people import Team, User

_WILD = re.compile(r"[*?\[\]]")


def unfitting(path: str, servers: Mapping[str, ToolRules], *, own: bool) -> tuple[str, str] | None:
    """Return why a path fits no tool of the servers that it names, and what to do; None if it may fit one.

    `own`: it has the name that the server gives its tool.
    """
    server, _, tool = path.partition(":")
    named = [rules for name, rules in servers.items() if fits(name, (server,))]
    if not tool:
        return "names no tool, so it fits none", "write server:tool, or server:* for all"
    faults = [_fault(tool, rules, own=own) for rules in named] if _WILD.search(tool) is None else []
    return faults[0] if faults and all(faults) else None


def _fault(tool: str, rules: ToolRules, *, own: bool) -> tuple[str, str] | None:
    former = next((old for old, new in rules.rename.items() if new == tool), None)
    if own and former is not None and tool not in rules.rename:
        return "this is the name that clients see, and the server's own counts here", f'write "{former}"'
    if not own and former is None and (new := rules.rename.get(tool, tool)) != tool:
        return "its server's entry gives this tool another name", f'write "{new}"'
    if not rules.allows(former or tool):
        return "its server's entry hides this tool", "remove it, or change tools of the entry"
    return None


def named_tools(settings: Settings) -> Iterator[str]:
    """Yield each whole path that profiles and people name."""
    for profile in settings.profiles.values():
        yield from filter(_is_whole, (*(profile.tools or ()), *profile.deny))
    people: list[User | Team] = [*settings.identity.users.values(), *settings.identity.teams.values()]
    for owner in people:
        yield from filter(_is_whole, () if isinstance(owner.confirm, str) else owner.confirm)


def _is_whole(path: str) -> bool:
    return _WILD.search(path) is None and all(path.partition(":"))
