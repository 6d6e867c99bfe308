"""`python -m benchmarks.plugins`: what plugins cost on the way of a call, and what their absence costs.

Daemons with one echo server run beside each other, and load alternates between them: without plugins, with the example
for access (`async`, before the call) and with that for redaction (in a thread, after it). `--beside DIR` is another
checkout: its daemon, which knows no plugins, is compared with ours without any.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.execute import THROUGH_US, Plan, alternating, compared, http_job
from benchmarks.machine import ROOT, free_port, program
from benchmarks.running import ECHO, Place, entry, until_ready

EXAMPLES = ROOT / "examples" / "plugins"
PLUGINS: dict[str, dict[str, Any]] = {"access": {"rules": [{"tools": ["echo:*"]}]}, "redaction": {}}


def install(name: str, target: Path) -> None:
    """Have a directory of `PYTHONPATH` look as if an example were installed there."""
    project = tomllib.loads((EXAMPLES / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for module in (EXAMPLES / name).glob("*.py"):
        (target / module.name).write_text(module.read_text(encoding="utf-8"), encoding="utf-8")
    info = target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = "".join(f"{name} = {value}\n" for name, value in project["entry-points"]["mcpvisor.plugins"].items())
    (info / "entry_points.txt").write_text(f"[mcpvisor.plugins]\n{points}")


@contextmanager
def daemon(directory: Path, site: Path, checkout: Path, plugins: Sequence[str]) -> Iterator[int]:
    """Run the daemon of a checkout with some plugins; gives its port once its server is up."""
    directory.mkdir()
    port = free_port()
    settings = {"plugins": {name: PLUGINS[name] for name in plugins}} if plugins else {}
    servers = {"echo": entry(ECHO, idle_timeout_s=0)}
    config = Place(directory).write(servers, port, log_level="warning", session_idle_s=600, **settings)
    environment = f"PYTHONPATH={os.pathsep.join((str(checkout), str(site)))}"
    command = ["env", "-C", str(checkout), environment]
    command += [sys.executable, "-m", "supervisor", "run", "--config", str(config)]
    with program(command, port, directory / "daemon.log"):
        until_ready(port)
        yield port


def main() -> None:
    """Print a line for each comparison: calls a second, times, and the ratio of the first to the second."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plugins", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--beside", type=Path)
    arguments = parser.parse_args()
    plan = Plan(seconds=arguments.seconds, rounds=arguments.rounds)
    others: list[tuple[str, Path, tuple[str, ...]]] = [
        ("the access example", ROOT, ("access",)),
        ("the redaction example", ROOT, ("redaction",)),
    ]
    if arguments.beside is not None:
        others.insert(0, ("the other checkout", arguments.beside.resolve(), ()))
    with tempfile.TemporaryDirectory(prefix="plugins-") as place, ExitStack() as stack:
        site = Path(place) / "site"
        site.mkdir()
        for name in PLUGINS:
            install(name, site)
        ours = stack.enter_context(daemon(Path(place) / "ours", site, ROOT, ()))
        for number, (name, checkout, plugins) in enumerate(others):
            with daemon(Path(place) / str(number), site, checkout, plugins) as theirs:
                for connections in (1, 16):
                    with (
                        http_job(ours, THROUGH_US, "legacy", connections) as job,
                        http_job(theirs, THROUGH_US, "legacy", connections) as other,
                    ):
                        row = compared(f"no plugins, {connections} at once", name, alternating([job, other], plan))
                    print(f"{row.what}: {row.measured}; {row.compared}; ratio {row.ratio}", flush=True)


if __name__ == "__main__":
    main()
