"""One discover, whole: from what a client asked to the page it gets. Pure: the clock is handed in.

The gateway answers `discover_mcp_tools` with it, and the benchmarks measure it: nothing is measured that is not served.
What a client may see, the server it names and the kinds it wants are applied before anything is ranked or limited. What
names a server is answered about that server, also where it cannot be used.

- A request for a list, in words ("what tools does redis have", "show me everything github can do"), is one only where
  nothing else is said: a word of content more makes it a search.
- Hits stand in a harmless order: what destroys is first only for a need that names its deed and its object. "Delete a
  directory" asks for destruction, but not for that of the files a version control does not know, though both are about
  directories; "what changed" asks for none. A tool destroys if it is declared to (MCP 2025-03-26 server/tools,
  `destructiveHint`), or if its name or description says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from rapidfuzz import fuzz

from actors.catalogue import inference
from actors.catalogue.metadata import successors
from actors.catalogue.names import Absent, Resolution, Resolved, Undiscovered, tool_path
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue
from actors.errors import InvalidArguments
from actors.kit.fairness.quota import divide
from actors.messages import ServerStatus
from actors.search.document import Document, Found, Hit
from actors.search.page import Prefer
from actors.search.paraphrase import REAL_WORDS, alternatives, interpret, phrases_in
from actors.search.query import without_quotes
from actors.search.search import EVERYTHING, find
from actors.search.text import stem, words
from actors.search.words.tables import LOW_INFORMATION, STOP_WORDS, VERB_CLASS, WEAK
from supervisor.config.keys import nearest_names
from supervisor.metatools.arguments import DEFAULT_LIMIT, Discover, default_limit
from supervisor.metatools.inventory import MAX_ITEMS, Listing
from supervisor.metatools.lists import tools_page
from supervisor.metatools.needs import Need, needs_page, unmet, unmet_sentence
from supervisor.metatools.page import Context, build_page, declared_hints, fitting_hits, sentences
from supervisor.metatools.schemas import growth
from supervisor.metatools.servers import (
    FITS,
    NOTHING,
    concerned_servers,
    named_in,
    unlisted_sentences,
    unread_notice,
    without,
)
from supervisor.metatools.texts import clean, estimate_tokens

_WORD = re.compile(r"[^\W_]+")
_MOST_CHARS = 200
_THINGS = frozenset(["tool", "tools", "toolset", "function", "functions", "capability", "capabilities", "abilities"])
"""What a list is asked of."""
_FILLING = frozenset(
    [
        *("a", "about", "all", "and", "any", "are", "available", "by", "can", "could", "do", "does", "every"),
        *("everything", "exist", "for", "from", "full", "get", "give", "has", "have", "i", "in", "is", "it", "its"),
        *("let", "list", "listing", "many", "mcp", "me", "my", "name", "names", "of", "offer", "offered", "offers"),
        *("on", "our", "please", "print", "provide", "provided", "provides", "s", "see", "server", "servers", "show"),
        *("support", "supports", "tell", "that", "the", "there", "to", "use", "us", "we", "what", "which", "with"),
        *("would", "you", "your"),
    ]
)
"""What may stand around a request for a list; not the stop words of the search: "without" makes it another one."""
_EMPTY = _FILLING | _THINGS
_BEFORE = (["of"], ["from"], ["does"], ["can"])
_ABLE = re.compile(
    r"\b(?:can|could)\b.*\bdo\b|\bdo(?:es)?\b.*\b(?:offer|provide|support)\b|\b(?:offers|provides|supports)\b"
)


def of_server(query: str, servers: Iterable[str]) -> str:
    """Return the server whose tools a text asks to be listed; empty if it asks for anything else."""
    if len(query) > _MOST_CHARS:
        return ""
    words = _WORD.findall(query.casefold())
    if not _asks(words):
        return ""
    lists = [(len(rest), server) for server in servers for rest in _without(words, server) if _is_listing(rest)]
    return min(lists)[1] if lists else ""


def _without(words: list[str], server: str) -> Iterator[list[str]]:
    """Yield the words around each place where a server is named; a name like "list" must plainly be meant as one."""
    name = _WORD.findall(server.casefold())
    for spelled in (name, ["".join(name)][: len(name) - 1]):
        size = len(spelled)
        for start in range(len(words) - size + 1) if size else ():
            before, rest = words[:start], words[start + size :]
            plainly = not _EMPTY.issuperset(spelled) or before[-1:] in _BEFORE or rest[:1] == ["server"]
            if words[start : start + size] == spelled and plainly:
                yield before + rest


def _is_listing(rest: list[str]) -> bool:
    return _asks(rest) and _EMPTY.issuperset(rest)


def _asks(words: list[str]) -> bool:
    return not _THINGS.isdisjoint(words) or _ABLE.search(" ".join(words)) is not None


_MAX_CHARS = 1000
"""Of a query; a longer one has named what it wants by then."""
_UNDOING = frozenset(word for word, deed in VERB_CLASS.items() if deed == "delete") | {*inference.WORDS["destroy"]}
_UNDOING_STEMS = frozenset(map(stem, _UNDOING))
_NO_THINGS = STOP_WORDS | LOW_INFORMATION | WEAK | VERB_CLASS.keys() | _UNDOING
_PREPOSITIONS = "at by for from in inside into of on out over through to under using via when which with"
_BORDERS = frozenset(_PREPOSITIONS.split())
"""Before these the object of a sentence ends: "remove untracked files from the working directory"."""
_LIKE = 75
"""So similar (0..100) are a word and its misspelling, or its beginning."""
_LEAST_CHARS = 4


class _QueryNeed:
    """What a query names, in stems and what these may stand for; rules of paraphrase are asked if its words do not."""

    def __init__(self, query: str) -> None:
        self._text = without_quotes(query[:_MAX_CHARS])
        self._read(words(self._text))
        self._is_paraphrased = False

    def names(self, tool: Tool) -> bool:
        """Say whether it names the deed and the object of a tool that destroys."""
        if self._things and self._says(tool):
            return True
        if not self._is_paraphrased:
            meant = [word for need in interpret(self._text).needs for word in need]
            meant += [word for said in phrases_in(self._text.lower()) for word in said]
            self._read([*words(self._text), *meant])
            self._is_paraphrased = True
        return self._says(tool)

    def _read(self, said: Sequence[str]) -> None:
        self._said = frozenset(map(stem, said))
        self._things = frozenset(stem(word) for word in said if word not in _NO_THINGS)
        self._misspelt = [stem(word) for word in said if word not in REAL_WORDS and len(word) >= _LEAST_CHARS]
        self._destroys = self._means(self._said, _UNDOING_STEMS)

    def _says(self, tool: Tool) -> bool:
        named = frozenset(map(stem, words(tool.name)))
        deed = self._destroys or (named.isdisjoint(_UNDOING_STEMS) and not named.isdisjoint(self._said))
        return deed and (not self._things or self._means(self._things, (named | _object(tool)) - _UNDOING_STEMS))

    def _means(self, said: frozenset[str], stems: frozenset[str]) -> bool:
        """Say whether any of these stems is said, by a synonym, or misspelt."""
        known = alternatives()
        if not stems.isdisjoint(said.union(*(known.get(word, {}) for word in said))):
            return True
        return any(fuzz.ratio(word, other) >= _LIKE for word in self._misspelt for other in stems)


def _object(tool: Tool) -> frozenset[str]:
    """Return the stems of what a tool's title, and its first sentence up to the first border, are about."""
    said = words(inference.first_sentence(tool.description))
    end = next((at for at, word in enumerate(said) if word in _BORDERS), len(said))
    return frozenset(map(stem, (*words(tool.title), *said[:end])))


