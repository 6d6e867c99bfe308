"""Which tools of a server are seen, and which need no yes: the key `tools` of an entry, and what others write for it.

Other programs name single tools; the names are taken for patterns, as ours are: what they match is themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from actors.catalogue.offer import MAX_DESCRIPTION
from actors.catalogue.tool_rules import ToolRules, name_fault
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.keys import hint_of, is_comment, names_with
from supervisor.config.syntax.values import Remark, keys_of, type_faults

ALLOWED: Final = names_with("allow")
DENIED: Final = names_with("deny")
APPROVED: Final = names_with("approve")
"""Keys of other programs, all of which have lists of names."""

Problem = Callable[[KeyPath, str, str], None]
"""Records a fault: the key from the entry inwards, what is wrong, and what to do."""


def read_tools(members: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return the members of `tools` for an entry as the file has it, without what was recorded as a problem.

    A list, as GitHub Copilot writes it, is what is allowed. Our own `allow` goes over that of others; what is denied
    anywhere is denied.
    """
    written = {} if members.get("tools") is None else members["tools"]
    is_list = isinstance(written, list)
    own = {"allow": written} if is_list else {key: value for key, value in written.items() if not is_comment(key)}
    keys = keys_of(ToolRules)
    for key in own.keys() - keys.keys():
        problem(("tools", key), "unknown key", hint_of(key, keys))
    for below, message, hint in type_faults(own, keys):
        problem(("tools", *(below[1:] if is_list else below)), message, hint)
    for name, text in own.get("describe", {}).items() if isinstance(own.get("describe"), dict) else ():
        if isinstance(text, str) and len(text) > MAX_DESCRIPTION:
            problem(("tools", "describe", name), f"is longer than {MAX_DESCRIPTION} characters", "shorten it")
    allowed, denied = read_names(members, ALLOWED, problem), read_names(members, DENIED, problem)
    if allowed is not None:
        own.setdefault("allow", allowed)
    if denied is not None:
        own["deny"] = [*own.get("deny", ()), *denied]
    return own


def places_of(members: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, KeyPath]:
    """Return where each member that `read_tools` returned is written; of several places, that which is ours."""
    written = members.get("tools")
    whole: tuple[str, ...] = ("allow",) if isinstance(written, list) else ()
    ours: dict[str, KeyPath] = {key: ("tools", key) for key in written or ()} if not whole else {"allow": ("tools",)}
    theirs = {"allow": ALLOWED, "deny": DENIED}
    return {key: ours.get(key) or (next(name for name in theirs[key] if name in members),) for key in own}


def read_names(members: Mapping[str, Any], names: tuple[str, ...], problem: Problem) -> list[str] | None:
    """Return what stands in the lists of these names, None if there is none of them."""
    given = {name: value for name, value in members.items() if name in names and value is not None}
    deny = keys_of(ToolRules)["deny"]
    faults = list(type_faults(given, dict.fromkeys(given, deny)))
    for fault in faults:
        problem(*fault)
    return None if faults or not given else [each for listed in given.values() for each in listed]


def rename_remarks(own: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield which renames of `tools` without a fault can never be done."""
    renames: Mapping[str, str] = own.get("rename", {})
    counts = Counter(renames.values())
    for old, new in renames.items():
        fault = name_fault(new) or ("another tool is to be called so, too" if counts[new] > 1 else "")
        if fault:
            yield ("tools", "rename", old), f"the tool keeps its name: {fault}", ""
