"""Whether sandboxes can be made here, and places for them that are not in /tmp, of which a sandbox has its own."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from actors.errors import SpawnFailed
from actors.kit.paths import is_file
from actors.transport.stdio import sandbox
from actors.transport.stdio.sandbox import SHELL, Sight, arguments, trouble_of

ROOT = Path(__file__).parents[5]
SEARCHED = f"{sandbox.SEARCHED}:{ROOT}/.cache/bubblewrap/usr/bin"
"""Where the machine has it, or `.ci/clients.sh` has put Debian's."""


@cache
def why_not() -> str:
    """Why no sandbox can be made here, empty if it can."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "SEARCHED", SEARCHED)
        try:
            program = sandbox.bwrap_program()
        except SpawnFailed as error:
            return error.message
    made = subprocess.run([program, *arguments(Sight()), "--", SHELL, "-c", "true"], capture_output=True, check=False)
    return trouble_of(made.stderr.decode()).reason if made.returncode else ""


needs_bwrap = pytest.mark.skipif(bool(why_not()), reason=f"no sandbox can be made here: {why_not()}")

needs_bwrap_here = pytest.mark.skipif(
    bool(why_not()) or not any(is_file(f"{place}/bwrap") for place in sandbox.SEARCHED.split(":")),
    reason="no sandbox can be made here by a bwrap that is installed",
)
"""For a daemon of its own, which does not know of Debian's in `.cache`."""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory with a secret, a configuration, and directories to work in."""
    monkeypatch.setattr(sandbox, "SEARCHED", SEARCHED)
    with tempfile.TemporaryDirectory(prefix="home of ", dir="/var/tmp") as directory:
        root = Path(directory).resolve()
        for name in (".ssh", "data", "project", "notes", "other"):
            (root / name).mkdir()
        (root / ".ssh" / "id").write_text("secret")
        (root / "mcp.json").write_text("{}")
        monkeypatch.setenv("HOME", str(root))
        yield root
