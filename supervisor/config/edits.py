"""Add, change and remove the entry of one server in the text of a configuration, and leave the rest as it is. Pure.

- A name is taken if another entry has it but for its capitals, or is called by it: neither would be served any more.
- What is in both sections under one name is neither changed nor removed: which one is meant would be a guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from actors.command_line import command
from actors.errors import ConfigError
from supervisor.config.jsonc import MAX_DEPTH, ConfigText, KeyPath, put, read_document, remove, show_path
from supervisor.config.keys import derived_slugs, nearest

EMPTY: Final = "{}\n"
"""What stands for a file that is not there yet."""
_SECTIONS: Final = ("mcpServers", "servers")
_LARGEST: Final = 2**63
"""Integers from here on are refused: no setting needs them, and not every reader takes them."""
_MAX_NAMED: Final = 20

Change = Callable[[str], str]
"""Changes a text. Raises `ConfigError`."""


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an entry stands, and the name its server is called by."""

    section: str
    name: str
    shown: str


def add_entry(text: str, name: str, entry: Mapping[str, Any], path: str) -> str:
    """Return the text with a new entry, behind the others. Raises `ConfigError` if its name is taken."""
    check_value({name: entry}, path=path)
    document = read_document(text, path)
    for place in _places(document):
        if name.casefold() in (place.name.casefold(), place.shown.casefold()):
            raise _conflict(name, place, document, path)
    return put(text, (next(iter(_sections(document)), _SECTIONS[0]), name), dict(entry), path)


def change_entry(text: str, name: str, patch: Mapping[str, Any], path: str) -> str:
    """Return the text with an entry changed by a merge patch: null removes a key (RFC 7396). Raises `ConfigError`."""
    check_value({name: patch}, path=path)
    document = read_document(text, path)
    section = _section(document, name, path)
    return put(text, (section, name), merge(document.value[section][name], patch), path)


def remove_entry(text: str, name: str, path: str) -> str:
    """Return the text without an entry. Raises `ConfigError`."""
    return remove(text, (_section(read_document(text, path), name, path), name), path)


def names_in(text: str, names: Collection[str], path: str) -> frozenset[str]:
    """Return which of these names are taken in a text. Raises `ConfigError` for what cannot be read."""
    there = {word.casefold() for place in _places(read_document(text, path)) for word in (place.name, place.shown)}
    return frozenset(name for name in names if name.casefold() in there)


def supplement(text: str, entries: Mapping[str, Mapping[str, Any]], path: str) -> str:
    """Return the text with entries that do not belong into it; it has to name the lines of the text in its faults.

    So they come last, in the section that the text does not have, if there is one. Raises `ConfigError`.
    """
    top = read_document(text, path).value
    if not entries or not isinstance(top, dict):  # which is said when the text is read
        return text
    missing = [section for section in _SECTIONS if section not in top]
    section = missing[0] if missing else max(_SECTIONS, key=[*top].index)
    there = top.get(section, {})
    return put(text, (section,), {**there, **entries}, path) if isinstance(there, dict) else text


def merge(value: object, patch: object) -> object:
    """Return a value changed by a merge patch (RFC 7396, section 2)."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, each in patch.items():
        if each is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), each)
    return merged


def check_value(value: object, where: KeyPath = (), path: str = "") -> None:
    """Raise `ConfigError` for a value that cannot be written into a file. `where` begins with the name of an entry."""
    fault = None
    if len(where) >= MAX_DEPTH:
        where, fault = where[:3], ("it is nested too deeply", f"at most {MAX_DEPTH} objects and lists in one another")
    elif isinstance(value, float) and not math.isfinite(value):
        fault = ("this is no number that JSON has", "write a finite one")
    elif isinstance(value, int) and abs(value) >= _LARGEST:
        fault = ("the number is too large", "put quotes around it if it is a text")
    elif any(isinstance(each, str) and not _is_text(each) for each in (value, *where[-1:])):
        fault = ("this is no text in UTF-8", "write it in UTF-8")
    if fault is not None:
        raise ConfigError(fault[0], path=path, key=show_path(where), hint=fault[1])
    items: Any = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        check_value(each, (*where, key), path)


def _is_text(text: str) -> bool:
    """Say whether a text has no half of a surrogate pair, as what a shell passes on may have."""
    return all(not "\ud800" <= character <= "\udfff" for character in text)


def _sections(document: ConfigText) -> dict[str, dict[str, Any]]:
    """Return the sections of servers that a file has, in its order."""
    top = document.value if isinstance(document.value, dict) else {}
    return {key: top[key] for key in top if key in _SECTIONS and isinstance(top[key], dict)}


def _places(document: ConfigText) -> list[_Place]:
    """Return where the entries stand, and what their servers are called by."""
    entries = [(section, name, own) for section, named in _sections(document).items() for name, own in named.items()]
    slugs = [_slug(own) for _, _, own in entries]
    named = [name for _, name, _ in entries]
    derived = derived_slugs([name for name, slug in zip(named, slugs, strict=True) if not slug], [*named, *slugs])
    return [
        _Place(section=section, name=name, shown=slug or derived.get(name, name))
        for (section, name, _), slug in zip(entries, slugs, strict=True)
    ]


def _slug(entry: object) -> str:
    slug = entry.get("slug") if isinstance(entry, dict) else None
    return slug if isinstance(slug, str) else ""


def _conflict(name: str, place: _Place, document: ConfigText, path: str) -> ConfigError:
    where = (place.section, place.name)
    message, hint = "there is such a server already", f"change it with: {command('edit', place.name)}"
    if name.casefold() != place.name.casefold():
        message, hint = f"its tools are called by the name {place.shown!r} already", 'set its "slug" to another name'
    elif name != place.name:
        message += "; capitals make no difference"
    return ConfigError(
        message, path=path, key=show_path(where), line=document.line(where), hint=f"{hint}, or choose another name"
    )


def _section(document: ConfigText, name: str, path: str) -> str:
    """Return the section in which the entry is. Raises `ConfigError` if it is in none, or in both."""
    places = _places(document)
    sections = [place.section for place in places if place.name == name]
    if len(sections) == 1:
        return sections[0]
    if sections:
        lines = [document.line((section, name)) for section in sections]
        raise ConfigError(
            f"there are two servers of this name (lines {lines[0]} and {lines[1]})",
            path=path,
            key=show_path((sections[1], name)),
            line=lines[1],
            hint="remove or rename one of them in the file: mcpvisor edit",
        )
    known = [place.name for place in places]
    called = [place.name for place in places if place.shown == name]
    likely = called[0] if called else nearest(name, known)
    others = ", ".join(known[:_MAX_NAMED]) or "none"
    more = f" and {len(known) - _MAX_NAMED} more" if len(known) > _MAX_NAMED else ""
    hint = f'did you mean "{likely}"?' if likely else f"there are: {others}{more}"
    raise ConfigError(f"there is no server {name[:80]!r}", path=path, hint=hint)
