"""What a configuration says of the tools of a server, and what clients see by it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.lists import tool
from actors.catalogue.metadata import describe
from actors.catalogue.names import Absent, Resolved
from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Catalogue, Entry, compare_entries
from actors.catalogue.tool_rules import MAX_PROBLEMS, NO_RULES, EntryRules, ToolRules, name_fault
from actors.search.index import Index

NAMES = ["read_file", "write_file", "delete_file", "list"]


def made(name: str, description: str = "") -> Tool:
    text = {"name": name, "description": description or f"does {name}", "inputSchema": {"type": "object"}, "x-own": 1.0}
    return tool(msgspec.Raw(msgspec.json.encode(text)))


def offer(*names: str, **more: Any) -> Offer:
    return Offer(tools=tuple(map(made, names or NAMES)), **more)


def names(rules: ToolRules, *own: str) -> list[str]:
    return [each.name for each in rules.apply(offer(*own)).tools]


def problems(rules: ToolRules, *own: str) -> tuple[str, ...]:
    return rules.apply(offer(*own)).problems


def test_rules_that_say_nothing_show_everything_and_cost_nothing() -> None:
    whole = offer()
    assert NO_RULES.apply(whole) is whole
    assert not ToolRules(allow=("*",), deny=(), rename={}, describe={})
    assert all(ToolRules(**one) for one in ({"allow": ()}, {"deny": ("a",)}, {"rename": {"a": "b"}}))


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        (ToolRules(allow=("read_*", "list")), ["read_file", "list"]),
        (ToolRules(deny=("*_file",)), ["list"]),
        (ToolRules(allow=("*_file",), deny=("delete_*",)), ["read_file", "write_file"]),
        (ToolRules(allow=("list",), deny=("*",)), []),
        (ToolRules(allow=()), []),
        (ToolRules(deny=("LIST", "Read_*")), NAMES),
        (ToolRules(deny=("[rw]*_fil?",)), ["delete_file", "list"]),
    ],
)
def test_what_is_allowed_is_there_but_for_what_is_denied(rules: ToolRules, shown: list[str]) -> None:
    assert names(rules) == shown


def test_a_renamed_and_a_described_tool_are_the_servers_in_everything_else() -> None:
    rules = ToolRules(rename={"list": "ls"}, describe={"list": "Shows a directory.", "read_file": "Opens a file."})
    whole = offer()
    seen = rules.apply(whole)
    by_name = {each.name: each for each in seen.tools}
    assert list(by_name) == ["read_file", "write_file", "delete_file", "ls"]
    ls, read = by_name["ls"], by_name["read_file"]
    assert msgspec.json.decode(ls.definition) == {
        "name": "ls",
        "description": "Shows a directory.",
        "inputSchema": {"type": "object"},
        "x-own": 1.0,
    }
    assert (ls.own, ls.description, ls.input_schema) == (
        whole.tools[3],
        "Shows a directory.",
        whole.tools[3].input_schema,
    )
    assert (read.name, read.own, read.description) == ("read_file", whole.tools[0], "Opens a file.")
    assert by_name["write_file"] is whole.tools[1]
    assert seen.problems == ()


def test_a_name_or_a_description_of_ours_makes_no_tool_safer() -> None:
    rules = ToolRules(rename={"delete_file": "tidy_up"}, describe={"delete_file": "Reads nothing."})
    (seen,) = rules.apply(Offer(tools=(made("delete_file", "Deletes a file for ever."),))).tools
    assert describe("s", seen).safety == "dangerous"


@pytest.mark.parametrize(
    ("rename", "shown", "told"),
    [
        ({"list": "read_file"}, NAMES, ["'list' keeps its name: another tool is called 'read_file', too"]),
        (
            {"list": "x", "read_file": "x"},
            NAMES,
            ["'read_file' keeps its name: another tool is called 'x', too", "'list' keeps its name: another tool"],
        ),
        ({"list": "a b"}, NAMES, ["'list' keeps its name: a name of a tool has 1 to 128 ASCII letters"]),
        ({"list": ""}, NAMES, ["'list' keeps its name: a name of a tool has"]),
        ({"list": "list"}, NAMES, []),
        ({"list": "read_file", "read_file": "list"}, ["list", "write_file", "delete_file", "read_file"], []),
        ({"list": "read_file", "read_file": "r"}, ["r", "write_file", "delete_file", "read_file"], []),
        # What keeps its name is in the way of what should have it.
        (
            {"list": "read_file", "read_file": "write_file"},
            NAMES,
            ["'read_file' keeps its name: another tool is called 'write_file'", "'list' keeps its name: another"],
        ),
    ],
)
def test_a_name_that_cannot_be_given_is_a_problem_and_not_given(
    rename: dict[str, str], shown: list[str], told: list[str]
) -> None:
    rules = ToolRules(rename=rename)
    assert names(rules) == shown
    found = problems(rules)
    assert len(found) == len(told)
    assert all(problem.startswith(f"tools.rename: {start}") for problem, start in zip(found, told, strict=True))


def test_what_names_tools_beside_the_rules_changes_nothing_and_is_looked_at_alike() -> None:
    whole = offer()
    beside = {"read_only": ("raed_file", "*"), "confirm": ("delete_*",), "confirm_within_s": ("ls",)}
    rules = EntryRules(rename={"list": "ls"}, beside=beside)
    assert problems(rules) == (
        "read_only: the server has no tool 'raed_file'; did you mean 'read_file'?",
        "confirm_within_s: the server has no tool 'ls': write 'list', its own name of it",
    )
    only_beside = EntryRules(beside={"read_only": ("list",)})
    assert not only_beside
    assert only_beside.apply(whole) is whole
    wrong = EntryRules(beside={"read_only": ("lists",)})
    assert wrong.apply(whole).tools is whole.tools
    assert problems(wrong) == ("read_only: the server has no tool 'lists'; did you mean 'list'?",)
    assert wrong.apply(offer(partial=True)).problems == ()


def test_the_name_of_a_hidden_tool_is_free() -> None:
    rules = ToolRules(deny=("read_file",), rename={"list": "read_file"})
    assert names(rules) == ["write_file", "delete_file", "read_file"]
    assert problems(rules) == ()


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (ToolRules(deny=("delet_*",)), "tools.deny: the server has no tool 'delet_*'; did you mean 'delete_file'?"),
        (ToolRules(allow=("*", "zzz")), "tools.allow: the server has no tool 'zzz'"),
        (ToolRules(rename={"lists": "x"}), "tools.rename: the server has no tool 'lists'; did you mean 'list'?"),
        (ToolRules(describe={"reed_file": "x"}), "tools.describe: the server has no tool 'reed_file'; did you mean"),
        (
            ToolRules(rename={"list": "ls"}, describe={"ls": "x"}),
            "tools.describe: the server has no tool 'ls': write 'list', its own name of it",
        ),
        (ToolRules(allow=()), "tools.allow: it is empty, so nobody sees any tool of this server"),
    ],
)
def test_what_fits_no_tool_is_told_with_the_nearest(rules: ToolRules, told: str) -> None:
    (problem,) = problems(rules)
    assert problem.startswith(told)
    assert rules.apply(offer(partial=True)).problems == (), "of a list that was not read to its end nothing is known"


def test_of_many_problems_only_some_are_told() -> None:
    found = problems(ToolRules(deny=tuple(f"no{number}" * 200 for number in range(50))))
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1] == "tools: 30 more problems of this kind"
    assert max(map(len, found)) < 250


def test_counts_stay_with_what_is_shown_as_it_is() -> None:
    counted = offer(token_counts=dict.fromkeys(NAMES, 7), tokens_exact=True)
    rules = ToolRules(deny=("delete_*",), rename={"list": "ls"})
    assert rules.apply(counted).token_counts == {"read_file": 7, "write_file": 7}


def test_an_entry_knows_what_is_hidden_and_what_it_was_called() -> None:
    rules = ToolRules(deny=("delete_*",), rename={"list": "ls"})
    entry = Entry.make("s", "stdio", offer(), rules=rules)
    assert ((*entry.hidden_tools,), entry.renamed) == (("delete_file",), {"list": "ls"})
    assert not Entry.make("s", "stdio", offer()).hidden_tools
    assert entry.has(["delete_file", "list"])
    assert not entry.has(["ls"])
    counted = entry.with_counts({"read_file": 1, "write_file": 2, "ls": 3}, exact=True)
    assert counted.offer.token_counts == {"read_file": 1, "write_file": 2, "ls": 3}
    assert counted.own.token_counts == {"read_file": 1, "write_file": 2}
    assert entry.with_rules(NO_RULES).offer == offer()


def test_a_changed_rule_is_a_change_of_what_clients_see() -> None:
    before = Entry.make("s", "stdio", offer())
    catalogue = Catalogue(index=Index.empty())
    first, _ = catalogue.with_entries({"s": before}, Index.empty(), compare_entries({}, {"s": before}))
    after = before.with_rules(ToolRules(deny=("delete_*",), rename={"list": "ls"}))
    changes = compare_entries(first.entries, {"s": after})
    second, _ = first.with_entries({"s": after}, Index.empty(), changes)
    assert (changes["s"].tools.added, changes["s"].tools.removed) == (("ls",), ("delete_file", "list"))
    assert second.revisions.tools == first.revisions.tools + 1
    assert second.entries["s"].renamed == {"list": "ls"}
    assert second.tool("s:delete_file") == Absent("s", "delete_file")
    assert second.tool("s-ls") == Resolved("s", "ls")
    back = second.entries["s"].with_rules(NO_RULES)
    third, _ = second.with_entries({"s": back}, Index.empty(), compare_entries(second.entries, {"s": back}))
    assert third.entries["s"].renamed == {"ls": "list"}


tool_names = st.sampled_from(["a", "b", "ab", "a_b", "b_a", "c", "read", "reads"])
patterns = st.lists(st.sampled_from(["*", "a*", "*b", "?", "[ab]", "c", "read", "nothing"]), max_size=4).map(tuple)
all_rules = st.builds(
    ToolRules,
    allow=patterns,
    deny=patterns,
    rename=st.dictionaries(tool_names, st.sampled_from(["a", "b", "c", "x", "y", "no name", ""]), max_size=5),
    describe=st.dictionaries(tool_names, st.text(max_size=5), max_size=3),
)


@given(all_rules, st.sets(tool_names))
def test_whatever_rules_say_names_are_good_and_mean_one_tool_each(rules: ToolRules, own: set[str]) -> None:
    whole = offer(*sorted(own)) if own else Offer()
    seen = rules.apply(whole)
    shown = [(each.own or each).name for each in seen.tools]
    assert shown == [each.name for each in whole.tools if rules.allows(each.name)]
    assert len({each.name for each in seen.tools}) == len(seen.tools)
    for each in seen.tools:
        original = each.own or each
        assert each.name in (original.name, rules.rename.get(original.name))
        assert each.name == original.name or not name_fault(each.name)
        assert each.description == rules.describe.get(original.name, original.description)
        assert any(fnmatchcase(original.name, pattern) for pattern in rules.allow)
        assert not any(fnmatchcase(original.name, pattern) for pattern in rules.deny)
    assert rules.apply(whole) == seen, "it depends on the rules and the offer alone"
    entry = Entry.make("s", "stdio", whole, rules=rules)
    assert set(entry.hidden_tools).isdisjoint(shown)
    assert len(entry.hidden_tools) + len(shown) == len(whole.tools)
