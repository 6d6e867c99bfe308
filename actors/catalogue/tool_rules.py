"""What the operator makes of the tools of one server, by a configuration and by plugins. Pure.

Rules of this file:
- Everything is said by the names that the server itself gives its tools; what clients see follows from it.
- What an offer shows depends on the rules and the offer alone, so a changed rule needs no new reading of the lists.
- A rule that cannot be followed, or that fits no tool, is a problem that an operator can read, and nothing else.
- What plugins say is for exactly the offer that was looked at. It comes before the rules of the configuration, which
  have the last word, and after the pins: what is approved, or suspicious, is what the server says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace
from rapidfuzz import fuzz, process

from actors.catalogue.findings import quote
from actors.catalogue.offer import Offer, Tool
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

MAX_PROBLEMS = 20
"""So many problems of the rules of one server are told."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""MCP 2025-11-25, server/tools, "Tool Names"."""
_WILD = re.compile(r"[*?\[\]]")
_LIKE = 70.0
_MAX_SHOWN = 100

Patterns = Annotated[tuple[str, ...], Meta(max_length=1000)]


class ToolRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which tools of a server clients see, and how. Empty rules, which are false, show all as they are."""

    allow: Patterns = ("*",)
    """Names of tools that clients see and may call, `*` for any rest. There are no others."""
    deny: Patterns = ()
    """Names of tools that are hidden, `*` for any rest; it wins over `allow`."""
    rename: dict[str, str] = {}
    """New names of tools, by the names that the server gives them."""
    describe: dict[str, str] = {}
    """New descriptions of tools, by the names that the server gives them. Clients read them, and search finds the tools
    by them."""

    def __bool__(self) -> bool:
        return bool(self.deny or self.rename or self.describe) or self.allow != ("*",)

    def allows(self, tool: str) -> bool:
        return fits(tool, self.allow) and not fits(tool, self.deny)

    def apply(self, offer: Offer) -> Offer:
        """Return what clients see of an offer, with the problems of the rules; the same object for empty rules.

        A tool that is shown as it is stays the same object, with its token count.
        """
        if not self:
            unmet = [] if offer.partial else _some(self._unmet([tool.name for tool in offer.tools]))
            return replace(offer, problems=(*offer.problems, *unmet)) if unmet else offer
        allowed = [tool for tool in offer.tools if self.allows(tool.name)]
        renames, problems = _possible(self.rename, [tool.name for tool in allowed])
        tools = tuple(_rewrite(tool, renames.get(tool.name), self.describe.get(tool.name)) for tool in allowed)
        as_they_are = {tool.name for tool in tools if tool.own is None}
        problems += [] if offer.partial else self._unmet([tool.name for tool in offer.tools])
        return replace(
            offer,
            tools=tools,
            problems=(*offer.problems, *_some(problems)),
            token_counts={name: count for name, count in offer.token_counts.items() if name in as_they_are},
        )

    def _unmet(self, names: Sequence[str]) -> list[str]:
        """Return what is said of tools that the server, which has tools of these names, has not got."""
        known, own = frozenset(names), {new: old for old, new in self.rename.items()}
        problems = [] if self.allow else ["tools.allow: it is empty, so nobody sees any tool of this server"]
        for key, patterns in (("tools.allow", self.allow), ("tools.deny", self.deny), *self._beside()):
            missed = (word for word in patterns if word != "*" and not any(fnmatchcase(name, word) for name in names))
            problems += [_no_tool(key, word, names, own) for word in missed]
        for key, said in (("tools.rename", self.rename), ("tools.describe", self.describe)):
            problems += [_no_tool(key, word, names, own) for word in said if word not in known]
        return problems

    def _beside(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        return ()


class EntryRules(ToolRules, frozen=True, kw_only=True):
    """The same with what else an entry says of tools by their names: patterns by key. It changes no tool, but what fits
    none is a problem, too.
    """

    beside: Mapping[str, tuple[str, ...]] = {}

    def _beside(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        return self.beside.items()


NO_RULES = ToolRules()


def name_fault(name: str) -> str:
    """Return why a tool cannot be called so; empty if it can."""
    if _NAME.fullmatch(name):
        return ""
    return 'a name of a tool has 1 to 128 ASCII letters, digits, "_", "-" and "."'


@lru_cache(maxsize=1024)
def expression_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return the expression that matches the names that fit any of these patterns."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def fits(name: str, patterns: tuple[str, ...]) -> bool:
    return expression_of(patterns).match(name) is not None


def _possible(wanted: Mapping[str, str], names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the renames that can be done among tools of these names, and why the others cannot be."""
    problems: list[str] = []
    renames = {old: wanted[old] for old in names if wanted.get(old, old) != old}
    for old, new in list(renames.items()):
        if fault := name_fault(new):
            problems.append(f"tools.rename: {_quote(old)} keeps its name: {fault}")
            del renames[old]
    while True:  # a tool that keeps its name may be in the way of another one
        taken = Counter(renames.get(name, name) for name in names)
        clashing = [(old, new) for old, new in renames.items() if taken[new] > 1]
        if not clashing:
            return renames, problems
        for old, new in clashing:
            problems.append(f"tools.rename: {_quote(old)} keeps its name: another tool is called {_quote(new)}, too")
            del renames[old]


