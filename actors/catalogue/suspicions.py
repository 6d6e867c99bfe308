"""What in a definition is an attack, or may be one: how the rules of `suspicions.toml` are applied to all of its texts.
Pure.

- Rules are few and narrow: real servers write "always call X first" and take passwords of files. Who is flagged for
  nothing teaches people to approve everything.
- A pattern begins with fixed texts and has bounded gaps, so it is linear; it spans `OVERLAP_CHARS` at most.
- What a rule does not know is not found. These findings help a reader; what protects is that a change is held.
- Patterns are tried in pieces of `PIECE_CHARS`, as other threads cannot run meanwhile. More text than `MAX_CHARS` is
  not read, which is a finding itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from string import Template
from typing import Any, Final

import msgspec

from actors.catalogue.findings import LOOKALIKES, Finding, found, is_confusable, levels, quote, text_findings
from actors.kit.tables import table_of

OVERLAP_CHARS: Final = 400


class Rule(msgspec.Struct, frozen=True):
    """`needles`: the pattern is tried only on a text that has one of each group."""

    code: str
    needles: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]

    def may_fit(self, read: str) -> bool:
        """Say whether a text has one needle of each group; loops, as nearly every text is done with after this."""
        for group in self.needles:
            for needle in group:
                if needle in read:
                    break
            else:
                return False
        return True


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule as the file has it."""

    code: str
    needles: tuple[tuple[str, ...], ...]
    pattern: tuple[str, ...]


class _Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file. What the text of a definition may say, the description of a parameter, and, by code, its name."""

    fragments: dict[str, str]
    text: tuple[_Row, ...]
    parameter: tuple[_Row, ...]
    name: dict[str, tuple[str, ...]]

    def compile(self, pieces: Sequence[str]) -> re.Pattern[str]:
        """Return a pattern with its fragments filled in. Raises `KeyError` for one that is not there."""
        return re.compile(Template("".join(pieces)).substitute(self.fragments))

    def rules(self, rows: Sequence[_Row]) -> tuple[Rule, ...]:
        return tuple(Rule(row.code, row.needles, self.compile(row.pattern)) for row in rows)


_RULES: Final = table_of(__package__, "suspicions", _Rules)
TEXT_RULES: Final = _RULES.rules(_RULES.text)
PARAMETER_RULES: Final = _RULES.rules(_RULES.parameter)
NAME_RULES: Final = {code: _RULES.compile(pieces) for code, pieces in _RULES.name.items()}

AS_TEXT: Final = repr(
    [
        *((rule.code, rule.needles, rule.pattern.pattern) for rule in TEXT_RULES + PARAMETER_RULES),
        *((code, pattern.pattern) for code, pattern in NAME_RULES.items()),
    ]
)
"""All rules, to be told from those of another version."""


PIECE_CHARS: Final = 8 * 1024
MAX_CHARS: Final = 256 * 1024
_BETWEEN: Final = "\x01"
"""Between two texts: no pattern spans it."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_FOREIGN: Final = re.compile("[" + "".join(map(chr, LOOKALIKES)) + "]")
_MAX_NAME_CHARS: Final = 100


def findings_of(definition: dict[str, Any]) -> Iterator[Finding]:
    """Yield what is suspicious about a definition that was decoded, each code once. Raises nothing."""
    told: dict[str, Finding] = {}
    for finding in _findings(definition):
        told.setdefault(finding.code, finding)
    yield from told.values()


def alarms_of(definition: dict[str, Any]) -> tuple[str, ...]:
    """Return the codes of what is suspicious about a definition."""
    return tuple(sorted(finding.code for finding in findings_of(definition)))


def _findings(definition: dict[str, Any]) -> Iterator[Finding]:
    said, members = _strings(definition)
    text = "\n".join(said)
    if len(text) > MAX_CHARS:
        yield found("text-unread", f"over {MAX_CHARS}")
        return
    yield from text_findings([("the definition", text)])
    name = definition.get("name")
    if isinstance(name, str) and is_confusable(name):
        yield found("name-confusable", quote(name))
    read = _as_it_looks(_BETWEEN.join(said))
    for rule, matched in _matches(TEXT_RULES, read):
        yield found(rule.code, matched)
    asks = any(_matches(PARAMETER_RULES, read))
    for name, described in _parameters(definition) if asks or any(map(_asked_by, members)) else ():
        if code := _asked_by(name):
            yield found(code, quote(name))
        for rule, _ in _matches(PARAMETER_RULES, _as_it_looks(described)) if asks else ():
            yield found(rule.code, quote(name))


def _strings(value: Any) -> tuple[list[str], set[str]]:
    """Return each string in a JSON value, and the names of members, which are among them.

    A loop, as it is done for each tool.
    """
    said: list[str] = []
    members: set[str] = set()
    waiting = [value]
    while waiting:
        level = waiting.pop()
        if type(level) is dict:
            members.update(level)
            level = level.values()
        for child in level:
            if type(child) is str:
                said.append(child)
            elif type(child) is dict or type(child) is list:
                waiting.append(child)
    said += sorted(members)
    return said, members


def _parameters(definition: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and description of each property of the input schema, however deep."""
    for level, _ in levels(definition.get("inputSchema")):
        properties = level.get("properties") if isinstance(level, dict) else None
        if isinstance(properties, dict):
            for name, value in properties.items():
                described = value.get("description") if isinstance(value, dict) else None
                yield name, described if isinstance(described, str) else ""


@lru_cache(maxsize=4096)
def _asked_by(parameter: str) -> str:
    """Return the code of what a parameter asks for by its name; empty for nothing."""
    if len(parameter) > _MAX_NAME_CHARS:
        return ""
    asked = _NO_WORD.sub("_", _CAMEL.sub("_", parameter).lower()).strip("_")
    return next((code for code, pattern in NAME_RULES.items() if pattern.fullmatch(asked)), "")


def _as_it_looks(text: str) -> str:
    read = " ".join(text.lower().split())
    return read if read.isascii() or not _FOREIGN.search(read) else read.translate(LOOKALIKES)


def _matches(rules: tuple[Rule, ...], read: str) -> Iterator[tuple[Rule, str]]:
    """Yield each rule that fits, with what it fits, quoted."""
    for rule in rules:
        if rule.may_fit(read):
            for start in range(0, len(read), PIECE_CHARS - OVERLAP_CHARS):
                if match := rule.pattern.search(read, start, start + PIECE_CHARS):
                    yield rule, quote(match[0])
                    break
