"""What the words of a tool say about it: guesses for tools whose server declares nothing.

Rules:
- Only whole words count, between `_`, `-`, `.`, a change of case or spaces: `get` is not in `forget` or `target`.
- In a name every word counts as it is; of a description only the first sentence, a verb also with its ending -s.
- What destroys wins over what reads, and doubt is never resolved towards "safe": a tool is read-only only if the first
  verb of its name reads and no other word of it writes.
The word lists are NeuroLink's tool annotations and tool discovery, where `write` and the further nouns are ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from actors.search.text import words

Complexity = Literal["simple", "moderate", "complex"]

_WORDS = {
    "read": "get list read fetch query search find show display view retrieve check inspect look",
    "destroy": "delete remove drop destroy clear purge erase wipe truncate reset",
    "replace": "set update put upsert replace",
    "write": """
add append apply approve archive assign attach build call cancel change click close commit compose copy create
deploy detach disable drag edit enable exec execute export fill generate grant import insert install invite
kill link lock login logout make manage merge modify move open patch post press publish push reject rename
reopen reply rerun restart restore retry revoke rollback run save schedule send share start stop submit
subscribe sync terminate transfer trigger type uninstall unlink unlock unsubscribe upload write
""",
    "complex": "complex analyze process generate transform compute calculate",
}
WORDS: Mapping[str, tuple[str, ...]] = {group: tuple(text.split()) for group, text in _WORDS.items()}
"""The words of each rule. `replace`: a second call with the same arguments changes nothing more."""

CATEGORIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("version-control", ("git", "github", "gitlab", "gitea", "bitbucket")),
    ("file-system", ("file", "filesystem", "directory")),
    ("api", ("api", "http", "request")),
    ("data", ("data", "query", "search", "database", "sql")),
    ("authentication", ("auth", "login", "token", "oauth", "authenticate")),
    ("deployment", ("deploy", "build", "ci", "deployment", "pipeline")),
)
GENERAL = "general"
AUTH_NAME = ("auth", "login", "token")
AUTH_DESCRIPTION = ("authentication", "credentials", "permission")
SIMPLE_PROPERTIES = 2
MODERATE_PROPERTIES = 5

_MAX_SENTENCE_CHARS = 1000
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|\n")
_NEGATIONS = frozenset({"no", "not", "without"})
_DEPRECATED = re.compile(
    r"(?:^|[.!?\n\[(*:]\s{0,4})deprecated\b"
    r"|\b(?:this|the)\s(?:[^\s.]{1,80}\s){1,4}(?:is|was|has been)\s(?:now\s)?deprecated\b",
    re.IGNORECASE,
)


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """What calling the tool seems to do; None where the words do not tell. `why` is the word that told, or empty."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    why: str = ""


def _verbs(base: Iterable[str]) -> frozenset[str]:
    return frozenset(form for verb in base for form in (verb, _with_s(verb)))


def _with_s(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "s", "x")) else "s")


_READ, _DESTROY, _REPLACE, _WRITE, _COMPLEX = (frozenset(group) for group in WORDS.values())
_READS, _DESTROYS, _REPLACES = (_verbs(WORDS[group]) for group in ("read", "destroy", "replace"))
_CATEGORY_NOUNS = tuple((name, _verbs(nouns)) for name, nouns in CATEGORIES)
_FILE_NOUNS = dict(_CATEGORY_NOUNS)["file-system"]


def first_sentence(text: str) -> str:
    """Return the first sentence or line, at most 1,000 characters."""
    text = text[: 4 * _MAX_SENTENCE_CHARS].strip()[:_MAX_SENTENCE_CHARS]
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def effects(name: str, description: str) -> Effects:
    named, told = words(name), words(first_sentence(description))
    if destroying := _destroy_word(named, told):
        return Effects(read_only=False, destructive=True, why=destroying)
    verb = next((word for word in named if word in _READ or word in _WRITE or word in _REPLACE), "")
    if not verb and told and (told[0] in _READS or told[0] in _REPLACES):
        verb = told[0]
    if _reads(verb, named, told):
        return Effects(read_only=True, destructive=False, why=verb)
    if verb in _REPLACES or any(word in _REPLACE for word in named):
        return Effects(read_only=False, idempotent=True, why=verb)
    return Effects(read_only=False, why=verb) if verb in _WRITE else Effects(why=verb)


def _destroy_word(named: list[str], told: list[str]) -> str:
    """Return the word that destroys: of the name, else of the first sentence unless the name reads."""
    of_name = next((word for word in named if word in _DESTROY), "")
    if of_name or not _READ.isdisjoint(named):
        return of_name
    return next((word for word in told if word in _DESTROYS), "")


def _reads(verb: str, named: list[str], told: list[str]) -> bool:
    if verb not in _READS or not _DESTROYS.isdisjoint(told) or not _REPLACE.isdisjoint(named):
        return False
    joined = "and" in named or "or" in named  # get_or_create, find_and_run
    return not (joined and not _WRITE.isdisjoint(named))


def category(server: str, name: str, description: str) -> str:
    """Return the first category whose noun is in the tool's name, else in the server's; `general` if there is none.

    Version control also counts when only the server's name or the first sentence says so. A tool named only after
    reading or writing is of the file system when its first sentence is about files.
    """
    named, told, of_server = words(name), words(first_sentence(description)), words(server)
    control, nouns = _CATEGORY_NOUNS[0]
    if any(word in nouns for word in (*named, *of_server, *told)):
        return control
    for candidate in (named, of_server):
        for category_name, nouns in _CATEGORY_NOUNS[1:]:
            if not nouns.isdisjoint(candidate):
                return category_name
    touches = "read" in named or "write" in named
    return "file-system" if touches and not _FILE_NOUNS.isdisjoint(told) else GENERAL


def complexity(name: str, properties: int) -> Complexity:
    """Return how much a caller must know: by the number of top-level properties, `complex` for some verbs."""
    if properties > MODERATE_PROPERTIES or not _COMPLEX.isdisjoint(words(name)):
        return "complex"
    return "moderate" if properties > SIMPLE_PROPERTIES else "simple"


def requires_auth(name: str, description: str) -> bool:
    """Say whether the tool seems to need a login: by its name, or by its description unless that denies it."""
    if not frozenset(AUTH_NAME).isdisjoint(words(name)):
        return True
    told = words(description)
    return any(
        word in AUTH_DESCRIPTION and _NEGATIONS.isdisjoint(told[max(0, at - 2) : at]) for at, word in enumerate(told)
    )


def deprecated(name: str, title: str, description: str) -> bool:
    """Say whether name or title has the word, or the description says it of the tool and not of something else."""
    return "deprecated" in (*words(name), *words(title)) or says_deprecated(description)


def says_deprecated(description: str) -> bool:
    """Say whether a description says it of the tool."""
    return _DEPRECATED.search(description) is not None
