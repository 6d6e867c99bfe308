"""Lists for a model, page by page within a budget of tokens: all tools, those of a server, all resources. Pure.

Lines are short, so that many fit. An answer that is not the end has a `next_cursor`, and with the same question and
this cursor the list goes on; so everything is shown, each once, whatever changes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from actors.catalogue.documents import document_of
from actors.catalogue.offer import Resource, Skill, Tool
from actors.catalogue.snapshot import Catalogue
from actors.search.document import TOOLS, Hit
from supervisor.metatools.arguments import ResourceQuery as ResourceListing
from supervisor.metatools.definitions import GO_ON
from supervisor.metatools.inventory import Item, Listing, Position, Thing, encode_cursor, resource_row
from supervisor.metatools.page import Context, Row, list_row, row_tokens, sentences
from supervisor.metatools.texts import clean, shorten_to_tokens

_RESOURCES = frozenset({"resource", "template"})
MAX_WORDS_SHOWN = (100, 40)
"""Characters and estimated tokens of a query that is repeated."""


def tools_page(
    context: Context,
    listing: Listing,
    query: str,
    milliseconds: float,
    *,
    about: frozenset[str] = frozenset(),
    remark: str = "",
) -> dict[str, Any]:
    """Return a page as `discover_mcp_tools` answers it. `about`: servers to tell of; `remark` is said of the query."""
    seen = context.seen
    count = listing.total(seen)
    there = "" if count or about else _what_there_is(context, remark, listing)
    frame = context.frame(query, count, milliseconds, sentences(context.unusable(about), remark, there))
    rows, following = _page(seen, listing, lambda item: line_of(context, item), context.row_budget(frame))
    frame["tools"] = rows
    return _with_cursor(frame, following, _progress(listing.count_shown(seen), len(rows), count, following))


def _what_there_is(context: Context, remark: str, listing: Listing) -> str:
    if not context.seen.visible:
        return context.no_tools()
    if listing.kinds != TOOLS and not remark:
        kinds = " or ".join(sorted(listing.kinds))
        if len(listing.servers) == 1:
            return f"Nothing to list: {clean(min(listing.servers))[:64]} offers no {kinds}."
        return f"Nothing to list: no server offers a {kinds}."
    return sentences("" if remark else "Nothing to list.", f"Servers: {context.servers()}.")


def resources_page(context: Context, asked: ResourceListing, servers: frozenset[str], remark: str) -> dict[str, Any]:
    """Return one page of resources and templates as `list_mcp_resources` answers it."""
    seen = context.seen
    wanted = _with_words(asked.words) if asked.words else None
    listing = Listing(servers=servers, kinds=_RESOURCES, after=asked.after, wanted=wanted)
    totals = {kind: replace(listing, kinds=frozenset({kind})).total(seen) for kind in sorted(_RESOURCES)}
    remark = remark or ("" if any(totals.values()) else _no_resources(seen, asked, servers))
    rows, following = _page(seen, listing, lambda item: _resource(seen, item), context.row_budget({"notice": remark}))
    answer: dict[str, Any] = {
        **({"notice": remark} if remark else {}),
        "resources": [row for row in rows if "uri" in row],
        "resource_templates": [row for row in rows if "uriTemplate" in row],
        "total_resources": totals["resource"],
        "total_templates": totals["template"],
    }
    progress = _progress(listing.count_shown(seen), len(rows), sum(totals.values()), following)
    return _with_cursor(answer, following, progress)


def _no_resources(seen: Catalogue, asked: ResourceListing, servers: frozenset[str]) -> str:
    """Say that nothing was found, and where else to look."""
    one = clean(min(servers))[:64] if len(servers) == 1 else ""
    whose = one or ("these servers" if asked.servers else "any server")
    if asked.words and Listing(servers=servers, kinds=_RESOURCES).total(seen):
        words = shorten_to_tokens(" ".join(asked.words), *MAX_WORDS_SHOWN)
        return f"No resource of {whose} has all of the words {words!r}; list_mcp_resources without a query lists all."
    if not one:
        return f"No resource is offered by {whose}; discover_mcp_tools with '*' lists the tools."
    has_tools = Listing(servers=servers, kinds=TOOLS).total(seen) > 0
    tools = f"; its tools: discover_mcp_tools with '{one}:*'" if has_tools else ""
    return f"{one} offers no resources{tools}."


def _page(
    seen: Catalogue, listing: Listing, row: Callable[[Item], dict[str, Any]], left: int
) -> tuple[list[dict[str, Any]], Position | None]:
    """Return the rows of one page, one at least, and after which of them the next one begins.

    There is room for the cursor after each row, as that may be the last one of the page.
    """
    rows: list[dict[str, Any]] = []
    last: Position | None = None
    for item in listing.items(seen):
        value = row(item)
        cost = row_tokens(value)
        if not rows and cost > left:  # names can be as long as a page
            value.pop("signature", None)
            cost = row_tokens(value)
        left -= cost
        if rows and (left < len(encode_cursor(item.at)) or len(rows) >= listing.limit):
            return rows, last
        rows.append(value)
        last = item.at
    return rows, None


def _progress(earlier: int, here: int, count: int, following: Position | None) -> str:
    """Say which part of a list a page is; empty if it is all of it."""
    if here == count or not here:
        return ""
    end = f"; {GO_ON}" if following is not None else ", the end"
    return f"{earlier + 1} to {earlier + here} of {count}{end}."


def _with_cursor(answer: dict[str, Any], following: Position | None, said: str) -> dict[str, Any]:
    notice = sentences(answer.pop("notice", ""), said)
    told = {"notice": notice, **answer} if notice else answer
    return told if following is None else {**told, "next_cursor": encode_cursor(following)}


def line_of(context: Context, item: Item) -> dict[str, Any]:
    server, thing = item.at.server, item.thing
    if isinstance(thing, Tool):
        return list_row(context.seen, server, thing) | context.treatment(server, thing)
    hit = Hit(document=document_of(server, thing), score=0.0, distance=0.0, exact=False)
    other = Row(context.other_row(hit))
    other.shrink()
    return other.value


def _resource(seen: Catalogue, item: Item) -> dict[str, Any]:
    assert isinstance(item.thing, Resource)
    return resource_row(seen.entries[item.at.server], item.thing)


def _with_words(asked: tuple[str, ...]) -> Callable[[Thing], bool]:
    def has_all(thing: Thing) -> bool:
        uri = thing.uri if isinstance(thing, Resource | Skill) else ""
        text = f"{uri} {thing.name} {thing.title} {thing.description}".casefold()
        return all(word in text for word in asked)

    return has_all
