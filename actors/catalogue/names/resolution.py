"""What a name that a client wrote means: which server, and which of its tools or prompts. Pure.

The one rule: what names a configured server means that server or nothing, whether it runs, sleeps, failed, is switched
off or was never seen so far. A wrong guess is a call on the wrong server.

- `server:name` splits at the first `:` (server names have none). Where the first half is literally the name of a
  configured server it is decided: no other server is thought of, whatever it offers.
- Elsewhere every separator may be the one that ends the server's name (`a-b-c` is `b-c` of `a`, or `c` of `a-b`), and a
  client may have put `mcp__` in front. Each configured server that ends there gives a reading. A server that has listed
  what it offers, and not this, gives none; one that has not listed anything yet may well have it.
- Two readings are ambiguous: an error that says them, not a choice.
- Case and punctuation are forgiven last: in a server's name where no separator ends the literal name of a server and
  exactly one fits, in a tool's name where exactly one of that server fits.
- A name without a server never means anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec

from actors.search.text import squash

MAX_PATH_CHARS = 1000
"""Longer names are not looked at: no server (64) and no tool (256) has such a name."""
_MAX_SERVER_CHARS = 128
"""How long the first half of a path can be: a server's name has 64 characters, a generous spelling a few more."""
_SEPARATOR = re.compile(r"(?=(__|[:/.-]))")
_CLIENT_PREFIX = "mcp__"

Meaning = tuple[str, str]
"""A server, and a name on it."""


class Spellings:
    """Names of one kind, and those of them that are a text but for case and punctuation."""

    __slots__ = ("_names", "_squashed")

    def __init__(self, names: Collection[str]) -> None:
        """`names` is kept, not copied: looking for a name in it must be cheap."""
        self._names = names
        self._squashed: dict[str, list[str]] | None = None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def like(self, text: str) -> list[str]:
        """Return the name itself if it is one, else those that are spelled alike, in sorted order."""
        if text in self._names:
            return [text]
        if self._squashed is None:  # only wrong calls come here; the first one pays for all
            self._squashed = {}
            for name in self._names:
                self._squashed.setdefault(squash(name), []).append(name)
        wanted = squash(text)
        return sorted(self._squashed.get(wanted, ())) if wanted else []


NamesOf = Callable[[str], Spellings | None]
"""What a server offers; None while that is not known."""


class Resolved(msgspec.Struct, frozen=True):
    """Exactly this server has it, under this name."""

    server: str
    name: str


class Undiscovered(msgspec.Struct, frozen=True):
    """Exactly this server is meant, and what it offers is not known yet."""

    server: str
    name: str


class Absent(msgspec.Struct, frozen=True):
    """This server is meant, and it has nothing of that name. Not `certain`: the name can be read otherwise, too."""

    server: str
    name: str
    certain: bool = True


class Ambiguous(msgspec.Struct, frozen=True):
    """Each of the readings is possible; the longest server name comes first."""

    readings: tuple[Meaning, ...]


class Unknown(msgspec.Struct, frozen=True):
    """No configured server is named."""


Resolution = Resolved | Undiscovered | Absent | Ambiguous | Unknown


