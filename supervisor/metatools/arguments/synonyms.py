"""Names of arguments that mean the same: spellings of one name, and words that one tool or another uses for one thing.

Pure. Strict on purpose: a value under a wrong name may be written, deleted or sent, so names that only share letters
(`mode` and `model`, `content` and `context`) are not alike, and what is not in the tables below is no synonym.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rapidfuzz.distance import OSA

from actors.search.text import squash

MAX_NAME_CHARS = 100
SAME, SPELLED, SYNONYM, PART, OTHER = 4, 3, 2, 1, 0
"""How alike two names are: but for case and separators; two spellings of a name; two words for a thing; the other
says more of the same (`deploymentId`, `targetDeploymentId`); not at all."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MIN_MISSPELT = 5
"""Letters of a name that may have one too many, one too few, or two that changed places; others become other names."""

_SHORT = {
    "addr": "address",
    "cmd": "command",
    "conf": "configuration",
    "config": "configuration",
    "db": "database",
    "desc": "description",
    "dest": "destination",
    "dir": "directory",
    "doc": "document",
    "dst": "destination",
    "env": "environment",
    "expr": "expression",
    "id": "identifier",
    "img": "image",
    "lang": "language",
    "lat": "latitude",
    "lng": "longitude",
    "lon": "longitude",
    "msg": "message",
    "num": "number",
    "org": "organization",
    "organisation": "organization",
    "param": "parameter",
    "pkg": "package",
    "pr": "pull request",
    "proj": "project",
    "q": "query",
    "repo": "repository",
    "src": "source",
    "stmt": "statement",
    "tz": "timezone",
}
_FIRST = frozenset(("file", "full", "absolute", "the", "input", "given"))
"""Words that add nothing in front of a name: `file_path` is a path; `exclude_path` is another thing."""
_LAST = frozenset(("name", "text", "string", "identifier"))
"""Words that add nothing behind a name: `repo_name`."""
_PERHAPS_FIRST = frozenset(("new",))
"""Words in front of a name that may make it another thing: `new_path` of what is moved is not its `path`."""
_PLURAL_FROM = 3

_GROUPS = tuple(
    frozenset(group.split())
    for group in (
        "sql query statement",
        "query search keywords searchterm term",
        "text content body message",
        "file path filename filepath",
        "directory folder path",
        "url uri link href",
        "source from origin",
        "sourcepath frompath source from",
        "destination to target",
        "destinationpath topath targetpath destination to",
        "to recipient",
        "title subject name",
        "row value data record",
        "user username login",
        "command script",
        "location place city",
    )
)


def likeness(one: str, other: str, context: Collection[str] = ()) -> int:
    """Return how alike two names of arguments are: `SAME`, `SPELLED`, `SYNONYM`, `PART` or `OTHER`.

    `context` are the words of the tool's name: they add nothing in front of a name (`issue_title` of `create_issue`).
    """
    one, other = one[:MAX_NAME_CHARS], other[:MAX_NAME_CHARS]
    if not squash(one) or not squash(other):
        return OTHER
    if squash(one) == squash(other):
        return SAME
    a, b = words(one), words(other)
    front = _FIRST.union(context)
    if a == b or _longer(a, b, front) or _longer(b, a, front) or _misspelt(squash(one), squash(other)):
        return SPELLED
    pair = {"".join(a), "".join(b)}
    perhaps = _longer(a, b, _PERHAPS_FIRST) or _longer(b, a, _PERHAPS_FIRST)
    if perhaps or any(pair <= group for group in _GROUPS):
        return SYNONYM
    return PART if len(a) < len(b) and b[-len(a) :] == a else OTHER


def words(name: str) -> list[str]:
    """Return the words of a name in lower case, abbreviations written out, plurals without their end."""
    singulars = (_singular(word.lower()) for word in _WORD.findall(name))
    return [part for word in singulars for part in _SHORT.get(word, word).split()]


def _singular(word: str) -> str:
    plural = len(word) > _PLURAL_FROM and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


def _longer(long: list[str], short: list[str], front: Collection[str]) -> bool:
    """Say whether one is the other with a word more that adds nothing."""
    if len(long) != len(short) + 1:
        return False
    return (long[1:] == short and long[0] in front) or (long[:-1] == short and long[-1] in _LAST)


def _misspelt(one: str, other: str) -> bool:
    """Say whether a letter is too many, or two changed places; another letter makes another word of many."""
    if min(len(one), len(other)) < _MIN_MISSPELT or OSA.distance(one, other, score_cutoff=1) != 1:
        return False
    return len(one) != len(other) or sorted(one) == sorted(other)
