"""The names under which clients see tools, prompts and resources, and what a name that a client wrote means. Pure.

Outside a tool is `server:tool`; `server-tool` is the namespaced name of the documents. The first `:` splits (server
names have none), so `a:b` on server `s` is `s:a:b`. Resources are `server|uri`, split at the first `|`, because URIs
have colons. Where MCP demands a URI (`resources/list`), it is `mcp://server/uri` instead: a URI has no `|`.

The one rule: what names a configured server means that server or nothing, whether it runs, sleeps, failed, is switched
off or was never seen so far. A wrong guess is a call on the wrong server.

- Where the first half of `server:name` is literally the name of a configured server it is decided: no other server is
  thought of, whatever it offers.
- Elsewhere every separator may be the one that ends the server's name (`a-b-c` is `b-c` of `a`, or `c` of `a-b`), and a
  client may have put `mcp__` in front. Each configured server that ends there gives a reading. A server that has listed
  what it offers, and not this, gives none; one that has not listed anything yet may well have it.
- Two readings are ambiguous: an error that says them, not a choice.
- Case and punctuation are forgiven last: in a server's name where no separator ends the literal name of a server and
  exactly one fits, in a tool's name where exactly one of that server fits.
- A name without a server never means anything.
- For a path that means nothing tools are suggested that may be meant: misspelt, or the same deed on the same thing. A
  suggestion is called: who asked to read is not shown what deletes, and who asked for something that is not here is
  shown nothing.
- `server|uri` and `mcp://server/uri` name a server, which alone is asked, listed or not: templates and links lead to
  resources that no list has. A URI by itself (a `resource_link` in a server's answer is one) belongs to the server that
  lists it, or else to the one whose template it fits; where that is not exactly one server, nobody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from urllib.parse import quote, unquote

import msgspec
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from actors.catalogue.offer import Offer, Resource, Skill
from actors.search.text import squash
from actors.search.words.tables import VERB_CLASS

URI_SCHEME = "mcp://"


def tool_path(server: str, tool: str) -> str:
    return f"{server}:{tool}"


def namespaced_name(server: str, name: str) -> str:
    return f"{server}-{name}"


def resource_path(server: str, uri: str) -> str:
    return f"{server}|{uri}"


def resource_uri(server: str, uri: str) -> str:
    return f"{URI_SCHEME}{quote(server, safe='')}/{uri}"


def split_resource(path: str) -> tuple[str, str] | None:
    """Split a resource's path or URI; None if it is neither."""
    if path.startswith(URI_SCHEME):
        quoted, bar, uri = path.removeprefix(URI_SCHEME).partition("/")
        server = unquote(quoted)
    else:
        server, bar, uri = path.partition("|")
    return (server, uri) if bar and server and uri else None


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


MOST_NEAREST = 3

_CHARS = 100
_LOOKED_AT = 100
"""So many of the paths, and of the names, most like what was asked for are looked at word by word."""
_LETTERS_PER_SLIP = 5
_MISSPELT, _SAME_OBJECT, _SAME_VERB = 200.0, 60.0, 30.0
"""What each adds to the likeness of the names, of 100."""
_SEPARATORS = re.compile(r"[:/.|]|__")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_DEEDS = {**VERB_CLASS, **dict.fromkeys(("remember", "save", "store", "put"), "create"), "forget": "delete"}


def nearest(
    path: str, tools: Sequence[tuple[str, str]], limit: int = MOST_NEAREST, *, named: bool = False
) -> list[str]:
    """Return the paths of those (server, tool) that may be meant, best first.

    `named`: the tools are of the server that the path names, so another thing to do the same with may be meant. Else
    compared by path and by name alone: models leave servers out or invent them. 10 ms for 10,000 tools.
    """
    asked = path.strip()[:_CHARS]
    name = _SEPARATORS.split(asked)[-1]
    numbers = set[int]()
    for text, choices in ((asked, [tool_path(*pair) for pair in tools]), (name, [tool for _, tool in tools])):
        numbers.update(number for *_, number in process.extract(text, choices, scorer=fuzz.ratio, limit=_LOOKED_AT))
    scores = {number: _likelihood(asked, name, *tools[number], named=named) for number in numbers}
    best = sorted((number for number in numbers if scores[number]), key=lambda number: (-scores[number], number))
    return [tool_path(*tools[number]) for number in best[:limit]]


