"""A few words on what a server is for, made from what it says of itself or from its tools. Pure.

What servers say begins with a heading, with "This MCP server provides tools to", or with how they came to be installed;
none of that tells one server from another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from actors.catalogue.lists.suspicions import alarms_of
from actors.catalogue.offer import Tool
from actors.search.words.tables import VERB_CLASS
from supervisor.metatools.texts import clean

LOOKED_AT = 2000
"""Characters of a text, the most."""
_SENTENCES = 6
"""What a server is for stands among so many, or nowhere: later ones are about its use."""
_MAX_TOOLS = 200
_MAX_NAME_CHARS = 40
_NOUNS = 3
_VERBS = 3
_SPACE = re.compile(r"\s+")
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s.*|[=\-*_]{3,}\s*|```.*)$", re.MULTILINE)
_MARKUP = re.compile(r"[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\s*\n\s*\n\s*")
_SERVER = r"(?:(?:an?|the|this|official)\s+)*(?:[\w.-]+\s+){0,4}?(?:mcp|model context protocol)(?:\s+\(mcp\))?\s+server"
_GIVES = r"(?:provid|offer|expos|giv|enabl|allow|implement|let)(?:es?|s|ing)?"
_TO_WHOM = (
    r"(?:\s+(?:[\w.-]+\s+){0,3}?(?:agents?|assistants?|models?|llms?|clients?|users?|you)(?:\s+(?:with|the ability))?"
    r"(?:\s+(?:access\s+)?to)?)?"
)
_TOOLS_TO = r"(?:(?:an?\s+|the\s+)?(?:set\s+of\s+)?tools?\s+(?:to|for|that)\s+)"
_BEGINNING = re.compile(
    rf"^(?:{_SERVER}|(?:this|the)\s+(?:[\w.-]+\s+){{0,3}}?server)(?:\s+that|\s+which)?(?:\s+is)?"
    rf"(?:\s+{_GIVES}{_TO_WHOM}\s+{_TOOLS_TO}?|\s+(?:for|to)\s+|\s*[:,-]\s+|\s+)|^(?:use\s+this\s+server\s+to|{_TOOLS_TO})\s*",
    re.IGNORECASE,
)
_GIVING = re.compile(rf"^(?:provides|offers|gives|allows|enables|lets){_TO_WHOM}\s+", re.IGNORECASE)
_ABOUT_ITSELF = re.compile(
    r"^(?:the user (?:has|wants)\b|you (?:are|have|must|should)\b|welcome\b|important\b|note\b|always\b|never\b"
    r"|before\b|when\b|if\b|instructions\b|please\b|audience\b|follow\b|these\b|use\s+\w+(?:[_-]\w+)+\s"
    r"|for\b[^,]{1,80},\s*(?:use|call|prefer)\b|[a-z0-9]+(?:_\w+|(?:-\w+){2,})\b)",
    re.IGNORECASE,
)
_MCP_SERVER = re.compile(r"\b(?:the\s+)?(?:mcp|model context protocol)(?:\s+server)?\b|\bserver$", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_PLAIN_WORDS = re.compile(r"[^\W_]+")
_LINKING = """
as at between by for from in including into on providing so such that through to using via where which with without
"""
_LINKS = frozenset(_LINKING.split())
"""Before these a phrase may end: what they begin is left out as a whole."""
_JOINING = frozenset(["and", "or"])
_LITTLE = _LINKS | _JOINING | frozenset(["a", "an", "is", "it", "its", "of", "the", "their", "your"])
_ENDS = (",", ";", ":")
_LEAST_KEPT = 0.4
"""So much of what there is room for a phrase must fill that ends where one part of the sentence does."""
_SAYS_NOTHING = frozenset(["mcp", "server", "api", "reference", "official", "service", "tool", "tools", "toolkit"])
_VERBS_TOO = """
aggregate analyze ask audit blame click close compare configure connect convert crawl diff do download drag evaluate
execute expand explain export extract fill find forward generate handle hover import list log manage map merge monitor
navigate open pick play press preview pull push query reset resolve resume run save scan schedule screenshot scrape
select share start submit subscribe summarize sync test toggle track transform translate trigger type unsubscribe
validate verify wait
"""
_DEEDS = VERB_CLASS.keys() | frozenset(_VERBS_TOO.split())
_PASSED_OVER = frozenset(["all", "api", "by", "current", "latest", "mcp", "multiple", "my", "new", "tool", "tools"])
_MOST_WORDS, _FIRST_WORDS = 3, 2
"""A thing of more words than the first is told by its first two: a longer one is a part of it."""
_COMMON = 0.6
"""The share of names that begin with a word which is what all the tools are about."""
_FEW = 3
_SINGLE = 5
"""So many names are told where each is one word."""


def sentence(text: str, server: str) -> str:
    """Return the first sentence that says what a server is for, on one line; empty if none does.

    One that reads as an order to the model (`text-instructs` and the like) says that of no server.
    """
    plain = _MARKUP.sub("", _HEADING.sub("\n", clean(text[:LOOKED_AT])))
    parts = [part for part in _SENTENCE.split(plain) if part.strip()]
    for part in parts[:_SENTENCES]:
        line = _SPACE.sub(" ", part).strip().lstrip("-*\u2022 ")
        told = line and not _ABOUT_ITSELF.match(line)
        said = _without_preamble(line, server).rstrip(".:") if told else ""
        if _says_more(said, server) and not alarms_of({"description": line}):
            return said
    return ""


def _without_preamble(line: str, server: str) -> str:
    own = re.match(rf"(?:the\s+)?{re.escape(server)}\s+(?:also\s+)?(?={_GIVES}\s)", line, re.IGNORECASE)
    rest = line[own.end() :] if own else _BEGINNING.sub("", line, count=1).strip()
    rest = _GIVING.sub("", rest, count=1)
    rest = _SPACE.sub(" ", _MCP_SERVER.sub("", rest)).strip(" ,:-")
    return rest[:1].upper() + rest[1:]


def _says_more(said: str, server: str) -> bool:
    """Say whether there is any word in it but those of the server's name."""
    own = {*_PLAIN_WORDS.findall(server.casefold()), *_LITTLE, *_SAYS_NOTHING}
    return any(word not in own for word in _PLAIN_WORDS.findall(said.casefold()))


