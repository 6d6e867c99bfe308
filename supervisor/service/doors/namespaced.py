"""Names under which everything of all servers can stand in one list, and what they mean, exactly. Pure.

- `server__tool`, where that fits what model APIs allow, `[A-Za-z0-9_-]{1,64}`, and can be cut in one place only. Any
  other name is spelled as far as it fits and ends with a mark, `_` and twelve hexadecimal digits of its digest; a name
  that looks as if it ended with one gets one.
- So a name depends on its server and its tool alone: not on other servers, their order, or the run of the daemon.
- Two with one mark (one in 2**48, or made on purpose) both get a longer one: neither is shadowed by the other.
- A URI stays the server's own if no other server lists it, and is `mcp://server/uri` otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Final

from actors.catalogue.names.naming import URI_SCHEME, resource_uri
from actors.catalogue.names.resolution import Meaning

MAX_CHARS: Final = 64
MAX_SERVER_CHARS: Final = 24
"""Of a name with a mark, so that there is room for the tool's."""
DIGITS, MORE_DIGITS = 12, 32
SEPARATOR: Final = "__"

_FITS: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MARKED: Final = re.compile(rf".*_(?:[0-9a-f]{{{DIGITS}}}|[0-9a-f]{{{MORE_DIGITS}}})")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")

Digest = Callable[[str], str]


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=MORE_DIGITS // 2).hexdigest()


class Namespace:
    """All names of one kind. `digest` returns hexadecimal digits."""

    def __init__(self, offered: Mapping[str, Iterable[str]], digest: Digest = _digest) -> None:
        """`offered`: the own names of what each server offers."""
        alike: dict[str, set[Meaning]] = {}
        for server, names in offered.items():
            for name in names:
                alike.setdefault(name_for(server, name, digest), set()).add((server, name))
        self._meant: dict[str, Meaning] = {}
        for short, meanings in alike.items():
            if len(meanings) == 1:
                self._meant[short] = next(iter(meanings))
            else:
                self._meant.update({with_mark(*each, digest, MORE_DIGITS): each for each in meanings})
        self._names = {meaning: name for name, meaning in self._meant.items()}

    def name_of(self, server: str, own: str) -> str:
        """Return the name of what a server offers. Raises KeyError for anything else."""
        return self._names[server, own]

    def meaning_of(self, name: str) -> Meaning | None:
        return self._meant.get(name)


def name_for(server: str, own: str, digest: Digest = _digest) -> str:
    """Return the name of something where no other has the same."""
    name = f"{server}{SEPARATOR}{own}"
    one_cut = SEPARATOR not in server and not server.endswith("_")
    plain = one_cut and _FITS.fullmatch(name) is not None and _MARKED.fullmatch(name) is None
    return name if plain else with_mark(server, own, digest, DIGITS)


def with_mark(server: str, own: str, digest: Digest, digits: int) -> str:
    mark = f"_{digest(f'{len(server)}:{server}{own}')[:digits]}"
    spelled = _FOREIGN.sub("-", f"{server[:MAX_SERVER_CHARS]}{SEPARATOR}{own[:MAX_CHARS]}")
    return spelled[: MAX_CHARS - len(mark)] + mark


class Uris:
    """Which URIs of resources and templates only one server lists."""

    def __init__(self, offered: Mapping[str, Iterable[str]]) -> None:
        """`offered`: the URIs that each server lists."""
        self._owners: dict[str, str] = {}
        self._shared: set[str] = set()
        for server, uris in offered.items():
            for uri in uris:
                if self._owners.setdefault(uri, server) != server:
                    self._shared.add(uri)

    def name_of(self, server: str, uri: str) -> str:
        """Return the URI under which a resource of a server can be read, listed or not."""
        alone = self._owners.get(uri) == server and uri not in self._shared
        return uri if alone and not uri.startswith(URI_SCHEME) else resource_uri(server, uri)
