"""A daemon where nothing is that only Linux has: it is imported, starts, serves a call and ends.

What contains servers there is a process group; that, and what is measured of them, is not looked at here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.daemons import ROOT, end, stand_in, start, text, write_config

SITE = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nimport tests.fakes.not_linux\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has nothing of Linux alone."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    return {"PYTHONPATH": str(tmp_path / "site")}


@pytest.mark.e2e
async def test_a_daemon_starts_serves_a_call_and_ends_without_what_only_linux_has(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    write_config(tmp_path, {"plants": stand_in("growing")})
    daemon = start(tmp_path, environment=environment)
    try:
        await daemon.ready()
        assert text(await daemon.execute("plants:echo", text="x" * 3000)).endswith("x" * 3000)
        assert (await daemon.rows())["plants"]["state"] == "ready"
    finally:
        end(daemon)


@pytest.mark.process
def test_nothing_is_cut_that_a_pipe_does_not_take_as_a_whole(environment: dict[str, str], tmp_path: Path) -> None:
    code = (
        "from actors.transport.lines import ATOMIC_BYTES; from supervisor.bridge.pipes import _CHUNK_BYTES;"
        "from supervisor.host.logs import _SHORT_CHARS; print(ATOMIC_BYTES, _CHUNK_BYTES, _SHORT_CHARS * 4 < 512)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "512 512 True\n"
