"""What plugins made of tools stands between what a server says and what the configuration makes of it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.lists import tool
from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Entry
from actors.catalogue.tool_rules import NO_CHANGES, ToolChanges, ToolRules
from actors.catalogue.trust import Standing

NAMES = ("a", "b", "c", "d")


def made(name: str, description: str = "says nothing") -> Tool:
    text = f'{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object"}}}}'
    return tool(msgspec.Raw(text.encode()))


OWN = Offer(tools=tuple(map(made, NAMES)), token_counts=dict.fromkeys(NAMES, 7))


def test_no_changes_are_the_same_object() -> None:
    assert NO_CHANGES.apply(OWN) is OWN
    assert not ToolChanges(failed=True)


@given(
    changed=st.sets(st.sampled_from([*NAMES, "gone"])),
    rejected=st.sets(st.sampled_from([*NAMES, "gone"])),
)
def test_each_tool_is_shown_once_as_it_is_or_changed_or_not_at_all(changed: set[str], rejected: set[str]) -> None:
    changes = ToolChanges(
        tools={name: made(name, "changed") for name in changed}, rejected=dict.fromkeys(rejected, "plugin p: no")
    )
    shown = changes.apply(OWN)
    assert [each.name for each in shown.tools] == [name for name in NAMES if name not in rejected]
    for each, own in zip(shown.tools, [own for own in OWN.tools if own.name not in rejected], strict=True):
        assert each is own or (each.own is own and each.description == "changed" and own.name in changed)
    assert shown.token_counts.keys() == set(NAMES) - changed - rejected
    assert len(shown.problems) == len(rejected)


def test_of_many_rejections_the_first_are_told() -> None:
    names = [f"t{number}" for number in range(100)]
    own = Offer(tools=tuple(map(made, names)))
    problems = ToolChanges(rejected=dict.fromkeys(names, "plugin p: no")).apply(own).problems
    assert len(problems) == 21
    assert (problems[0], problems[-1]) == ("tool 't0' is hidden by plugin p: no", "80 more tools are hidden by plugins")


def test_the_rules_of_the_configuration_have_the_last_word_and_a_call_reaches_the_own_tool() -> None:
    changes = ToolChanges(tools={"a": made("a", "of the plugin"), "b": made("b", "of the plugin")}, rejected={"c": "x"})
    rules = ToolRules(rename={"a": "first"}, describe={"b": "of the configuration"}, deny=("d",))
    entry = Entry.make("s", "stdio", OWN, rules=rules, changes=changes)
    assert {each.name: each.description for each in entry.offer.tools} == {
        "first": "of the plugin",
        "b": "of the configuration",
    }
    assert [each.own is own for each, own in zip(entry.offer.tools, OWN.tools, strict=False)] == [True, True]
    assert (entry.is_altered, (*entry.hidden_tools,), dict(entry.renamed)) == (True, ("c", "d"), {"a": "first"})
    assert entry.with_rules(rules).offer == entry.offer


def test_what_waits_for_approval_is_held_by_what_the_server_says_whatever_a_plugin_makes_of_it() -> None:
    changes = ToolChanges(tools={"a": made("a", "harmless")})
    entry = Entry.make("s", "stdio", OWN, changes=changes, standing=Standing("strict", {"a": "changed"}))
    assert ([each.name for each in entry.offer.tools], dict(entry.held)) == (["b", "c", "d"], {"a": "changed"})
