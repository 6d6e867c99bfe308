"""Names of everything: allowed, stable, one for each thing, and each means that thing again."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.catalogue.names import split_resource
from supervisor.service.doors.everything import Namespace, Uris, name_for, with_mark

ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,64}")

servers = st.from_regex(r"[A-Za-z0-9_](?:[A-Za-z0-9_. -]{0,62}[A-Za-z0-9_.-])?", fullmatch=True)
"""What the configuration allows."""
tools = st.one_of(
    st.text(min_size=1, max_size=256),
    st.from_regex(r"[a-b_-]{1,6}", fullmatch=True),
    st.from_regex(r"[a-z_]{1,40}_[0-9a-f]{12}", fullmatch=True),
)
offers = st.dictionaries(servers, st.sets(tools, max_size=8), max_size=6)


@given(offers)
@example({"a": {"b__c", "_c"}, "a__b": {"c"}, "a_": {"_c", "c"}, "a-": {"c"}})
def test_every_name_is_allowed_and_means_its_thing_again(offered: dict[str, set[str]]) -> None:
    names = Namespace(offered)
    given_names = {names.name_of(server, own): (server, own) for server in offered for own in offered[server]}
    assert len(given_names) == sum(len(each) for each in offered.values())
    for name, meaning in given_names.items():
        assert ALLOWED.fullmatch(name)
        assert names.meaning_of(name) == meaning


@given(offers, servers, st.sets(tools, max_size=8))
def test_a_name_does_not_depend_on_other_servers_or_their_order(
    offered: dict[str, set[str]], server: str, more: set[str]
) -> None:
    few, many = Namespace(offered), Namespace({server: more, **dict(reversed(offered.items()))})
    for other in offered.keys() - {server}:
        for own in offered[other]:
            assert few.name_of(other, own) == many.name_of(other, own) == name_for(other, own)


def test_most_names_are_plain() -> None:
    assert name_for("github", "create_issue") == "github__create_issue"
    assert name_for("my-server", "get-all__things") == "my-server__get-all__things"
    assert len(name_for("s" * 30, "t" * 32)) == 64


@pytest.mark.parametrize(
    ("server", "own", "begins"),
    [
        ("my.server", "a", "my-server__a_"),
        ("github", "issues/create", "github__issues-create_"),
        ("a__b", "c", "a__b__c_"),
        ("a_", "c", "a___c_"),
        ("s" * 64, "tool", f"{'s' * 24}__tool_"),
        ("s", "t" * 100, f"s__{'t' * 48}_"),
        ("s", "a_0123456789ab", "s__a_0123456789ab_"),
        ("s", "a_" + "0" * 32, "s__a_" + "0" * 32 + "_"),
        ("s", "\u4e16\u754c", "s__--_"),
    ],
)
def test_what_does_not_fit_ends_with_a_mark(server: str, own: str, begins: str) -> None:
    name = name_for(server, own)
    assert name.startswith(begins)
    assert re.fullmatch(r"_[0-9a-f]{12}", name[-13:])
    assert ALLOWED.fullmatch(name)


def test_a_mark_is_the_same_in_every_run() -> None:
    assert name_for("my.server", "a") == "my-server__a_ba1c0a8032bf"


def test_two_things_with_one_mark_both_get_a_longer_one() -> None:
    def weak(text: str) -> str:
        return "0" * 12 + format(sum(text.encode()), "020x")

    names = Namespace({"a.": ["x"], "a ": ["x"], "b": ["y"]}, weak)
    assert names.name_of("a.", "x") == with_mark("a.", "x", weak, 32)
    assert names.name_of("a ", "x") == with_mark("a ", "x", weak, 32)
    assert names.name_of("a.", "x") != names.name_of("a ", "x")
    assert names.meaning_of(with_mark("a.", "x", weak, 12)) is None
    assert names.name_of("b", "y") == "b__y"


@pytest.mark.parametrize(
    "name", ["github:create_issue", "github-create_issue", "GitHub__create_issue", "create_issue", ""]
)
def test_nothing_is_forgiven(name: str) -> None:
    names = Namespace({"github": ["create_issue"]})
    assert names.meaning_of(name) is None
    with pytest.raises(KeyError):
        names.name_of("git", name)


def test_a_uri_stays_as_it_is_if_one_server_lists_it() -> None:
    uris = Uris({"a": ["file:///x", "file:///x", "file:///y", "mcp://b/z"], "b": ["file:///y"]})
    assert uris.name_of("a", "file:///x") == "file:///x"
    for server, uri in (
        ("a", "file:///y"),
        ("b", "file:///y"),
        ("b", "file:///x"),
        ("a", "mcp://b/z"),
        ("a", "ui://new"),
    ):
        named = uris.name_of(server, uri)
        assert named.startswith("mcp://")
        assert split_resource(named) == (server, uri)