def _likelihood(path: str, name: str, server: str, tool: str, *, named: bool) -> float:
    """Return how likely a tool is meant; 0 if it hardly is."""
    verb, things = _parts(name)
    other, others = _parts(tool)
    deed, done = _DEEDS.get(verb, ""), _DEEDS.get(other, "")
    if deed and done and deed != done:
        return 0.0
    alike = fuzz.ratio(name, tool)
    if _is_slip(name, tool) or _is_slip(path, tool_path(server, tool)):
        return _MISSPELT + alike + fuzz.ratio(path, tool_path(server, tool)) / 10
    shared = bool(things & others)
    same = deed == done
    if done == "delete" != deed or not (same or named) or not (shared or (named and same and deed)):
        return 0.0
    return alike + _SAME_OBJECT * shared + _SAME_VERB * (verb == other)


def _is_slip(one: str, other: str) -> bool:
    """Say whether one is the other with a few letters wrong, whatever its case and separators."""
    a, b = squash(one), squash(other)
    most = max(1, min(len(a), len(b)) // _LETTERS_PER_SLIP)
    return min(len(a), len(b)) > most and OSA.distance(a, b, score_cutoff=most) <= most


def _parts(name: str) -> tuple[str, frozenset[str]]:
    """Return the first verb of a name, empty if it has none that is known, and its other words."""
    words = [word.lower() for word in _WORD.findall(name)]
    verb = next((word for word in words if word in _DEEDS), "")
    return verb, frozenset(word.removesuffix("s") for word in words if word != verb)


_MAX_URI_CHARS = 8192
"""Longer URIs are not looked for: no list has them."""
MAX_EXPRESSIONS = 64
"""A template of more fits nothing: what one comparison costs has a bound."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_ENDS_SIMPLE = re.compile(r"[/?#]")
"""What the value of a simple expression never holds: it is percent-encoded there (RFC 6570 section 3.2.2)."""
_OPERATORS = ("+", "#", ".", "/", ";", "?", "&")


def resolve_named(uri: str, servers: ServerNames, offers: Container[str]) -> Resolution | None:
    """Return whose resource a URI is that names a server, with its own URI; None if it names none."""
    head, own = split_resource(uri) or ("", "")
    fits = servers.matches(head.strip()) if head else []
    if len(fits) > 1:
        return Ambiguous(tuple((server, own) for server in fits))
    if fits:
        return Resolved(fits[0], own) if fits[0] in offers else Undiscovered(fits[0], own)
    return None


def resolve_bare(uri: str, offers: Mapping[str, Offer]) -> Resolution:
    """Return whose resource a URI is that names no server; `offers` is what each server lists.

    Costs up to a tenth of a second for ten thousand hostile templates: not for the loop.
    """
    if len(uri) > _MAX_URI_CHARS or not _SCHEME.match(uri):
        return Unknown()
    owners = [server for server, offer in offers.items() if _lists(offer, uri)]
    if not owners:
        owners = [server for server, offer in offers.items() if any(fits(one.uri, uri) for one in offer.templates)]
    if len(owners) > 1:
        return Ambiguous(tuple((server, uri) for server in owners))
    return Resolved(owners[0], uri) if owners else Unknown()


def _lists(offer: Offer, uri: str) -> bool:
    listed: Iterable[Resource | Skill] = chain(offer.resources, offer.templates, offer.skills)
    return any(one.uri == uri for one in listed)


def fits(template: str, uri: str) -> bool:
    """Say whether a URI can come of a template (RFC 6570). One pass over both, whatever they hold.

    A `{name}` stands for anything without `/`, `?` and `#`, an expression with an operator for anything at all. Where
    the literal text between two of them occurs more than once, the first place is taken: that may miss what fits, never
    find what does not.
    """
    if not uri.startswith(template.partition("{")[0]) or template.count("{") > MAX_EXPRESSIONS:
        return False
    parts = _EXPRESSION.split(template)
    literals, expressions = parts[::2], parts[1::2]
    if not expressions or not uri.endswith(literals[-1]):
        return uri == template
    place, end = len(literals[0]), len(uri) - len(literals[-1])
    for number, expression in enumerate(expressions, 1):
        following = end if number == len(expressions) else uri.find(literals[number], place, end)
        if following < place or (expression[:1] not in _OPERATORS and _ENDS_SIMPLE.search(uri, place, following)):
            return False
        place = following + len(literals[number])
    return True
