"""Plugins as installed packages: a directory for `sys.path`, with the metadata that an installer would write."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
GROUP = "mcpvisor.plugins"


def install_example(name: str, target: Path) -> None:
    """Install one of the examples, by what its `pyproject.toml` says."""
    source = EXAMPLES / name
    project: dict[str, Any] = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))
    for module in project["tool"]["setuptools"]["py-modules"]:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / f"{module}.py", target)
    points = project["project"]["entry-points"][GROUP]
    write_metadata(target, project["project"]["name"], points, project["project"]["version"])


def install(target: Path, module: str, source: str, points: dict[str, str], distribution: str = "") -> None:
    """Install a module with this source; `points` name what of it is a plugin."""
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{module}.py").write_text(source, encoding="utf-8")
    write_metadata(target, distribution or module, {name: f"{module}:{what}" for name, what in points.items()})


def write_metadata(target: Path, distribution: str, points: dict[str, str], version: str = "1.2.3") -> None:
    info = target / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
