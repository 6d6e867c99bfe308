from __future__ import annotations

from msgspec.structs import replace

from actors.kit import Latest
from supervisor.servers.deployment import Deployment
from supervisor.servers.fleet.launch_messages import LaunchKeys
from tests.fakes.deployments import server


def deployment(**digests: str) -> Deployment:
    return Deployment(servers={name: server(name) for name in digests}, digests=digests)


def test_a_launch_has_the_same_key_where_it_is_started_alike_and_another_one_elsewhere() -> None:
    here, there = LaunchKeys(Latest(deployment(a="1" * 64, b="2" * 64))), LaunchKeys(Latest(deployment(a="3" * 64)))
    assert here.key("a") == "a#" + "1" * 16
    assert here.name(here.key("a")) == "a"
    assert there.name(here.key("a")) == ""
    assert there.name(here.key("b")) == ""
    assert not here.has("c")
    assert here.name(here.key("c")) == ""
    assert here.name("a") == ""


def test_what_all_have_in_common_is_how_servers_are_started_and_nothing_else() -> None:
    cell = Latest(deployment(a="1", b="2"))
    keys = LaunchKeys(cell)
    before = keys.digest()
    assert LaunchKeys(Latest(deployment(b="2", a="1"))).digest() == before
    cell.set(deployment(a="1", b="3"))
    assert keys.digest() != before
    cell.set(deployment(a="1", b="2"))
    assert keys.digest() == before


def test_a_launch_of_somebody_is_called_by_its_name_and_is_there_where_somebody_has_it() -> None:
    keys, name = LaunchKeys(Latest(deployment(a="1" * 64))), "a~0123456789abcdef"
    assert keys.key(name) == f"{name}#"
    assert keys.key_of(replace(server(name), digest="2" * 64)) == f"{name}#"
    assert keys.launch(f"{name}#") == name
    assert keys.name(f"{name}#") == ""
    keys.knows = {name}.__contains__
    assert keys.name(f"{name}#") == name
    assert not keys.has("a~other")
    assert keys.key_of(replace(server("a"), digest="2" * 64)) == "a#" + "2" * 16 != keys.key("a")
