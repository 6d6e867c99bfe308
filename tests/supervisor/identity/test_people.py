"""Who somebody is, and what is theirs: never more than the file and the token both say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.principal import LOCAL
from supervisor.identity.people import OPERATOR, ROLES, Identity, Person, Role, Team, User, principal_of, servers_of

KNOWN = Identity(
    users={"ana": User(role="admin"), "ben": User(role="auditor"), "cem": User()},
    teams={
        "core": Team(members=("ben", "cem"), owners=("ana",), servers=("search",)),
        "data": Team(members=("ben",), servers=("sql", "lake")),
    },
)
SERVERS = ["search", "sql", "lake", "notes", "free"]
OF_USERS = {"notes": ("cem",), "free": ()}


def known(user: str, **token: str) -> Person | None:
    return KNOWN.person(user, **token)  # type: ignore[arg-type]  # any texts


@pytest.mark.parametrize(
    ("token", "person"),
    [
        ({"user": "ana"}, Person(user="ana", role="admin", teams=frozenset({"core"}), owned=frozenset({"core"}))),
        ({"user": "ana", "role": "member"}, Person(user="ana", teams=frozenset({"core"}), owned=frozenset({"core"}))),
        ({"user": "ben"}, Person(user="ben", role="auditor", teams=frozenset({"core", "data"}))),
        ({"user": "ben", "team": "data"}, Person(user="ben", role="auditor", teams=frozenset({"data"}))),
        ({"user": "cem", "role": "admin"}, Person(user="cem", teams=frozenset({"core"}))),
        ({"user": "cem", "team": "data"}, None),
        ({"user": "cem", "team": "none"}, None),
        ({"user": "dan"}, None),
        ({"user": ""}, None),
    ],
)
def test_a_token_gives_no_more_than_the_file_gives_its_user(token: dict[str, str], person: Person | None) -> None:
    assert known(**token) == person


def test_where_the_file_names_nobody_the_token_says_who_it_is_for() -> None:
    assert Identity().person("eve", role="auditor", team="core") == Person(
        user="eve", role="auditor", teams=frozenset({"core"})
    )


def test_nobody_comes_in_as_the_operator_by_having_no_name() -> None:
    assert Identity().person("") is None


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
    person = KNOWN.person(user) or Person(user=user)
    assert servers_of(person, SERVERS, KNOWN.teams, OF_USERS) == servers


def test_the_operator_has_everything() -> None:
    assert servers_of(OPERATOR, SERVERS, KNOWN.teams, OF_USERS) == set(SERVERS)
    assert OPERATOR.principal == LOCAL


@given(st.text(min_size=1))
def test_no_user_has_the_principal_of_the_operator_or_of_another(user: str) -> None:
    assert principal_of(user) != LOCAL
    assert principal_of(user) != principal_of(user + "x")


@pytest.mark.parametrize("role", ROLES)
def test_a_higher_role_may_what_a_lower_one_may(role: Role) -> None:
    person = Person(user="x", role=role)
    assert [person.may(each) for each in ROLES] == [ROLES.index(each) <= ROLES.index(role) for each in ROLES]


def test_names_that_mean_nobody_are_found() -> None:
    wrong = Identity(
        users={"ana": User()}, teams={"core": Team(members=("anna",), owners=("ana", "bo"), servers=("s", "t"))}
    )
    assert list(wrong.faults(["s"])) == [
        (("teams", "core", "members"), "anna", "user"),
        (("teams", "core", "owners"), "bo", "user"),
        (("teams", "core", "servers"), "t", "server"),
    ]
    assert list(Identity(teams={"core": Team(members=("anna",))}).faults([])) == []
