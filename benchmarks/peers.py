"""An environment with the programs we are compared with: FastMCP, and a published server made with the official SDK.

Made once in a cache directory by the ordinary package client; what cannot be installed is reported as skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGES = ("fastmcp>=3", "mcp-server-time")
INSTALL_S = 600.0


def cache_python(name: str = "benchmarks") -> Path:
    """Return the Python of an environment in the cache directory, whether it is there or not."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mcpvisor" / name / "bin" / "python"


def prepared(
    python: Path | None, packages: Sequence[str] = PACKAGES, module: str = "fastmcp", name: str = "benchmarks"
) -> Path | None:
    """Return a Python that has the packages: the given one, or ours, which is made now. None if that fails.

    `module` is what is in there if the packages are; `name` that of the environment, as not all packages agree.
    """
    if python is not None:
        return python
    cached = cache_python(name)
    if not has(cached, module) and not install(cached, packages):
        return None
    return cached


def mcp_1() -> Path | None:
    """Return a Python that has the official SDK 1.x, and what it needs for a WebSocket; None if that fails."""
    return prepared(None, ("mcp[ws]<2",), "mcp.client.websocket", "mcp1")


def has(python: Path | None, module: str) -> bool:
    """Return whether a Python can import `module`."""
    if python is None or not python.exists():
        return False
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def version(python: Path, distribution: str) -> str:
    """Return the version of an installed distribution."""
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def mcp_remote() -> tuple[str, ...]:
    """Return the command of mcp-remote; see `node_script`."""
    return node_script("mcp-remote", "dist/proxy.js")


def node_script(package: str, path: str) -> tuple[str, ...]:
    """Return the command of a script of a package, which is installed now; empty if it fails, or without Node.js."""
    root = cache_python().parent.parent / "npm"
    script = of_package(package, root, root / "node_modules" / package / path)
    return () if script is None else ("node", str(script))


def node_program(package: str, program: str, root: Path) -> Path | None:
    """Return a program of a package, which is installed below `root` now; None if it fails, or without Node.js.

    It is the newest version, also where the package asks for a newer Node.js: these programs bring what they run on.
    """
    return of_package(f"{package}@latest", root, root / "node_modules" / ".bin" / program)


def of_package(package: str, root: Path, file: Path, options: Sequence[str] = ()) -> Path | None:
    """Return a file of a package, which is installed below `root` now; None if it fails. `options` are those of npm."""
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", *options, "--prefix", str(root), package]
    try:
        if not file.exists():
            root.mkdir(parents=True, exist_ok=True)
            subprocess.run(npm, check=True, capture_output=True, timeout=INSTALL_S)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"{package} cannot be installed: {error}", file=sys.stderr)
        return None
    return file if file.exists() else None


def install(python: Path, packages: Sequence[str], base: str = sys.executable) -> bool:
    """Make the environment of `python` with the packages, by the Python `base`; return whether it could be made."""
    root = python.parent.parent
    try:
        subprocess.run([base, "-m", "venv", root], check=True, capture_output=True, timeout=INSTALL_S)
        pip = [str(python), "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(pip, check=True, capture_output=True, timeout=INSTALL_S)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"{' '.join(packages)} cannot be installed: {error}", file=sys.stderr)
        return False
    return True
