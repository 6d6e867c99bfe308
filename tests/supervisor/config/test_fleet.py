from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.errors import ConfigError
from supervisor.config.load import parse
from supervisor.config.sections import FleetSettings

KEY = "k" * 32
ENGINE = "redis://127.0.0.1:6379"


def read(fleet: Any, environ: dict[str, str] | None = None) -> FleetSettings:
    text = json.dumps({"supervisor": {"fleet": fleet}})
    return parse(text, Path("/etc/mcp.json"), environ or {}).settings.fleet


def test_a_daemon_is_alone_unless_it_names_an_engine() -> None:
    assert read({}) == FleetSettings()
    assert read({"node": "a"}).engine == ""


def test_variables_are_filled_in() -> None:
    fleet = read({"engine": "redis://${HOST}:1", "keys": ["${KEY}", KEY]}, {"HOST": "h", "KEY": "n" * 32})
    assert (fleet.engine, fleet.keys) == ("redis://h:1", ("n" * 32, KEY))


def test_nodes_of_one_machine_need_neither_engine_nor_keys() -> None:
    assert read({"nodes": 2}) == FleetSettings(nodes=2)
    assert read({"nodes": 2, "listen": "10.0.0.1:65534"}).nodes == 2


@pytest.mark.parametrize(
    ("fleet", "says"),
    [
        ({"engine": "http://x", "keys": [KEY]}, "fleet.engine: is no address of an engine"),
        ({"engine": ENGINE}, "fleet.keys: is missing"),
        ({"engine": ENGINE, "keys": ["short"]}, "has less than 32 characters"),
        ({"engine": "redis://${NOTHING}", "keys": [KEY]}, "NOTHING"),
        ({"engine": ENGINE, "keys": [KEY], "node": "a b"}, "fleet.node: is no name of a node"),
        ({"engine": ENGINE, "keys": [KEY], "prefix": "{a}"}, "fleet.prefix: is no prefix"),
        ({"engine": ENGINE, "keys": [KEY], "listen": "nowhere"}, "fleet.listen"),
        ({"engine": ENGINE, "keys": [KEY], "listen": "0.0.0.0:3002"}, "is no address that others can reach"),
        ({"engine": ENGINE, "keys": [KEY], "lease_s": 1}, "fleet.lease_s"),
        ({"engin": ENGINE}, 'did you mean "engine"?'),
        ({"nodes": 0}, "fleet.nodes: must be a whole number from 1 to 64"),
        ({"nodes": 65}, "fleet.nodes"),
        ({"nodes": "2"}, "fleet.nodes"),
        ({"nodes": 2, "engine": ENGINE}, "fleet.keys: is missing"),
        ({"nodes": 2, "keys": ["short"]}, "has less than 32 characters"),
        ({"nodes": 2, "node": "a b"}, "fleet.node: is no name of a node"),
        ({"nodes": 2, "listen": "nowhere"}, "fleet.listen"),
        ({"nodes": 2, "listen": "10.0.0.1:65535"}, "fleet.listen: has no port left for each node"),
    ],
)
def test_what_is_of_no_use_is_said_with_its_place(fleet: Any, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(fleet)
    assert says in str(error.value)
    assert "short" not in str(error.value)
