"""What is wrong with a tool, in words an operator can read. The tool itself is kept and can be called.

Rules:
- `RULES` names every finding with its severity; a `warning` may not work with some client or may deceive a reader, a
  `note` could be better.
- Text of a server is quoted in ASCII (`ascii`), never passed on: a finding must not carry what it warns of.
- Nothing here raises, whatever a server sends; the walk through a schema is a loop, so depth cannot exhaust the stack.
Names: MCP 2025-11-25, server/tools, "Tool Names"; NeuroLink's validators for the narrower letter rule and descriptions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from actors.search.text import squash

Severity = Literal["note", "warning"]

_MAX_NAME_CHARS = 64
_MIN_DESCRIPTION_CHARS = 10
_MAX_DESCRIPTION_CHARS = 500
_MIN_DESCRIPTION_WORDS = 3
_MIN_WORD_CHARS = 3
_MAX_PATTERN_CHARS = 500
MAX_SCHEMA_DEPTH = 24
"""JSON levels of an input schema, its own braces included."""
_MAX_TWINS_NAMED = 3
MAX_SCHEMA_BYTES = 65_536
_RESERVED = ("execute", "validate", "setup", "init", "config")

RULES: dict[str, tuple[Severity, str]] = {
    "name-characters": ("warning", "the name has other characters than letters, digits, `_`, `-` and `.`"),
    "name-start": ("note", "the name does not start with a letter, or has a `.`: some clients refuse that"),
    "name-length": ("warning", f"the name is over {_MAX_NAME_CHARS} characters: some clients refuse that"),
    "name-reserved": ("note", "the name says nothing: " + ", ".join(_RESERVED)),
    "name-confusable": ("warning", "the name mixes alphabets, or has letters that look like others"),
    "name-duplicate": ("warning", "another tool of the server differs only in case, separators or look-alike letters"),
    "description-empty": ("warning", "there is no description"),
    "description-short": ("warning", f"the description is under {_MIN_DESCRIPTION_CHARS} characters"),
    "description-words": (
        "warning",
        f"the description has fewer than {_MIN_DESCRIPTION_WORDS} words of {_MIN_WORD_CHARS} letters or more",
    ),
    "description-long": ("note", f"the description is over {_MAX_DESCRIPTION_CHARS} characters: each costs tokens"),
    "definition-form": ("warning", "members that the protocol does not have so: they are put right, or left out"),
    "schema-missing": ("warning", "there is no input schema"),
    "schema-type": ("warning", 'the input schema does not say `"type": "object"`'),
    "schema-required": ("warning", "`required` names what is no property"),
    "schema-reference": ("warning", "a `$ref` leaves the schema: it is never fetched"),
    "schema-pattern": ("warning", f"a `pattern` is over {_MAX_PATTERN_CHARS} characters"),
    "schema-size": (
        "warning",
        f"the input schema is over {MAX_SCHEMA_BYTES} bytes: its form is not checked, nor is it shown",
    ),
    "schema-depth": ("warning", f"the input schema is nested over {MAX_SCHEMA_DEPTH} levels"),
    "hints-contradict": ("warning", "declared read-only and destructive at once"),
    "hints-doubtful": ("warning", "declared read-only or harmless, but its words say that it destroys"),
    "text-hidden": ("warning", "invisible characters, which a model reads and a person does not see"),
    "text-control": ("warning", "control characters or terminal escape sequences"),
    "text-instructs": ("warning", "its text gives orders to the model that are not about calling the tool"),
    "text-conceals": ("warning", "its text wants something kept from the user"),
    "text-exfiltrates": ("warning", "its text wants secrets, or the conversation, to be read or sent"),
    "text-unread": ("warning", "its texts are too long to be looked into"),
    "schema-secrets": ("warning", "a parameter asks for a secret of the user"),
    "schema-context": ("warning", "a parameter asks for the conversation, or for results of other tools"),
    "schema-twice": ("warning", "an object has a member twice: readers differ in which one counts"),
    "name-lookalike": ("warning", "its name can be taken for that of another server's tool"),
}

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_NARROW_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_JOINERS = "\u200c\u200d"
_SUSPECT = re.compile(r"[^\n\t\r -~]")
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")
LOOKALIKES = str.maketrans(
    {
        **dict(
            zip("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455", "aeopcyxijs", strict=True)
        ),  # Cyrillic
        **dict(zip("\u04bb\u0501\u051b\u051d", "hdqw", strict=True)),  # Cyrillic, rarer
        **dict(zip("\u03bf\u03b1\u03bd\u03b9\u03ba\u03c1", "oavikp", strict=True)),  # Greek
        "\u0131": "i",  # Latin without its dot
    }
)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding: `code` is a key of `RULES`, `message` says what and where, in printable ASCII of bounded length."""

    code: str
    severity: Severity
    message: str


