"""What a model is told of servers: what each is for, in a line, and why one cannot be used now. Pure.

- What servers say of themselves begins with a heading, with "This MCP server provides tools to", or with how they came
  to be installed; none of that tells one server from another. Where nothing else is said, the tools say it.
- Everything but the operator's own description was written by a server: it is cleaned, cut to a sentence, put on one
  line and in quotes, so that it can be told from what we say.
- The local user is the operator: of a server that cannot be used the reason is said, and the command that shows more.
  Reasons are free of secrets.
- A model must hear of a server that cannot be used, not only of others, if a query is about it: it has the name of the
  server in it, as a word or a phrase; its words are those of the description or purpose, or of what a service of that
  name is known for; or it fits the last-known tools as well as any other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec

from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.catalogue.suspicions import alarms_of
from actors.errors import ServerDisabled, ServerError, ServerGaveUp, ServerStarting, ValuesMissing
from actors.installation import InstallationStatus, installation_status, is_available
from actors.life.breakers import OpenBreaker
from actors.life.states import State
from actors.messages import ServerStatus
from actors.protocol.listing import METHODS
from actors.protocol.wire import json
from actors.search.document import Found
from actors.search.search import find
from actors.search.text import squash, stem, words
from actors.search.words.tables import STOP_WORDS, VERB_CLASS
from actors.server.calls.errors import down_error, log_hint
from actors.server.parts.recovery import DELAYS, STARTING_RETRY_S
from supervisor.metatools.arguments import Discover
from supervisor.metatools.texts import clean, estimate_tokens

_MAX_REASON_CHARS = 300
_MAX_SERVERS_NAMED = 20
_MAX_WHY_CHARS = 100
_FIRST = frozenset({State.DORMANT, State.SPAWNING, State.HANDSHAKING, State.DISCOVERING, State.READY})


def refusal(server: str, status: ServerStatus | None) -> ServerError | None:
    """Return why nothing can be asked of a server, however long one waits; None if it can be."""
    if status is None:
        return None
    if status.disabled:
        text = f"server {server!r} is not available: {_reason(status)}; calling it again will not help: tell the user"
        return ServerDisabled(text, server=server)
    if status.awaits:
        return missing_values_error(server, status.awaits, status.reason)
    if status.state is State.FAILED and status.wanted == "stopped":  # it has no actor that could be asked
        return ServerGaveUp(f"server {server!r} cannot be used: {_reason(status)}", server=server)
    return None


def missing_values_error(server: str, missing: tuple[str, ...], why: str) -> ValuesMissing:
    text = f"server {server!r} cannot be started: {clean(why)}; calling it again will not help: tell the user"
    return ValuesMissing(text, server=server, details={"missing": list(missing)} if missing else None)


def late(server: str, status: ServerStatus | None, now: float) -> ServerStarting:
    """Return the error for a server that did not come up in time. `now` is a moment of the trio clock."""
    if status is not None and (wait := respawn_after_s(status, now)) is not None:
        left = None if status.next_start is None else status.next_start - now
        return down_error(server, _reason(status), wait, left, away=status.down == "offline")
    activity = status.activity if status is not None else None
    why, wait = DELAYS[activity] if activity is not None else ("", STARTING_RETRY_S)
    text = f"server {server!r} is being discovered for the first time and is not ready yet{why}; {log_hint(server)}"
    return ServerStarting(text, server=server, retry_after_s=wait)


def _retry_after_s(status: ServerStatus, now: float) -> float | None:
    """Return in how many seconds a call may find a server up again; see `ServerStatus.retry_at`."""
    return None if status.retry_at is None else max(0.0, status.retry_at - now)


def _open_breaker(status: ServerStatus, tool: str, now: float) -> OpenBreaker | None:
    """Return the breaker that refuses calls of a tool, by its own name, for the longest time; None if none does.

    After its pause the next call is let through, so that is no refusal any more.
    """
    refusing = (each for each in status.breakers if each.breaker == "server" or each.tool == tool)
    return max((each for each in refusing if each.until > now), key=lambda each: each.until, default=None)


def availability_of(status: ServerStatus, tool: str, now: float) -> dict[str, Any]:
    """Return what a row says of a tool that cannot be called now: in how many milliseconds it can, if that is known,
    and why, if that is a breaker.
    """
    breaker = _open_breaker(status, tool, now)
    down = not is_available(status)
    if breaker is None and not down:
        return {}
    waits = [_retry_after_s(status, now) if down else None, breaker.until - now if breaker is not None else None]
    wait_s = max((each for each in waits if each is not None), default=None)
    when = {} if wait_s is None else {"retry_after_ms": round(wait_s * 1000)}
    return {"available": False, **when, **({} if breaker is None else {"reason": _why(breaker)})}


def _why(breaker: OpenBreaker) -> str:
    who = "it keeps" if breaker.tool else "calls of its server keep"
    return f"{who} failing: {clean(breaker.reason)[:_MAX_WHY_CHARS]}"


def respawn_after_s(status: ServerStatus | None, now: float) -> float | None:
    """Return in how many seconds a server that failed is started again; None if it is not, or has not failed."""
    return _retry_after_s(status, now) if status is not None and status.state is State.RESPAWNING else None


def is_coming(status: ServerStatus | None) -> bool:
    """Say whether a server without known tools is being discovered for the first time: it has not failed so far."""
    if status is None:
        return True
    queued = status.state is not State.DORMANT or status.incarnation == 0
    return is_available(status) and status.restarts == 0 and status.state in _FIRST and queued


def newcomers(seen: Catalogue, statuses: Mapping[str, ServerStatus]) -> frozenset[str]:
    """Return the servers that are being discovered for the first time; not those that failed and try again."""
    unknown = seen.names.servers - seen.entries.keys()
    if not unknown:
        return unknown
    return frozenset(server for server in unknown if is_coming(statuses.get(server)))


_STANDINGS: Mapping[InstallationStatus | None, str] = {
    None: "is not available",
    "awaiting_user_config": "waits for values",
    "requires_reauth": "wants a login",
    "offline": "is offline",
    "error": "fails and is started again",
    "permanently_failed": "could not be started",
}
"""What is said of a server that cannot be used, by the status that all pages show; why follows in brackets."""


def status_words(server: str, status: ServerStatus | None) -> str:
    if is_coming(status):
        return f"{clean(server)} is being discovered"
    assert status is not None
    word = installation_status(status, listed=False)
    if word in _STANDINGS:
        return f"{clean(server)} {_STANDINGS[word]} ({_reason(status)})"
    if not status.reason and not status.restarts:
        return f"{clean(server)} is {status.state} and was never discovered"
    return f"{clean(server)} could not be started ({_reason(status)})"


def is_off(status: ServerStatus | None) -> bool:
    return status is not None and status.disabled


def standings(servers: Iterable[str], statuses: Mapping[str, ServerStatus], most: int = _MAX_SERVERS_NAMED) -> str:
    """Return how servers are doing, at most twenty of them; empty for none."""
    names = sorted(servers)
    told = "; ".join(status_words(name, statuses.get(name)) for name in names[:most])
    more = f"; {len(names) - most} more" if len(names) > most else ""
    return told + more


def unlisted_of(seen: Catalogue, server: str | None) -> str:
    """Return why not all tools of a server are known; empty if they are."""
    entry = seen.entries.get(server) if server is not None else None
    if entry is None or not entry.offer.partial:
        return ""
    problems = (problem for problem in entry.offer.problems if problem.startswith(METHODS["tools"]))
    return f"its list of tools could not be read to its end ({clean(next(problems, 'no answer'))[:_MAX_REASON_CHARS]})"


def unlisted_sentences(seen: Catalogue, servers: Iterable[str]) -> str:
    """Say of which of these servers not all tools are known, at most twenty of them; empty for none."""
    partial = [server for server in sorted(servers) if server in seen.visible and unlisted_of(seen, server)]
    told = "; ".join(f"{clean(name)}: {unlisted_of(seen, name)}" for name in partial[:_MAX_SERVERS_NAMED])
    return f"Not all tools are known. {told}; tell the user." if told else ""


def without(seen: Catalogue, server: str, tool: str) -> str:
    return f"Server {server!r} has no tool {clean(tool[:100])!r}. {unlisted_sentences(seen, [server])}".rstrip()


def _reason(status: ServerStatus) -> str:
    return clean(status.reason or ("it is switched off" if status.disabled else "its last start failed"))[
        :_MAX_REASON_CHARS
    ]


_LOOKED_AT = 2000
"""Characters of a text, the most."""
_SENTENCES = 6
"""What a server is for stands among so many, or nowhere: later ones are about its use."""
_MAX_TOOLS = 200
_MAX_TOOL_NAME_CHARS = 40
_NOUNS = 3
_VERBS = 3
_SPACE = re.compile(r"\s+")
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s.*|[=\-*_]{3,}\s*|```.*)$", re.MULTILINE)
_MARKUP = re.compile(r"[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\s*\n\s*\n\s*")
_SERVER = r"(?:(?:an?|the|this|official)\s+)*(?:[\w.-]+\s+){0,4}?(?:mcp|model context protocol)(?:\s+\(mcp\))?\s+server"
_GIVES = r"(?:provid|offer|expos|giv|enabl|allow|implement|let)(?:es?|s|ing)?"
_TO_WHOM = (
    r"(?:\s+(?:[\w.-]+\s+){0,3}?(?:agents?|assistants?|models?|llms?|clients?|users?|you)(?:\s+(?:with|the ability))?"
    r"(?:\s+(?:access\s+)?to)?)?"
)
_TOOLS_TO = r"(?:(?:an?\s+|the\s+)?(?:set\s+of\s+)?tools?\s+(?:to|for|that)\s+)"
_BEGINNING = re.compile(
    rf"^(?:{_SERVER}|(?:this|the)\s+(?:[\w.-]+\s+){{0,3}}?server)(?:\s+that|\s+which)?(?:\s+is)?"
    rf"(?:\s+{_GIVES}{_TO_WHOM}\s+{_TOOLS_TO}?|\s+(?:for|to)\s+|\s*[:,-]\s+|\s+)|^(?:use\s+this\s+server\s+to|{_TOOLS_TO})\s*",
    re.IGNORECASE,
)
_GIVING = re.compile(rf"^(?:provides|offers|gives|allows|enables|lets){_TO_WHOM}\s+", re.IGNORECASE)
_ABOUT_ITSELF = re.compile(
    r"^(?:the user (?:has|wants)\b|you (?:are|have|must|should)\b|welcome\b|important\b|note\b|always\b|never\b"
    r"|before\b|when\b|if\b|instructions\b|please\b|audience\b|follow\b|these\b|use\s+\w+(?:[_-]\w+)+\s"
    r"|for\b[^,]{1,80},\s*(?:use|call|prefer)\b|[a-z0-9]+(?:_\w+|(?:-\w+){2,})\b)",
    re.IGNORECASE,
)
_MCP_SERVER = re.compile(r"\b(?:the\s+)?(?:mcp|model context protocol)(?:\s+server)?\b|\bserver$", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_PLAIN_WORDS = re.compile(r"[^\W_]+")
_LINKING = """
as at between by for from in including into on providing so such that through to using via where which with without
"""
_LINKS = frozenset(_LINKING.split())
"""Before these a phrase may end: what they begin is left out as a whole."""
_JOINING = frozenset(["and", "or"])
_LITTLE = _LINKS | _JOINING | frozenset(["a", "an", "is", "it", "its", "of", "the", "their", "your"])
_ENDS = (",", ";", ":")
_LEAST_KEPT = 0.4
"""So much of what there is room for a phrase must fill that ends where one part of the sentence does."""
_SAYS_NOTHING = frozenset(["mcp", "server", "api", "reference", "official", "service", "tool", "tools", "toolkit"])
_VERBS_TOO = """
aggregate analyze ask audit blame click close compare configure connect convert crawl diff do download drag evaluate
execute expand explain export extract fill find forward generate handle hover import list log manage map merge monitor
navigate open pick play press preview pull push query reset resolve resume run save scan schedule screenshot scrape
select share start submit subscribe summarize sync test toggle track transform translate trigger type unsubscribe
validate verify wait
"""
_DEEDS = VERB_CLASS.keys() | frozenset(_VERBS_TOO.split())
_PASSED_OVER = frozenset(["all", "api", "by", "current", "latest", "mcp", "multiple", "my", "new", "tool", "tools"])
_MOST_WORDS, _FIRST_WORDS = 3, 2
"""A thing of more words than the first is told by its first two: a longer one is a part of it."""
_COMMON = 0.6
"""The share of names that begin with a word which is what all the tools are about."""
_FEW = 3
_SINGLE = 5
"""So many names are told where each is one word."""


def _sentence(text: str, server: str) -> str:
    """Return the first sentence that says what a server is for, on one line; empty if none does.

    One that reads as an order to the model (`text-instructs` and the like) says that of no server.
    """
    plain = _MARKUP.sub("", _HEADING.sub("\n", clean(text[:_LOOKED_AT])))
    parts = [part for part in _SENTENCE.split(plain) if part.strip()]
    for part in parts[:_SENTENCES]:
        line = _SPACE.sub(" ", part).strip().lstrip("-*\u2022 ")
        told = line and not _ABOUT_ITSELF.match(line)
        said = _without_preamble(line, server).rstrip(".:") if told else ""
        if _says_more(said, server) and not alarms_of({"description": line}):
            return said
    return ""


def _without_preamble(line: str, server: str) -> str:
    own = re.match(rf"(?:the\s+)?{re.escape(server)}\s+(?:also\s+)?(?={_GIVES}\s)", line, re.IGNORECASE)
    rest = line[own.end() :] if own else _BEGINNING.sub("", line, count=1).strip()
    rest = _GIVING.sub("", rest, count=1)
    rest = _SPACE.sub(" ", _MCP_SERVER.sub("", rest)).strip(" ,:-")
    return rest[:1].upper() + rest[1:]


def _says_more(said: str, server: str) -> bool:
    """Say whether there is any word in it but those of the server's name."""
    own = {*_PLAIN_WORDS.findall(server.casefold()), *_LITTLE, *_SAYS_NOTHING}
    return any(word not in own for word in _PLAIN_WORDS.findall(said.casefold()))


