"""The profiles of a configuration: checked, and held against the servers that there are.

A wrong profile is a problem of the whole file: with less in it, or more, clients would see what nobody meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from actors.catalogue.profiles import ViewProfile
from actors.catalogue.tool_rules import ToolRules, fits
from supervisor.config.syntax.keys import hint_of, name_fault, suggest_name
from supervisor.config.syntax.values import Problem, Remark, read_members
from supervisor.config.tool_paths import unfitting

PROFILES = "profiles"
_WITH_PATHS = ("tools", "deny")


def read_profiles(members: Mapping[str, Any], default: object, problem: Problem) -> dict[str, dict[str, Any]]:
    """Return the members of each profile, objects as the file has them; `default` is the setting `profile`.

    `problem` takes keys from `supervisor` inwards.
    """
    read: dict[str, dict[str, Any]] = {}
    for name, written in members.items():
        if fault := name_fault(name):
            problem((PROFILES, name), fault, f'rename it, for example to "{suggest_name(name)}"')
        read[name] = _read(name, written, problem)
    if isinstance(default, str) and default and default not in read:
        problem(("profile",), "there is no such profile", hint_of(default, read, 'it must be one of "profiles"'))
    return read


def _read(name: str, written: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    own = read_members(ViewProfile, written, (PROFILES, name), problem)
    for at, pattern in enumerate(own.get("tools") or ()):
        if not all(pattern.partition(":")):
            problem((PROFILES, name, "tools", at), "is not the path of a tool", "write server:tool, or server:*")
    return own


def profile_remarks(profiles: Mapping[str, ViewProfile], servers: Mapping[str, ToolRules]) -> Iterator[Remark]:
    """Yield which patterns of profiles fit none of these servers, all there are, or no tool of them."""
    for name, profile in profiles.items():
        for key in ("servers", *_WITH_PATHS):
            for at, pattern in enumerate(getattr(profile, key) or ()):
                server = pattern.partition(":")[0] if key in _WITH_PATHS else pattern
                if not any(fits(each, (server,)) for each in servers):
                    yield (PROFILES, name, key, at), "no server is called so", hint_of(server, servers, "")
                elif ":" in pattern and (fault := unfitting(pattern, servers, own=False)) is not None:
                    yield (PROFILES, name, key, at), *fault
