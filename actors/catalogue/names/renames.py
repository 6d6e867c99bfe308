"""Tools that have another name than before: the same definition but for the name. Pure.

A guess would be worse than nothing, so it must be told by the definition alone: one tool that went and one that came
have it, and it says something (a description or parameters). More than `MAX_COMPARED_BYTES` of definitions that came or
went at once are not compared: that takes its time on the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from actors.catalogue.offer import Tool

MAX_COMPARED_BYTES = 1024 * 1024
MAX_REMEMBERED = 200
"""Of one server; the newest stay."""

_Telling = tuple[str, str, bytes]


def find_renames(before: Iterable[Tool], after: Iterable[Tool]) -> dict[str, str]:
    """Return the new name of each tool of `before` that has another one now, by its old name, in sorted order."""
    old, new = {tool.name: tool for tool in before}, {tool.name: tool for tool in after}
    gone = [old[name] for name in old.keys() - new.keys()]
    came = [new[name] for name in new.keys() - old.keys()]
    if not gone or not came or sum(len(tool.definition) for tool in (*gone, *came)) > MAX_COMPARED_BYTES:
        return {}
    left, arrived = _by_definition(gone), _by_definition(came)
    pairs = ((left[key], arrived[key]) for key in left.keys() & arrived.keys())
    return dict(
        sorted(
            (was[0].name, now[0].name)
            for was, now in pairs
            if len(was) == len(now) == 1 and _without_name(was[0]) == _without_name(now[0])
        )
    )


def merge_renames(known: Mapping[str, str], fresh: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return present names by old ones; who has its old name back, or is not among all `names`, is forgotten."""
    present = frozenset(names)
    all_ = {**{old: fresh.get(new, new) for old, new in known.items()}, **fresh}
    valid = [(old, new) for old, new in all_.items() if new in present and old not in present]
    return dict(valid[-MAX_REMEMBERED:])


def _by_definition(tools: Iterable[Tool]) -> dict[_Telling, list[Tool]]:
    alike: dict[_Telling, list[Tool]] = defaultdict(list)
    for tool in tools:
        if tool.description or tool.parameters:
            alike[tool.title, tool.description, bytes(tool.input_schema)].append(tool)
    return alike


def _without_name(tool: Tool) -> dict[str, object]:
    definition: dict[str, object] = msgspec.json.decode(tool.definition)
    definition.pop("name", None)
    return definition