def _of_tools(tools: Sequence[Tool], server: str) -> str:
    """Return what tools are about: what the only one says, else the commonest things and deeds in their names."""
    if len(tools) == 1:
        return _sentence(tools[0].description, server) or clean(tools[0].name)[:_MAX_TOOL_NAME_CHARS]
    names = [_name_words(tool, server) for tool in tools[:_MAX_TOOLS]]
    if all(len(words) == 1 for words in names):
        return ", ".join(dict.fromkeys(words[0] for words in names[:_SINGLE]))
    firsts = Counter(words[0] for words in names if len(words) > 1)
    topics = {word for word, count in firsts.items() if count >= max(_FEW, _COMMON * len(names)) and word not in _DEEDS}
    deeds: Counter[str] = Counter()
    things: dict[str, list[str]] = {}
    for its_words in names:
        about, deed, thing = _taken_apart(its_words, topics, server)
        deeds.update(deed)
        for noun in (*about, thing):
            if noun:
                things.setdefault(noun.removesuffix("s"), []).append(noun)
    nouns = ", ".join(_commonest(things))
    verbs = ", ".join(deed for deed, _ in deeds.most_common(_VERBS))
    return f"{nouns}: {verbs}" if nouns and verbs else nouns or verbs


def _commonest(things: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the things most tools are about, without parts of one that is there."""
    nouns: list[str] = []
    for named in sorted(things.values(), key=len, reverse=True):
        if not any(named[0].startswith(f"{other.removesuffix('s')} ") for other in nouns):
            nouns.append(named[0])
    return nouns[:_NOUNS]


def _name_words(tool: Tool, server: str) -> list[str]:
    """Return the words of a tool's name without those of its server before them; at least one."""
    words = [word.lower() for word in _WORDS.findall(clean(tool.name)[:_MAX_TOOL_NAME_CHARS])] or [clean(tool.name)]
    return _without_own(words, server) or words


def _without_own(words: Sequence[str], server: str) -> list[str]:
    own = {word.casefold() for word in _WORDS.findall(server)} | {server.casefold()} | _PASSED_OVER
    start = next((at for at, word in enumerate(words) if word not in own), len(words))
    return list(words[start:])


def _taken_apart(words: Sequence[str], topics: Collection[str], server: str) -> tuple[list[str], list[str], str]:
    """Return what a tool is about beside its thing, its deed, and its thing; a name of one word is a deed."""
    about = list(words[:1]) if words[0] in topics else []
    rest = words[len(about) :]
    if len(rest) == 1 and (rest[0] in _DEEDS or not about):
        return about, list(rest), ""
    at = next((at for at, word in enumerate(rest[:2]) if word in _DEEDS), -1)
    if at < 0:
        return about, [], _thing(rest)
    after = _without_own(rest[at + 1 :], server) or rest[at + 1 :]
    return [*about, *rest[:at]], [rest[at]], _thing(after)


def _thing(words: Sequence[str]) -> str:
    """Return what a tool does something with, up to the first little word."""
    said = [word for word in words if word not in _PASSED_OVER and len(word) > 1 and not word.isdigit()]
    while said and said[0] in _LITTLE:
        said.pop(0)
    end = next((at for at, word in enumerate(said) if word in _LITTLE), len(said))
    return " ".join(said[:end] if end <= _MOST_WORDS else said[:_FIRST_WORDS])


def brief(text: str, chars: int) -> str:
    """Return the first words of a text, in at most so many characters, as a phrase.

    It ends where a part of the sentence does, if that leaves enough of it; in any case not in a little word.
    """
    if len(text) <= chars:
        return text
    words = text.split(" ")
    fitting = text[: chars + 1].count(" ")
    if not fitting:
        return text[:chars]
    pairs = list(enumerate(pairwise(words[: fitting + 1]), 1))
    parts = [size for size, (word, link) in pairs if word[-1:] in _ENDS or link.casefold() in _LINKS]
    joined = [size for size, (_, link) in pairs if link.casefold() in _JOINING]
    ends = (sizes[-1] for sizes in (parts, joined) if sizes)
    fitting = next((size for size in ends if len(" ".join(words[:size])) >= _LEAST_KEPT * chars), fitting)
    while fitting > 1 and words[fitting - 1].strip(",;:(").casefold() in _LITTLE:
        fitting -= 1
    return " ".join(words[:fitting]).rstrip(" ,;:(-")


_LENGTHS = (90, 60, 40)
"""Characters of a purpose, the longest that fits for all servers."""
_SHORT_LENGTHS = (32, 60)
"""Characters of a purpose where not all servers can have a longer one: first for all of them, then for some."""
_MAX_SERVER_NAME_CHARS = 64
_REST_TOKENS = 8
"""For what is said of the servers that are not named."""
_NAMES = """
airtable asana aws azure bigquery bitbucket browser calendar chrome clickhouse cloudflare confluence datadog discord
docker drive dropbox elasticsearch email figma files filesystem firebase git github gitlab gmail google grafana heroku
hubspot jenkins jira kubernetes linear mail mailchimp maps mongodb mysql netlify notion outlook paypal pinecone
postgres postgresql redis salesforce sentry shopify slack snowflake splunk spotify sqlite stripe supabase telegram
terraform time todoist trello twilio twitter vercel weather wikipedia wordpress youtube zendesk zoom
"""
_KNOWN = frozenset(_NAMES.split())
"""Names that say what a server is for to whoever has read a little: the others are explained first."""
SERVERS_TOKENS = 150
"""For the servers that can be used, in an answer in which nothing fits: of the others it has the reasons."""


def purpose(entry: Entry, described: str = "") -> str:
    """Return what a server is for: as configured, else as it says itself, else as the names of its tools suggest."""
    said = (_sentence(text, entry.server) for text in (*_of_itself(entry), entry.offer.instructions))
    return _line(described) or next(filter(None, said), "") or _of_tools(entry.offer.tools, entry.server)


class Purposes:
    """The purposes of servers, each worked out anew only where its server says something else of itself.

    Ten thousand tools take a quarter of a second, and a text of all servers is made at each change of one.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Offer, str, str]] = {}

    def of(self, entry: Entry, described: str = "") -> str:
        offer, of, known = self._known.get(entry.server, (None, "", ""))
        if offer is not entry.offer or of != described:
            known = purpose(entry, described)
            self._known[entry.server] = (entry.offer, described, known)
        return known

    def keep(self, servers: Container[str]) -> None:
        """Forget all servers but these."""
        self._known = {server: known for server, known in self._known.items() if server in servers}


def _of_itself(entry: Entry) -> tuple[str, str]:
    info = entry.offer.server_info
    title = json.text_at(info, "title")[:_LOOKED_AT]
    repeats = title.casefold() in (entry.server.casefold(), "")
    return json.text_at(info, "description")[:_LOOKED_AT], "" if repeats else title


def _line(text: str) -> str:
    """Return the first sentence of a text, clean and on one line."""
    plain = " ".join(clean(text[:_LOOKED_AT]).split())
    return plain.partition(". ")[0].rstrip(".")


def roll(
    seen: Catalogue,
    statuses: Mapping[str, ServerStatus],
    described: Mapping[str, str],
    budget_tokens: int,
    *,
    usable: bool = False,
    purpose_of: Callable[[Entry, str], str] = purpose,
) -> str:
    """Return the servers, each with its purpose, and its state where it cannot be used; empty for none.

    Within a budget of estimated tokens: with many servers the purposes are shorter, then only some have one, those
    first whose names say nothing, then there are names only, then some of the names. `usable`: only those that can be
    used. States: `starting`, `off`, `failed`. `purpose_of`: `purpose`, or what remembers it.
    """
    names = sorted(seen.visible if usable else seen.names.servers)
    said = {name: described.get(name, "") for name in names}
    purposes = {
        name: purpose_of(seen.entries[name], said[name]) if name in seen.entries else _line(said[name])
        for name in names
    }
    bare = {name: _bare(name, _state(name, seen, statuses)) for name in names}
    for chars in _LENGTHS:
        told = {name: _describe(name, bare[name], purposes[name], chars) for name in names}
        if _tokens(told.values()) <= budget_tokens:
            return "; ".join(told.values())
    if _tokens(bare.values()) > budget_tokens:
        return _names(bare.values(), budget_tokens)
    return "; ".join(_fill_purposes(bare, purposes, budget_tokens).values())


def list_names(names: Iterable[str], budget_tokens: int) -> str:
    """Return the names of servers, and the number of those that do not fit a budget of estimated tokens."""
    return _names([clean(name)[:_MAX_SERVER_NAME_CHARS] for name in names], budget_tokens)


def _fill_purposes(bare: Mapping[str, str], purposes: Mapping[str, str], budget_tokens: int) -> dict[str, str]:
    """Give a purpose to as many servers as the budget allows, those first whose names say nothing."""
    told = dict(bare)
    left = budget_tokens - _tokens(told.values())
    for chars in _SHORT_LENGTHS:
        for name in sorted(told, key=_is_known):
            longer = _describe(name, bare[name], purposes[name], chars)
            cost = estimate_tokens(longer) - estimate_tokens(told[name])
            if cost <= left:
                told[name], left = longer, left - cost
    return told


def _is_known(name: str) -> bool:
    return any(word in _KNOWN for word in _PLAIN_WORDS.findall(name.casefold()))


def _tokens(texts: Iterable[str]) -> int:
    """Return the tokens of texts with something between them: each is counted alone, so none is forgotten."""
    return sum(estimate_tokens(text) for text in texts)


def _bare(name: str, state: str) -> str:
    return f"{clean(name)[:_MAX_SERVER_NAME_CHARS]}{f' ({state})' if state else ''}"


def _describe(name: str, bare: str, about: str, chars: int) -> str:
    if not about:
        return bare
    shown = clean(name)[:_MAX_SERVER_NAME_CHARS]
    return f"{shown} {msgspec.json.encode(brief(about, chars)).decode()}{bare.removeprefix(shown)}"


def _state(name: str, seen: Catalogue, statuses: Mapping[str, ServerStatus]) -> str:
    status = statuses.get(name)
    if name in seen.visible:
        return ""
    if name not in seen.entries and is_coming(status):
        return "starting"
    return "off" if status is None else installation_status(status, listed=False) or "off"


def _names(told: Collection[str], budget_tokens: int) -> str:
    kept: list[str] = []
    used = 0 if _tokens(told) <= budget_tokens else _REST_TOKENS
    for text in told:
        used += estimate_tokens(text)
        if used > budget_tokens:
            break
        kept.append(text)
    rest = len(told) - len(kept)
    return ", ".join(kept) + (f"{' and ' if kept else ''}{rest} more" if rest else "")


FITS = 0.5
"""A hit with a smaller distance fits, any other is rather noise; the distances are calibrated to mean that."""
NOTHING = 0.8
"""From this distance of the best hit on nothing fits; between `FITS` and this one it is not sure."""
MOST = 5
"""So many servers that a query may be about are named; those it names itself are all named."""
_MAX_LOOKED_AT = 100
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
    others = sorted(server for server in down if server not in named)[:_MAX_LOOKED_AT]
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
