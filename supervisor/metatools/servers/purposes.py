"""What each server is for, in a line, as a model is told beside our own words. Pure.

Everything but the operator's own description was written by a server: it is cleaned, cut to a sentence, put on one line
and in quotes, so that it can be told from what we say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping

import msgspec

from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue, Entry
from actors.installation import installation_status
from actors.messages import ServerStatus
from actors.protocol.wire import json
from supervisor.metatools.servers.availability import is_coming
from supervisor.metatools.servers.phrases import LOOKED_AT, brief, of_tools, sentence
from supervisor.metatools.texts import clean, estimate_tokens

LENGTHS = (90, 60, 40)
"""Characters of a purpose, the longest that fits for all servers."""
SHORT_LENGTHS = (32, 60)
"""Characters of a purpose where not all servers can have a longer one: first for all of them, then for some."""
MAX_NAME_CHARS = 64
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
_WORDS = re.compile(r"[^\W_]+")
SERVERS_TOKENS = 150
"""For the servers that can be used, in an answer in which nothing fits: of the others it has the reasons."""


def purpose(entry: Entry, described: str = "") -> str:
    """Return what a server is for: as configured, else as it says itself, else as the names of its tools suggest."""
    said = (sentence(text, entry.server) for text in (*_of_itself(entry), entry.offer.instructions))
    return _line(described) or next(filter(None, said), "") or of_tools(entry.offer.tools, entry.server)


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
    title = json.text_at(info, "title")[:LOOKED_AT]
    repeats = title.casefold() in (entry.server.casefold(), "")
    return json.text_at(info, "description")[:LOOKED_AT], "" if repeats else title


def _line(text: str) -> str:
    """Return the first sentence of a text, clean and on one line."""
    plain = " ".join(clean(text[:LOOKED_AT]).split())
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
    for chars in LENGTHS:
        told = {name: _describe(name, bare[name], purposes[name], chars) for name in names}
        if _tokens(told.values()) <= budget_tokens:
            return "; ".join(told.values())
    if _tokens(bare.values()) > budget_tokens:
        return _names(bare.values(), budget_tokens)
    return "; ".join(_fill_purposes(bare, purposes, budget_tokens).values())


def list_names(names: Iterable[str], budget_tokens: int) -> str:
    """Return the names of servers, and the number of those that do not fit a budget of estimated tokens."""
    return _names([clean(name)[:MAX_NAME_CHARS] for name in names], budget_tokens)


def _fill_purposes(bare: Mapping[str, str], purposes: Mapping[str, str], budget_tokens: int) -> dict[str, str]:
    """Give a purpose to as many servers as the budget allows, those first whose names say nothing."""
    told = dict(bare)
    left = budget_tokens - _tokens(told.values())
    for chars in SHORT_LENGTHS:
        for name in sorted(told, key=_is_known):
            longer = _describe(name, bare[name], purposes[name], chars)
            cost = estimate_tokens(longer) - estimate_tokens(told[name])
            if cost <= left:
                told[name], left = longer, left - cost
    return told


def _is_known(name: str) -> bool:
    return any(word in _KNOWN for word in _WORDS.findall(name.casefold()))


def _tokens(texts: Iterable[str]) -> int:
    """Return the tokens of texts with something between them: each is counted alone, so none is forgotten."""
    return sum(estimate_tokens(text) for text in texts)


def _bare(name: str, state: str) -> str:
    return f"{clean(name)[:MAX_NAME_CHARS]}{f' ({state})' if state else ''}"


def _describe(name: str, bare: str, about: str, chars: int) -> str:
    if not about:
        return bare
    shown = clean(name)[:MAX_NAME_CHARS]
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
