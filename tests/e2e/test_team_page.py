"""The guide for teams as it is written: each line runs, and prints what the page shows below it."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.daemons import ROOT
from tests.e2e.test_readme import make_home
from tests.e2e.test_start_pages import NOWHERE, RUN, daemon, run, shows, stand_ins

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs" / "guides" / "teams.md").read_text(encoding="utf-8")
STEPS = re.findall(r"```sh\n(.*?)```\n+```text\n(.*?)```", PAGE, re.DOTALL)


def test_a_team_gets_from_nothing_to_tokens_that_show_what_is_theirs(tmp_path: Path) -> None:
    home = make_home(tmp_path, {**stand_ins(), "python3": f'export PYTHONPATH={ROOT}; exec {sys.executable} "$@"'})
    (written,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    file = home / ".config" / "mcpvisor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(written)
    assert len(STEPS) == len(re.findall("```sh\n", PAGE)) == 9
    with ExitStack() as stack:
        url = NOWHERE
        for block, output in STEPS:
            if block.strip() == RUN:
                running = stack.enter_context(daemon(home))
                url, printed = running.url, running.log.replace(running.url, "http://127.0.0.1:3001")
            else:
                printed = "".join(run(home, line, url) for line in block.splitlines())
            assert shows(output, printed), f"{block}{printed}"
        (asked,) = (block for block, _ in STEPS if "nowhere:" in block)
        foreign, nothing = (run(home, line, url) for line in asked.splitlines())
        assert foreign.replace("git:git_log", "nowhere:git_log") == nothing
