"""A few words on what a server is for, made from what it says of itself or from its tools. Pure.

What servers say begins with a heading, with "This MCP server provides tools to", or with how they came to be installed;
none of that tells one server from another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from actors.catalogue.entries import Tool
from supervisor.shown import clean

LOOKED_AT = 2000
"""Characters of a text, the most."""
_MAX_TOOLS = 200
_MAX_NAME_CHARS = 40
_NOUNS = 3
_VERBS = 3
_SPACE = re.compile(r"\s+")
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s.*|[=\-*_]{3,}\s*|```.*)$", re.MULTILINE)
_MARKUP = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\s*\n\s*\n\s*")
_SERVER = r"(?:(?:an?|the|this|official)\s+)*(?:[\w.-]+\s+){0,4}?(?:mcp|model context protocol)(?:\s+\(mcp\))?\s+server"
_GIVES = r"(?:provid|offer|expos|giv|enabl|allow|implement|let)(?:es?|s|ing)?"
_TOOLS_TO = r"(?:(?:an?\s+|the\s+)?(?:set\s+of\s+)?tools?\s+(?:to|for|that)\s+)"
_BEGINNING = re.compile(
    rf"^(?:{_SERVER}|(?:this|the)\s+(?:[\w.-]+\s+){{0,3}}?server)(?:\s+that|\s+which)?(?:\s+is)?"
    rf"(?:\s+{_GIVES}\s+{_TOOLS_TO}?|\s+(?:for|to)\s+|\s*[:,-]\s+|\s+)|^(?:use\s+this\s+server\s+to|{_TOOLS_TO})\s*",
    re.IGNORECASE,
)
_ABOUT_ITSELF = re.compile(
    r"^(?:the user (?:has|wants)\b|you (?:are|have|must|should)\b|welcome\b|important\b|note\b|always\b|never\b"
    r"|before\b|when\b|if\b|instructions\b|please\b)",
    re.IGNORECASE,
)
_MCP_SERVER = re.compile(r"\b(?:the\s+)?(?:mcp|model context protocol)(?:\s+server)?\b|\bserver$", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_PLAIN_WORDS = re.compile(r"[^\W_]+")
_LITTLE = frozenset(
    ["a", "an", "and", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the", "to", "with", "that"]
)


def sentence(text: str, server: str) -> str:
    """Return the first sentence that says what a server is for, on one line; empty if none does."""
    plain = _MARKUP.sub("", _HEADING.sub("\n", clean(text[:LOOKED_AT])))
    for part in _SENTENCE.split(plain):
        line = _SPACE.sub(" ", part).strip()
        told = line and not _ABOUT_ITSELF.match(line)
        said = _without_preamble(line).rstrip(".:") if told else ""
        if _says_more(said, server):
            return said
    return ""


def _without_preamble(line: str) -> str:
    rest = _BEGINNING.sub("", line, count=1).strip()
    rest = _SPACE.sub(" ", _MCP_SERVER.sub("", rest)).strip(" ,:-")
    return rest[:1].upper() + rest[1:]


def _says_more(said: str, server: str) -> bool:
    """Say whether there is any word in it but those of the server's name."""
    own = {*_PLAIN_WORDS.findall(server.casefold()), *_LITTLE, "mcp", "server"}
    return any(word not in own for word in _PLAIN_WORDS.findall(said.casefold()))


def of_tools(tools: Sequence[Tool], server: str) -> str:
    """Return what tools are about: what the only one says, else the commonest things and deeds in their names."""
    if len(tools) == 1:
        return sentence(tools[0].description, server) or clean(tools[0].name)[:_MAX_NAME_CHARS]
    own = {word.casefold() for word in _WORDS.findall(server)} | {server.casefold()}
    deeds: Counter[str] = Counter()
    things: dict[str, list[str]] = {}
    for tool in tools[:_MAX_TOOLS]:
        words = [word.lower() for word in _WORDS.findall(clean(tool.name)[:_MAX_NAME_CHARS])]
        words = [word for word in words if word not in own] or words
        deeds.update(words[:1])
        if thing := " ".join(words[1:]):
            things.setdefault(thing.removesuffix("s"), []).append(thing)
    commonest = sorted(things.values(), key=len, reverse=True)[:_NOUNS]
    nouns, verbs = ", ".join(found[0] for found in commonest), ", ".join(deed for deed, _ in deeds.most_common(_VERBS))
    return f"{nouns}: {verbs}" if nouns and verbs else nouns or verbs


def brief(text: str, chars: int) -> str:
    """Return the first words of a text, in at most so many characters, not ending in a little word."""
    if len(text) <= chars:
        return text
    words = text[: chars + 1].split(" ")[:-1] or [text[:chars]]
    while len(words) > 1 and words[-1].strip(",;:(").casefold() in _LITTLE:
        words.pop()
    return " ".join(words).rstrip(" ,;:(-")
