"""Who somebody is, and what is theirs: never more than the file and the token both say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.metadata import SAFETY, Judgement
from actors.principal import LOCAL
from supervisor.identity.people import (
    OPERATOR,
    ConfirmRules,
    People,
    Person,
    Rights,
    Team,
    User,
    principal_of,
    servers_of,
)
from supervisor.operations import ROLES, Role

KNOWN = People(
    users={"ana": User(role="admin"), "ben": User(role="auditor"), "cem": User()},
    teams={
        "core": Team(members=("ana", "ben", "cem"), servers=("search",)),
        "data": Team(members=("ben",), servers=("sql", "lake")),
    },
)
SERVERS = ["search", "sql", "lake", "notes", "free"]
OF_USERS = {"notes": ("cem",), "free": ()}
NAMED = frozenset({"cem"})


def known(user: str, **token: str) -> Person | None:
    return KNOWN.person(user, named=NAMED, **token)  # type: ignore[arg-type]  # any texts


@pytest.mark.parametrize(
    ("token", "person"),
    [
        ({"user": "ana"}, Person(user="ana", role="admin", rights=Rights(frozenset({"core"})))),
        ({"user": "ana", "role": "member"}, Person(user="ana", rights=Rights(frozenset({"core"})))),
        ({"user": "ben"}, Person(user="ben", role="auditor", rights=Rights(frozenset({"core", "data"})))),
        (
            {"user": "ben", "team": "data"},
            Person(user="ben", role="auditor", rights=Rights(frozenset({"data"})), team="data"),
        ),
        ({"user": "cem", "role": "admin"}, Person(user="cem", rights=Rights(frozenset({"core"}), "cem"))),
        ({"user": "cem", "team": "data"}, None),
        ({"user": "cem", "team": "none"}, None),
        ({"user": "dan"}, None),
        ({"user": ""}, None),
    ],
)
def test_a_token_gives_no_more_than_the_file_gives_its_user(token: dict[str, str], person: Person | None) -> None:
    assert known(**token) == person


def test_where_the_file_names_nobody_the_token_says_who_it_is_for() -> None:
    assert People().person("eve", role="auditor", team="core") == Person(user="eve", role="auditor", team="core")


def test_nobody_comes_in_as_the_operator_by_having_no_name() -> None:
    assert People().person("") is None


@pytest.mark.parametrize(
    ("user", "servers"),
    [
        ("ana", {"search", "free"}),
        ("ben", {"search", "sql", "lake", "free"}),
        ("cem", {"search", "notes", "free"}),
        ("dan", {"free"}),
    ],
)
def test_a_server_is_for_those_that_it_or_a_team_names_else_for_everybody(user: str, servers: set[str]) -> None:
    person = known(user) or Person(user=user)
    assert servers_of(person.rights, SERVERS, KNOWN.teams, OF_USERS) == servers


def test_the_operator_owns_what_is_local() -> None:
    assert OPERATOR.principal == LOCAL


@given(st.text(min_size=1))
def test_no_user_has_the_principal_of_the_operator_or_of_another(user: str) -> None:
    assert principal_of(user) != LOCAL
    assert principal_of(user) != principal_of(user + "x")
    assert principal_of(user) != principal_of(user, "core")


@pytest.mark.parametrize("role", ROLES)
def test_a_higher_role_may_what_a_lower_one_may(role: Role) -> None:
    person = Person(user="x", role=role)
    assert [person.may(each) for each in ROLES] == [ROLES.index(each) <= ROLES.index(role) for each in ROLES]


def test_names_that_mean_nobody_are_found() -> None:
    wrong = People(users={"ana": User()}, teams={"core": Team(members=("anna", "ana", "bo"), servers=("s", "t"))})
    assert list(wrong.faults(["s"])) == [
        (("teams", "core", "members"), "anna", "user"),
        (("teams", "core", "members"), "bo", "user"),
        (("teams", "core", "servers"), "t", "server"),
    ]
    assert list(People(teams={"core": Team(members=("anna",))}).faults([])) == []


LEVELS = st.sampled_from(SAFETY)
PATTERNS = st.lists(st.sampled_from(["files:write_*", "mail:*", "*", "*:drop_?"]), max_size=3).map(tuple)
OF_TEAM = LEVELS | PATTERNS
OF_USER = st.sampled_from(["none", "refuse"]) | OF_TEAM
JUDGED = st.builds(Judgement, safety=LEVELS, requires_confirmation=st.booleans())


@given(OF_USER, st.lists(st.tuples(OF_TEAM, st.booleans()), max_size=4), JUDGED)
def test_the_strictest_of_a_user_and_the_user_s_own_teams_holds(
    own: object, teams: list[tuple[object, bool]], judged: Judgement
) -> None:
    people = People(
        users={"ana": User(confirm=own), "ben": User()},  # type: ignore[arg-type]  # as drawn
        teams={
            f"t{at}": Team(members=("ana",) if member else ("ben",), confirm=confirm)  # type: ignore[arg-type]
            for at, (confirm, member) in enumerate(teams)
        },
    )
    said = [own, *(confirm for confirm, member in teams if member)]
    rules = people.confirm_rules("ana")
    levels = [each for each in said if each in SAFETY]
    asked = any(judged.requires_confirmation or judged.reaches(level) for level in levels)
    assert rules.reaches(judged) is asked
    assert set(rules.tools) == {pattern for each in said if isinstance(each, tuple) for pattern in each}
    assert rules.mode == {"none": "run", "refuse": "refuse"}.get(str(own), "ask")


def test_who_is_in_no_file_has_no_rules() -> None:
    assert KNOWN.confirm_rules("dan") == KNOWN.confirm_rules("") == ConfirmRules()


def test_patterns_are_of_the_whole_path_and_nothing_else_is_special_in_them() -> None:
    rules = ConfirmRules(tools=("files:write_*", "a.b:t"))
    paths = ["files:write_note", "files:rewrite_x", "afiles:write_x", "axb:t", "a.b:t"]
    assert [rules.confirms(*path.split(":")) for path in paths] == [True, False, False, False, True]


def test_a_rule_about_a_server_that_is_not_there_is_told() -> None:
    people = People(users={"ana": User(confirm=("fils:write", "*:x", "notes:*"))})
    assert [*people.faults(SERVERS)] == [(("users", "ana", "confirm"), "fils", "server")]


def test_who_has_no_name_is_in_no_team_though_one_has_a_member_without() -> None:
    people = People(teams={"core": Team(members=("", "ana"))})
    assert (people.teams_of("ana"), people.teams_of("")) == (frozenset({"core"}), frozenset[str]())
