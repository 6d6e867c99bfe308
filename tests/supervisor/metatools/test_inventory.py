"""Lists of resources and prompts: pages, cursors, names, and what a model is shown."""

from __future__ import annotations

import base64
import json
from functools import partial
from typing import Any

import msgspec
import pytest

from actors.catalogue.offer import Offer, Prompt, Resource
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import InvalidArguments
from actors.protocol.wire.jsonrpc import encode
from actors.search.index import Index
from supervisor.metatools import inventory
from tests.fakes.json_texts import raw


def resource(number: int, **more: Any) -> Resource:
    uri = f"file:///{number}"
    return Resource(uri=uri, name=f"r{number}", definition=raw({"uri": uri, "name": f"r{number}", "x": 1.0}), **more)


def catalogue(**offers: Offer) -> Catalogue:
    entries = {name: Entry.make(name, "stdio", offer) for name, offer in sorted(offers.items())}
    return Catalogue(entries=entries, index=Index.empty(), indexed=True)


def page_of(seen: Catalogue, kind: inventory.Listed, cursor: str | None) -> tuple[list[Any], str | None]:
    return inventory.native_page(seen, kind, cursor, partial(inventory.native_definition, seen))


def walk(seen: Catalogue, kind: inventory.Listed) -> list[list[Any]]:
    pages: list[list[Any]] = []
    cursor: str | None = None
    while True:
        page, cursor = page_of(seen, kind, cursor)
        pages.append(json.loads(encode(page)))
        if cursor is None:
            return pages


MANY = catalogue(
    a=Offer(resources=tuple(resource(n) for n in range(700))),
    b=Offer(),
    c=Offer(resources=tuple(resource(n) for n in range(300))),
    d=Offer(resources=(resource(1),)),
)


def test_pages_have_500_entries_and_together_everything_once() -> None:
    pages = walk(MANY, "resources")
    assert [len(page) for page in pages] == [500, 500, 1]
    uris = [item["uri"] for page in pages for item in page]
    assert len(set(uris)) == 1001
    assert uris[0] == "mcp://a/file:///0"
    assert uris[-1] == "mcp://d/file:///1"


def test_a_page_that_just_fits_has_no_next_one() -> None:
    assert [
        len(page) for page in walk(catalogue(a=Offer(resources=tuple(map(resource, range(500))))), "resources")
    ] == [500]
    assert walk(catalogue(), "prompts") == [[]]


def test_a_cursor_survives_the_loss_of_its_server() -> None:
    _, cursor = page_of(MANY, "resources", None)
    assert cursor is not None
    less = catalogue(**{name: entry.offer for name, entry in MANY.entries.items() if name != "a"})
    page, following = page_of(less, "resources", cursor)
    assert (len(page), following) == (301, None)


def test_a_definition_keeps_what_the_server_wrote() -> None:
    assert walk(catalogue(a=Offer(resources=(resource(5),))), "resources") == [
        [{"uri": "mcp://a/file:///5", "name": "r5", "x": 1.0}]
    ]


def test_templates_and_prompts_get_their_names() -> None:
    template = Resource(uri="x://{a}", template=True, definition=raw({"uriTemplate": "x://{a}", "name": "x"}))
    prompt = Prompt(name="sum", definition=raw({"name": "sum", "arguments": []}))
    seen = catalogue(s=Offer(templates=(template,), prompts=(prompt,)))
    assert walk(seen, "templates") == [[{"uriTemplate": "mcp://s/x://{a}", "name": "x"}]]
    assert walk(seen, "prompts") == [[{"name": "s-sum", "arguments": []}]]


def written(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "x", "é", "AAAA", written("prompts", "a", 0), written("resources", "a", -1)),
        *(written("resources", "a"), written("resources", "a", 0, 1), written("nothing", "a", 0)),
    ],
)
def test_a_cursor_of_somebody_else_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidArguments, match="cursor"):
        page_of(MANY, "resources", cursor)


def test_a_server_that_failed_is_not_listed() -> None:
    entry = Entry.make("a", "stdio", Offer(resources=(resource(1),)), available=False)
    seen = Catalogue(entries={"a": entry}, index=Index.empty(), indexed=True)
    assert walk(seen, "resources") == [[]]


@pytest.mark.parametrize(
    "meta", [b"null", b'["resourceUri"]', b'{"ui":5,"resourceUri":1}', b'{"ui":{"resourceUri":5}}']
)
def test_a_meta_of_another_shape_is_passed_on(meta: bytes) -> None:
    rewritten = inventory.rewrite_meta("s", msgspec.Raw(meta))
    assert json.loads(encode(rewritten)) == json.loads(meta)


def test_a_page_of_long_definitions_ends_early_and_the_next_one_goes_on() -> None:
    definition = raw({"name": "x", "uri": "x", "text": "y" * 50_000})
    items = tuple(msgspec.structs.replace(resource(number), definition=definition) for number in range(60))
    seen: list[str] = []
    cursor = None
    while True:
        page, cursor = page_of(catalogue(s=Offer(resources=items)), "resources", cursor)
        assert 0 < len(page) < 30
        seen += [entry["uri"] for entry in page]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 60


def test_a_cursor_of_megabytes_is_none_of_ours() -> None:
    with pytest.raises(InvalidArguments):
        page_of(catalogue(), "resources", "A" * 4_000_000)


@pytest.mark.parametrize("meta", [b'"resourceUri"', b'["resourceUri"]', b'{"resourceUri":7}', b"{}"])
def test_a_meta_without_a_resource_of_its_own_shows_none(meta: bytes) -> None:
    assert inventory.ui_meta("s", msgspec.Raw(meta)) == {}


def test_the_resource_that_a_definition_points_at_gets_its_name_here() -> None:
    meta = {"ui": {"resourceUri": "ui://x"}, "own": 1}
    shown = Resource(uri="x:1", definition=raw({"uri": "x:1", "_meta": meta}))
    ((found,),) = walk(catalogue(s=Offer(resources=(shown,))), "resources")
    assert found["_meta"]["ui"] == {"resourceUri": "mcp://s/ui://x"}
    assert found["_meta"]["own"] == 1
