"""What the URI of a resource that a client wrote means: whose resource it is. Pure.

`server|uri` and `mcp://server/uri` name a server, which alone is asked, listed or not: templates and links lead to
resources that no list has. A URI by itself (a `resource_link` in a server's answer is one) belongs to the server that
lists it, or else to the one whose template it fits; where that is not exactly one server, nobody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from itertools import chain

from actors.catalogue.names.naming import split_resource
from actors.catalogue.names.resolution import Ambiguous, Resolution, Resolved, ServerNames, Undiscovered, Unknown
from actors.catalogue.offer import Offer, Resource, Skill

MAX_URI_CHARS = 8192
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
    if len(uri) > MAX_URI_CHARS or not _SCHEME.match(uri):
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
