"""Whose resource a URI means."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.names import (
    MAX_EXPRESSIONS,
    Ambiguous,
    Resolution,
    Resolved,
    ServerNames,
    Undiscovered,
    Unknown,
    fits,
    resolve_bare,
    resolve_named,
    resource_path,
    resource_uri,
)
from actors.catalogue.offer import Offer, Resource


def offer(*uris: str) -> Offer:
    return Offer(
        resources=tuple(Resource(uri=uri) for uri in uris if "{" not in uri),
        templates=tuple(Resource(uri=uri, template=True) for uri in uris if "{" in uri),
    )


OFFERS: Mapping[str, Offer] = {
    "docs": offer("file:///readme", "doc://{page}"),
    "git-hub": offer("file:///readme", "repo://{owner}/{name}", "mcp://odd/a"),
    "github": offer("repo://{+path}", "file:///only"),
}
NAMES = ServerNames({}).with_servers([*OFFERS, "new"])


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("docs|file:///x", Resolved("docs", "file:///x")),
        ("mcp://docs/file:///x", Resolved("docs", "file:///x")),
        ("Docs|a|b", Resolved("docs", "a|b")),
        ("git_hub|x:1", Ambiguous((("git-hub", "x:1"), ("github", "x:1")))),
        ("new|x:1", Undiscovered("new", "x:1")),
        ("nobody|x:1", None),
        ("file:///a|b", None),
        ("file:///readme", None),
        ("docs|", None),
        ("|uri", None),
        ("", None),
    ],
)
def test_a_uri_may_name_its_server(uri: str, expected: Resolution | None) -> None:
    assert resolve_named(uri, NAMES, OFFERS) == expected


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:///only", Resolved("github", "file:///only")),
        ("mcp://odd/a", Resolved("git-hub", "mcp://odd/a")),
        ("doc://one", Resolved("docs", "doc://one")),
        ("doc://{page}", Resolved("docs", "doc://{page}")),
        ("repo://me/a/b", Resolved("github", "repo://me/a/b")),
        ("repo://me/a", Ambiguous((("git-hub", "repo://me/a"), ("github", "repo://me/a")))),
        ("file:///readme", Ambiguous((("docs", "file:///readme"), ("git-hub", "file:///readme")))),
        ("file:///none", Unknown()),
        ("only", Unknown()),
        ("", Unknown()),
        ("doc://" + "x" * 9000, Unknown()),
    ],
)
def test_a_uri_by_itself_belongs_to_the_only_server_that_can_have_it(uri: str, expected: Resolution) -> None:
    assert resolve_bare(uri, OFFERS) == expected


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("file:///{x}", "file:///a", True),
        ("file:///{x}", "file:///a/b", False),
        ("file:///{+x}", "file:///a/b", True),
        ("file:///{x}", "other:///a", False),
        ("a:{x}/b/{y}", "a:1/b/2", True),
        ("a:{x}/b/{y}", "a:1/c/2", False),
        ("a:{x}.json", "a:1.json", True),
        ("a:{x}.json", "a:1.xml", False),
        ("a:{x}{?q}", "a:1?q=2", True),
        ("a:{x}{?q}", "a:1", True),
        ("a:{x}:b", "a:b", False),
        ("a:b", "a:b", True),
        ("a:b", "a:bc", False),
        ("a:" + "{x}" * (MAX_EXPRESSIONS + 1), "a:1", False),
    ],
)
def test_a_template_fits_what_can_come_of_it(template: str, uri: str, expected: bool) -> None:
    assert fits(template, uri) == expected


value = st.text("abc-._~", min_size=1, max_size=5)


@given(st.lists(st.tuples(st.sampled_from(["/", ":", "/x/", "?q="]), value), min_size=1, max_size=4))
def test_what_a_template_is_expanded_to_fits_it(parts: list[tuple[str, str]]) -> None:
    template = "s:" + "".join(f"{literal}{{v{number}}}" for number, (literal, _) in enumerate(parts))
    assert fits(template, "s:" + "".join(literal + text for literal, text in parts))


@pytest.mark.case("L17")
@given(st.sampled_from(sorted(OFFERS)), st.text(min_size=1, max_size=20))
def test_what_is_listed_means_its_own_server(server: str, own: str) -> None:
    for name in (resource_path(server, own), resource_uri(server, own)):
        assert resolve_named(name, NAMES, OFFERS) == Resolved(server, own)