def found(code: str, detail: str = "") -> Finding:
    severity, meaning = RULES[code]
    text = meaning.replace("`", "")
    return Finding(code=code, severity=severity, message=f"{text} ({detail})" if detail else text)


def quote(text: str, limit: int = 60) -> str:
    """Return text of a server as an ASCII literal of at most `limit` characters."""
    literal = ascii(text[:limit])
    return literal if len(literal) <= limit else literal[: limit - 3] + "..."


def name_findings(name: str) -> Iterator[Finding]:
    if not _NAME.fullmatch(name):
        yield found("name-characters", quote(name))
    elif not _NARROW_NAME.fullmatch(name):
        yield found("name-start")
    if len(name) > _MAX_NAME_CHARS:
        yield found("name-length", f"{len(name)}")
    if name.lower() in _RESERVED:
        yield found("name-reserved")
    if is_confusable(name):
        yield found("name-confusable", quote(name))


def is_confusable(name: str) -> bool:
    """Say whether letters of several alphabets are mixed, or each foreign letter can be taken for a plain one."""
    foreign = {char for char in name if char.isalpha() and not char.isascii()}
    if not foreign:
        return False
    scripts = {script for char in name if char.isalpha() and (script := _script(char)) in _SCRIPTS}
    variant = any(unicodedata.normalize("NFKC", char).isascii() for char in foreign)
    return len(scripts) > 1 or variant or all(char.lower().translate(LOOKALIKES).isascii() for char in foreign)


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def skeleton(name: str) -> str:
    """Return what of a name a hurried reader sees: letters and digits in lower case, look-alikes as Latin letters."""
    return squash(name).translate(LOOKALIKES)


_FOLD = bytes.maketrans(b"01i5", b"olls")
_TWICE = re.compile(rb"(.)\1+")


def look(name: str) -> str:
    """Return what of a name anybody could be deceived by: doubled letters once, and those as one that look alike.

    Words that differ have other looks, mostly: `create_isue` looks like `create_issue`, and `l` like `1`.
    """
    plain = name if name.isascii() else skeleton(name)
    seen = plain.encode(errors="replace").lower().translate(_FOLD, b"_-. ")
    seen = seen.replace(b"rn", b"m").replace(b"vv", b"w").replace(b"cl", b"d")
    return _TWICE.sub(rb"\1", seen).decode(errors="replace")