def likely_server(ranking: Found) -> str:
    """Return the server of the first tool that was found, if that is good enough to be called; else nothing."""
    hit = ranking.hits[0] if ranking.hits else None
    return hit.document.server if hit is not None and hit.document.kind == "tool" and hit.distance < FITS else ""


def _careful(seen: Catalogue, query: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, of which the first destroys nothing that the query does not name; exact ones are left alone.

    Where the best has to give way, or there is no other, no hit fits: what is meant is none of what there is, or it is
    what must not come first.
    """
    tools = [_tool(seen, hit) for hit in hits]
    if not hits or hits[0].exact or not _destroys(tools[0]):
        return tuple(hits)
    need = _QueryNeed(query)
    harmless = (at for at, tool in enumerate(tools) if tool is None or not _destroys(tool) or need.names(tool))
    place = next(harmless, None)
    if place == 0:
        return tuple(hits)
    ordered = hits if place is None else (hits[place], *hits[:place], *hits[place + 1 :])
    return tuple(replace(hit, distance=max(FITS, before.distance)) for hit, before in zip(ordered, hits, strict=True))


def after_successors(seen: Catalogue, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, a tool that its server advises against right behind the best of those that it names instead.

    One that was asked for by its name stays where it is.
    """
    ordered = [*hits]
    for hit in hits:
        tool, server = _tool(seen, hit), hit.document.server
        if tool is None or hit.exact or not (names := successors(tool, seen.entries[server].tools)):
            continue
        named = (each for each in ordered if each.document.server == server and each.document.name in names)
        better = next(named, None)
        if better is not None and ordered.index(better) > (place := ordered.index(hit)):
            ordered.insert(ordered.index(better), ordered.pop(place))
    return tuple(replace(hit, distance=before.distance) for hit, before in zip(ordered, hits, strict=True))


def _tool(seen: Catalogue, hit: Hit) -> Tool | None:
    return seen.entries[hit.document.server].tools.get(hit.document.name) if hit.document.kind == "tool" else None


def _destroys(tool: Tool | None) -> bool:
    """Say whether a tool is declared to destroy, or seems to; what is declared to read only does not."""
    if tool is None:
        return False
    tool = tool.own or tool  # a name that an operator gave it makes nothing harmless
    hints = declared_hints(tool)
    if hints.get("readOnlyHint"):
        return False
    return hints.get("destructiveHint", False) or bool(inference.effects(tool.name, tool.description).destructive)


_NAMED = re.compile(r"\s*server\s*[:=]\s*(?:\"([^\"]{1,200})\"|'([^']{1,200})'|([^\s\"']{1,200}))", re.IGNORECASE)
"""`server:github issues`, as people write it in searches elsewhere."""
_WHOLE = re.compile(r"\s*(\S{1,200}?)\s*(?:[:/.-]|__)\s*\*?\s*")
"""`github:*`, `github/`: all of one server."""
_ALL_OF = re.compile(r"\s*([^\s*:/]{1,200})\s*[:/]\s*\*\s*")
"""The same where no server is called so: without the star it may be a word before a colon."""
_SPACE = re.compile(r"\s")
_EVERYTHING = frozenset({EVERYTHING, "server:*", "*:*"})
_MAX_NAME_CHARS = 200


class DiscoverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How many hits a client may ask for at most, the tokens of an answer, and where a query is cut (characters)."""

    discover_limit_max: int = 50
    discover_token_budget: int = 2000
    max_query_chars: int = 6000


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a query looks, and for what. `named` are the servers it names, `unknown` one that is none.

    `exact`: it is the path of a tool; `absent`: of one that its server does not have; `alone`: the name of a server.
    """

    query: str
    servers: frozenset[str]
    named: frozenset[str] = frozenset()
    unknown: str = ""
    listing: bool = False
    exact: Resolved | None = None
    absent: Absent | Undiscovered | None = None
    alone: str = ""


class Searched(msgspec.Struct, frozen=True):
    """A search that is done, and how long it took.

    `asked` has as much of the query as was looked at, `servers` are those the answer has to say something about.
    `unmet` are the needs of several for which there is nothing. `tool` is the one that the query means as a path.
    """

    asked: Discover
    scope: Scope
    ranking: Found
    servers: frozenset[str]
    milliseconds: float
    unmet: tuple[str, ...] = ()
    tool: Resolved | None = None


def cut(wanted: Discover, settings: DiscoverySettings) -> Discover:
    """Return what is looked at of it: so many characters of all needs together, fairly shared."""
    needs = (wanted.query, *wanted.further)
    query, *further = map(_beginning, needs, divide(settings.max_query_chars, [*map(len, needs)]))
    return replace(wanted, query=query, further=tuple(further))


def _beginning(text: str, size: int) -> str:
    return text[:size]


def needs_of(wanted: Discover) -> tuple[Discover, ...]:
    """Return each need by itself, to be searched for."""
    return tuple(replace(wanted, query=query, further=()) for query in (wanted.query, *wanted.further))


def search(
    seen: Catalogue,
    asked: Discover,
    clock: Callable[[], float],
    described: Mapping[str, str] | None = None,
    prefer: Prefer | None = None,
) -> Searched:
    """Search for one need. The longer the query, the longer it takes. `described`: what is said of servers by their
    configuration.

    `prefer` says which of equals come first.

    Raises `InvalidArguments` for a cursor where nothing is listed.
    """
    started = clock()
    meaning = seen.tool(asked.query.strip())
    scope = _scope(seen, asked, meaning)
    if asked.after is not None and not scope.listing:
        text = "'cursor' goes on with a list: the query must be '*' or 'server:*' as before"
        raise InvalidArguments(f"discover_mcp_tools: {text}")
    ranking = Found() if scope.listing else _found_in(seen, scope, asked, prefer)
    down = seen.names.servers - seen.visible
    about = scope.named & down
    if down and not scope.listing and not scope.named and not asked.servers:
        about = concerned_servers(seen, down, described or {}, replace(asked, query=scope.query), ranking)
    elif scope.listing and not asked.servers:
        about |= named_in(asked.query, down)
    missing: tuple[str, ...] = ()
    if not (scope.listing or scope.named or scope.unknown):
        missing = unmet(
            asked.query, ranking, lambda need: _found(seen, replace(asked, query=need, limit=1), scope.servers)
        )
    tool = meaning if isinstance(meaning, Resolved) else None
    return Searched(asked, scope, ranking, about, (clock() - started) * 1000, missing, tool)


def build_answer(
    seen: Catalogue,
    statuses: Mapping[str, ServerStatus],
    done: Sequence[Searched],
    settings: DiscoverySettings,
    now: float,
    servers: Callable[[], str] = str,
    confirms: Callable[[str, str], bool] = lambda server, tool: False,
    reads: Callable[[str, str], bool] = lambda server, tool: False,
) -> dict[str, Any]:
    """Return the answer to a search for one need or several, which says so where another limit was taken than was asked
    for.

    How long that takes is a matter of the `weight` of what was found. `now` is a moment of the trio clock. `servers`
    gives the servers and what they are for, where nothing fits. `confirms` says of a server's tool whether it runs only
    after the user has said yes, `reads` whether the tool for that runs it.
    """
    said = done[0].asked.clamped
    context = Context(
        seen=seen,
        statuses=statuses,
        budget=settings.discover_token_budget - estimate_tokens(said),
        now=now,
        servers=servers,
        confirms=confirms,
        reads=reads,
    )
    page = _page(context, done[0]) if len(done) == 1 else _shared_page(context, done)
    return {"notice": sentences(said, page.pop("notice", "")), **page} if said else page


def compared(seen: Catalogue, done: Sequence[Searched]) -> dict[str, Any] | None:
    """Return by what a search compared, beside words: the `model` of meanings, null where none is loaded, and how many
    `vectors` there are `of` the documents that were looked at. None if it listed, or went by a path.
    """
    if all(each.scope.listing or each.scope.exact is not None for each in done):
        return None
    index = seen.index
    if index.embedder is None:
        return {"model": None}
    vectors, of = index.embedded(done[0].asked.kinds, seen.visible, seen.within)
    return {"model": index.embedder.name, "vectors": vectors, "of": of}


def _shared_page(context: Context, done: Sequence[Searched]) -> dict[str, Any]:
    limit, took_ms = done[0].asked.limit, sum(each.milliseconds for each in done)
    ends = limit <= default_limit(len(done))
    needs = [_need(context.seen, each, ends=ends) for each in done]
    about = frozenset[str]().union(*(each.servers for each in done))
    likely = frozenset[str]().union(*(_likely(each) for each in done))
    plain = frozenset[str]().union(*(each.servers - _likely(each) for each in done))
    return needs_page(context, needs, limit, took_ms, about, likely - plain)


def _need(seen: Catalogue, done: Searched, *, ends: bool) -> Need:
    """Return a need with what fits it; `ends`: its rows may end where the fit ends."""
    scope, asked, remark = done.scope, done.asked, _remark(seen, done)
    if scope.listing:
        listing = Listing(servers=scope.servers, kinds=asked.kinds)
        total, about = listing.total(seen), bool(done.servers)
        return Need(query=asked.query, total=total, listing=listing, remark=remark, sure=about)
    named, found = _is_named(seen, scope), done.ranking.hits
    hits = found if named or not ends else fitting_hits(found)
    if hits and hits[0].distance >= NOTHING and not hits[0].exact:
        hits = hits[:1]
    return Need(
        query=asked.query,
        total=done.ranking.total,
        hits=hits,
        tool=done.tool,
        sure=named if hits else bool(done.servers),
        remark=remark,
        missing=done.unmet,
    )


def _page(context: Context, done: Searched) -> dict[str, Any]:
    seen, scope, asked = context.seen, done.scope, done.asked
    remark = _remark(seen, done)
    if scope.listing:
        limit = asked.limit if asked.limited else MAX_ITEMS
        listing = Listing(servers=scope.servers, kinds=asked.kinds, after=asked.after, limit=limit)
        return tools_page(context, listing, asked.query, done.milliseconds, about=done.servers, remark=remark)
    return build_page(
        context,
        asked.query,
        done.ranking,
        done.milliseconds,
        tool=done.tool,
        about=done.servers,
        remark=remark or unmet_sentence(done.unmet),
        likely=_likely(done),
        ends=asked.limit <= DEFAULT_LIMIT,
        named=_is_named(seen, scope),
    )


def _is_named(seen: Catalogue, scope: Scope) -> bool:
    """Say whether a query asks for what a server has, so that all of it fits."""
    return scope.alone in seen.visible or scope.absent is not None


def _likely(done: Searched) -> frozenset[str]:
    """Return the servers there is something to say of that the query does not name."""
    likely = done.servers - done.scope.named
    return likely - named_in(done.asked.query, likely) if likely else likely


def _remark(seen: Catalogue, done: Searched) -> str:
    scope = done.scope
    if scope.unknown:
        return no_server(seen, scope.unknown)
    if scope.listing:
        return unlisted_sentences(seen, scope.servers)
    if scope.absent is not None and scope.absent.server in seen.visible:
        return without(seen, scope.absent.server, scope.absent.name)
    return "" if scope.exact else unread_notice(seen, done.asked.kinds)


def weight(seen: Catalogue, done: Sequence[Searched]) -> int:
    """Return the bytes of the tools that were found, as they may be shown, or some for each that can be listed.

    A skill costs more: each tool that it names is looked for.
    """
    return sum(_weight(seen, each) for each in done)


def _weight(seen: Catalogue, done: Searched) -> int:
    if done.scope.listing:
        listing = Listing(servers=done.scope.servers, kinds=done.asked.kinds)
        skills = replace(listing, kinds=done.asked.kinds & {"skill"}).total(seen)
        return _LISTING_COST * listing.total(seen) + _SKILL_COST * skills
    hits = [hit.document for hit in done.ranking.hits if hit.document.kind == "tool"]
    tools = [seen.entries[each.server].tools[each.name] for each in hits]
    skills = sum(hit.document.kind == "skill" for hit in done.ranking.hits)
    return sum(len(tool.definition) for tool in tools) + max(map(growth, tools), default=0) + _SKILL_COST * skills


_LISTING_COST = 32
_SKILL_COST = 8192
"""A millisecond for 16 names that a thousand servers do not have."""


def _found_in(seen: Catalogue, scope: Scope, asked: Discover, prefer: Prefer | None) -> Found:
    """Return the hits for a query: of one server only if it asks for that, a server's own first if it is its name."""
    wanted = replace(asked, query=scope.query)
    if scope.exact is not None:
        return _alone(scope.exact) if scope.exact.server in scope.servers else Found()
    if scope.alone in seen.visible:
        return _server_first(seen, wanted, scope.alone, scope.servers, prefer)
    ranking = _found(seen, wanted, scope.servers, prefer)
    if scope.alone:  # it asks for a server that cannot be used: what others offer must be very good to be shown
        hits = tuple(hit for hit in ranking.hits if hit.exact)
        return Found(hits=hits, total=len(hits))
    return replace(ranking, hits=_careful(seen, scope.query, after_successors(seen, ranking.hits)))


def _alone(tool: Resolved) -> Found:
    document = Document(key=tool_path(tool.server, tool.name), kind="tool", server=tool.server, name=tool.name)
    return Found(hits=(Hit(document=document, score=1.0, distance=0.0, exact=True),), total=1)


def _scope(seen: Catalogue, wanted: Discover, meaning: Resolution) -> Scope:
    """Return where a query looks; `meaning` is what it means as a path."""
    named, unknown = find_servers(seen, wanted.servers) if wanted.servers else (wanted.servers, "")
    within = seen.visible & named if wanted.servers else seen.visible
    query = wanted.query.strip() or (EVERYTHING if wanted.servers or wanted.after is not None else "")
    if query.replace(" ", "") in _EVERYTHING and "server" not in seen.names:
        return Scope(query=EVERYTHING, servers=within, named=named, unknown=unknown, listing=True)
    takes_tools = "tool" in wanted.kinds
    if isinstance(meaning, Resolved) and (meaning.server not in within or _is_path(query, seen)) and takes_tools:
        return Scope(query=query, servers=within, named=named | {meaning.server}, exact=meaning)
    name, rest = _split_server(query, seen)
    said = of_server(query, seen.names.servers) if not name and takes_tools else ""
    name, rest = (said, EVERYTHING) if said else (name, rest)
    if name:
        listing = rest == EVERYTHING
        return Scope(query=rest, servers=within & {name}, named=named | {name}, listing=listing)
    if isinstance(meaning, Absent | Undiscovered) and _is_path(query, seen):
        own = frozenset({meaning.server})
        return Scope(query=meaning.name, servers=within & own, named=named | own, absent=meaning)
    alone = _find_server_named(query, seen)
    if alone:
        return Scope(query=query, servers=within, named=named | {alone}, alone=alone)
    match = _NAMED.match(query)
    unknown = unknown or (clean(next(filter(None, match.groups())))[:64] if match else "")
    absent = _ALL_OF.fullmatch(query)
    if absent or (match and match.end() == len(query)):
        unknown = clean(absent[1])[:64] if absent else unknown
        return Scope(query=EVERYTHING, servers=frozenset(), named=named, unknown=unknown, listing=True)
    return Scope(query=wanted.query, servers=within, named=named, unknown=unknown)


def find_servers(seen: Catalogue, names: frozenset[str]) -> tuple[frozenset[str], str]:
    """Return the servers that are meant by the names beside a query, and one of those that mean none."""
    given = {name: _find_server_named(name, seen) for name in sorted(names)}
    unknown = next((name for name, server in given.items() if not server), "")
    return frozenset(given.values()) - {""}, clean(unknown)[:64]


def no_server(seen: Catalogue, unknown: str) -> str:
    """Return what is said of a name beside a query that means no server, with the nearest names."""
    nearest = ", ".join(clean(name)[:64] for name in nearest_names(unknown, seen.names.servers))
    return f"There is no server {unknown!r}; did you mean {nearest}?" if nearest else f"There is no server {unknown!r}."


def _is_path(query: str, seen: Catalogue) -> bool:
    """Say whether a text can only be meant as a path: a hyphen or a dot may be part of a word, or of a tool's name."""
    for separator in (":", "__"):
        server, sign, _ = query.partition(separator)
        if sign and seen.names.literal(server) is not None:
            return True
    return not _SPACE.search(query) and (":" in query or query.startswith("mcp__"))


def _find_server_named(text: str, seen: Catalogue) -> str:
    """Return the server that a text is the name of; empty if there is none.

    What is literally a configured server's name means that server, though nothing of it can be seen. Else case and
    punctuation do not count, and one that can be seen comes first: a search may be generous, a call may not.
    """
    fitting = seen.names.matches(text.strip())
    return min(fitting, key=lambda name: (name not in seen.visible, name), default="")


def _split_server(query: str, seen: Catalogue) -> tuple[str, str]:
    match = _NAMED.match(query)
    if match:
        name = _find_server_named(next(filter(None, match.groups())), seen)
        if name:
            return name, query[match.end() :].strip() or EVERYTHING
    match = _WHOLE.fullmatch(query) if len(query) <= _MAX_NAME_CHARS else None
    return (_find_server_named(match[1], seen), EVERYTHING) if match else ("", "")


def _server_first(
    seen: Catalogue, wanted: Discover, name: str, visible: frozenset[str], prefer: Prefer | None
) -> Found:
    """Return the tools of a server whose name is the query, then what else fits; a tool of that very name stays in."""
    everywhere = _found(seen, wanted, visible, prefer)
    others = [hit for hit in everywhere.hits if hit.document.server != name]
    kept = min(sum(hit.exact for hit in others), wanted.limit // 2)
    own = _found(seen, wanted, frozenset({name}), prefer)
    listed = _found(seen, replace(wanted, query=EVERYTHING), frozenset({name}))
    ranked = {hit.document.key for hit in own.hits}
    first = [*own.hits, *(hit for hit in listed.hits if hit.document.key not in ranked)][: wanted.limit - kept]
    best = min((hit.distance for hit in first), default=0.0)
    worst = max((hit.distance for hit in first), default=0.0)
    hits = [replace(hit, distance=max(best, hit.distance) if hit.document.key in ranked else worst) for hit in first]
    hits += [replace(hit, distance=max(worst, hit.distance)) for hit in others[: wanted.limit - len(hits)]]
    elsewhere = everywhere.total - sum(hit.document.server == name for hit in everywhere.hits)
    return Found(hits=tuple(hits), total=max(len(hits), listed.total + max(0, elsewhere)))


def _found(seen: Catalogue, wanted: Discover, servers: frozenset[str], prefer: Prefer | None = None) -> Found:
    limit, kinds, within = wanted.limit, wanted.kinds, seen.within
    return find(seen.index, wanted.query, limit=limit, kinds=kinds, servers=servers, within=within, prefer=prefer)
