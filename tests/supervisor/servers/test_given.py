"""Which values hold for whom, and for whom a server is started with them."""

from __future__ import annotations

from typing import Any

from supervisor.identity.people import NO_VALUES, Given, GivenValues, Owner, People, Person, Team, User
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.names import AccountName, account_of
from tests.fakes import deployments

ANA: Owner = ("user", "ana")
CORE: Owner = ("team", "core")
DATA: Owner = ("team", "data")
SERVERS: dict[str, Any] = {
    "github": {"command": "c", "env": {"TOKEN": "${user:TOKEN}", "HOST": "${team:HOST:-a.example}"}},
    "search": {"command": "c", "env": {"KEY": "${team:KEY}"}},
    "clock": {"command": "c", "args": ["${user:ZONE:-utc}"]},
    "plain": {"command": "c"},
    "off": {"command": "c", "disabled": True},
    "tickets": {"url": "https://a.example/mcp", "oauth": {"login": "user"}, "headers": {"X": "${user:X:-x}"}},
    "desk": {"url": "https://a.example/${team:DESK:-a}/mcp", "oauth": {"login": "user"}},
    "shared": {"url": "https://a.example/mcp", "headers": {"X": "${user:X:-x}"}},
}
IDENTITY: dict[str, Any] = {
    "users": {"ana": {}, "ben": {}, "cem": {}, "dan": {}},
    "teams": {"core": {"members": ["ana", "ben"]}, "data": {"members": ["cem"]}},
}


def read(*given: tuple[Any, str, str, str], identity: dict[str, Any] = IDENTITY) -> Deployment:
    stored = GivenValues()
    for owner, server, name, value in given:
        stored = stored.with_value(owner, server, name, Given(value=value))
    return deployments.read(SERVERS, stored, identity=identity)


def person(deployment: Deployment, user: str, team: str = "") -> Person:
    found = deployment.person(user, role="member", team=team)
    assert found is not None
    return found


def launch(deployment: Deployment, server: str, user: str, team: str = "") -> str:
    return deployment.launch_of(server, person(deployment, user, team)).name


def test_the_file_goes_over_what_is_stored() -> None:
    people = People(users={"ana": User(values={"s": {"A": Given(value="file")}})}, teams={"core": Team()})
    values = NO_VALUES.with_value(ANA, "s", "A", Given(value="stored")).with_value(ANA, "s", "B", Given(value="b"))
    assert values.of(people, ANA, "s") == {"A": Given(value="file"), "B": Given(value="b")}
    assert values.of(people, ANA, "t") == {}
    assert values.of(people, CORE, "s") == {}
    assert values.of(people, ("user", "nobody"), "s") == {}


def test_one_team_alone_gives_values_for_a_server() -> None:
    people = People(teams={"core": Team(), "data": Team(servers=("s",)), "more": Team(servers=("s",))})
    values = NO_VALUES.with_value(CORE, "s", "A", Given(value="1")).with_value(CORE, "t", "A", Given(value="1"))
    assert values.team_for(people, ("data", "core"), "s") == "data", "which has it for itself"
    assert values.team_for(people, ("more", "data"), "s") == "data", "the first of the file"
    assert values.team_for(people, ("data", "core"), "t") == "core", "which gives any"
    assert values.team_for(people, ("data",), "t") == ""
    assert values.team_for(People(), ("core",), "t") == "core"


def test_what_lacks_a_value_rests_and_says_what_it_waits_for() -> None:
    deployment = read()
    assert list(deployment.servers) == ["clock", "plain", "tickets", "desk", "shared"]
    assert deployment.value_takers == {"github", "search", "clock", "tickets", "desk", "shared"}
    resting = {each.name: each for each in deployment.resting}
    assert (resting["github"].awaits, resting["search"].awaits, resting["off"].awaits) == (("TOKEN",), ("KEY",), ())
    assert "TOKEN" in resting["github"].reason
    assert launch(deployment, "github", "ana") == ""
    assert deployment.launch_of("github", person(deployment, "ana")).deployed is None


def test_what_nobody_gives_a_value_for_is_started_for_all_alike() -> None:
    deployment = read()
    assert {launch(deployment, "clock", user) for user in ("ana", "ben", "cem")} == {"clock"}
    assert launch(deployment, "plain", "ana") == "plain"
    given = read((ANA, "clock", "ZONE", "utc"))
    assert launch(given, "clock", "ana") == "clock", "it is what all have"


