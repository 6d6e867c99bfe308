"""The example of a fleet: its files fit one another, and the configuration is one."""

from __future__ import annotations

import re
from pathlib import Path

import yaml  # type: ignore[import-untyped]  # mkdocs brings it, without types

from supervisor.config import load

FLEET = Path(__file__).parents[2] / "examples" / "fleet"
COMPOSE = yaml.safe_load((FLEET / "compose.yaml").read_text())
NODES = {name: service for name, service in COMPOSE["services"].items() if name not in ("balancer", "engine")}


def test_every_node_reads_the_configuration_and_has_a_name_of_its_own() -> None:
    names = []
    for service in NODES.values():
        given = {**service["environment"], "FLEET_KEY": "k" * 32}
        config = load(FLEET / "mcp.json", given)
        assert config.settings.fleet.engine == "redis://engine:6379"
        names.append(config.settings.fleet.node)
        assert service["volumes"][0].startswith("./mcp.json:")
    assert names == [*NODES]


def test_the_balancer_has_the_nodes_and_is_reached_where_the_nodes_say() -> None:
    written = (FLEET / "nginx.conf").read_text()
    ports = re.findall(r"server 127\.0\.0\.1:(\d+);", written)
    listen = [service["command"][service["command"].index("--listen") + 1] for service in NODES.values()]
    assert [f"127.0.0.1:{port}" for port in ports] == listen
    assert [service["healthcheck"]["test"][-1] for service in NODES.values()] == [f"http://{each}" for each in listen]
    assert all(service["network_mode"] == "service:balancer" for service in NODES.values())
    (published,) = COMPOSE["services"]["balancer"]["ports"]
    outside, inside = published.rsplit(":", 1)
    assert f"listen {inside};" in written
    given = {"FLEET_ENGINE": "redis://e", "FLEET_NODE": "a", "FLEET_KEY": "k" * 32}
    assert load(FLEET / "mcp.json", given).settings.public_url == f"http://{outside}"
