"""Whose call of a tool needs a yes: the strictest rule that applies, and one word that takes all of them away."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.metadata import SAFETY, Judgement, judge
from supervisor.config.call_rules import CallRules, needs_yes
from supervisor.identity.people import ConfirmRules
from tests.actors.catalogue.test_metadata import declared

LEVELS = st.sampled_from(SAFETY)
NAMES = st.lists(st.sampled_from(["write_*", "*", "erase"]), max_size=2).map(tuple)
RULES = st.builds(
    lambda level, named, spared: CallRules(
        timeout_s=1, max_s=1, confirm_from=level, confirm=named, confirm_except=spared
    ),
    st.sampled_from(["none", *SAFETY]),
    NAMES,
    NAMES,
)
OF_PERSON = st.builds(
    ConfirmRules,
    level=st.none() | LEVELS,
    tools=st.lists(st.sampled_from(["files:write_*", "mail:*", "*:erase"]), max_size=2).map(tuple),
    mode=st.sampled_from(["ask", "refuse"]),
)
JUDGED = st.builds(Judgement, safety=LEVELS, requires_confirmation=st.booleans())
TOOLS = st.sampled_from(["write_note", "erase", "read"])
NOBODY = ConfirmRules()


@given(RULES, OF_PERSON, TOOLS, JUDGED)
def test_a_person_s_rules_only_ever_add(rules: CallRules, person: ConfirmRules, tool: str, judged: Judgement) -> None:
    usual = needs_yes(rules, NOBODY, "files", tool, judged)
    asked = needs_yes(rules, person, "files", tool, judged)
    assert usual is rules.confirms(tool, judged)
    assert asked or not usual
    assert asked or not person.confirms("files", tool)


@given(RULES, st.sampled_from(SAFETY), TOOLS, JUDGED)
def test_a_person_s_level_counts_as_one_of_the_server_would(
    rules: CallRules, level: str, tool: str, judged: Judgement
) -> None:
    person = ConfirmRules(level=level)  # type: ignore[arg-type]  # one of them
    of_server = CallRules(
        timeout_s=1,
        max_s=1,
        confirm=rules.confirm,
        confirm_except=rules.confirm_except,
        confirm_from=person.level or "none",
    )
    both = rules.confirms(tool, judged) or of_server.confirms(tool, judged)
    assert needs_yes(rules, person, "files", tool, judged) is both


@given(RULES, TOOLS, JUDGED)
def test_nothing_asks_a_user_who_is_not_to_be_asked(rules: CallRules, tool: str, judged: Judgement) -> None:
    assert not needs_yes(rules, ConfirmRules(level="safe", tools=("*",), mode="run"), "files", tool, judged)


@pytest.mark.parametrize(("tools", "asked"), [(("files:write_*",), True), (("mail:*",), False), (("*",), True)])
def test_what_a_person_s_list_names_is_asked_although_the_server_spares_it(tools: tuple[str, ...], asked: bool) -> None:
    spared = CallRules(timeout_s=1, max_s=1, confirm_except=("*",), confirm_from="safe")
    assert needs_yes(spared, ConfirmRules(tools=tools), "files", "write_note", Judgement()) is asked
    assert not needs_yes(spared, ConfirmRules(level="safe"), "files", "write_note", Judgement())


@pytest.mark.case("X05")
@pytest.mark.parametrize("level", ["dangerous", "moderate", "safe"])
@pytest.mark.parametrize("name", ["delete_everything", "drop_tables", "wipe_disk", "purge_all"])
@pytest.mark.parametrize(
    "annotations",
    [
        {"readOnlyHint": True},
        {"destructiveHint": False},
        {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "requiresConfirmation": False},
    ],
)
def test_nothing_that_a_server_declares_takes_a_yes_away(name: str, annotations: dict[str, bool], level: Any) -> None:
    judged = judge(declared(name, annotations=annotations))
    assert CallRules(timeout_s=1.0, max_s=1.0, confirm_from=level).confirms(name, judged)
