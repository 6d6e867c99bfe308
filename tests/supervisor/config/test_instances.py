"""What an entry may say of instances and replicas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.config import Configuration, parse
from supervisor.servers.deployment import deploy
from supervisor.servers.reloading.difference import diff
from tests.fakes.deployments import KEY

URL = "https://one.example/mcp"


def read(environ: dict[str, str] | None = None, **entry: Any) -> Configuration:
    return parse(json.dumps({"mcpServers": {"a": entry}}), Path("/etc/mcp.json"), environ or {})


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"command": "x", "replicas": [URL]}, "are addresses, and this server is a process"),
        ({"url": URL, "instances": 2}, "are processes, and this server has an address"),
        ({"url": URL, "instances": "per_client"}, "are processes, and this server has an address"),
        ({"url": URL, "replicas": [URL]}, "is there twice"),
        ({"url": URL, "replicas": ["https://two.example/mcp"] * 2}, "is there twice"),
        ({"url": URL, "replicas": ["wss://two.example/mcp"]}, "is not an address for this type of server"),
        ({"command": "x", "instances": 0}, "must be"),
        ({"command": "x", "instances": 65}, "must be"),
        ({"command": "x", "instances": "many"}, "must be"),
    ],
)
def test_what_makes_no_sense_is_refused(entry: dict[str, Any], fault: str) -> None:
    problems = read(**entry).problems
    assert [fault in str(problem) for problem in problems] == [True], problems


def test_what_does_is_taken_with_variables_and_hides_their_secrets() -> None:
    two = "https://two.example/${TOKEN}/mcp"
    entry = read({"TOKEN": "hunter22hunter22"}, url=URL, replicas=[two]).servers[0]
    assert entry.replicas == ("https://two.example/hunter22hunter22/mcp",)
    assert "hunter22" not in entry.mask()(f"no answer from {entry.replicas[0]}")
    assert read(command="x", instances="per_client", max_instances=3).servers[0].max_instances == 3


def test_other_instances_replace_nothing() -> None:
    for before, after in (
        ({"command": "x"}, {"command": "x", "instances": 3}),
        ({"command": "x", "instances": 3}, {"command": "x", "instances": "per_client"}),
        ({"url": URL}, {"url": URL, "replicas": ["https://two.example/mcp"]}),
    ):
        old, new = (deploy(read(**each), key=KEY) for each in (before, after))
        found = diff(old, new)
        assert (found.resized, found.replaced, found.changed) == (("a",), (), ("a",))
        assert old.digests == new.digests
    changed = diff(deploy(read(command="x"), key=KEY), deploy(read(command="y", instances=2), key=KEY))
    assert (changed.resized, changed.replaced) == ((), ("a",))