def duplicates(names: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each name with a twin, the first three names that a reader or a lenient client takes for it."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(skeleton(name) or name, []).append(name)
    return {
        name: [other for other in group[: _MAX_TWINS_NAMED + 1] if other != name][:_MAX_TWINS_NAMED]
        for group in groups.values()
        if len(group) > 1
        for name in group
    }


def description_findings(description: str) -> Iterator[Finding]:
    """Yield what is wrong with a description: NeuroLink's 10 to 500 characters and three words."""
    text = description.strip()
    if not text:
        yield found("description-empty")
        return
    if len(text) < _MIN_DESCRIPTION_CHARS:
        yield found("description-short", f"{len(text)}")
    if text.isascii() and len(_LONG_WORD.findall(text[:_MAX_DESCRIPTION_CHARS])) < _MIN_DESCRIPTION_WORDS:
        yield found("description-words")
    if len(text) > _MAX_DESCRIPTION_CHARS:
        yield found("description-long", f"{len(text)}")


def schema_findings(schema: Any) -> Iterator[Finding]:
    """Yield what is wrong with a decoded input schema; None is a missing one."""
    if schema is None:
        yield found("schema-missing")
    if not isinstance(schema, dict):
        return
    if schema.get("type") is None:
        yield found("schema-type")
    yield from _required_findings(schema, schema.get("properties"))
    yield from _walk_findings(schema)


def _required_findings(schema: dict[str, Any], properties: Any) -> Iterator[Finding]:
    required = schema.get("required", [])
    if not isinstance(required, list):
        return
    elsewhere = any(key in schema for key in ("patternProperties", "allOf", "anyOf", "oneOf", "$ref"))
    known = properties if isinstance(properties, dict) else {}
    unknown = [] if elsewhere else [name for name in required if isinstance(name, str) and name not in known]
    if unknown:
        yield found("schema-required", ", ".join(quote(name) for name in unknown[:3]))


def _walk_findings(schema: dict[str, Any]) -> Iterator[Finding]:
    """Look at every level once; one finding of each kind is enough."""
    seen: dict[str, str] = {}
    for value, depth in levels(schema):
        if depth > MAX_SCHEMA_DEPTH:
            seen.setdefault("schema-depth", "")
        if isinstance(value, dict):
            reference, pattern = value.get("$ref"), value.get("pattern")
            if isinstance(reference, str) and not reference.startswith("#"):
                seen.setdefault("schema-reference", quote(reference))
            if isinstance(pattern, str) and len(pattern) > _MAX_PATTERN_CHARS:
                seen.setdefault("schema-pattern", f"{len(pattern)}")
    for code in sorted(seen):
        yield found(code, seen[code])


def levels(value: Any) -> Iterator[tuple[dict[str, Any] | list[Any], int]]:
    """Yield each object and list in a JSON value with its depth, the outermost at 1."""
    waiting = [(value, 1)] if isinstance(value, dict | list) else []
    while waiting:
        level, depth = waiting.pop()
        yield level, depth
        children = level.values() if isinstance(level, dict) else level
        waiting += [(child, depth + 1) for child in children if isinstance(child, dict | list)]


def texts(value: Any) -> Iterator[str]:
    """Yield each string in a JSON value, the names of members included."""
    for level, _ in levels(value):
        children = level.values() if isinstance(level, dict) else level
        if isinstance(level, dict):
            yield from level
        yield from (child for child in children if isinstance(child, str))


def text_findings(parts: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Yield what of (where, text) pairs a person cannot see; one finding of each kind, for the first place."""
    seen: dict[str, str] = {}
    for where, text in parts:
        for suspect in _SUSPECT.finditer(text):
            if code := _hidden_code(text, suspect.start()):
                seen.setdefault(code, f"U+{ord(suspect.group()):04X} in {where}")
    for code in sorted(seen):
        yield found(code, seen[code])


def _hidden_code(text: str, at: int) -> str:
    """Return the code of the rule a character breaks. Joiners between letters of other scripts or emoji are text."""
    char = text[at]
    category = unicodedata.category(char)
    if category == "Cc":
        return "text-control"
    if char in _JOINERS:
        beside = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
        return "" if len(beside) == 2 and not any(other.isascii() for other in beside) else "text-hidden"
    selector = 0xFE00 <= ord(char) <= 0xFE0D or 0xE0100 <= ord(char) <= 0xE01EF
    return "text-hidden" if selector or category in ("Cf", "Co", "Cs") else ""
