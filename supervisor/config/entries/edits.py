"""Add, change and remove the entry of one server in the text of a configuration, and leave the rest as it is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from actors.errors import ConfigError
from supervisor.config.syntax.editing import put, remove
from supervisor.config.syntax.jsonc import read_document
from supervisor.config.syntax.keys import nearest

EMPTY: Final = "{}\n"
"""What stands for a file that is not there yet."""
_SECTIONS: Final = ("mcpServers", "servers")

Change = Callable[[str], str]
"""Changes a text. Raises `ConfigError`."""


def add_entry(text: str, name: str, entry: Mapping[str, Any], path: str) -> str:
    """Return the text with a new entry, behind the others. Raises `ConfigError` if there is one of this name."""
    places = _places(text, path)
    if (section := _find(places, name)) is not None:
        hint = f"change it with: mcpvisor edit {name}, or choose another name"
        raise ConfigError("there is such a server already", path=path, key=f"{section}.{name}", hint=hint)
    return put(text, (next(iter(places), _SECTIONS[0]), name), dict(entry), path)


def change_entry(text: str, name: str, changes: Mapping[tuple[str, ...], Any], path: str) -> str:
    """Return the text with other values in an entry, by their keys; None removes one. Raises `ConfigError`."""
    section = _section(text, name, path)
    for keys, value in changes.items():
        where = (section, name, *keys)
        text = remove(text, where, path) if value is None else put(text, where, value, path)
    return text


def remove_entry(text: str, name: str, path: str) -> str:
    """Return the text without an entry. Raises `ConfigError`."""
    return remove(text, (_section(text, name, path), name), path)


def _section(text: str, name: str, path: str) -> str:
    places = _places(text, path)
    if (section := _find(places, name)) is not None:
        return section
    known = [each for names in places.values() for each in names]
    likely = nearest(name, known)
    hint = f'did you mean "{likely}"?' if likely else f"there are: {', '.join(known[:20]) or 'none'}"
    raise ConfigError(f"there is no server {name[:80]!r}", path=path, hint=hint)


def _places(text: str, path: str) -> dict[str, list[str]]:
    """Return the names of the entries by the sections that the file has."""
    top = read_document(text.removeprefix("\ufeff"), path).value
    sections = {key: top[key] for key in _SECTIONS if key in top} if isinstance(top, dict) else {}
    return {key: list(section) for key, section in sections.items() if isinstance(section, dict)}


def _find(places: Mapping[str, list[str]], name: str) -> str | None:
    return next((section for section, names in places.items() if name in names), None)