def _rewrite(tool: Tool, name: str | None, description: str | None) -> Tool:
    """Return a tool under another name, or with another description; the tool itself without either."""
    if name is None and description is None:
        return tool
    told = {"name": json.quoted(tool.name if name is None else name)}
    told |= {} if description is None else {"description": json.quoted(description)}
    definition = msgspec.Raw(encode({**json.MEMBERS.decode(tool.definition), **told}))
    described = told.get("description", tool.described)
    return replace(tool, name=name or tool.name, described=described, definition=definition, own=tool.own or tool)


def _some(problems: list[str]) -> list[str]:
    more = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], f"tools: {more} more problems of this kind"] if more > 0 else problems


def _no_tool(key: str, word: str, names: Sequence[str], own: Mapping[str, str]) -> str:
    text = f"{key}: the server has no tool {_quote(word)}"
    if word in own:
        return f"{text}: write {_quote(own[word])}, its own name of it"
    bare = _WILD.sub("", word)[:_MAX_SHOWN]
    likely = process.extractOne(bare, names, scorer=fuzz.ratio, score_cutoff=_LIKE)
    return f"{text}; did you mean {_quote(likely[0])}?" if likely else text


def _quote(name: str) -> str:
    return repr(name[:_MAX_SHOWN])


_MAX_CHANGE_PROBLEMS: Final = 20
"""So many rejections of one server are told."""
_MAX_NAME_CHARS: Final = 100


class ToolChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Definitions of tools that clients see in the place of the server's, and why they do not see others.

    `failed`: a plugin gave no answer for some, so it is worth asking again.
    """

    tools: Mapping[str, Tool] = {}
    rejected: Mapping[str, str] = {}
    failed: bool = False

    def __bool__(self) -> bool:
        return bool(self.tools or self.rejected)

    def apply(self, offer: Offer) -> Offer:
        """Return what is left to see of an offer, with the rejections as problems; the same object for no changes."""
        if not self:
            return offer
        shown = [tool for tool in offer.tools if tool.name not in self.rejected]
        tools = tuple(replace(self.tools[tool.name], own=tool) if tool.name in self.tools else tool for tool in shown)
        told = [f"tool {quote(name, _MAX_NAME_CHARS)} is hidden by {why}" for name, why in self.rejected.items()]
        more = len(told) - _MAX_CHANGE_PROBLEMS
        told[_MAX_CHANGE_PROBLEMS:] = [f"{more} more tools are hidden by plugins"] if more > 0 else []
        as_they_are = {tool.name for tool in tools if tool.own is None}
        return replace(
            offer,
            tools=tools,
            problems=(*offer.problems, *told),
            token_counts={name: count for name, count in offer.token_counts.items() if name in as_they_are},
        )


NO_CHANGES: Final = ToolChanges()