def test_equal_values_share_a_launch_and_others_do_not() -> None:
    deployment = read(
        (ANA, "clock", "ZONE", "cet"),
        (("user", "ben"), "clock", "ZONE", "cet"),
        (("user", "cem"), "clock", "ZONE", "x"),
    )
    names = {user: launch(deployment, "clock", user) for user in IDENTITY["users"]}
    assert names["ana"] == names["ben"]
    assert len({*names.values()}) == 3
    assert all(name.startswith("clock") and "cet" not in name for name in names.values())
    started = deployment.launch_of("clock", person(deployment, "ana")).deployed
    assert started is not None
    assert (started.name, started.launch.args) == (names["ana"], ("cet",))


def test_the_secret_of_a_user_is_shared_with_nobody() -> None:
    given = [(("user", user), "github", "TOKEN", "hunter22") for user in ("ana", "ben")]
    deployment = read(*given)
    ana, ben = launch(deployment, "github", "ana"), launch(deployment, "github", "ben")
    assert ana != ben
    assert launch(read(*given), "github", "ana") == ana
    started = deployment.launch_of("github", person(deployment, "ana")).deployed
    assert started is not None
    assert started.launch.env == {"TOKEN": "hunter22", "HOST": "a.example"}
    assert started.mask("it was hunter22") == "it was ***"


def test_the_secret_of_a_team_is_shared_by_the_team() -> None:
    deployment = read((CORE, "search", "KEY", "hunter22"), (DATA, "search", "KEY", "hunter23"))
    assert launch(deployment, "search", "ana") == launch(deployment, "search", "ben")
    assert launch(deployment, "search", "ana") != launch(deployment, "search", "cem")
    assert launch(deployment, "search", "dan") == ""
    started = deployment.launch_of("search", person(deployment, "ana")).deployed
    assert started is not None
    assert started.mask("it was hunter22") == "it was ***"


def test_a_token_for_one_team_has_the_values_of_that() -> None:
    identity = IDENTITY | {"teams": {"core": {"members": ["ana"]}, "data": {"members": ["ana"]}}}
    deployment = read((CORE, "search", "KEY", "k1"), (DATA, "search", "KEY", "k2"), identity=identity)
    of = {
        team: deployment.launch_of("search", person(deployment, "ana", team)).effective for team in ("", "core", "data")
    }
    assert {team: holds.config.env["KEY"] for team, holds in of.items()} == {"": "k1", "core": "k1", "data": "k2"}


def test_where_each_user_logs_in_nobody_shares_a_launch() -> None:
    deployment = read()
    own = {user: deployment.launch_of("tickets", person(deployment, user)) for user in ("ana", "ben")}
    assert len({each.name for each in own.values()} | {"tickets"}) == 3
    assert len({each.deployed.digest for each in own.values() if each.deployed is not None}) == 2
    assert launch(deployment, "tickets", "ana", "core") == own["ana"].name, "it is the same user"
    assert launch(deployment, "shared", "ana") == launch(deployment, "shared", "ben") == "shared"
    assert "tickets" in {each.server for each in person(deployment, "ana").rights.launches}


def account(deployment: Deployment, server: str, user: str, team: str = "") -> AccountName:
    deployed = deployment.launch_of(server, person(deployment, user, team)).deployed
    assert deployed is not None
    return account_of(deployed)


def test_a_login_of_a_user_outlives_values_and_that_of_all_is_of_the_launch() -> None:
    own: Owner = ("user", "ana")
    before, after = read(), read((own, "tickets", "X", "y"), (own, "shared", "X", "y"))
    assert launch(before, "tickets", "ana") != launch(after, "tickets", "ana")
    assert [account(each, "tickets", "ana") for each in (before, after)] == [("user:ana", "tickets")] * 2
    assert account_of(before.servers["tickets"]) == ("local", "tickets")
    assert account(before, "shared", "ana") == ("local", "shared")
    assert account(after, "shared", "ana") == ("local", launch(after, "shared", "ana"))


def test_a_login_is_of_the_address_where_that_is_not_the_same_for_all() -> None:
    deployment = read((CORE, "desk", "DESK", "b"))
    assert account(deployment, "desk", "ana") == ("user:ana", launch(deployment, "desk", "ana"))
    assert account(deployment, "desk", "ana") != account(deployment, "desk", "cem")


def test_a_value_is_in_nothing_that_is_shown_of_a_deployment() -> None:
    deployment = read((ANA, "github", "TOKEN", "hunter22"))
    holds = deployment.launch_of("github", person(deployment, "ana"))
    assert "hunter22" not in repr(deployment)
    assert "hunter22" not in repr(holds.deployed)
    assert "hunter22" not in repr(holds)
