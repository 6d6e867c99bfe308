"""Requests for a list, in words: "what tools does redis have", "show me everything github can do". Pure.

Only where nothing else is said: a word of content more makes it a search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_WORD = re.compile(r"[^\W_]+")
_MOST_CHARS = 200
_THINGS = frozenset(["tool", "tools", "toolset", "function", "functions", "capability", "capabilities", "abilities"])
"""What a list is asked of."""
_FILLING = frozenset(
    [
        *("a", "about", "all", "and", "any", "are", "available", "by", "can", "could", "do", "does", "every"),
        *("everything", "exist", "for", "from", "full", "get", "give", "has", "have", "i", "in", "is", "it", "its"),
        *("let", "list", "listing", "many", "mcp", "me", "my", "name", "names", "of", "offer", "offered", "offers"),
        *("on", "our", "please", "print", "provide", "provided", "provides", "s", "see", "server", "servers", "show"),
        *("support", "supports", "tell", "that", "the", "there", "to", "use", "us", "we", "what", "which", "with"),
        *("would", "you", "your"),
    ]
)
"""What may stand around a request for a list; not the stop words of the search: "without" makes it another one."""
_EMPTY = _FILLING | _THINGS
_BEFORE = (["of"], ["from"], ["does"], ["can"])
_ABLE = re.compile(
    r"\b(?:can|could)\b.*\bdo\b|\bdo(?:es)?\b.*\b(?:offer|provide|support)\b|\b(?:offers|provides|supports)\b"
)


def of_server(query: str, servers: Iterable[str]) -> str:
    """Return the server whose tools a text asks to be listed; empty if it asks for anything else."""
    if len(query) > _MOST_CHARS:
        return ""
    words = _WORD.findall(query.casefold())
    if not _asks(words):
        return ""
    lists = [(len(rest), server) for server in servers for rest in _without(words, server) if _is_listing(rest)]
    return min(lists)[1] if lists else ""


def _without(words: list[str], server: str) -> Iterator[list[str]]:
    """Yield the words around each place where a server is named; a name like "list" must plainly be meant as one."""
    name = _WORD.findall(server.casefold())
    for spelled in (name, ["".join(name)][: len(name) - 1]):
        size = len(spelled)
        for start in range(len(words) - size + 1) if size else ():
            before, rest = words[:start], words[start + size :]
            plainly = not _EMPTY.issuperset(spelled) or before[-1:] in _BEFORE or rest[:1] == ["server"]
            if words[start : start + size] == spelled and plainly:
                yield before + rest


def _is_listing(rest: list[str]) -> bool:
    return _asks(rest) and _EMPTY.issuperset(rest)


def _asks(words: list[str]) -> bool:
    return not _THINGS.isdisjoint(words) or _ABLE.search(" ".join(words)) is not None
