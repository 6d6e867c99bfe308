"""Named parts of the catalogue: what is in one, what is found in it, and when its client is told of a change."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.catalogue.documents import documents
from actors.catalogue.lists import prompt, resource, tool
from actors.catalogue.names import Absent, Resolved, ServerNames, Undiscovered, Unknown
from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue, Entry, compare_entries
from actors.catalogue.tool_rules import ToolRules
from actors.catalogue.views import NO_PROFILE, ProfileView, ViewProfile, view
from actors.search.document import KINDS
from actors.search.index import Index
from actors.search.search import find
from actors.search.segment import analyse

TOOLS = {"files": ["read", "write", "delete"], "mail": ["read", "send"], "shop": ["buy"]}
NAMES = ServerNames({name: name for name in (*TOOLS, "fresh")} | {"mail-key": "mail"})


def offer(*names: str, description: str = "does") -> Offer:
    def raw(**members: object) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(members))

    return Offer(
        tools=tuple(
            tool(raw(name=name, description=f"{description} {name}", inputSchema={"type": "object"})) for name in names
        ),
        resources=(resource(raw(uri="file:///a", name="paper")),),
        prompts=(prompt(raw(name="ask")),),
        token_counts=dict.fromkeys(names, 1),
        barred=("broken",),
    )


def after(catalogue: Catalogue, **offers: Offer) -> Catalogue:
    """The next catalogue, with these servers discovered."""
    entries = {name: Entry.make(name, "stdio", each) for name, each in offers.items()}
    index = catalogue.index
    for name, each in offers.items():
        index = index.replace(analyse(name, documents(name, each)))
    return catalogue.with_entries(entries, index, compare_entries(catalogue.entries, entries))[0]


WHOLE = after(Catalogue(index=Index.empty(), names=NAMES), **{name: offer(*tools) for name, tools in TOOLS.items()})


def seen(profile: ViewProfile, whole: Catalogue = WHOLE) -> Catalogue:
    return view(whole, profile).seen


def paths(catalogue: Catalogue) -> set[str]:
    return {f"{name}:{tool}" for name, entry in catalogue.entries.items() for tool in entry.tools}


@pytest.mark.parametrize(
    ("profile", "shown"),
    [
        (ViewProfile(), "files:read files:write files:delete mail:read mail:send shop:buy"),
        (NO_PROFILE, ""),
        (ViewProfile(servers=("files", "sho?")), "files:read files:write files:delete shop:buy"),
        (ViewProfile(tools=("*:read",)), "files:read mail:read"),
        (ViewProfile(tools=("files:*", "mail:send")), "files:read files:write files:delete mail:send"),
        (ViewProfile(servers=("shop",), tools=("files:read",)), "shop:buy files:read"),
        (ViewProfile(servers=("files",), deny=("files:delete",)), "files:read files:write"),
        (ViewProfile(deny=("mail", "*:delete")), "files:read files:write shop:buy"),
        (ViewProfile(servers=("files",), tools=("files:read",)), "files:read files:write files:delete"),
        (ViewProfile(tools=("files:read",), deny=("files",)), ""),
        (ViewProfile(servers=("FILES",), tools=("mail:READ",)), ""),
    ],
)
def test_what_is_in_a_profile(profile: ViewProfile, shown: str) -> None:
    assert paths(seen(profile)) == set(shown.split())


def test_what_is_not_in_it_is_not_known_by_any_name() -> None:
    narrow = seen(ViewProfile(tools=("mail:read",)))
    assert narrow.tool("mail:read") == Resolved("mail", "read")
    assert narrow.tool("mail-key:read") == Resolved("mail", "read")
    assert narrow.tool("mail:send") == Absent("mail", "send")
    assert narrow.tool("files:read") == narrow.tool("nothing:read") == Unknown()
    assert narrow.nearest("files:read") == ["mail:read"]
    assert narrow.names.servers == {"mail"}
    assert narrow.entries["mail"].offer.barred == ()
    assert narrow.entries["mail"].is_altered
    assert narrow.entries["mail"].offer.token_counts == {"read": 1}


def test_a_server_of_which_everything_is_in_it_is_the_same_as_without() -> None:
    narrow = seen(ViewProfile(servers=("files",)))
    assert narrow.entries["files"] is WHOLE.entries["files"]
    assert not narrow.entries["files"].is_altered
    assert narrow.within is None


def test_a_server_that_is_in_it_has_its_resources_and_prompts_there() -> None:
    narrow = seen(ViewProfile(tools=("mail:read",)))
    assert set(narrow.entries) == {"mail"}
    assert (len(narrow.entries["mail"].offer.resources), len(narrow.entries["mail"].offer.prompts)) == (1, 1)
    assert narrow.prompt("mail:ask") == Resolved("mail", "ask")
    assert narrow.prompt("files:ask") == Unknown()
    # All its tools are denied, and the server is not.
    assert set(seen(ViewProfile(servers=("shop",), deny=("shop:*",))).entries) == {"shop"}


def test_a_server_of_which_nothing_is_known_is_in_it_by_its_name_until_its_tools_are() -> None:
    profile = ViewProfile(tools=("fresh:x*",))
    assert seen(profile).tool("fresh:anything") == Undiscovered("fresh", "anything")
    assert seen(profile, after(WHOLE, fresh=offer("y"))).tool("fresh:y") == Unknown()
    assert seen(profile, after(WHOLE, fresh=offer("y", "xy"))).tool("fresh:xy") == Resolved("fresh", "xy")
    assert seen(ViewProfile(servers=("files",))).tool("fresh:anything") == Unknown()


def test_search_finds_what_is_in_it_and_nothing_else() -> None:
    narrow = seen(ViewProfile(servers=("shop",), tools=("mail:read", "files:write")))
    for query in ("read", "read write delete send buy", "files:delete", "*"):
        found = find(narrow.index, query, servers=narrow.visible, within=narrow.within, limit=50)
        hits = {hit.document.key for hit in found.hits}
        assert hits <= paths(narrow)
        assert found.total == len(hits)
    everything = find(narrow.index, "*", kinds=frozenset(KINDS), servers=narrow.visible, within=narrow.within, limit=50)
    assert sum(hit.document.kind == "resource" for hit in everything.hits) == 3
    assert find(narrow.index, "read", within=narrow.within, servers=None).total == 1
    assert narrow.within is narrow.within, "it is made once for each catalogue"


def test_before_a_server_is_in_the_index_nothing_of_it_is_left_out() -> None:
    unread = replace(WHOLE, index=Index.empty())
    narrow = seen(ViewProfile(tools=("mail:read",)), unread)
    assert narrow.within is not None
    assert len(narrow.within) == 0


# Revisions ------------------------------------------------------------------------------------------------------------

MAIL = ViewProfile(servers=("mail",), deny=("mail:send",))


def following(before: ProfileView, whole: Catalogue, profile: ViewProfile = MAIL) -> ProfileView:
    return view(whole, profile, before)


def test_a_view_has_a_new_revision_when_what_it_shows_changes_and_at_nothing_else() -> None:
    first = view(WHOLE, MAIL)
    whole = after(WHOLE, files=offer("read"))
    elsewhere = following(first, whole)
    assert elsewhere.seen.revisions == first.seen.revisions
    assert elsewhere.seen.entries["mail"] is first.seen.entries["mail"], "it was not looked at again"
    whole = after(whole, mail=offer("read", "send", description="now"))
    described = following(elsewhere, whole)
    assert described.seen.revisions.tools > elsewhere.seen.revisions.tools
    assert described.seen.entries["mail"].revisions.tools == described.seen.revisions.tools
    assert described.seen.revisions.prompts == elsewhere.seen.revisions.prompts
    whole = replace(whole, entries={**whole.entries, "mail": replace(whole.entries["mail"], available=False)})
    away = following(described, whole)
    assert away.seen.revision > described.seen.revision
    assert away.seen.revisions.prompts > described.seen.revisions.prompts


def test_what_changes_outside_of_it_on_a_server_of_it_is_not_told() -> None:
    first = view(WHOLE, MAIL)
    changed = Offer(tools=(*offer("read").tools, *offer("send", description="now").tools))
    changed = replace(WHOLE.entries["mail"].offer, tools=changed.tools)
    then = following(first, after(WHOLE, mail=changed))
    assert then.seen.revisions == first.seen.revisions
    assert then.seen.entries["mail"].revisions == first.seen.entries["mail"].revisions
    counted = following(then, then.whole.with_counts("mail", {"read": 9, "send": 9}, exact=True))
    assert counted.seen.entries["mail"].offer.token_counts == {"read": 9}
    assert counted.seen.revisions == first.seen.revisions


def test_another_profile_of_the_same_name_is_a_change_of_what_it_shows() -> None:
    first = view(WHOLE, MAIL)
    wider = following(first, WHOLE, ViewProfile(servers=("mail",)))
    assert wider.seen.revisions.tools > first.seen.revisions.tools
    assert wider.seen.entries["mail"].revisions.tools > first.seen.entries["mail"].revisions.tools
    assert wider.seen.revisions.resources == first.seen.revisions.resources
    gone = following(wider, WHOLE, NO_PROFILE)
    assert gone.seen.revisions.tools > wider.seen.revisions.tools
    back = following(gone, WHOLE, MAIL)
    assert back.seen.revisions.tools > gone.seen.revisions.tools
    assert following(back, WHOLE, ViewProfile(servers=("mail",), deny=("mail:send",))).seen.revisions == (
        back.seen.revisions
    )


server_patterns = st.lists(st.sampled_from(["*", "files", "mail", "s*", "?ail", "none"]), max_size=3).map(tuple)
tool_patterns = st.lists(
    st.sampled_from(["*:*", "files:read", "*:read", "mail:*", "sh*:b?y", "none:x", "files:"]), max_size=3
).map(tuple)
profiles = st.builds(
    ViewProfile,
    servers=st.none() | server_patterns,
    tools=st.none() | tool_patterns,
    deny=st.lists(st.sampled_from(["files", "*:read", "mail:send", "shop:*", "zzz"]), max_size=3).map(tuple),
)
offers = st.dictionaries(
    st.sampled_from(sorted(TOOLS)), st.lists(st.sampled_from(["read", "write", "buy"]), unique=True, max_size=3)
)


@given(profiles, st.lists(st.tuples(offers, st.none() | profiles), max_size=4))
def test_a_view_that_follows_on_another_is_the_one_made_anew(
    profile: ViewProfile, steps: list[tuple[dict[str, list[str]], ViewProfile | None]]
) -> None:
    whole, current = WHOLE, view(WHOLE, profile)
    for changed, other in steps:
        whole = after(whole, **{name: offer(*tools) for name, tools in changed.items()})
        profile = other or profile
        before, current = current, view(whole, profile, current)
        anew = view(whole, profile).seen
        assert paths(current.seen) == paths(anew)
        assert current.seen.entries.keys() == anew.entries.keys()
        assert current.seen.names.servers == anew.names.servers
        same = paths(before.seen) == paths(current.seen)
        assert (current.seen.revisions.tools == before.seen.revisions.tools) == same
        assert current.seen.revision >= before.seen.revision
        found = find(current.seen.index, "*", servers=current.seen.visible, within=current.seen.within, limit=100)
        assert {hit.document.key for hit in found.hits} == paths(current.seen)


@given(profiles)
def test_a_profile_only_takes_away_and_what_is_denied_is_never_in_it(profile: ViewProfile) -> None:
    narrow = seen(profile)
    assert paths(narrow) <= paths(WHOLE)
    undenied = seen(replace(profile, deny=()))
    assert paths(narrow) <= paths(undenied)
    for name in narrow.entries:
        assert profile.may_have(name)
    assert set(narrow.entries) <= narrow.names.servers


def test_a_profile_goes_by_the_names_that_clients_see() -> None:
    renamed = WHOLE.entries["mail"].with_rules(ToolRules(rename={"send": "post"}))
    whole = replace(WHOLE, entries={**WHOLE.entries, "mail": renamed})
    assert paths(seen(ViewProfile(tools=("mail:post", "mail:send")), whole)) == {"mail:post"}
    hidden = seen(ViewProfile(tools=("mail:read",)), whole)
    assert hidden.entries["mail"].renamed == {}, "the new name of what is not in it is not told"