def of_tools(tools: Sequence[Tool], server: str) -> str:
    """Return what tools are about: what the only one says, else the commonest things and deeds in their names."""
    if len(tools) == 1:
        return sentence(tools[0].description, server) or clean(tools[0].name)[:_MAX_NAME_CHARS]
    names = [_name_words(tool, server) for tool in tools[:_MAX_TOOLS]]
    if all(len(words) == 1 for words in names):
        return ", ".join(dict.fromkeys(words[0] for words in names[:_SINGLE]))
    firsts = Counter(words[0] for words in names if len(words) > 1)
    topics = {word for word, count in firsts.items() if count >= max(_FEW, _COMMON * len(names)) and word not in _DEEDS}
    deeds: Counter[str] = Counter()
    things: dict[str, list[str]] = {}
    for words in names:
        about, deed, thing = _taken_apart(words, topics, server)
        deeds.update(deed)
        for noun in (*about, thing):
            if noun:
                things.setdefault(noun.removesuffix("s"), []).append(noun)
    nouns = ", ".join(_commonest(things))
    verbs = ", ".join(deed for deed, _ in deeds.most_common(_VERBS))
    return f"{nouns}: {verbs}" if nouns and verbs else nouns or verbs


def _commonest(things: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the things most tools are about, without parts of one that is there."""
    nouns: list[str] = []
    for named in sorted(things.values(), key=len, reverse=True):
        if not any(named[0].startswith(f"{other.removesuffix('s')} ") for other in nouns):
            nouns.append(named[0])
    return nouns[:_NOUNS]


def _name_words(tool: Tool, server: str) -> list[str]:
    """Return the words of a tool's name without those of its server before them; at least one."""
    words = [word.lower() for word in _WORDS.findall(clean(tool.name)[:_MAX_NAME_CHARS])] or [clean(tool.name)]
    return _without_own(words, server) or words


def _without_own(words: Sequence[str], server: str) -> list[str]:
    own = {word.casefold() for word in _WORDS.findall(server)} | {server.casefold()} | _PASSED_OVER
    start = next((at for at, word in enumerate(words) if word not in own), len(words))
    return list(words[start:])


def _taken_apart(words: Sequence[str], topics: Collection[str], server: str) -> tuple[list[str], list[str], str]:
    """Return what a tool is about beside its thing, its deed, and its thing; a name of one word is a deed."""
    about = list(words[:1]) if words[0] in topics else []
    rest = words[len(about) :]
    if len(rest) == 1 and (rest[0] in _DEEDS or not about):
        return about, list(rest), ""
    at = next((at for at, word in enumerate(rest[:2]) if word in _DEEDS), -1)
    if at < 0:
        return about, [], _thing(rest)
    after = _without_own(rest[at + 1 :], server) or rest[at + 1 :]
    return [*about, *rest[:at]], [rest[at]], _thing(after)


def _thing(words: Sequence[str]) -> str:
    """Return what a tool does something with, up to the first little word."""
    said = [word for word in words if word not in _PASSED_OVER and len(word) > 1 and not word.isdigit()]
    while said and said[0] in _LITTLE:
        said.pop(0)
    end = next((at for at, word in enumerate(said) if word in _LITTLE), len(said))
    return " ".join(said[:end] if end <= _MOST_WORDS else said[:_FIRST_WORDS])


def brief(text: str, chars: int) -> str:
    """Return the first words of a text, in at most so many characters, as a phrase.

    It ends where a part of the sentence does, if that leaves enough of it; in any case not in a little word.
    """
    if len(text) <= chars:
        return text
    words = text.split(" ")
    fitting = text[: chars + 1].count(" ")
    if not fitting:
        return text[:chars]
    pairs = list(enumerate(pairwise(words[: fitting + 1]), 1))
    parts = [size for size, (word, link) in pairs if word[-1:] in _ENDS or link.casefold() in _LINKS]
    joined = [size for size, (_, link) in pairs if link.casefold() in _JOINING]
    ends = (sizes[-1] for sizes in (parts, joined) if sizes)
    fitting = next((size for size in ends if len(" ".join(words[:size])) >= _LEAST_KEPT * chars), fitting)
    while fitting > 1 and words[fitting - 1].strip(",;:(").casefold() in _LITTLE:
        fitting -= 1
    return " ".join(words[:fitting]).rstrip(" ,;:(-")
