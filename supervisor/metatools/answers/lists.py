"""Lists for a model, page by page within a budget of tokens: all tools, those of a server, all resources. Pure.

Lines are short, so that many fit. An answer that is not the end has a `next_cursor`, and with the same question and
this cursor the list goes on; so everything is shown, each once, whatever changes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from actors.catalogue.offer import Resource, Tool
from actors.catalogue.snapshot import Catalogue, document_of
from actors.search import Hit
from supervisor.metatools.answers.native_lists import resource_row
from supervisor.metatools.answers.page import Context, sentences
from supervisor.metatools.answers.rows import Row, list_row, other_row, row_tokens
from supervisor.metatools.arguments.resources import ResourceQuery as ResourceListing
from supervisor.metatools.inventory import MAX_ITEMS, Item, Position, Thing, count_shown, encode_cursor, items, total
from supervisor.metatools.texts import clean, shorten_to_tokens

RESOURCES = frozenset({"resource", "template"})
MAX_WORDS_SHOWN = (100, 40)
"""Characters and estimated tokens of a query that is repeated."""
_GO_ON = "for the rest ask the same again with 'cursor' set to next_cursor"


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What to list: of which servers, which kinds, from where on, and how many at most."""

    servers: frozenset[str]
    kinds: frozenset[str]
    after: Position | None = None
    limit: int = MAX_ITEMS


def tools_page(
    context: Context,
    listing: Listing,
    query: str,
    milliseconds: float,
    *,
    about: frozenset[str] = frozenset(),
    remark: str = "",
) -> dict[str, Any]:
    """Return one page of a list as `discover_mcp_tools` answers it.

    `about`: servers to say something of; `remark` is said of what was asked for.
    """
    seen = context.seen
    count = total(seen, listing.servers, listing.kinds)
    there = "" if count or about else _what_there_is(context, remark)
    frame = context.frame(query, count, milliseconds, sentences(context.unusable(about), remark, there))
    offered = items(seen, listing.servers, listing.kinds, listing.after)
    left = context.row_budget(frame)
    rows, following = _page(offered, lambda item: _line(context, item), left, listing.limit)
    frame["tools"] = rows
    earlier = count_shown(seen, listing.servers, listing.kinds, listing.after)
    return _with_cursor(frame, following, _progress(earlier, len(rows), count, following))


def _what_there_is(context: Context, remark: str) -> str:
    if not context.seen.visible:
        return context.no_tools()
    return sentences("" if remark else "Nothing to list.", f"Servers: {context.servers()}.")


def resources_page(context: Context, asked: ResourceListing, servers: frozenset[str], remark: str) -> dict[str, Any]:
    """Return one page of resources and templates as `list_mcp_resources` answers it."""
    seen = context.seen
    wanted = _with_words(asked.words) if asked.words else None
    totals = {kind: total(seen, servers, {kind}, wanted) for kind in sorted(RESOURCES)}
    remark = remark or ("" if any(totals.values()) else _no_resources(seen, asked, servers))
    offered = items(seen, servers, RESOURCES, asked.after, wanted)
    left = context.row_budget({"notice": remark})
    rows, following = _page(offered, lambda item: _resource(seen, item), left, MAX_ITEMS)
    answer: dict[str, Any] = {
        **({"notice": remark} if remark else {}),
        "resources": [row for row in rows if "uri" in row],
        "resource_templates": [row for row in rows if "uriTemplate" in row],
        "total_resources": totals["resource"],
        "total_templates": totals["template"],
    }
    earlier = count_shown(seen, servers, RESOURCES, asked.after, wanted)
    return _with_cursor(answer, following, _progress(earlier, len(rows), sum(totals.values()), following))


def _no_resources(seen: Catalogue, asked: ResourceListing, servers: frozenset[str]) -> str:
    """Say that nothing was found, and where else to look."""
    one = clean(min(servers))[:64] if len(servers) == 1 else ""
    whose = one or ("these servers" if asked.servers else "any server")
    if asked.words and total(seen, servers, RESOURCES):
        words = shorten_to_tokens(" ".join(asked.words), *MAX_WORDS_SHOWN)
        return f"No resource of {whose} has all of the words {words!r}; list_mcp_resources without a query lists all."
    if not one:
        return f"No resource is offered by {whose}; discover_mcp_tools with '*' lists the tools."
    tools = f"; its tools: discover_mcp_tools with '{one}:*'" if total(seen, servers, {"tool"}) else ""
    return f"{one} offers no resources{tools}."


def _page(
    offered: Iterator[Item], row: Callable[[Item], dict[str, Any]], left: int, limit: int
) -> tuple[list[dict[str, Any]], Position | None]:
    """Return the rows of one page, one at least, and after which of them the next one begins.

    There is room for the cursor after each row, as that may be the last one of the page.
    """
    rows: list[dict[str, Any]] = []
    last: Position | None = None
    for item in offered:
        value = row(item)
        left -= row_tokens(value)
        if rows and (left < len(encode_cursor(item.at)) or len(rows) >= limit):
            return rows, last
        rows.append(value)
        last = item.at
    return rows, None


def _progress(earlier: int, here: int, count: int, following: Position | None) -> str:
    """Say which part of a list a page is; empty if it is all of it."""
    if here == count or not here:
        return ""
    end = f"; {_GO_ON}" if following is not None else ", the end"
    return f"{earlier + 1} to {earlier + here} of {count}{end}."


def _with_cursor(answer: dict[str, Any], following: Position | None, said: str) -> dict[str, Any]:
    notice = sentences(answer.pop("notice", ""), said)
    told = {"notice": notice, **answer} if notice else answer
    return told if following is None else {**told, "next_cursor": encode_cursor(following)}


def _line(context: Context, item: Item) -> dict[str, Any]:
    server, thing = item.at.server, item.thing
    if isinstance(thing, Tool):
        return list_row(context.seen.entries[server], thing) | context.availability(server)
    hit = Hit(document=document_of(server, thing), score=0.0, distance=0.0, exact=False)
    other = Row(other_row(hit, context.seen.prompt_name))
    other.shrink()
    return other.value


def _resource(seen: Catalogue, item: Item) -> dict[str, Any]:
    assert isinstance(item.thing, Resource)
    return resource_row(seen.entries[item.at.server], item.thing)


def _with_words(asked: tuple[str, ...]) -> Callable[[Thing], bool]:
    def has_all(thing: Thing) -> bool:
        uri = thing.uri if isinstance(thing, Resource) else ""
        text = f"{uri} {thing.name} {thing.title} {thing.description}".casefold()
        return all(word in text for word in asked)

    return has_all
