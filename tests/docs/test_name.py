"""The project has one name, which is its own on the package indexes: whoever types it gets this project."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from supervisor.commands.check import DISTRIBUTION, clashes
from supervisor.host.places import default_data_dir

ROOT = Path(__file__).parents[2]
STRANGERS = ("mcp-" + "supervisor", "mcp_" + "supervisor", "MCP_" + "SUPERVISOR")
"""The names of another project; written so that this file does not hold them."""


def test_the_distribution_and_its_one_command_are_called_mcpvisor() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION == "mcpvisor"
    assert list(project["scripts"]) == ["mcpvisor"]


def test_state_is_kept_under_the_name() -> None:
    assert default_data_dir({"HOME": "/h"}) == Path("/h/.local/state/mcpvisor")


@pytest.mark.parametrize("stranger", STRANGERS)
def test_no_file_sends_a_reader_to_the_other_project(stranger: str) -> None:
    grep = subprocess.run(["git", "grep", "-lI", stranger], cwd=ROOT, capture_output=True, text=True, check=False)
    assert grep.returncode == 1, f"{stranger} in {grep.stdout}{grep.stderr}"


def test_check_warns_where_the_other_project_is_installed_beside_ours() -> None:
    (warning,) = clashes([STRANGERS[0], "mcpvisor"])
    assert f'by the distribution "{STRANGERS[0]}"' in warning
