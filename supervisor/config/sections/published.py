"""What a node of a fleet takes of the configuration that was published, beside its own file. Pure.

- What its own file has counts: an entry by its name or slug, a setting as a whole, of `profiles` each one.
- What is of one machine is never taken: where it is reached, where its files are, how it is a node.
- Each problem names the file that the key stands in, and the line there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from actors.errors import ConfigError
from supervisor.config.sections.fleet import FLEET
from supervisor.config.syntax.jsonc import ConfigText, KeyPath

OF_ONE_MACHINE: Final = frozenset(
    {
        *("listen", "public_url", "insecure_http", "trusted_proxies", "tls_certificate", "tls_key"),
        *("allowed_hosts", "allowed_origins", "data_dir", FLEET),
    }
)
"""Settings that are never taken."""
_SECTIONS: Final = (("mcpServers",), ("servers",))
_SUPERVISOR: Final = ("supervisor",)
_BY_MEMBER: Final = frozenset({*_SECTIONS, _SUPERVISOR, (*_SUPERVISOR, "profiles")})
"""Objects of which members are taken one by one; all others are, or are not."""


def lay_below(own: ConfigText, published: ConfigText, path: str) -> ConfigText:
    """Return what a node's own file says, and of what was published the rest. `path` is where that is kept.

    Raises `ConfigError` if that is no object.
    """
    if not isinstance(own.value, dict):  # which is said when it is read
        return own
    if not isinstance(published.value, dict):
        raise ConfigError("the outermost value must be an object", path=path, line=published.line(()))
    taken: list[KeyPath] = []
    value = _merge(own.value, published.value, frozenset(_names(own.value)), taken)
    others = dict.fromkeys(taken, path)
    lines = {at: line for at, line in published.lines.items() if _is_below(at, others)}
    again = [each for each in published.duplicates if each[0] in _BY_MEMBER or _is_below(each[0], others)]
    return ConfigText(
        value=value, lines={**lines, **own.lines}, duplicates=(*own.duplicates, *again), others={**own.others, **others}
    )


def _merge(
    own: Mapping[str, Any], published: Mapping[str, Any], names: Collection[str], taken: list[KeyPath], at: KeyPath = ()
) -> dict[str, Any]:
    """Return an object with the members that are taken, which are added to `taken`."""
    merged = dict(own)
    for key, theirs in published.items():
        where, mine = (*at, key), own.get(key, {})
        if where in _BY_MEMBER and isinstance(mine, dict) and isinstance(theirs, dict):
            merged[key] = _merge(mine, theirs, names, taken, where)
        elif key not in own and not _is_own(at, key, names):
            merged[key] = theirs
            taken.append(where)
    return merged


def _is_own(at: KeyPath, key: str, names: Collection[str]) -> bool:
    return key in OF_ONE_MACHINE if at == _SUPERVISOR else at in _SECTIONS and key.casefold() in names


def _names(own: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names and slugs of all entries of a file, in lower case: capitals do not tell two apart."""
    for (section,) in _SECTIONS:
        entries = own.get(section)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            yield name.casefold()
            if isinstance(entry, dict) and isinstance(entry.get("slug"), str):
                yield entry["slug"].casefold()


def _is_below(at: KeyPath, others: Collection[KeyPath]) -> bool:
    return any(at[:depth] in others for depth in range(1, len(at) + 1))
