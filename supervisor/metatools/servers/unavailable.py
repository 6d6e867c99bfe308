"""Which servers that cannot be used now a query is about: a model must hear of them, not only of others. Pure.

- A query that has the name of such a server in it, as a word or a phrase.
- A query whose words are those of its description or purpose, or of what a service of its name is known for.
- A query that fits its last-known tools as well as any other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from actors.catalogue.snapshot import Catalogue
from actors.search.document import Found
from actors.search.search import find
from actors.search.text import squash, stem, words
from actors.search.words.tables import STOP_WORDS
from supervisor.metatools.arguments.tools import Discover
from supervisor.metatools.servers.purposes import purpose

FITS = 0.5
"""A hit with a smaller distance fits, any other is rather noise; the distances are calibrated to mean that."""
NOTHING = 0.8
"""From this distance of the best hit on nothing fits; between `FITS` and this one it is not sure."""
MOST = 5
"""So many servers that a query may be about are named; those it names itself are all named."""
MAX_LOOKED_AT = 100
"""Of more servers that are down it is not looked at what they are for."""
_SERVICES = """
airtable base table record spreadsheet
asana task project todo
calendar event meeting appointment schedule calendar
confluence wiki page space
datadog metric monitor dashboard log
discord chat channel message post server
drive file folder document share
email mail email inbox message
figma design frame mockup
github repository issue pull request commit branch code
gitlab repository issue merge request commit branch pipeline
gmail mail email inbox message
jira issue ticket sprint board
linear issue ticket cycle project
mongodb database collection document query
mysql database table sql query
notion page note wiki workspace
outlook mail email inbox message calendar
postgres database table sql query
redis cache key value
sentry error exception crash stack trace
slack chat channel message post workspace thread
spotify music song playlist track
sqlite database table sql query
stripe payment invoice customer subscription refund
teams chat channel message post meeting
telegram chat channel message post
todoist task todo project
trello board card list
twilio sms text message
whatsapp chat message group
youtube video channel playlist transcript
zoom meeting video call
"""
_KNOWN_FOR = {name: about for name, _, about in (line.partition(" ") for line in _SERVICES.strip().splitlines())}
"""What well-known services are for, from general knowledge: for those that cannot be asked themselves."""
_CHANNEL = re.compile(r"(?<!\S)#([^\W\d]\w{0,80})")
"""`#general`, as people write the name of a channel."""
_WORD = re.compile(r"[^\W_]+")
_AS_GOOD = 0.8
_MIN_SHARED = 2
_MIN_STEM_CHARS = 3
_ASKING = "do does find get give have help list make new run server servers show tell tool use using"
_EMPTY_WORDS = frozenset(map(stem, STOP_WORDS.union(_ASKING.split())))
"""Words that say nothing of what a server is for: those of the search, and those of asking for a tool."""


def named_in(query: str, servers: Iterable[str]) -> frozenset[str]:
    """Return the servers whose name is a word or a phrase of a query, whatever is between the words of the name."""
    said = _WORD.findall(query.casefold())
    phrase, glued = f" {' '.join(said)} ", frozenset(said)
    return frozenset(server for server in servers if _is_said(server, phrase, glued))


def _is_said(server: str, phrase: str, glued: frozenset[str]) -> bool:
    parts = _WORD.findall(server.casefold())
    whole = squash(server)
    return len(whole) > 1 and (f" {' '.join(parts)} " in phrase or whole in glued)


def concerned_servers(
    seen: Catalogue, down: Collection[str], described: Mapping[str, str], wanted: Discover, ranking: Found
) -> frozenset[str]:
    """Return which servers of those that are `down` a query is about; `ranking` is what it found on the others."""
    named = named_in(wanted.query, down)
    asked = _stems(_CHANNEL.sub(r" channel \1", wanted.query))
    others = sorted(server for server in down if server not in named)[:MAX_LOOKED_AT]
    likely = [server for server in others if _says(seen, described, server, asked)]
    if any(server in seen.entries for server in down):
        likely += _servers_with_tools(seen, down, wanted, ranking)
    return named | frozenset(list(dict.fromkeys(likely))[:MOST])


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text) if len(word) >= _MIN_STEM_CHARS) - _EMPTY_WORDS


_known_stems = lru_cache(maxsize=1024)(_stems)


def _says(seen: Catalogue, described: Mapping[str, str], server: str, asked: frozenset[str]) -> bool:
    """Say whether what a server is for has the words of a query: two, or the only one."""
    about = described.get(server, "")
    text = purpose(seen.entries[server], about) if server in seen.entries else about
    shared = asked & _known_stems(f"{server} {text}")
    known_for = " ".join(_KNOWN_FOR.get(word, "") for word in _WORD.findall(server.casefold()))
    familiar = asked & _known_stems(known_for)
    return len(familiar) >= _MIN_SHARED or (bool(shared) and len(shared) >= min(_MIN_SHARED, len(asked)))


def _servers_with_tools(seen: Catalogue, down: Collection[str], wanted: Discover, ranking: Found) -> list[str]:
    """Return the servers whose last-known tools fit as well as the best that can be used."""
    hidden = frozenset(down) & seen.entries.keys()
    last = find(seen.index, wanted.query, limit=MOST, kinds=wanted.kinds, servers=hidden, within=seen.within)
    best = max((hit.score for hit in ranking.hits), default=0.0)
    exact = any(hit.exact for hit in ranking.hits)
    least = _AS_GOOD * best
    fits = (hit for hit in last.hits if hit.exact or (hit.distance < FITS and not exact and hit.score >= least))
    return [hit.document.server for hit in fits]


def unread_notice(seen: Catalogue, kinds: frozenset[str]) -> str:
    """Say, right after the start, that not all of what is known can be searched yet; empty if it can."""
    if seen.searchable(kinds) or not seen.visible:
        return ""
    searched = len(seen.visible & seen.index.servers)
    what = f"{searched} of {len(seen.visible)} servers" if searched < len(seen.visible) else "all tools, not all else"
    return f"The daemon has just started and can search {what} so far; ask again in a few seconds."
