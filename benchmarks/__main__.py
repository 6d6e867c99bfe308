"""`python -m benchmarks`: measure the daemon and print a list.

Numbers, never assertions: how fast something is depends on the machine, so no test is timed. What is compared runs in
the same minute on the same machine, in turns, and the ratio is what counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from benchmarks import (
    boot,
    bridge,
    catalogue,
    discover,
    execute,
    large,
    peers,
    people,
    proxies,
    remote,
    stdio,
    subscriptions,
    wake,
)
from benchmarks.table import Row, markdown

NAMES = (
    *("execute", "wake", "boot", "discover", "remote", "large", "stdio", "bridge", "subscriptions", "people", "fleet"),
)
BEGIN = "<!-- measured -->"
END = "<!-- end of measured -->"


def main() -> int:
    """Run what was asked for; return the exit code."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as directory:
        rows: list[Row] = []
        for name in arguments.only or NAMES:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            rows += _steps(arguments, Path(directory))[name]()
    text = f"{_machine(arguments)}\n\n{markdown(rows)}"
    print(text)
    if arguments.write is not None:
        _write(arguments.write, text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, without 10,000 tools")
    parser.add_argument("--only", action="append", choices=NAMES, help="measure only this; may be repeated")
    parser.add_argument("--catalogue", type=Path, help="a directory of tools/list results, *.json, used as well")
    parser.add_argument("--fastmcp-python", type=Path, help="a Python that has fastmcp and mcp-server-time")
    parser.add_argument("--alone", action="store_true", help="install nothing: skip what needs other programs")
    parser.add_argument("--write", type=Path, help="a Markdown file whose list is replaced")
    return parser


def _steps(arguments: argparse.Namespace, directory: Path) -> dict[str, Callable[[], list[Row]]]:
    quick: bool = arguments.quick
    plan = execute.Plan(1.0, 3) if quick else execute.Plan(2.0, 7)
    own = catalogue.read(arguments.catalogue) if arguments.catalogue else None
    sizes = [100, 1000] if quick else [100, 1000, 10_000]

    def peer() -> Path | None:
        return None if arguments.alone else peers.prepared(arguments.fastmcp_python)

    return {
        "execute": lambda: execute.run(directory, plan, peer(), () if arguments.alone else proxies.installed()),
        "wake": lambda: wake.run(directory, 3 if quick else 9, peer()),
        "boot": lambda: [
            row
            for name, tools in (("made-up", catalogue.made_up(100, 1500)), ("own", own))
            if tools is not None
            for row in boot.run(directory / f"boot-{name}", tools, 3 if quick else 5)
        ],
        "remote": lambda: remote.run(directory, plan, peer(), () if arguments.alone else peers.mcp_remote()),
        "large": lambda: large.run(directory, None if arguments.alone else peers.mcp_1(), 3 if quick else 7),
        "stdio": lambda: stdio.run(directory, plan, () if arguments.alone else peers.mcp_remote()),
        "bridge": lambda: bridge.run(directory, plan),
        "subscriptions": lambda: subscriptions.run(directory, [1000] if quick else [1000, 10_000], 3 if quick else 7),
        "fleet": lambda: _fleet(directory, plan, 100 if quick else 10_000),
        "people": lambda: people.run(directory, 100 if quick else 1000, 3),
        "discover": lambda: discover.run(directory, sizes, 100 if quick else 500, own),
    }


def _fleet(directory: Path, plan: execute.Plan, tools: int) -> list[Row]:
    """Measure a fleet, where what its engine is spoken to by is installed (the extra `fleet`)."""
    if find_spec("coredis") is None:
        print("left out: a fleet needs the extra `fleet` of mcpvisor", file=sys.stderr)
        return []
    from benchmarks import fleet

    return fleet.run(directory, plan, tools)


def _machine(arguments: argparse.Namespace) -> str:
    kernel = platform.uname()
    how = "`--quick`" if arguments.quick else "full"
    text = f"Python {platform.python_version()}, {os.cpu_count()} processors ({kernel.machine}), {how} run"
    python = None if arguments.alone else arguments.fastmcp_python or peers.cache_python()
    if python is not None and peers.has(python, "fastmcp"):
        text += f", FastMCP {peers.version(python, 'fastmcp')}"
    return text + "."


def _write(path: Path, text: str) -> None:
    before = path.read_text()
    head, begin, rest = before.partition(BEGIN)
    if not begin or END not in rest:
        raise SystemExit(f"{path} has no place for the list: {BEGIN} ... {END}")
    path.write_text(f"{head}{BEGIN}\n{text}{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    sys.exit(main())
