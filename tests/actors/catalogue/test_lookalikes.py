"""Names that are taken for others, and names that are only alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.lookalikes import MAX_DOUBLES, Double, Lookalikes
from actors.catalogue.offer import Tool


def tools(*names: str) -> list[Tool]:
    return [Tool(name=name) for name in names]


@pytest.mark.parametrize(
    "other", ["create_isue", "creaate_issue", "create_lssue", "cr\u0435ate_issue", "Create_Isue", "create_1ssue"]
)
def test_a_name_that_is_made_to_be_mistaken_is_told_to_whoever_comes_later(other: str) -> None:
    known = Lookalikes()
    assert known.read("github", tools("create_issue", "get_issue")) == {}
    assert known.read("other", tools(other, "make_tea")) == {other: (Double("github", "create_issue"),)}
    known.forget("github")
    assert known.read("other", tools(other, "make_tea")) == {}


def test_doubles_are_found_without_being_known_by_that() -> None:
    known = Lookalikes()
    known.read("github", tools("create_issue"))
    assert known.find("other", tools("create_isue")) == {"create_isue": (Double("github", "create_issue"),)}
    assert known.read("github", tools("create_issue")) == {}
    known.read("other", tools("create_isue"))
    assert known.read("github", tools("create_issue")) == {"create_issue": (Double("other", "create_isue"),)}


@pytest.mark.parametrize(
    "other", ["create_issue", "createIssue", "create-issue", "create_issues", "created_issue", "update_issue", "issue"]
)
def test_the_same_name_or_another_word_is_no_double(other: str) -> None:
    known = Lookalikes()
    known.read("github", tools("create_issue"))
    assert known.read("other", tools(other)) == {}


def test_short_names_are_no_doubles_nor_are_those_of_one_server() -> None:
    known = Lookalikes()
    known.read("one", tools("lss", "create_issue", "create_isue"))
    assert known.read("two", tools("ls")) == {}
    assert known.read("one", tools("lss", "create_issue", "create_isue")) == {}


def test_all_doubles_are_told_within_a_bound() -> None:
    known = Lookalikes()
    for number in range(MAX_DOUBLES + 2):
        known.read(f"s{number:02}", tools("create_issue"))
    doubles = known.read("other", tools("create_isue"))["create_isue"]
    assert [each.path for each in doubles] == [f"s{number:02}:create_issue" for number in range(MAX_DOUBLES)]


NAMES = ["create_issue", "create_isue", "cr\u0435ate_issue"]
LISTS = st.sampled_from([[], *([name] for name in NAMES), *([name, "make_tea"] for name in NAMES)])


@given(st.lists(st.tuples(st.sampled_from("xyz"), LISTS)))
def test_what_is_told_depends_on_what_is_listed_now_alone(readings: list[tuple[str, list[str]]]) -> None:
    known, now = Lookalikes(), dict[str, list[str]]()
    for server, names in readings:
        now[server] = names
        told = known.read(server, tools(*names))
        others = {name for other, listed in now.items() if other != server for name in listed if name in NAMES}
        assert told.keys() == {name for name in names if name in NAMES and others - {name}}
