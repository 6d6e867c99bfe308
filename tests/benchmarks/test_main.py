"""`python -m benchmarks` itself, with nothing measured."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.e2e.daemons import ROOT


@pytest.mark.process
def test_benchmarks_start_where_nothing_of_a_fleet_is_installed() -> None:
    code = (
        "import sys, importlib.util as util; find = util.find_spec\n"
        "sys.modules['coredis'] = None\n"
        "util.find_spec = lambda name, *more: None if name == 'coredis' else find(name, *more)\n"
        "from pathlib import Path; from benchmarks.__main__ import _fleet\n"
        "from benchmarks.execute import Plan; print(_fleet(Path(), Plan(1.0, 1), 1))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert "the extra `fleet`" in done.stderr
