"""What some people have of the catalogue is, to the last bit of a score, what it is where nobody else has anything."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.documents import documents
from actors.catalogue.lists import tool
from actors.catalogue.names import ServerNames
from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue, Entry, compare_entries
from actors.catalogue.views import Hidden, RealmView, concerns, drop, join, launch_changes, narrow
from actors.search.document import KINDS
from actors.search.index import Index
from actors.search.search import find
from actors.search.segment import analyse

OURS, THEIRS = frozenset({"files", "mail"}), ("canary", "vault")
SERVERS = (*sorted(OURS), *THEIRS)
NAMES = ServerNames({name: name for name in SERVERS} | {"post": "mail", "treasure": "vault"})
WORDS = ("read", "write", "send", "mail", "file", "canary", "secret", "delete")
QUERIES = ("read a file", "send mail", "canary secret", "wirte", "delete the mail", "files:read", "*")

Step = tuple[str, tuple[tuple[str, str], ...] | None]
"""A server, and the names and words of its tools; None: it is removed."""


def steps(servers: tuple[str, ...] = SERVERS) -> st.SearchStrategy[list[Step]]:
    words = st.sampled_from(WORDS)
    tools = st.lists(st.tuples(words, words), max_size=4, unique_by=lambda each: each[0]).map(tuple)
    return st.lists(st.tuples(st.sampled_from(servers), st.none() | tools), max_size=10)


def raw(**members: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(members))


def offer(tools: tuple[tuple[str, str], ...]) -> Offer:
    listed = (raw(name=name, description=f"{name} {word}", inputSchema={}) for name, word in tools)
    return Offer(tools=tuple(map(tool, listed)))


def after(catalogue: Catalogue, step: Step) -> Catalogue:
    """The next catalogue."""
    server, tools = step
    if tools is None:
        return (
            catalogue.without(server, catalogue.index.remove(server))[0] if server in catalogue.entries else catalogue
        )
    entries = {server: Entry.make(server, "stdio", offer(tools))}
    index = catalogue.index.replace(analyse(server, documents(server, entries[server].offer)))
    return catalogue.with_entries(entries, index, compare_entries(catalogue.entries, entries))[0]


def hits(seen: Catalogue, query: str) -> list[tuple[str, float]]:
    return [(hit.document.key, hit.score) for hit in find(seen.index, query, limit=20, kinds=frozenset(KINDS)).hits]


def facts(view: RealmView) -> object:
    seen = view.seen
    entries = {name: (entry.offer, entry.revisions) for name, entry in seen.entries.items()}
    found = [hits(seen, query) for query in QUERIES]
    return entries, seen.revision, seen.revisions, sorted(seen.names.servers), found


def walked(taken: list[Step], *, joins: bool) -> RealmView:
    """The view of ours after each of some steps; `joins`: it is searched from the beginning on."""
    whole = Catalogue(index=Index.empty(), indexed=True, names=NAMES)
    view = narrow(whole, OURS)
    for step in taken:
        view = join(view) if joins and not view.joined else view
        whole = after(whole, step)
        view = narrow(whole, OURS, view)
    return join(view)


@pytest.mark.case("Q06")
@given(steps(), st.booleans())
def test_nothing_of_others_is_in_a_realm(taken: list[Step], joins: bool) -> None:
    alone = [step for step in taken if step[0] in OURS]
    view = walked(taken, joins=joins)
    assert facts(view) == facts(walked(alone, joins=not joins))
    assert "canary" not in repr(sorted(view.seen.names.servers))
    assert view.seen.names.literal("treasure") is None
    assert view.seen.indexed


@given(steps())
def test_a_realm_of_other_servers_follows_on_the_one_before(taken: list[Step]) -> None:
    before = walked(taken, joins=True)
    more = narrow(before.whole, frozenset(SERVERS), before)
    fresh = join(narrow(before.whole, frozenset(SERVERS)))
    assert [hits(more.seen, query) for query in QUERIES] == [hits(fresh.seen, query) for query in QUERIES]
    grown = any(before.whole.entries[name].offer.tools for name in THEIRS if name in before.whole.entries)
    assert more.seen.revision == before.seen.revision + grown
    back = narrow(before.whole, OURS, more)
    assert back.seen.revision == more.seen.revision + grown
    assert back.seen.entries.keys() == before.seen.entries.keys()


def test_an_index_that_is_not_searched_is_let_go() -> None:
    view = walked([("files", (("read", "file"),))], joins=True)
    bare = drop(view)
    assert len(bare.seen.index) == 0
    assert not bare.seen.indexed
    assert not bare.joined
    assert bare.seen.revision == view.seen.revision
    assert facts(join(bare)) == facts(view)


@given(steps(), steps())
def test_what_concerns_a_realm_is_what_changes_it(taken: list[Step], more: list[Step]) -> None:
    view = walked(taken, joins=True)
    whole = view.whole
    for step in more:
        whole = after(whole, step)
    touched = any(server in OURS for server, _ in more)
    assert not concerns(view, whole) or touched
    if not concerns(view, whole):
        assert facts(narrow(whole, OURS, view)) == facts(view)


def test_names_of_its_own_servers_concern_a_realm() -> None:
    view = walked([("files", (("read", "file"),))], joins=False)
    for name, server, concerned in (("papers", "files", True), ("gold", "vault", False)):
        names = ServerNames({**{each: each for each in SERVERS}, "post": "mail", name: server})
        assert concerns(view, msgspec.structs.replace(view.whole, names=names)) == concerned


def test_an_index_of_its_own_servers_that_was_made_anew_concerns_a_realm_that_is_searched() -> None:
    view = walked([("files", (("read", "file"),)), ("vault", (("open", "canary"),))], joins=True)
    ours, theirs = (replaced(view.whole, server) for server in ("files", "vault"))
    assert concerns(view, ours)
    assert not concerns(drop(view), ours)
    assert not concerns(view, theirs)


def replaced(catalogue: Catalogue, server: str) -> Catalogue:
    segment = analyse(server, documents(server, catalogue.entries[server].offer))
    return msgspec.structs.replace(catalogue, index=catalogue.index.replace(segment))


OWN = "mail~0123456789abcdef"


def with_own(whole: Catalogue, tools: tuple[tuple[str, str], ...]) -> Catalogue:
    return msgspec.structs.replace(whole, own={OWN: Entry.make("mail", "stdio", offer(tools))})


@pytest.mark.case("I08")
@given(steps(), steps(("mail",)), st.booleans())
def test_who_has_a_launch_of_their_own_sees_what_there_is_where_all_have_it(
    taken: list[Step], own: list[Step], joins: bool
) -> None:
    alone = walked([(name, tools) for name, tools in taken if name == "files"], joins=joins)
    whole = Catalogue(index=Index.empty(), indexed=True, names=NAMES)
    view = narrow(whole, OURS, launches={"mail": OWN})
    for step in taken:
        view = join(view) if joins and not view.joined else view
        whole = after(whole, step)
        view = narrow(whole, OURS, view, launches={"mail": OWN})
    assert facts(join(view))[-1:] == facts(alone)[-1:], "those of the others are not theirs, nor what all have"  # type: ignore[index]
    for _, tools in own:
        whole = with_own(whole, tools or ())
        view = narrow(whole, OURS, view, launches={"mail": OWN})
        assert not concerns(view, whole)
        expected = msgspec.structs.replace(whole, entries={**whole.entries, "mail": whole.own[OWN]}, own={})
        segment = analyse("mail", documents("mail", whole.own[OWN].offer))
        expected = msgspec.structs.replace(expected, index=expected.index.replace(segment))
        usual = join(narrow(expected, OURS))
        assert [hits(join(view).seen, query) for query in QUERIES] == [hits(usual.seen, query) for query in QUERIES]


def test_a_launch_that_offers_what_all_see_shares_what_the_search_knows() -> None:
    whole = after(Catalogue(index=Index.empty(), indexed=True, names=NAMES), ("mail", (("send", "mail"),)))
    same = msgspec.structs.replace(whole, own={OWN: whole.entries["mail"]})
    (segment,) = join(narrow(same, OURS, launches={"mail": OWN})).seen.index.segments
    assert segment is whole.index.segments[0]
    other = with_own(whole, (("send", "mail"), ("read", "mail")))
    (segment,) = join(narrow(other, OURS, launches={"mail": OWN})).seen.index.segments
    assert segment is other.own[OWN].segment


def test_a_launch_that_cannot_be_started_has_no_entry_and_its_server_a_name() -> None:
    whole = after(Catalogue(index=Index.empty(), indexed=True, names=NAMES), ("mail", (("send", "mail"),)))
    view = join(narrow(whole, OURS, launches={"mail": ""}))
    assert view.seen.entries == {}
    assert "post" in view.seen.names
    assert len(view.seen.index) == 0


def test_it_is_known_which_launches_differ_where_nothing_else_does() -> None:
    one, other = Entry(server="files"), Entry(server="files", available=False)
    before = Catalogue(index=Index.empty(), own={"files~1": one, "files~2": one, "files~3": one})
    now = before.with_own({"files~1": one, "files~2": other, "files~3": None, "files~4": one})
    assert launch_changes(before, now) == frozenset({"files~2", "files~3", "files~4"})
    assert launch_changes(now, now) == frozenset()
    assert launch_changes(before, msgspec.structs.replace(now, names=NAMES)) is None
    assert launch_changes(before, msgspec.structs.replace(now, entries={"files": one})) is None


def test_a_tool_that_is_hidden_leaves_no_trace_in_what_is_found() -> None:
    shown, hidden = ("read", "file"), ("canary", "secret")
    alone = after(Catalogue(index=Index.empty(), names=NAMES), ("files", (shown,)))
    whole = after(Catalogue(index=Index.empty(), names=NAMES), ("files", (shown, hidden)))
    tools = whole.entries["files"].offer.tools
    without = {"files": Hidden(tools, {"canary": "why"})}
    view = join(narrow(whole, OURS, hidden=without))
    assert [*view.seen.entries["files"].tools] == ["read"]
    for query in QUERIES:
        assert hits(view.seen, query) == hits(join(narrow(alone, OURS)).seen, query)
    again = narrow(whole, OURS, view, hidden={"files": Hidden(tools, {})})
    assert [*again.seen.entries["files"].tools] == ["read", "canary"]
    assert again.seen.revisions.tools == view.seen.revisions.tools + 1
    assert hits(again.seen, "canary secret") == hits(join(narrow(whole, OURS)).seen, "canary secret")
