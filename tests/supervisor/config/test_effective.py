"""What holds with values of a team and a user: which of them, where, and what no value can do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from supervisor.config import ServerConfig, parse
from supervisor.config.expansion import Given, Value
from supervisor.config.given import (
    Effective,
    effective,
    fault_of,
    is_secret_value,
    missing_for_users,
    rule_of,
    tiers_of,
    why_not,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=20)
PLAIN = TEXTS.filter(lambda text: not text.startswith("-"))
GIVEN = st.none() | st.builds(Given, value=PLAIN, locked=st.booleans())
TRICKS = ("${X}", "$${", "${user:X}", "${team:X:-y}", "%2e%2e", "..", ".", "../..", "//evil", "@evil", "?a#b", "\\evil")


def server(entry: dict[str, Any]) -> ServerConfig:
    configuration = parse(json.dumps({"mcpServers": {"s": entry}}), Path("/x/mcp.json"), {"X": "of the environment"})
    assert [str(problem) for problem in configuration.problems] == []
    return configuration.servers[0]


def values(named: dict[str, Value | Given | None]) -> dict[str, Given]:
    given = ((name, each if isinstance(each, Given) else Given(value=each)) for name, each in named.items() if each)
    return dict(given)


def holds(
    entry: dict[str, Any], team: dict[str, Value | Given | None] | None = None, **user: Value | Given | None
) -> Effective:
    return effective(server(entry), values(team or {}), values(user))


@for_all(GIVEN, GIVEN, st.none() | TEXTS.filter(lambda text: "}" not in text and "{" not in text), st.booleans())
def test_the_users_goes_over_the_teams_over_the_default_and_a_lock_over_all(
    team: Given | None, user: Given | None, default: str | None, hidden: bool
) -> None:
    place = "${user:V}" if default is None else f"${{user:V:-{default}}}"
    entry = {"command": "c", "env": {"E": place}, "values": {"V": {"hidden": hidden}}}
    result = holds(entry, {"V": team}, V=user)
    locked = hidden or (team is not None and team.locked)
    expected = team if locked or user is None else user
    if expected is None:
        assert result.config.env == {"E": default or ""}
        assert result.missing == ({"V": "team" if hidden else "user"} if default is None else {})
        assert result.sources == {("env", "E"): ()}
    else:
        assert result.config.env == {"E": expected.value}
        assert (result.missing, result.sources) == ({}, {("env", "E"): ("team" if expected is team else "user",)})
    assert result.can_run == (not result.missing)


@for_all(GIVEN, GIVEN)
def test_what_teams_give_is_never_a_users(team: Given | None, user: Given | None) -> None:
    entry = {"command": "c", "env": {"E": "${team:V}"}}
    result = holds(entry, {"V": team}, V=user)
    assert result.config.env == {"E": team.value if team is not None else ""}
    assert result.missing == ({} if team is not None else {"V": "team"})
    assert not result.is_personal


@for_all(PLAIN | st.sampled_from(TRICKS))
def test_nothing_of_a_value_is_expanded_again(value: str) -> None:
    entry = {"command": "c", "args": ["a${user:V}b", "${user:V}"], "env": {"E": "${user:V}${X}"}}
    result = holds(entry, V=value)
    assert result.config.args == (f"a{value}b", value)
    assert result.config.env == {"E": f"{value}of the environment"}
    assert result.can_run


@for_all(TEXTS | st.sampled_from(TRICKS), TEXTS | st.sampled_from(TRICKS))
def test_no_value_changes_where_an_address_leads(one: str, other: str) -> None:
    entry = {"url": "https://a.example:8443/v1/${user:A}/mcp/.${team:B}?x=${user:A}&y=${team:B}#z"}
    result = holds(entry, {"B": other}, A=one)
    address = urlsplit(result.config.url)
    assert (address.scheme, address.netloc, address.fragment) == ("https", "a.example:8443", "z")
    assert [unquote(part) for part in address.path.split("/")] == ["", "v1", one, "mcp", f".{other}"]
    assert [unquote(part.partition("=")[2]) for part in address.query.split("&")] == [one, other]
    assert result.can_run == (one not in (".", "..") and other != ".")


def test_what_the_file_itself_has_in_a_path_is_its_own_business() -> None:
    entry = {"url": "https://a.example/v1/../v2/${user:V}"}
    assert holds(entry, V="x").faults == ()
    assert holds(entry, V="..").faults == ('url would lead elsewhere, as a part of its path is "." or ".."',)


def test_an_address_that_is_too_long_is_none() -> None:
    entry = {"url": "https://a.example/${user:V}"}
    assert holds(entry, V="/" * 30_000).faults == ("url is no address",)


def test_arguments_stand_in_the_order_of_their_places() -> None:
    entry = {
        "command": "c",
        "args": ["one", "${team:MORE}", "two", "${user:MORE}", "--all=${user:ONE:-none}"],
        "values": {"MORE": {"several": True}},
    }
    assert holds(entry, {"MORE": ("a", "b")}, MORE=("c",)).config.args == ("one", "a", "b", "two", "c", "--all=none")
    assert holds(entry, {"MORE": Given(value=())}).config.args == ("one", "two", "--all=none")
    assert holds(entry).missing == {"MORE": "team"}
    defaults = {**entry, "args": ["${user:MORE:-x y}", "${team:MORE:-}"]}
    assert holds(defaults).config.args == ("x y",)


@pytest.mark.parametrize("value", ["-x", "--config=/etc/passwd", "-"])
def test_a_user_cannot_make_options_of_arguments(value: str) -> None:
    said = 'args[0] begins with "-", as an option does, which users cannot give here'
    single = {"command": "c", "args": ["${user:V}"]}
    assert holds(single, V=value).faults == (said,)
    assert holds(single, {"V": value}).faults == ()
    assert holds({"command": "c", "args": [f"${{user:V:-{value}}}"]}).faults == ()
    assert holds({"command": "c", "args": ["--v=${user:V}"]}, V=value).faults == ()
    assert holds({"command": "c", "args": ["${team:W:-}${user:V}"]}, V=value).faults == (said,)
    assert holds({"command": "c", "args": ["${team:W:-}${user:V}"]}, {"W": "w"}, V=value).faults == ()
    assert holds({"command": "c", "args": ["${team:W:-}${team:V:-}"]}).faults == ()
    named = single | {"values": {"V": {"options": [value, "other"]}}}
    assert holds(named, V=value).faults == ()
    several = single | {"values": {"V": {"several": True}}}
    assert holds(several, V=("a", value)).faults == (said,)


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        ({"url": "https://a.example", "headers": {"X-Name": "${user:V}"}}, "Ü", "not the value of an HTTP header"),
        ({"url": "https://a.example", "headers": {"X-Name": "${user:V}"}}, " x", "not the value of an HTTP header"),
        ({"command": "c", "args": ["${user:V}"]}, "ä" * 65_536, "is longer than 131071 bytes"),
        (
            {"command": "c", "env": {f"E{at}": "${user:V}" for at in range(20)}},
            "a" * 65_000,
            "are over 1048576 bytes",
        ),
    ],
)
def test_what_cannot_be_passed_on_is_a_fault_that_names_no_value(entry: dict[str, Any], value: str, words: str) -> None:
    result = holds(entry, V=value)
    assert not result.can_run
    (fault,) = result.faults
    assert words in fault
    assert value not in fault
    assert fault_of(server(entry), "user", "V", value) == fault


def test_what_is_missing_beside_a_value_is_no_fault_of_it() -> None:
    headers = {"Authorization": "Bearer ${user:TOKEN}", "X-Name": "${user:NAME}"}
    config = server({"url": "https://a.example", "headers": headers})
    assert fault_of(config, "user", "NAME", "x") == ""
    assert "headers.X-Name is not the value" in fault_of(config, "user", "NAME", "ü")


@pytest.mark.parametrize("value", ["a\0b", "a\nb", "a\rb", "\ud800", ""])
def test_a_value_that_is_no_text_of_one_line_counts_as_none(value: str) -> None:
    result = effective(server({"command": "c", "env": {"E": "${user:V}"}}), {}, {"V": Given(value=value)})
    assert (result.missing, result.config.env) == ({"V": "user"}, {"E": ""})


def test_a_value_that_the_entry_does_not_take_any_more_gives_way_to_the_next() -> None:
    entry = {"command": "c", "env": {"E": "${user:V:-c}"}, "values": {"V": {"options": ["a", "b", "c"]}}}
    assert holds(entry, {"V": "b"}, V="old").config.env == {"E": "b"}
    assert holds(entry, {"V": "old"}, V="older").config.env == {"E": "c"}
    locked = holds(entry | {"env": {"E": "${user:V}"}}, {"V": Given(value="old", locked=True)}, V="a")
    assert locked.missing == {"V": "team"}, "a lock stays one"


def test_who_has_to_give_first_is_the_team_where_both_have_to() -> None:
    assert holds({"command": "c", "args": ["${user:V}", "${team:V}"]}).missing == {"V": "team"}
    assert holds({"command": "c", "args": ["${team:V}", "${user:V}"]}).missing == {"V": "team"}
    assert holds({"command": "c", "args": ["${team:V}", "${user:V}"]}, V="x").missing == {"V": "team"}
    assert holds({"command": "c", "args": ["${team:V:-x}", "${user:W}"]}).missing == {"W": "user"}


def test_defaults_of_an_address_are_quoted_whatever_characters_they_have() -> None:
    assert holds({"url": "https://a.example/${user:V:-ü/x}"}).config.url == "https://a.example/%C3%BC%2Fx"


def test_an_entry_without_places_is_as_it_was() -> None:
    config = server({"command": "c", "args": ["x"]})
    assert effective(config, values({"V": "x"}), {}) == Effective(config=config)
    assert tiers_of(config) == {}


def test_the_last_who_may_give_a_value_is_its_tier() -> None:
    config = server(
        {
            "command": "c",
            "args": ["${team:A}", "${user:B}", "${team:B}", "${user:C}", "${team:D}", "${user:D}"],
            "values": {"C": {"hidden": True}},
        }
    )
    assert tiers_of(config) == {"A": "team", "B": "user", "C": "team", "D": "user"}
    assert rule_of(config, "C").hidden
    assert rule_of(config, "A").description == ""


@pytest.mark.parametrize(
    ("entry", "secret"),
    [
        ({"command": "c", "env": {"MY_TOKEN": "${user:V}"}}, True),
        ({"command": "c", "env": {"MY_NAME": "${user:V}"}}, False),
        ({"url": "https://a.example", "headers": {"Authorization": "Bearer ${user:V}"}}, True),
        ({"url": "https://a.example/?region=eu&api_key=${user:V}"}, True),
        ({"url": "https://a.example/token/x?region=${user:V}"}, False),
        ({"url": "https://a.example/${team:W:-}${user:V}"}, False),
        ({"command": "c", "args": ["--token", "${user:V}"]}, True),
        ({"command": "c", "args": ["--token=${user:V}"]}, True),
        ({"command": "c", "args": ["${user:V}"]}, False),
        ({"command": "c", "args": ["--token", "x${user:V}"]}, False),
        ({"command": "c", "env": {"MY_TOKEN": "${user:V}"}, "values": {"V": {"secret": False}}}, False),
        ({"command": "c", "env": {"MY_NAME": "${user:V}"}, "values": {"V": {"secret": True}}}, True),
    ],
)
def test_a_place_says_what_is_secret_too(entry: dict[str, Any], secret: bool) -> None:
    assert is_secret_value(server(entry), "V") is secret
    result = holds(entry, V="hunter")
    assert result.is_personal is secret
    assert result.secrets == ({"V 0": "hunter"} if secret else {})
    of_team = holds(entry, {"V": "hunter"})
    assert (of_team.is_personal, of_team.secrets) == (False, result.secrets)


def test_users_are_not_told_the_names_of_what_is_hidden_from_them() -> None:
    entry = {"command": "c", "env": {"A": "${user:INNER}", "B": "${team:B}"}, "values": {"INNER": {"hidden": True}}}
    lacking = effective(server(entry), {}, {})
    assert missing_for_users(lacking) == ("B",)
    assert "INNER" in why_not(lacking, "desk")
    told = why_not(lacking, "desk", to_users=True)
    assert "INNER" not in told
    assert "an admin gives B for a team (mcpvisor config set desk B --team TEAM)" in told
    assert told.endswith("an admin gives what users do not see, for a team")
    assert "do not see" not in why_not(lacking, "desk")
    alone = effective(server(entry), {"B": Given(value="x")}, {})
    assert (
        why_not(alone, "desk", to_users=True) == "values are missing: an admin gives what users do not see, for a team"
    )


def test_why_a_server_waits_says_what_to_do() -> None:
    entry = {"url": "https://x.example/mcp", "headers": {"X-Key": "${user:KEY}", "X-Team": "${team:TEAM}"}}
    text = json.dumps({"mcpServers": {"desk": entry}})
    (config,) = parse(text, Path("/x/mcp.json"), {}).servers
    nothing = why_not(effective(config, {}, {}), "desk")
    assert "each user gives KEY (mcpvisor config set desk KEY)" in nothing
    assert "mcpvisor config set desk TEAM --team TEAM" in nothing
    odd = effective(config, {"TEAM": Given(value="a")}, {"KEY": Given(value="caf\u00e9")})
    assert "cannot be passed on" in why_not(odd, "desk")
    assert "caf\u00e9" not in why_not(odd, "desk")