class ServerNames:
    """Every name by which a configured server can be called, and the server that is meant by it."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names`: the server that each name means. A server's own name must be among them."""
        self.servers = frozenset(names.values())
        """The servers, each by the name it is shown under."""
        self._names = dict(names)
        self._spellings = Spellings(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def literal(self, name: str) -> str | None:
        return self._names.get(name)

    def matches(self, text: str) -> list[str]:
        """Return the server that has this name, or those that have it but for case and punctuation."""
        alike = self._spellings.like(text) if len(text) <= _MAX_SERVER_CHARS else []
        return sorted({self._names[name] for name in alike}) if alike else alike

    def meant(self, text: str) -> str | None:
        fits = self.matches(text.strip())
        return fits[0] if len(fits) == 1 else None

    def agrees(self, other: ServerNames) -> bool:
        """Say whether every name means what it means in the others."""
        return self._names == other._names

    def with_servers(self, servers: Iterable[str]) -> ServerNames:
        """Return these names and those of more servers; a server's own name goes over another one's second name."""
        return ServerNames({**self._names, **{name: name for name in servers}})

    def only(self, servers: Collection[str]) -> ServerNames:
        return ServerNames({name: other for name, other in self._names.items() if other in servers})

    def without(self, server: str) -> ServerNames:
        return ServerNames({name: other for name, other in self._names.items() if other != server})


def resolve(path: str, servers: ServerNames, listed: NamesOf, *, server: str = "") -> Resolution:
    """Return what `path` means. `server` is the server's name where a client wrote it apart from the path.

    Two lookups for `server:name`; a wrong name costs in proportion to the names of servers, and of the servers it fits.
    """
    if len(path) > MAX_PATH_CHARS:
        return Unknown()
    if server.strip():
        return _apart(server.strip(), path, servers, listed)
    if not _SEPARATOR.search(path):  # most of what is searched for
        return Unknown()
    plain = unwrap(path)
    return (
        _literally(path, servers, listed) or _literally(plain, servers, listed) or _Reader(servers, listed).read(plain)
    )


def _literally(path: str, servers: ServerNames, listed: NamesOf) -> Resolution | None:
    """Return what a path means that begins with a configured name and a `:`; None for any other."""
    head, colon, name = path.partition(":")
    server = servers.literal(head) if colon and name else None
    return _on_server(server, [name], listed) if server is not None else None


def clip(path: str) -> str:
    """Return a path as it is, or so much of it that it is seen to be too long: cut, it could mean another tool."""
    return path.strip()[: MAX_PATH_CHARS + 1]


def unwrap(path: str) -> str:
    """Return a path without what models put around it: quotes, parentheses, spaces at the colon."""
    path = path.strip().strip("`'\"").removesuffix("()").strip()
    head, colon, name = path.partition(":")
    return f"{head.rstrip()}:{name.lstrip()}" if colon else path


def _on_server(server: str, names: Iterable[str], listed: NamesOf) -> Resolution:
    """Return what is meant on a server that is certain; `names` are what it may be called there."""
    given = list(dict.fromkeys(names))
    alike = {name: _alike(server, name, listed) for name in given}
    if None in alike.values():
        return Undiscovered(server, given[-1])
    meant = list(dict.fromkeys(each for same in alike.values() for each in same or ()))
    if len(meant) > 1:
        return Ambiguous(tuple((server, each) for each in meant))
    return Resolved(server, meant[0]) if meant else Absent(server, given[-1], certain=len(given) == 1)


def _alike(server: str, name: str, listed: NamesOf) -> list[str] | None:
    """Return what can be meant on a server, None if it has not listed anything yet."""
    names = listed(server)
    return None if names is None else names.like(name)


def _apart(text: str, path: str, servers: ServerNames, listed: NamesOf) -> Resolution:
    """Read a path beside which the server stands by itself; it may stand in the path once more."""
    server = servers.meant(text)
    plain = unwrap(path)
    head, colon, name = plain.partition(":")
    if server is None:
        fitting = tuple((each, plain) for each in servers.matches(text))
        if fitting or colon:  # a name of no server, or of several, is not passed over for what the path says
            return Ambiguous(fitting) if fitting else Unknown()
        return resolve(f"{text}:{path}", servers, listed)
    other = servers.meant(head) if colon and name else None
    twice = other not in (None, server)  # the path names one server, and what stands beside it another
    if path in (listed(server) or ()) and not (twice and _alike(str(other), name, listed) != []):
        return Resolved(server, path)
    if twice:
        return Ambiguous(((str(other), name), (server, plain)))
    rest = [name for head, name in _splits(plain, servers) if servers.meant(head) == server]
    return _on_server(server, [plain, *rest], listed)


def _splits(path: str, servers: ServerNames) -> list[Meaning]:
    """Return each (first half, rest) that a path can be cut into; a configured name before `:` is not cut again."""
    return [split for text in _texts(path) for split in _cut(text, servers)]


def _texts(path: str) -> list[str]:
    return [path, path.removeprefix(_CLIENT_PREFIX)] if path.startswith(_CLIENT_PREFIX) else [path]


def _forgiven(path: str, servers: ServerNames) -> Iterator[Meaning]:
    """Yield the splits in which case and punctuation may be forgiven: where servers are named, in these names only.

    `db-prod-drop` names `db`, which once had that tool perhaps: it is no other spelling of `dbprod`.
    """
    for text in _texts(path):
        splits = list(_cut(text, servers))
        named = [split for split in splits if split[0] in servers]
        yield from named or splits


def _cut(text: str, servers: ServerNames) -> Iterator[Meaning]:
    head, colon, name = text.partition(":")
    if colon and name and head in servers:
        yield head, name
        return
    end = len(head) + 1 if colon else len(text)
    for match in _SEPARATOR.finditer(text, 0, min(end, _MAX_SERVER_CHARS + 2)):
        head, rest = text[: match.start()], text[match.start() + len(match[1]) :]
        if head and rest:
            yield head, rest


class _Reader:
    """Reads a path that does not begin with a configured name and a `:`."""

    def __init__(self, servers: ServerNames, listed: NamesOf) -> None:
        self._servers = servers
        self._listed = listed

    def read(self, path: str) -> Resolution:
        splits = _splits(path, self._servers)
        literal = [(server, name) for head, name in splits if (server := self._servers.literal(head)) is not None]
        last = path.partition(":")[2]
        before_colon = [split for split in splits if split[1] == last]
        readings = [*filter(self._possible, literal), *self._readings_alike(before_colon)]
        readings = readings or self._readings_alike(_forgiven(path, self._servers))
        return self._decide(readings) if readings else self._absent(last, literal, before_colon)

    def _possible(self, reading: Meaning) -> bool:
        names = self._listed(reading[0])
        return names is None or reading[1] in names

    def _readings_alike(self, splits: Iterable[Meaning]) -> list[Meaning]:
        """Return what can be meant if case and punctuation are forgiven, but for those of a server's literal name.

        If one of the servers that fit has it, all of them are readings: only a server that fits alone is meant.
        """
        readings: list[Meaning] = []
        for head, name in splits:
            alike = {server: _alike(server, name, self._listed) for server in self._servers.matches(head)}
            if any(names is None or names for names in alike.values()):
                readings += [(server, each) for server, names in alike.items() for each in names or [name]]
        return readings

    def _decide(self, readings: list[Meaning]) -> Resolution:
        ordered = sorted(dict.fromkeys(readings), key=lambda reading: (-len(reading[0]), reading))
        server, name = ordered[0]
        if len({server for server, _ in ordered}) == 1 and self._listed(server) is None:
            return Undiscovered(server, name)
        return Resolved(server, name) if len(ordered) == 1 else Ambiguous(tuple(ordered))

    def _absent(self, name: str, literal: list[Meaning], before_colon: list[Meaning]) -> Resolution:
        """Say which server lacks what was asked for, where one is named; `name` is what follows the `:`."""
        if name:
            meant = [(server, name) for head, _ in before_colon if (server := self._servers.meant(head)) is not None]
            return Absent(*meant[0], certain=len(set(meant)) == 1) if meant else Unknown()
        if not literal:
            return Unknown()
        return Absent(*max(literal, key=lambda reading: len(reading[0])), certain=len(set(literal)) == 1)
