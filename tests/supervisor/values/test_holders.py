"""Who gave which values: as it holds for each person, and names alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from supervisor.identity.people import Given, GivenValues
from supervisor.servers.deployment import Deployment
from supervisor.values.rows import ValueHolder, ValueHolders, known_users, team_of, tiered_servers, value_holders
from tests.supervisor.values.test_rows import deployed, person, stored

PLACES = [
    *(
        ("user", owner, server, name)
        for owner in ("ana", "ben")
        for server, name in (("github", "TOKEN"), ("maps", "REGION"))
    ),
    *(("team", "core", server, name) for server, name in (("github", "KEY"), ("github", "HOST"), ("maps", "TOKEN"))),
]


def shown(deployment: Deployment) -> dict[tuple[str, str], ValueHolders]:
    return {(each.server, each.name): each for each in value_holders(deployment, known_users(deployment))}


def test_each_value_says_who_gave_it_and_who_has_yet_to() -> None:
    by = {
        key: (each.tier, [holder.words for holder in each.given], [holder.words for holder in each.missing])
        for key, each in shown(deployed(stored())).items()
    }
    assert by["github", "KEY"] == ("team", ["team core"], ["ana, who is in no team"])
    assert by["github", "TOKEN"] == ("user", ["ben"], ["ana"])
    assert by["github", "LOG"] == ("user", ["team core"], [])
    assert by["github", "HOST"] == ("team", ["team core"], [])
    assert by["maps", "REGION"] == ("user", [], ["ana", "ben"])
    assert by["vault", "PIN"] == ("user", [], ["ana"]), "it is not for ben"
    assert all(server != "plain" for server, _ in by)


def test_without_named_users_they_are_those_of_teams_and_values() -> None:
    people: dict[str, Any] = {"teams": {"core": {"members": ["ben"]}}}
    deployment = deployed(stored().with_value(("user", "eve"), "maps", "TOKEN", Given(value="x")), people)
    assert known_users(deployment) == ["ben", "eve"]


@given(st.sets(st.sampled_from(PLACES)))
def test_missing_is_what_keeps_a_server_from_running_for_somebody(places: set[tuple[Any, str, str, str]]) -> None:
    values = GivenValues()
    for tier, owner, server, name in sorted(places):
        values = values.with_value((tier, owner), server, name, Given(value="hidden canary"))
    deployment = deployed(values)
    by = shown(deployment)
    for user in known_users(deployment):
        who = person(deployment, user)
        for server in tiered_servers(deployment, who):
            team = team_of(deployment, who, server)
            for name, tier in deployment.effective_for(server, who).missing.items():
                of_team = ValueHolder("team", team) if team else ValueHolder(None, user)
                holder = ValueHolder("user", user) if tier == "user" else of_team
                assert holder in by[server, name].missing
    for each in by.values():
        assert not set(each.given) & set(each.missing)
    assert "canary" not in repr(to_builtins([*by.values()]))
