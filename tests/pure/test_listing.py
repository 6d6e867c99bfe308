"""Walking the lists of a server: every walk ends."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.listing import Kind, Listing, ListLimits

ALL = msgspec.Raw(b'{"tools":{},"resources":{},"prompts":{}}')
TOOLS = msgspec.Raw(b'{"tools":{}}')


def page(kind: str, *entries: Any, cursor: Any = None) -> msgspec.Raw:
    found: dict[str, Any] = {kind: list(entries)}
    if cursor is not None:
        found["nextCursor"] = cursor
    return msgspec.Raw(json.dumps(found).encode())


def walk(listing: Listing, kind: Kind = "tools", **more: Any) -> int:
    """Answer with a new entry and a cursor for ever; return how many pages it took."""
    for number in range(100_000):
        if listing.on_page(kind, page(kind, {"name": f"t{number}", **more}, cursor="next")) is None:
            return number + 1
    raise AssertionError("the walk does not end")


@pytest.mark.parametrize(
    ("capabilities", "kinds"),
    [
        (ALL, ["tools", "resources", "templates", "prompts"]),
        (TOOLS, ["tools"]),
        (msgspec.Raw(b'{"tools":null,"prompts":{"listChanged":true}}'), ["prompts"]),
        (msgspec.Raw(b"{}"), []),
        (msgspec.Raw(b"null"), []),
        (msgspec.Raw(b"[1]"), []),
        (msgspec.Raw(b""), []),
    ],
)
def test_only_what_is_announced_is_asked_for(capabilities: msgspec.Raw, kinds: list[str]) -> None:
    listing = Listing(capabilities, ListLimits())
    assert [kind for kind, _ in listing.first()] == kinds
    assert listing.done is (not kinds)


def test_pages_are_joined_in_order_and_each_entry_is_kept_as_it_was_written() -> None:
    listing = Listing(TOOLS, ListLimits())
    following = listing.on_page("tools", msgspec.Raw(b'{"tools":[ {"name" : "a"}],"nextCursor":"c"}'))
    assert following == ("tools", b'{"cursor":"c"}')
    assert listing.on_page("tools", page("tools", {"name": "b"})) is None
    assert listing.done
    assert [bytes(entry) for entry in listing.result().tools] == [b'{"name" : "a"}', b'{"name": "b"}']


def test_endless_cursors_end_after_a_hundred_pages() -> None:
    listing = Listing(TOOLS, ListLimits())
    assert walk(listing) == 100
    assert listing.done
    assert listing.result().truncated[0].startswith("tools/list: cut after 100 pages")


def test_a_page_that_brings_nothing_new_ends_the_walk() -> None:
    listing = Listing(TOOLS, ListLimits())
    assert listing.on_page("tools", page("tools", {"name": "a"}, cursor="1")) is not None
    assert listing.on_page("tools", page("tools", {"name": "a"}, cursor="2")) is None
    assert listing.done
    assert len(listing.result().tools) == 1
    assert listing.result().truncated == ()


def test_an_empty_string_is_a_cursor() -> None:
    listing = Listing(TOOLS, ListLimits())
    assert listing.on_page("tools", page("tools", {"name": "a"}, cursor="")) == ("tools", b'{"cursor":""}')


@pytest.mark.parametrize("cursor", [0, 1, False, {}, ["x"]])
def test_what_is_no_string_is_no_cursor(cursor: Any) -> None:
    listing = Listing(TOOLS, ListLimits())
    assert listing.on_page("tools", page("tools", {"name": "a"}, cursor=cursor)) is None
    assert listing.done


def test_the_limit_of_entries_holds_within_a_page() -> None:
    listing = Listing(TOOLS, ListLimits(max_entries=5))
    assert listing.on_page("tools", page("tools", *({"name": f"t{n}"} for n in range(50)))) is None
    found = listing.result()
    assert (len(found.tools), len(found.truncated)) == (5, 1)


def test_exactly_as_many_entries_as_allowed_are_not_cut() -> None:
    listing = Listing(TOOLS, ListLimits(max_entries=5))
    listing.on_page("tools", page("tools", *({"name": f"t{n}"} for n in range(5))))
    assert listing.result().truncated == ()


def test_the_limit_of_bytes_holds() -> None:
    listing = Listing(TOOLS, ListLimits(max_bytes=10_000))
    walk(listing, text="x" * 1000)
    found = listing.result()
    assert sum(len(bytes(entry)) for entry in found.tools) <= 10_000
    assert found.truncated


def test_limits_count_over_all_lists() -> None:
    listing = Listing(ALL, ListLimits(max_pages=10))
    pages = walk(listing, "tools") + walk(listing, "prompts")
    assert pages == 11


@pytest.mark.parametrize(
    "body", [b"[]", b"null", b'{"tools":{}}', b'{"tools":7}', b"{", b'{"tools":[' + b"[" * 100_000]
)
def test_a_malformed_page_fails_its_list_only(body: bytes) -> None:
    listing = Listing(ALL, ListLimits())
    assert listing.on_page("tools", msgspec.Raw(body)) is None
    assert not listing.done
    found = listing.result()
    assert found.missing == {"tools"}
    assert found.failed == ("tools/list: the page is malformed",)


def test_a_list_that_fails_keeps_what_came_before_and_missing_templates_are_no_problem() -> None:
    listing = Listing(ALL, ListLimits())
    listing.on_page("tools", page("tools", {"name": "a"}, cursor="c"))
    listing.on_failure("tools", "-32603 no")
    listing.on_failure("templates", "-32601 unknown method")
    found = listing.result()
    assert len(found.tools) == 1
    assert found.failed == ("tools/list: -32603 no",)
    assert found.missing == {"tools", "templates"}
