"""Skills (SEP-2640) as the official TypeScript SDK 2.x serves them, and as it and the official suite see each door."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running
from tests.e2e.test_clients import LEGACY, MODERN, of_one_run

pytestmark = pytest.mark.e2e

SERVER = Path(__file__).with_name("servers") / "skills.cjs"
ROOT = "skill://billing"
DOORS = {
    "/mcp/servers/newer": "",
    "/mcp/servers/older": "",
    "/mcp/all": "mcp://newer/",
    "/mcp": "mcp://older/",
}
"""What stands in front of the URIs at each."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with a server of each era that has skills."""
    node, _, packages = environments.client("typescript.cjs")
    newer = environments.entry([node], str(SERVER), packages)
    with running(tmp_path_factory.mktemp("skills"), {"newer": newer, "older": {**newer, "era": "legacy"}}) as daemon:
        trio.run(daemon.ready)
        yield daemon


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize(("kind", "version"), [("default", LEGACY), ("auto", MODERN)])
def test_the_typescript_client_lists_reads_and_verifies_them(
    daemon: Daemon, path: str, kind: str, version: str
) -> None:
    ways = {
        (door, kind): (daemon.url + door, kind, f"{before}{ROOT}/refunds/SKILL.md")
        for kind in ("default", "auto")
        for door, before in DOORS.items()
    }
    found = of_one_run("typescript_skills.cjs", ways)[path, kind]
    of_one = path.startswith("/mcp/servers/")
    servers = [""] if of_one else ["mcp://newer/", "mcp://older/"]
    assert found == {
        "version": version,
        "supported": [True, True],
        "listed": [f"{server}{ROOT}/{name}/SKILL.md" for server in servers for name in ("refunds", "sailing")],
        "kept": version == MODERN,
        "read": [["SKILL.md", True, found["read"][0][2]], ["examples/email.md", True, 31], ["logo.png", True, 6]],
        "name": "refunds",
        "body": found["body"],
        "relative": "Dear customer, here are 5 €.\n",
        "children": ["SKILL.md", "examples", "logo.png"],
        "refused": -32602,
    }


@pytest.mark.parametrize("scenario", ["enumeration", "manifest", "directory"])
@pytest.mark.parametrize("path", DOORS)
def test_the_official_scenarios_pass(daemon: Daemon, path: str, scenario: str) -> None:
    suite = environments.conformance()
    command = [suite.node(), str(suite.suite("conformance")), "server", "--url", daemon.url + path, "--verbose"]
    named = [*command, "--scenario", f"sep-2640-skills-{scenario}"]
    done = subprocess.run(named, capture_output=True, text=True, timeout=60, check=False)
    checks = json.loads(done.stdout[done.stdout.index("[") : done.stdout.rindex("]") + 1])
    assert len(checks) > 5
    of_many = {"sep-2640-skill-uri-scheme", "sep-2640-names-should-be-unique", "sep-2640-meta-prefix"}
    warned = {check["id"] for check in checks if check["status"] == "WARNING"}
    assert [check for check in checks if check["status"] not in ("SUCCESS", "INFO", "WARNING")] == []
    assert warned <= (set() if path.startswith("/mcp/servers/") else of_many)
